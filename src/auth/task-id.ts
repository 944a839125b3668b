/**
 * Task ids: `tsk_`, a ULID, and a signature over tenant and ULID. A forged, truncated or foreign
 * id is refused at the edge without waking any object, and so is one whose task can no longer
 * exist: its time is in the ULID.
 */
import { decodeTime, ulid } from 'ulid'
import { SIGNATURE_CHARS, type SigningKeys } from './keys'

const PREFIX = 'tsk_'
const ULID_CHARS = 26
const SHAPE = new RegExp(`^${PREFIX}[0-7][0-9A-HJKMNP-TV-Z]{25}[A-Za-z0-9_-]{${SIGNATURE_CHARS}}$`)
/** Clocks differ, and retention may keep a task a little past its limit. */
const GRACE_MS = 3_600_000

export class TaskIds {
  readonly #keys: SigningKeys
  readonly #maxAgeMs: number

  /** `maxLifeMs`: the longest time-to-live plus retention any task can have here. */
  constructor(keys: SigningKeys, maxLifeMs: number) {
    this.#keys = keys
    this.#maxAgeMs = maxLifeMs + GRACE_MS
  }

  async mint(tenant: string): Promise<string> {
    const unique = ulid()
    return PREFIX + unique + (await this.#keys.sign('task-id', [tenant, unique]))
  }

  /** Looks like an id of ours. For operators, who act for every tenant. */
  isWellFormed(taskId: string): boolean {
    return SHAPE.test(taskId)
  }

  /** Whether this tenant can have a task of this id. */
  async accept(tenant: string, taskId: string): Promise<boolean> {
    if (!SHAPE.test(taskId)) return false
    const unique = taskId.slice(PREFIX.length, PREFIX.length + ULID_CHARS)
    const age = Date.now() - decodeTime(unique)
    if (age > this.#maxAgeMs || age < -GRACE_MS) return false
    return this.#keys.verify('task-id', [tenant, unique], taskId.slice(PREFIX.length + ULID_CHARS))
  }
}
