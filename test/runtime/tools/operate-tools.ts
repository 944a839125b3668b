/** Tools that die, for the operator's tests. */
import { z } from 'zod'
import { defineTool, NonRetryableError, type Tool } from '../../../src/index'

/** How often each effect happened, by name. */
export const effects = new Map<string, number>()
/** Tools look here whether the world is mended. */
export const world = { mended: false }

const mortal = defineTool({
  name: 'mortal',
  description: 'Does one thing, then fails until the world is mended.',
  input: z.object({ name: z.string() }),
  async run({ input, step }) {
    const key = await step.do('first', ({ idempotencyKey }) => {
      effects.set(input.name, (effects.get(input.name) ?? 0) + 1)
      return idempotencyKey
    })
    if (!world.mended) throw new NonRetryableError('The disk is full.')
    const second = await step.do('second', ({ idempotencyKey }) => idempotencyKey)
    return JSON.stringify({ key, second })
  },
})

export const operateTools: readonly Tool[] = [mortal]
