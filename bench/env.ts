/** Bindings that only the bench Worker has. */
import type { CountedTaskObject, CountedTenantObject } from './counted'
import type { FloorObject } from './floor'

export interface BenchEnv extends Cloudflare.Env {
  readonly FLOOR: DurableObjectNamespace<FloorObject>
  readonly COUNTED_TASKS: DurableObjectNamespace<CountedTaskObject>
  readonly COUNTED_TENANTS: DurableObjectNamespace<CountedTenantObject>
}
