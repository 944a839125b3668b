/**
 * The rest of MCP, by the official SDK: discovery, tools/list, plain tools, prompts, resources,
 * multi-round-trip requests and the checks of the core. A fresh server per request, as the SDK wants it.
 */
import { type AuthInfo, createMcpHandler, McpServer, type McpHttpHandler } from '@modelcontextprotocol/server'
import type { Principal } from '../auth/principal'
import { METHOD_NOT_FOUND } from '../protocol/jsonrpc'
import { type ServerInfo, TASKS_EXTENSION } from '../protocol/modern'
import { ProtocolError } from '@modelcontextprotocol/server'
import type { PlainTool } from '../tool'
import { requestStateOf, type SealState } from './request-state'
import type { Services } from './services'

/** Adds prompts, resources or further SDK tools to the server of a request. */
export type Configure = (
  server: McpServer,
  context: {
    readonly principal: Principal
    readonly env: Cloudflare.Env
    /** For handlers that ask in several rounds. */
    readonly sealState: SealState
  },
) => void

export function createCore(
  server: ServerInfo,
  services: Services,
  configure: Configure | undefined,
): McpHttpHandler {
  return createMcpHandler(({ authInfo }) => {
    const principal = principalOf(authInfo)
    const { sealState, verify } = requestStateOf(services.keys, principal.tenant)
    const mcp = new McpServer(server, {
      capabilities: { tools: {}, extensions: { [TASKS_EXTENSION]: {} } },
      requestState: { verify },
    })
    for (const tool of services.tools.values()) {
      const { name, title, description, annotations, input, output } = tool
      const config = {
        ...(title !== undefined && { title }),
        description,
        ...(annotations && { annotations }),
        inputSchema: input,
        ...(output && { outputSchema: output }),
      }
      if (tool.kind === 'plain') mcp.registerTool(name, config, plainHandler(tool, principal, services))
      else mcp.registerTool(name, config, () => refuseTaskTool(name))
    }
    configure?.(mcp, { principal, env: services.env, sealState })
    promiseNoListChanges(mcp)
    return mcp
  })
}

/**
 * The SDK promises `listChanged` for whatever is registered. The lists of a Worker change with a
 * deployment, where no stream of the old one is told: so the promise is taken back.
 */
function promiseNoListChanges({ server }: McpServer): void {
  const { prompts, resources } = server.getCapabilities()
  server.registerCapabilities({
    tools: { listChanged: false },
    ...(prompts && { prompts: { ...prompts, listChanged: false } }),
    ...(resources && { resources: { ...resources, listChanged: false } }),
  })
}

function plainHandler(tool: PlainTool, principal: Principal, { env }: Services) {
  return async (input: Record<string, unknown>, mcp: Parameters<PlainTool['run']>[0]['mcp']) => {
    const output = await tool.run({ input, env, principal, signal: mcp.mcpReq.signal, mcp })
    return typeof output === 'string' ? { content: [{ type: 'text' as const, text: output }] } : output
  }
}

/** Calls of task tools are answered before they reach the SDK. */
function refuseTaskTool(name: string): never {
  throw new ProtocolError(
    METHOD_NOT_FOUND,
    `${name} runs as a task, which this protocol revision does not have.`,
  )
}

/** The SDK carries identity as its own AuthInfo; the token itself is not passed on. */
export function authInfoOf({ tenant, subject, scopes }: Principal): AuthInfo {
  return { token: '', clientId: subject, scopes: [...scopes], extra: { tenant } }
}

function principalOf(authInfo: AuthInfo | undefined): Principal {
  const tenant = authInfo?.extra?.['tenant']
  if (!authInfo || typeof tenant !== 'string') throw new Error('a request reached the SDK without identity')
  return { tenant, subject: authInfo.clientId, scopes: authInfo.scopes }
}
