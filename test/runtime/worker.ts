/** The Worker under test: real engine, small tools made to be observed. */
import { createLonghaul } from '../../src/index'
import { tools as builtIn } from '../../src/tools'
import { passOn } from './deliveries'
import { tools } from './tools'
import { crashing } from './tools/crashing'
import { pausing } from './tools/pausing'
import { quickParts, threeParts } from './tools/progress-tool'
import { lateRetry } from './tools/retry-tool'

export { TaskObject, TenantObject } from '../../src/index'

/** The same tools for callers with tokens, as an entrypoint of its own. */
export { WithTokens } from './auth/with-tokens'

/** Without what the tests put between it and the queues. */
export const longhaul = createLonghaul({
  name: 'runtime-tests',
  version: '1.0.0',
  tools: [...tools, threeParts, quickParts, lateRetry, ...builtIn, ...crashing(builtIn), ...pausing(builtIn)],
  configure: (server) => {
    server.registerResource('note', 'test://note', {}, ({ href }) => ({
      contents: [{ uri: href, text: 'A note.' }],
    }))
    server.server.registerCapabilities({ resources: { subscribe: true } })
  },
  limits: { blockFor: '3 seconds' },
})

export default {
  ...longhaul,
  queue: (batch, env, ctx) => passOn(batch, (passed) => longhaul.queue(passed, env, ctx)),
} satisfies ExportedHandler<Cloudflare.Env>
