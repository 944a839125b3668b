/** The tools with a rest after their second step: they ask whether to go on, and a test has all the time it needs. */
import { z } from 'zod'
import type { Tool } from '../../../src/tool'
import { wrapped } from './wrapped'

const SECOND = 2

export function pausing(tools: readonly Tool[]): Tool[] {
  return wrapped(
    tools,
    'pausing',
    (step) => {
      let steps = 0
      return async (name, options, fn) => {
        const result = await step.do(name, options, fn)
        if (++steps === SECOND) await step.elicit('go on', { message: 'Go on?', schema: z.object({}) })
        return result
      }
    },
    { asks: ['elicitation'] },
  )
}
