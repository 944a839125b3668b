/** Tools that do nothing but report how far they are. */
import { z } from 'zod'
import { defineTool } from '../../../src/index'

/** Its second run has to pass its old status texts before it comes to a slow step. */
export const threeParts = defineTool({
  name: 'three_parts',
  description: 'Reports after each part, and rests between the second and the third.',
  input: z.object({}),
  async run({ step }) {
    for (const part of [1, 2]) {
      await step.do(`part ${part}`, () => part)
      await step.status({ message: 'Working', done: part, total: 3 })
    }
    await step.sleep('rest', '2500 milliseconds')
    await step.do('part 3', () => scheduler.wait(1_500))
    await step.status({ message: 'Working', done: 3, total: 3 })
    return 'Done.'
  },
})

/** Reports faster than status texts are sent. */
export const quickParts = defineTool({
  name: 'quick_parts',
  description: 'Five parts, at once.',
  input: z.object({}),
  async run({ step }) {
    for (const done of [1, 2, 3, 4, 5]) await step.status({ message: 'Working', done, total: 5 })
    return 'Done.'
  },
})
