/**
 * `Mcp-Param-*`: argument values that a tool's schema asks clients to mirror into headers
 * (`x-mcp-header`, SEP-2243), so that intermediaries can route by them. Pure.
 */
import { isObject } from '../json'
import { type Checked, HEADER_MISMATCH, ok, refuse } from './jsonrpc'
import { decodeHeaderValue } from './modern'

export interface ParamHeader {
  readonly header: string
  readonly path: readonly string[]
}

/** The declarations in a tool's JSON Schema: on properties reachable through `properties` only. */
export function paramHeadersOf(schema: unknown, path: readonly string[] = []): ParamHeader[] {
  if (!isObject(schema)) return []
  const name = schema['x-mcp-header']
  const own = typeof name === 'string' && path.length > 0 ? [{ header: `Mcp-Param-${name}`, path }] : []
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  return [
    ...own,
    ...Object.entries(properties).flatMap(([key, child]) => paramHeadersOf(child, [...path, key])),
  ]
}

/** Each declared argument that is present must be mirrored, and equal. */
export function checkParamHeaders(
  declared: readonly ParamHeader[],
  args: Record<string, unknown>,
  headers: Headers,
): Checked<undefined> {
  for (const { header, path } of declared) {
    const value = path.reduce<unknown>((node, key) => (isObject(node) ? node[key] : undefined), args)
    const expected =
      typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
        ? String(value)
        : undefined
    if (expected === undefined) continue
    const raw = headers.get(header)
    const decoded = raw === null ? undefined : decodeHeaderValue(raw.trim())
    if (decoded === undefined || !same(decoded, expected, value)) {
      const problem = raw === null ? 'is missing' : decoded === undefined ? 'is not valid Base64' : 'differs'
      return refuse(
        HEADER_MISMATCH,
        `Header mismatch: ${header} ${problem}; the body has ${path.join('.')}=${expected}.`,
        {
          mismatch: { header, body: expected },
        },
      )
    }
  }
  return ok(undefined)
}

/** Numbers compare as numbers: `42.0` is `42`. */
function same(decoded: string, expected: string, value: unknown): boolean {
  if (typeof value === 'number' && /^-?\d+(\.\d+)?$/.test(decoded)) return Number(decoded) === value
  return decoded === expected
}
