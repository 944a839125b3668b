/** The deployable Worker: our tools and the options. */
import { z } from 'zod'
import { createLonghaul, defineTool } from './index'

const greet = defineTool({
  name: 'greet',
  description: 'x',
  input: z.object({ name: z.string() }),
  asks: ['elicitation'],
  async run({ input, step }) {
    await step.do('one', () => 1)
    await step.status({ message: 'hello', done: 1, total: 2 })
    const a = await step.elicit('confirm', { message: 'sure?', schema: z.object({ confirm: z.boolean() }) })
    await step.sleep('think', '3 seconds')
    return `Hello, ${input.name}! ${JSON.stringify(a)}`
  },
})

export { TaskObject, TenantObject } from './index'
export default createLonghaul({ name: 'longhaul', version: '0.1.0', tools: [greet] })
