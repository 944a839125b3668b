/**
 * What a message needs its sender to be allowed: OAuth scopes by method, and those a tool asks for.
 * Pure. The scopes are independent of each other: none implies another.
 *
 * @see https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization (Scope Challenge Handling)
 */
import { isObject } from '../json'

/** To follow tasks: `tasks/get`, `tasks/result`, `subscriptions/listen`. */
export const TASKS_READ = 'tasks:read'
/** To start, answer and cancel them: `tools/call`, `tasks/update`, `tasks/cancel`. */
export const TASKS_WRITE = 'tasks:write'
/** What every client needs to work with tasks at all. */
export const BASIC_SCOPES: readonly string[] = [TASKS_READ, TASKS_WRITE]

type ScopedTools = ReadonlyMap<string, { readonly scopes?: readonly string[] }>

/** All scopes that a message needs, so that one challenge names them together. */
export function scopesFor(message: Record<string, unknown>, tools: ScopedTools): readonly string[] {
  switch (message['method']) {
    case 'tools/call': {
      const name = isObject(message['params']) ? message['params']['name'] : undefined
      const own = typeof name === 'string' ? tools.get(name)?.scopes : undefined
      return [...new Set([TASKS_WRITE, ...(own ?? [])])]
    }
    case 'tasks/update':
    case 'tasks/cancel':
      return [TASKS_WRITE]
    case 'tasks/get':
    case 'tasks/result':
    case 'subscriptions/listen':
      return [TASKS_READ]
    case undefined:
      // A JSON-RPC response: in revision 2025-11-25 it answers a question of a task.
      return [TASKS_WRITE]
    default:
      return []
  }
}

/** Whether `granted` has everything in `needed`. */
export function covers(granted: readonly string[], needed: readonly string[]): boolean {
  return needed.every((scope) => granted.includes(scope))
}

/** Every scope this server knows; what an identity holds that is not limited by scopes. */
export function allScopes(tools: ScopedTools): readonly string[] {
  return [...new Set([...BASIC_SCOPES, ...[...tools.values()].flatMap((tool) => tool.scopes ?? [])])]
}

/** RFC 6749 section 3.3: `scope-token`. */
export function isScope(text: string): boolean {
  return /^[\x21\x23-\x5B\x5D-\x7E]+$/.test(text)
}
