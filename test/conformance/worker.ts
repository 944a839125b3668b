/**
 * The server that the official conformance suite is run against: the real engine and routes, with the
 * tools, prompts and resources that the suite's scenarios ask for by name.
 */
import { createLonghaul } from '../../src/index'
import { askingTools } from './asking-tools'
import { registerCoreTools } from './core-tools'
import { registerMrtrTools } from './mrtr-tools'
import { registerPrompts } from './prompts'
import { registerResources } from './resources'
import { taskTools } from './tasks'

export { TaskObject, TenantObject } from '../../src/index'
export default createLonghaul({
  name: 'longhaul-conformance',
  version: '1.0.0',
  tools: [...taskTools, ...askingTools],
  configure: (server, { sealState }) => {
    registerCoreTools(server)
    registerMrtrTools(server, sealState)
    registerPrompts(server)
    registerResources(server)
  },
})
