/** The way without Longhaul's router: `tasks/get` registered on the SDK's own entry, over the same object. */
import { createMcpHandler, McpServer, type McpHttpHandler, ProtocolError } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { authInfoOf } from '../src/mcp/core'
import type { Services } from '../src/mcp/services'
import { TASKS_EXTENSION, UNKNOWN_TASK } from '../src/protocol/modern'

const GetTask = z.object({ taskId: z.string() })

export function createSdkOnly({ ids, stubs }: Services): McpHttpHandler {
  return createMcpHandler(({ authInfo }) => {
    const capabilities = { tools: {}, extensions: { [TASKS_EXTENSION]: {} } }
    const mcp = new McpServer({ name: 'bench', version: '1.0.0' }, { capabilities })
    mcp.server.setRequestHandler('tasks/get', { params: GetTask }, async ({ taskId }) => {
      const tenant = String(authInfo?.extra?.['tenant'])
      const snapshot = (await ids.accept(tenant, taskId)) ? await stubs(taskId).read(tenant) : null
      if (snapshot === null) throw new ProtocolError(UNKNOWN_TASK.code, UNKNOWN_TASK.message)
      return { resultType: 'complete', ...(JSON.parse(snapshot) as Record<string, unknown>) }
    })
    return mcp
  })
}

export async function answerBySdk(
  request: Request,
  services: Services,
  sdk: McpHttpHandler,
): Promise<Response> {
  const caller = await services.authenticate(request)
  if (!caller.ok) return new Response(caller.message, { status: caller.status })
  return sdk.fetch(request, { authInfo: authInfoOf(caller.principal) })
}
