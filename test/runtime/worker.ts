/** The Worker under test: real engine, small tools made to be observed. */
import { createLonghaul } from '../../src/index'
import { tools } from './tools'

export { TaskObject, TenantObject } from '../../src/index'
/** The same tools for callers with tokens, as an entrypoint of its own. */
export { WithTokens } from './auth/with-tokens'
export default createLonghaul({
  name: 'runtime-tests',
  version: '1.0.0',
  tools,
  configure: (server) => {
    server.registerResource('note', 'test://note', {}, ({ href }) => ({
      contents: [{ uri: href, text: 'A note.' }],
    }))
    server.server.registerCapabilities({ resources: { subscribe: true } })
  },
  limits: { blockFor: '3 seconds' },
})
