/**
 * The library as the official conformance suite drives clients: started with the address of the suite's server,
 * which watches what arrives. Does what a scenario needs, with the public API only.
 */
import { accept, createTasks } from '../../../src/client/index.ts'
import type { JsonObject } from '../../../src/json.ts'

interface Context {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: JsonObject }[]
}

const [url = ''] = process.argv.slice(-1)
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? ''
// Written by the suite.
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Context

const tasks = createTasks({
  url,
  push: [],
  onQuestion: () => accept({ confirmed: true }),
  onWarning: (message) => console.error(message),
})
const tools = await tasks.tools()

switch (scenario) {
  case 'tools_call':
    await call('add_numbers', { a: 5, b: 3 })
    break
  case 'http-custom-headers':
    for (const { name, arguments: args } of context.toolCalls ?? []) await call(name, args)
    break
  case 'json-schema-2020-12-preservation': {
    const focal = tools.find(({ name }) => name === 'json_schema_2020_12_tool')
    await call('json_schema_echo', { schema: focal?.inputSchema ?? {} })
    break
  }
  case 'json-schema-ref-no-deref':
    break
  case 'sep-2322-client-request-state':
    await Promise.all([call('test_mrtr_echo_state'), call('test_mrtr_unrelated')])
    await call('test_mrtr_no_state')
    // This server leaves the type of a result out, which this revision does not allow it.
    await call('test_mrtr_no_result_type').catch((error: unknown) => console.error(String(error)))
    break
  default:
    for (const { name } of tools) await call(name, { region: 'eu' })
}
tasks.close()

async function call(tool: string, args: JsonObject = {}): Promise<void> {
  await (await tasks.call(tool, args)).result()
}
