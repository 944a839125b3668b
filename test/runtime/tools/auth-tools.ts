/** Tools for the tests of identity: they tell who they were called by. */
import { z } from 'zod'
import { defineTool, type Tool } from '../../../src/index'

const whoami = defineTool({
  name: 'whoami',
  description: 'Says who called it.',
  input: z.object({}),
  run: async ({ principal }) => JSON.stringify(principal),
})

/** A plain tool is the only kind that sees the request. */
const whoamiNow = defineTool({
  name: 'whoami_now',
  description: 'Says who calls it, and which headers it can see.',
  input: z.object({}),
  task: { support: 'none' },
  run: async ({ principal, mcp }) =>
    JSON.stringify({ principal, headers: [...(mcp.http?.req?.headers ?? [])], auth: mcp.http?.authInfo }),
})

const purge = defineTool({
  name: 'purge',
  description: 'Needs a scope of its own.',
  scopes: ['files:delete'],
  input: z.object({}),
  run: async () => 'purged',
})

const purgeNow = defineTool({
  name: 'purge_now',
  description: 'Needs two scopes of its own, and no task.',
  scopes: ['files:delete', 'files:list'],
  input: z.object({}),
  task: { support: 'none' },
  run: async () => 'purged',
})

const fleeting = defineTool({
  name: 'fleeting',
  description: 'A task that is gone after a second.',
  input: z.object({}),
  task: { ttl: '1 second', retention: '1 second' },
  async run({ step }) {
    await step.waitForEvent('never')
    return 'never'
  },
})

export const authTools: readonly Tool[] = [whoami, whoamiNow, purge, purgeNow, fleeting]
