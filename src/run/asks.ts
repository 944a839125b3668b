/**
 * What a client may be asked: a server must not send a request of a kind, or an elicitation of a
 * mode, that the client did not declare. Pure.
 */
import { isObject, type JsonObject } from '../json'
import type { InputRequest } from '../task/types'
import { type Ask, NonRetryableError, type TaskTool } from '../tool'

/** The kind of a request, or `undefined` when it is none that a client can be asked. */
export function askOf(request: InputRequest): Ask | undefined {
  switch (request.method) {
    case 'elicitation/create':
      return request.params?.['mode'] === 'url' ? 'elicitation.url' : 'elicitation'
    case 'sampling/createMessage':
      return 'sampling'
    case 'roots/list':
      return 'roots'
    default:
      return undefined
  }
}

/** Whether these client capabilities allow it. `elicitation: {}` means forms only. */
export function allows(capabilities: Readonly<Record<string, unknown>>, ask: Ask): boolean {
  const elicitation = capabilities['elicitation']
  switch (ask) {
    case 'elicitation':
      return isObject(elicitation) && (isObject(elicitation['form']) || !isObject(elicitation['url']))
    case 'elicitation.url':
      return isObject(elicitation) && isObject(elicitation['url'])
    case 'sampling':
      return isObject(capabilities['sampling'])
    case 'roots':
      return isObject(capabilities['roots'])
  }
}

/** What this tool may ask that these capabilities do not allow. */
export function missingAsks(tool: TaskTool, capabilities: Readonly<Record<string, unknown>>): Ask[] {
  const asks: readonly Ask[] = tool.gather ? ['elicitation', ...(tool.asks ?? [])] : (tool.asks ?? [])
  return asks.filter((ask) => !allows(capabilities, ask))
}

/** The capability object a client would have to declare. */
export function capabilityFor(ask: Ask): JsonObject {
  switch (ask) {
    case 'elicitation':
      return { elicitation: { form: {} } }
    case 'elicitation.url':
      return { elicitation: { url: {} } }
    case 'sampling':
      return { sampling: {} }
    case 'roots':
      return { roots: {} }
  }
}

/** @throws NonRetryableError inside the tool, when it asks for something nobody agreed to. */
export function checkAsk(request: InputRequest, capabilities: JsonObject): void {
  const ask = askOf(request)
  if (!ask) throw new NonRetryableError(`${request.method} is not a request that a client can be sent.`)
  if (!allows(capabilities, ask)) {
    throw new NonRetryableError(
      `The client did not declare ${ask}. List it in the tool's "asks", so that this is checked when the tool is called.`,
    )
  }
}
