/** Tools that do what the introductory article tells. */
import { z } from 'zod'
import { defineTool, type Tool } from '../../../src/index'

const pipeline = defineTool({
  name: 'article_pipeline',
  description: 'Runs tests and says how many passed.',
  input: z.object({ commit: z.string() }),
  task: { support: 'required', ttl: 3_600_000, poll: { min: 2_000 } },
  async run({ step }) {
    await step.status({ message: 'Running tests', done: 128, total: 342 })
    await step.sleep('tests', '1 second')
    return 'All 342 tests passed in 4m12s'
  },
})

const cleanUp = defineTool({
  name: 'article_clean_up',
  description: 'Deletes files after asking.',
  input: z.object({}),
  task: { support: 'required' },
  asks: ['elicitation'],
  async run({ step }) {
    const answer = await step.elicit('confirm_delete', {
      message: 'Delete 47 files matching *.tmp?',
      schema: z.object({ confirm: z.boolean().optional() }),
    })
    return JSON.stringify(answer)
  },
})

export const articleTools: readonly Tool[] = [pipeline, cleanUp]
