/**
 * Which protocol a request speaks. Every request gets the answer of its own dialect; the rules, in
 * order, are those of `docs/wire.md`. Pure.
 */
import { isObject } from '../json'
import { META_CLIENT_CAPABILITIES, speaksModern, TASKS_EXTENSION } from './modern'

/**
 * `modern`: revision 2026-07-28. `2025`: an older revision, with or without its experimental tasks.
 * `article`: the abbreviated shapes without any revision. `stored`: whatever the task it names was
 * created in. `core`: no matter of ours, the SDK answers.
 */
export type SpokenDialect = 'modern' | '2025' | 'article' | 'stored' | 'core'

export function dialectOf(body: Record<string, unknown>, headers: Headers): SpokenDialect {
  if (speaksModern(body, headers)) return 'modern'
  const { method } = body
  const params = isObject(body['params']) ? body['params'] : {}
  const version = headers.get('mcp-protocol-version')
  if (method === 'initialize' || version !== null || headers.has('mcp-session-id')) return '2025'
  // An answer to a server request, which only these revisions have.
  if (method === undefined && ('result' in body || 'error' in body)) return '2025'
  // From here on no revision is named at all; some clients of 2025-11-25 send no header either.
  if (params['task'] !== undefined) return '2025'
  switch (method) {
    case 'tools/call':
      return declaresTasksAnyhow(params) ? 'article' : 'core'
    case 'subscriptions/listen':
      return Array.isArray(params['notifications']) ? 'article' : 'core'
    case 'tasks/update':
      return 'article'
    case 'tasks/get':
    case 'tasks/cancel':
      return 'stored'
    case 'tasks/result':
      return '2025'
    default:
      return 'core'
  }
}

function declaresTasksAnyhow(params: Record<string, unknown>): boolean {
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  const capabilities = meta[META_CLIENT_CAPABILITIES]
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined
  return isObject(extensions) && TASKS_EXTENSION in extensions
}
