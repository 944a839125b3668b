/**
 * Tools whose code is written in the test that watches them: the test runs in the isolate of the
 * Worker, so a tool finds its script, and the test its counts, in a module they share.
 */
import { z } from 'zod'
import {
  defineTool,
  type RunContext,
  type TaskToolDefinition,
  type Tool,
  type ToolOutput,
} from '../../../src/index'

const input = z.object({ script: z.string(), large: z.string().optional() })

type Script = (context: RunContext<z.output<typeof input>>) => Promise<ToolOutput>

const scripts = new Map<string, Script>()

/** Registers a script and returns the arguments that make a scripted tool follow it. */
export function script(run: Script): { readonly script: string } {
  const name = `script ${scripts.size + 1}`
  scripts.set(name, run)
  return { script: name }
}

/** Replaces a script, as a deployment replaces the code of a tool. */
export function deploy({ script: name }: { readonly script: string }, run: Script): void {
  scripts.set(name, run)
}

/** Polls, because a promise of one request must not be awaited in another. */
export async function whenever(condition: () => boolean): Promise<void> {
  while (!condition()) await scheduler.wait(10)
}

type Definition = TaskToolDefinition<typeof input>

function scripted(name: string, rest: Partial<Definition> = {}): Tool {
  return defineTool({
    name,
    description: 'Follows a script of the test.',
    input,
    task: { retry: { limit: 2, delay: '20 milliseconds', maxDelay: '20 milliseconds' } },
    ...rest,
    run: (context) => {
      const found = scripts.get(context.input.script)
      if (!found) throw new Error('no such script')
      return found(context)
    },
  })
}

export const scriptedTools: readonly Tool[] = [
  scripted('scripted'),
  scripted('scripted_required', { task: { support: 'required' } }),
  scripted('scripted_output', { output: z.object({ sum: z.number() }) }),
  scripted('scripted_brief', { task: { ttl: '2 seconds', retention: '1 second' } }),
  scripted('scripted_kept', { task: { ttl: '2 seconds', retention: '1 hour' } }),
  scripted('scripted_gathers', {
    gather: {
      name: { message: 'Your name?', schema: z.object({ name: z.string().min(2) }) },
      size: {
        message: 'Which size?',
        schema: z
          .object({ size: z.number(), unit: z.enum(['cm', 'in']).default('cm') })
          .refine(({ size }) => size % 2 === 0, 'must be even'),
      },
    },
  }),
  scripted('scripted_asks', { asks: ['elicitation', 'sampling'] }),
]
