/**
 * The objects, counting what the platform bills: requests to them (calls and alarms) and rows they
 * write (SQL, and one for each setting of the alarm), by the method that caused them.
 */
import { TaskObject, TenantObject } from '../src/index'
import type { TaskEnv } from '../src/task/object'
import type { TenantEnv } from '../src/tenant/object'

export interface Bill {
  readonly requests: Record<string, number>
  readonly rows: Record<string, number>
}

class Counter {
  readonly requests: Record<string, number> = {}
  readonly rows: Record<string, number> = {}
  #method = 'constructor'

  /** Listens in on the storage, before the object takes hold of it. */
  constructor(storage: DurableObjectStorage) {
    const { sql } = storage
    const exec = sql.exec.bind(sql)
    sql.exec = (query, ...bindings) => {
      // Whatever rows the caller expects: they pass through unseen.
      const cursor = exec<never>(query, ...bindings)
      this.#wrote(cursor.rowsWritten)
      return cursor
    }
    const setAlarm = storage.setAlarm.bind(storage)
    storage.setAlarm = (time, options) => {
      this.#wrote(1)
      return setAlarm(time, options)
    }
  }

  /** A request comes in. What is written from now on is its doing, or that of what it left running. */
  enter(method: string): void {
    this.#method = method
    this.requests[method] = (this.requests[method] ?? 0) + 1
  }

  /** What was counted so far; begins anew. */
  bill(): Bill {
    const bill = { requests: { ...this.requests }, rows: { ...this.rows } }
    for (const counts of [this.requests, this.rows]) for (const name in counts) delete counts[name]
    return bill
  }

  #wrote(rows: number): void {
    this.rows[this.#method] = (this.rows[this.#method] ?? 0) + rows
  }
}

let constructed = 0

/** Task objects constructed so far in this process: each creation is one, and each wake from hibernation. */
export function constructions(): number {
  return constructed
}

export class CountedTaskObject extends TaskObject {
  readonly counter: Counter

  constructor(ctx: DurableObjectState, env: TaskEnv) {
    const counter = new Counter(ctx.storage)
    super(ctx, env)
    this.counter = counter
    constructed++
  }

  async bill(): Promise<Bill> {
    return this.counter.bill()
  }

  static {
    countMethods(this.prototype)
  }
}

export class CountedTenantObject extends TenantObject {
  readonly counter: Counter

  constructor(ctx: DurableObjectState, env: TenantEnv) {
    const counter = new Counter(ctx.storage)
    super(ctx, env)
    this.counter = counter
  }

  async bill(): Promise<Bill> {
    return this.counter.bill()
  }

  static {
    countMethods(this.prototype)
  }
}

/** Wraps every method that the class inherits from those it counts for. */
function countMethods(counting: { readonly counter: Counter }): void {
  const own = new Set(Object.getOwnPropertyNames(counting))
  let from: unknown = Object.getPrototypeOf(counting)
  // Up to the runtime's own base class, which has no methods of ours.
  while (from instanceof Object && Object.getPrototypeOf(Object.getPrototypeOf(from)) !== null) {
    for (const name of Object.getOwnPropertyNames(from)) {
      const method: unknown = Reflect.get(from, name)
      if (own.has(name) || typeof method !== 'function') continue
      own.add(name)
      Object.defineProperty(counting, name, {
        value(this: typeof counting, ...args: unknown[]): unknown {
          this.counter.enter(name)
          return Reflect.apply(method, this, args)
        },
      })
    }
    from = Object.getPrototypeOf(from)
  }
}
