/** The client library inside workerd: a Worker that calls the tools of another. */
import { exports } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { accept, createTasks, type Update } from '../../src/client/index.ts'
import { ACME } from './client'

test.each([
  ['sse', ['sse']],
  ['poll', []],
] as const)('a Worker follows a task by %s and answers its question', async (via, push) => {
  const tasks = createTasks({
    url: 'http://localhost/mcp',
    token: ACME,
    // As a service binding would be used.
    fetch: (url, init) => exports.default.fetch(new Request(url, init)),
    push,
    onQuestion: () => accept({ confirm: true }),
  })
  const call = await tasks.call('ask')
  const updates: Update[] = []
  for await (const update of call) updates.push(update)
  expect(await call.result()).toMatchObject({
    content: [{ text: expect.stringContaining('"confirm":true') }],
  })
  expect(updates.at(-1)).toMatchObject({ status: 'completed', via })
})
