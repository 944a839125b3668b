/** Tools that are run as they are, but for what happens around each of their steps. */
import type { Json } from '../../../src/index'
import type { Step, StepContext, StepOptions, TaskTool, Tool } from '../../../src/tool'

export type DoStep = <T extends Json | void>(
  name: string,
  options: StepOptions,
  fn: (context: StepContext) => Promise<T> | T,
) => Promise<T>

/** Every task tool again, as `<prefix>_<name>`, with another `step.do`. */
export function wrapped(
  tools: readonly Tool[],
  prefix: string,
  wrap: (step: Step) => DoStep,
  more: Partial<Pick<TaskTool, 'asks'>> = {},
): Tool[] {
  return tools.flatMap((tool) =>
    tool.kind === 'task'
      ? [
          {
            ...tool,
            ...more,
            name: `${prefix}_${tool.name}`,
            run: (context) => tool.run({ ...context, step: withDo(context.step, wrap(context.step)) }),
          } satisfies TaskTool,
        ]
      : [],
  )
}

function withDo(step: Step, doStep: DoStep): Step {
  function either<T extends Json | void>(
    name: string,
    optionsOrFn: StepOptions | ((context: StepContext) => Promise<T> | T),
    maybeFn?: (context: StepContext) => Promise<T> | T,
  ): Promise<T> {
    const fn = typeof optionsOrFn === 'function' ? optionsOrFn : maybeFn
    if (!fn) throw new TypeError('A step needs a function.')
    return doStep(name, typeof optionsOrFn === 'function' ? {} : optionsOrFn, fn)
  }
  return {
    do: either,
    sleep: (...args) => step.sleep(...args),
    elicit: (...args) => step.elicit(...args),
    request: (...args) => step.request(...args),
    waitForEvent: (...args) => step.waitForEvent(...args),
    answerLink: (...args) => step.answerLink(...args),
    answeredBy: (question) => step.answeredBy(question),
    status: (...args) => step.status(...args),
  }
}
