/** Tools with nothing in them but steps: what is measured is the system around them. */
import { z } from 'zod'
import { defineTool } from '../src/index'

const input = z.object({})

const oneStep = defineTool({
  name: 'one_step',
  description: 'The shortest task.',
  input,
  async run({ step }) {
    return step.do('only', () => 'done')
  },
})

const hundredSteps = defineTool({
  name: 'hundred_steps',
  description: 'A hundred steps over some seconds, with progress.',
  input,
  async run({ step }) {
    for (let done = 1; done <= 100; done++) {
      await step.do(`step ${done}`, () => scheduler.wait(40))
      await step.status({ message: 'Working', done, total: 100 })
    }
    return 'done'
  },
})

const longWork = defineTool({
  name: 'long_work',
  description: 'Works for minutes, in steps of a second.',
  input,
  async run({ step }) {
    for (let second = 1; second <= 300; second++) {
      await step.do(`second ${second}`, () => scheduler.wait(1_000))
    }
    return 'done'
  },
})

const rest = defineTool({
  name: 'rest',
  description: 'A task that is working, and quiet.',
  input,
  async run({ step }) {
    await step.sleep('hours', '6 hours')
    return 'done'
  },
})

export const tools = [oneStep, hundredSteps, longWork, rest]
