/** The Worker of the console's tests: the tools of the deployable one, and a few that do what a test needs. */
import { z } from 'zod'
import { createLonghaul, defineTool } from '../../../src/index'
import { tools as builtIn } from '../../../src/tools'

export { TaskObject, TenantObject } from '../../../src/index'

const putFiles = defineTool({
  name: 'put_files',
  description: 'Puts empty files into the bucket.',
  input: z.object({ prefix: z.string(), count: z.int().min(1).max(2_000) }),
  task: { support: 'none' },
  async run({ input, env }) {
    for (let n = 0; n < input.count; n += 100) {
      const some = Array.from({ length: Math.min(100, input.count - n) }, (_, i) => `${input.prefix}${n + i}`)
      await Promise.all(some.map((key) => env.FILES.put(key, '')))
    }
    return 'Ready.'
  },
})

const count = defineTool({
  name: 'count',
  title: 'Count slowly',
  description: 'Counts, and says how far it is.',
  input: z.object({ to: z.int().min(1).max(500).describe('Where to stop.'), note: z.string().optional() }),
  task: { poll: { min: 200, max: 400 } },
  async run({ input, step }) {
    for (let n = 1; n <= input.to; n++) {
      await step.do(`count ${n}`, () => scheduler.wait(200))
      await step.status({ message: 'Counting', done: n, total: input.to })
    }
    return `Counted to ${input.to}.`
  },
})

/** No step is left that could see the wish to cancel. */
const stubborn = defineTool({
  name: 'stubborn',
  title: 'Finish all the same',
  description: 'Does not look whether it should stop.',
  input: z.object({}),
  task: { poll: { min: 200, max: 400 } },
  async run() {
    await scheduler.wait(4_000)
    return 'Done all the same.'
  },
})

/** Whatever it says is text, and nothing else. */
const hostile = defineTool({
  name: 'hostile',
  title: '<img src=x onerror=alert(1)>',
  description: '<script>alert(1)</script> [link](javascript:alert(1))',
  input: z.object({}),
  async run() {
    return {
      content: [
        { type: 'text', text: '<img src=x onerror="document.title=\'owned\'">' },
        { type: 'resource_link', uri: 'javascript:alert(1)', name: 'Click me' },
      ],
    }
  },
})

const tools = [...builtIn, putFiles, count, stubborn, hostile]
export default createLonghaul({ name: 'longhaul-console-tests', version: '1.0.0', tools })
