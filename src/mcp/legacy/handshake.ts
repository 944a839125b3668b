/**
 * `initialize` and `tools/list` of the 2025 revisions: answered by the SDK, with what it does not know
 * added: the session, and the experimental tasks of 2025-11-25.
 */
import { openSession } from '../../auth/session'
import { isObject } from '../../json'
import type { RpcRequest } from '../../protocol/jsonrpc'
import { declared, hasTasks, initialized, negotiate, withTaskSupport } from '../../protocol/legacy'
import { type Incoming, toCore } from '../incoming'
import { type Caller, SESSION_HEADER } from './caller'

export async function answerInitialize(rpc: RpcRequest, incoming: Incoming): Promise<Response> {
  const { principal, services } = incoming
  const params = rpc.params ?? {}
  const revision = negotiate(params['protocolVersion'])
  const body = { ...rpc, params: { ...params, protocolVersion: revision } }
  const session = await openSession(
    services.keys,
    principal.tenant,
    revision,
    declared(params['capabilities']),
  )
  return amended(await toCore({ ...incoming, body }), (result) => initialized(result, revision), {
    [SESSION_HEADER]: session,
  })
}

export async function answerToolsList(incoming: Incoming, { revision }: Caller): Promise<Response> {
  const response = await toCore(incoming)
  if (!hasTasks(revision)) return response
  const { taskTools } = incoming.services
  return amended(response, (result) =>
    withTaskSupport(result, (name) => {
      const tool = taskTools.get(name)
      return tool && (tool.task?.support ?? 'optional')
    }),
  )
}

/** The SDK's answer, one message, with its result changed. Errors pass as they are. */
async function amended(
  response: Response,
  change: (result: Record<string, unknown>) => Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<Response> {
  const { status } = response
  const text = await response.text()
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const json = isStream ? /^data: (\{.*)$/m.exec(text)?.[1] : text
  const message: unknown = json ? JSON.parse(json) : undefined
  if (!isObject(message) || !isObject(message['result'])) return Response.json(message ?? null, { status })
  return Response.json({ ...message, result: change(message['result']) }, { status, headers })
}
