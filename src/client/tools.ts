/**
 * Tool definitions as `tools/list` gives them, and the arguments that a definition asks to be
 * mirrored into `Mcp-Param-*` headers (SEP-2243). Pure.
 */
import { isObject, type Json, type JsonObject } from '../json.ts'
import { encodeHeaderValue } from './header-value.ts'

export interface ToolDefinition {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: JsonObject
  readonly outputSchema?: JsonObject
  readonly annotations?: JsonObject
  readonly [key: string]: Json | undefined
}

export interface Mirror {
  readonly header: string
  readonly path: readonly string[]
}

export type Mirrors =
  | { readonly ok: true; readonly mirrors: readonly Mirror[] }
  | { readonly ok: false; readonly reason: string }

/** The tools in a page of `tools/list`; entries that are none are left out. */
export function readTools(result: JsonObject): ToolDefinition[] {
  const { tools } = result
  if (!Array.isArray(tools)) return []
  return tools.filter(isTool)
}

function isTool(value: unknown): value is ToolDefinition {
  return isObject(value) && typeof value['name'] === 'string' && isObject(value['inputSchema'])
}

/** RFC 9110, 5.1: a token. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Not `number`: its text is not the same everywhere. */
const MIRRORED_TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])

/**
 * The mirrored arguments of a tool. A definition that breaks the rules makes the tool unusable: a client
 * must not call it, since intermediaries could not trust the headers.
 */
export function mirrorsOf(inputSchema: JsonObject): Mirrors {
  const mirrors: Mirror[] = []
  const names = new Set<string>()

  /** Every annotation must be reachable through `properties` alone, so all else is searched too. */
  function visit(node: unknown, path: readonly string[], reachable: boolean): string | undefined {
    if (Array.isArray(node)) return first(node, (child) => visit(child, path, false))
    if (!isObject(node)) return undefined
    if ('x-mcp-header' in node && !isPropertyMap(path)) {
      const name = node['x-mcp-header']
      const at = path.filter((key) => key !== PROPERTIES)
      const where = at.join('.') || 'the schema itself'
      if (!reachable || at.length === 0) return `x-mcp-header does not belong at ${where}`
      if (typeof name !== 'string' || !TOKEN.test(name)) {
        return `the x-mcp-header of ${where} is not the name of a header`
      }
      if (!MIRRORED_TYPES.has(node['type'])) {
        return `the x-mcp-header of ${where} is on a value that is no string, integer or boolean`
      }
      if (names.has(name.toLowerCase())) return `two properties have the x-mcp-header ${name}`
      names.add(name.toLowerCase())
      mirrors.push({ header: `Mcp-Param-${name}`, path: at })
    }
    return first(Object.entries(node), ([key, child]) => {
      if (isPropertyMap(path)) return visit(child, [...path, key], reachable)
      if (key === 'properties') return visit(child, [...path, PROPERTIES], reachable)
      return DATA_KEYWORDS.has(key) ? undefined : visit(child, path, false)
    })
  }

  const reason = visit(inputSchema, [], true)
  return reason === undefined ? { ok: true, mirrors } : { ok: false, reason }
}

/** Marks, on a path, that the next key is a property's name and not a keyword. */
const PROPERTIES = '\u0000properties'
const isPropertyMap = (path: readonly string[]) => path.at(-1) === PROPERTIES
/** Keywords whose values are data, not schemas. */
const DATA_KEYWORDS: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples', 'x-mcp-header'])

function first<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

/** The headers for a call with these arguments. Absent and `null` arguments have none. */
export function mirroredHeaders(mirrors: readonly Mirror[], args: JsonObject): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { header, path } of mirrors) {
    const value = path.reduce<unknown>((node, key) => (isObject(node) ? node[key] : undefined), args)
    if (typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) {
      headers[header] = encodeHeaderValue(String(value))
    }
  }
  return headers
}
