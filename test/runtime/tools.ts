import { z } from 'zod'
import { defineTool, type Tool } from '../../src/index'
import { articleTools } from './tools/article-tools'
import { legacyTools } from './tools/legacy-tools'
import { operateTools } from './tools/operate-tools'
import { authTools } from './tools/auth-tools'
import { outsideTools } from './tools/outside-tools'
import { pushTools } from './tools/push-tools'
import { queueTools } from './tools/queue-tools'
import { scriptedTools } from './tools/scripted'

const greet = defineTool({
  name: 'greet',
  description: 'One step.',
  input: z.object({ name: z.string() }),
  async run({ input, step }) {
    const greeting = await step.do('greet', () => `Hello, ${input.name}!`)
    return greeting
  },
})

export const tools: readonly Tool[] = [
  greet,
  ...articleTools,
  ...authTools,
  ...legacyTools,
  ...operateTools,
  ...outsideTools,
  ...pushTools,
  ...queueTools,
  ...scriptedTools,
]
