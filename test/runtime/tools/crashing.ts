/**
 * The tools as the worst machine runs them: every step does its work, dies before the record, and does it
 * again. What it did twice must be there once.
 */
import type { Tool } from '../../../src/tool'
import { wrapped } from './wrapped'

export function crashing(tools: readonly Tool[]): Tool[] {
  return wrapped(
    tools,
    'crashing',
    (step) => (name, options, fn) =>
      step.do(name, options, async (context) => {
        await fn(context)
        return fn(context)
      }),
  )
}
