/**
 * What one tenant may use: the server's defaults, and what the operator says otherwise for some tenants in
 * `TENANT_LIMITS`, a JSON object of tenant to limits. Pure.
 */
import { z } from 'zod'
import { ConfigurationError } from '../auth/keys'
import { describe } from '../task/questions'

export interface TenantLimits {
  /** Tasks that have not ended. */
  readonly liveTasks: number
  readonly creationsPerMinute: number
  /** Open event streams that listen to tasks. */
  readonly subscriptions: number
  /** JSON text of the arguments of one call. */
  readonly argumentBytes: number
  readonly resultBytes: number
  /** Cap on every tool's time-to-live. */
  readonly ttlMs: number
}

const count = z.number().int().positive()
const Overrides = z.record(
  z.string(),
  z.strictObject({
    liveTasks: count.optional(),
    creationsPerMinute: count.optional(),
    subscriptions: count.optional(),
    argumentBytes: count.optional(),
    resultBytes: count.optional(),
    ttlMs: count.optional(),
  }),
)

/** @throws ConfigurationError when `json` is not an object of tenant to limits. */
export function tenantLimits(
  defaults: TenantLimits,
  json: string | undefined,
): (tenant: string) => TenantLimits {
  if (json === undefined || json === '') return () => defaults
  let given: unknown
  try {
    given = JSON.parse(json)
  } catch {
    throw new ConfigurationError('TENANT_LIMITS is not valid JSON: it must be an object of tenant to limits.')
  }
  const parsed = Overrides.safeParse(given)
  if (!parsed.success) throw new ConfigurationError(`TENANT_LIMITS: ${describe(parsed.error)}`)
  const known = new Map(Object.entries(parsed.data).map(([tenant, own]) => [tenant, withOwn(defaults, own)]))
  return (tenant) => known.get(tenant) ?? defaults
}

/** No tenant's time-to-live may exceed the server's: ids older than that are refused at the edge. */
function withOwn(defaults: TenantLimits, own: z.output<typeof Overrides>[string]): TenantLimits {
  const limits = { ...defaults, ...(JSON.parse(JSON.stringify(own)) as Partial<TenantLimits>) }
  return { ...limits, ttlMs: Math.min(limits.ttlMs, defaults.ttlMs) }
}
