/**
 * The tools as the worst machine runs them: every step does its work, dies before the record, and does it
 * again. What it did twice must be there once.
 */
import type { Json } from '../../../src/index'
import type { Step, StepContext, StepOptions, TaskTool, Tool } from '../../../src/tool'

export function crashing(tools: readonly Tool[]): Tool[] {
  return tools.flatMap((tool) => (tool.kind === 'task' ? [crashingTool(tool)] : []))
}

function crashingTool(tool: TaskTool): TaskTool {
  return {
    ...tool,
    name: `crashing_${tool.name}`,
    run: (context) => tool.run({ ...context, step: crashingStep(context.step) }),
  }
}

function crashingStep(step: Step): Step {
  function twice<T extends Json | void>(
    name: string,
    optionsOrFn: StepOptions | ((context: StepContext) => Promise<T> | T),
    maybeFn?: (context: StepContext) => Promise<T> | T,
  ): Promise<T> {
    const options = typeof optionsOrFn === 'function' ? {} : optionsOrFn
    const fn = typeof optionsOrFn === 'function' ? optionsOrFn : maybeFn
    if (!fn) throw new TypeError('A step needs a function.')
    return step.do(name, options, async (context) => {
      await fn(context)
      return fn(context)
    })
  }
  return {
    do: twice,
    sleep: (...args) => step.sleep(...args),
    elicit: (...args) => step.elicit(...args),
    request: (...args) => step.request(...args),
    waitForEvent: (...args) => step.waitForEvent(...args),
    answerLink: (...args) => step.answerLink(...args),
    answeredBy: (question) => step.answeredBy(question),
    status: (...args) => step.status(...args),
  }
}
