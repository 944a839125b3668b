/** A step that fails once and may only be tried again after a while. */
import { z } from 'zod'
import { defineTool } from '../../../src/index'

export const lateRetry = defineTool({
  name: 'late_retry',
  description: 'Succeeds at the second attempt.',
  input: z.object({}),
  async run({ step }) {
    return step.do('try', { retry: { limit: 1, delay: '4 seconds' } }, ({ attempt }) => {
      if (attempt === 1) throw new Error('Not yet.')
      return `Done at attempt ${attempt}.`
    })
  },
})
