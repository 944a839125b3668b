/** Approvals by link and in the client: the first answer wins, and everybody else is told so. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { SigningKeys } from '../../../src/auth/keys'
import { answerUrl } from '../../../src/outside/answer-link'
import { callbackUrl } from '../../../src/outside/callback'
import type { TaskApi } from '../../../src/task/types'
import { ALL_CAPABILITIES, get, rpc, start, TASKS, until, untilEnded } from '../client'
import { handedOut } from '../tools/outside-tools'
import { buttonsOf, open, press, send, textOf } from './browser'

const keys = new SigningKeys(String(env.SIGNING_KEYS))
const APPROVE = { 'field.decision': 'approve' }

/** A task that waits for an approval, and the link that it offers. */
async function asked(args: Record<string, unknown> = {}) {
  const taskId = await start('request_approval', { title: 'Deploy 1.4 to production', ...args })
  const task = await until(taskId, ['input_required'])
  const { message } = task.inputRequests.approval.params
  const url = /http:\/\/localhost\/approvals\/\S+/.exec(message)?.[0] ?? ''
  return { taskId, url, message, task }
}

const answer = (taskId: string, response: unknown) =>
  rpc('tasks/update', { taskId, inputResponses: { approval: response } })

const decided = async (taskId: string) => (await untilEnded(taskId)).result

test('the page shows what is to be approved, by whom it is asked, and until when', async () => {
  const { url } = await asked({
    details: '- migrates `orders`\n- 3 minutes of downtime',
    expiresIn: '2 days',
  })
  const page = await open(url)
  expect(page.status).toBe(200)
  expect(textOf(page)).toContain('Deploy 1.4 to production')
  expect(page.html).toContain('- migrates `orders`\n- 3 minutes of downtime')
  expect(textOf(page)).toMatch(/Asked on behalf of acme, \d{4}-\d\d-\d\d \d\d:\d\d UTC/)
  expect(Object.keys(buttonsOf(page))).toEqual(['Approve', 'Reject'])
  // It does not offer itself.
  expect(page.html).not.toContain('/approvals/')
})

test('a click on Approve decides, and the result says who, what and when', async () => {
  const { taskId, url } = await asked({ approvers: 'release managers' })
  const page = await press(url, 'Approve', { 'field.comment': ' Go ahead. ' })
  expect(page.status).toBe(200)
  expect(textOf(page)).toMatch(/Answer Approve Answered by link \(release managers\), \d{4}-/)
  const { structuredContent, content, isError } = await decided(taskId)
  expect(structuredContent).toEqual({
    decision: 'approved',
    decidedBy: { via: 'link', name: 'release managers' },
    decidedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    comment: 'Go ahead.',
  })
  expect(content[0].text).toMatch(/^Approved by link \(release managers\), .* UTC\.\nComment: Go ahead\.$/)
  expect(isError).toBeUndefined()
})

test('a link survives mail and chat, which take a dash at its end for punctuation', async () => {
  for (let i = 0; i < 200; i++) {
    const link = { question: 'approval', expiresAt: 1_800_000_000_000 + i, holder: undefined }
    expect(await answerUrl(keys, 'http://localhost', 'tsk_1', link)).toMatch(/[A-Za-z0-9]$/)
  }
})

test('a rejection is a normal result', async () => {
  const { taskId, url } = await asked()
  await press(url, 'Reject')
  expect(await decided(taskId)).toMatchObject({
    structuredContent: { decision: 'rejected', decidedBy: { via: 'link' } },
  })
  expect((await get(taskId)).status).toBe('completed')
})

test('opening the page decides nothing, however often and by whatever method', async () => {
  const { taskId, url } = await asked()
  for (const method of ['GET', 'HEAD', 'GET', 'OPTIONS', 'PUT', 'DELETE']) await open(url, method)
  for (const suffix of ['?field.decision=approve', '?action=accept']) await open(`${url}${suffix}`)
  expect((await open(url, 'HEAD')).status).toBe(200)
  expect((await open(url, 'PUT')).status).toBe(405)
  expect((await get(taskId)).status).toBe('input_required')
})

test('a form without a decision decides nothing', async () => {
  const { taskId, url } = await asked()
  for (const fields of [{}, { 'field.comment': 'well' }, { action: 'accept' }, { decision: 'approve' }]) {
    const page = await send(url, fields)
    expect(page.status).toBe(422)
  }
  expect((await send(url, { 'field.decision': 'maybe' })).status).toBe(422)
  const json = { headers: { 'content-type': 'application/json' } }
  expect((await send(url, APPROVE, json)).status).toBe(415)
  expect((await send(url, { ...APPROVE, 'field.comment': 'x'.repeat(70_000) })).status).toBe(413)
  expect((await get(taskId)).status).toBe('input_required')
})

test('when the client was first, the link is told what it decided', async () => {
  const { taskId, url } = await asked()
  await answer(taskId, { action: 'accept', content: { decision: 'reject', comment: 'For your eyes' } })
  expect(await decided(taskId)).toMatchObject({
    structuredContent: { decision: 'rejected', decidedBy: { via: 'client' }, comment: 'For your eyes' },
  })
  const late = await send(url, APPROVE)
  expect(late.status).toBe(409)
  expect(textOf(late)).toMatch(/changes nothing\. Answer Reject Answered in the MCP client, \d{4}-/)
  const seen = await open(url)
  expect(seen.status).toBe(200)
  expect(textOf(seen)).toContain('already decided')
  // How it was decided, not what was written.
  expect(late.html + seen.html).not.toContain('For your eyes')
})

test('when the link was first, the answer of the client is acknowledged and ignored', async () => {
  const { taskId, url } = await asked()
  await press(url, 'Approve')
  const late = await answer(taskId, { action: 'decline' })
  expect(late).toMatchObject({ status: 200, body: { result: { resultType: 'complete' } } })
  expect(await decided(taskId)).toMatchObject({
    structuredContent: { decision: 'approved', decidedBy: { via: 'link' } },
  })
  expect((await answer(taskId, { action: 'decline' })).body.result).toBeDefined()
})

test('a client that declines rejects; one that dismisses the question leaves it undecided', async () => {
  const first = await asked()
  await answer(first.taskId, { action: 'decline' })
  expect((await decided(first.taskId)).structuredContent).toMatchObject({
    decision: 'rejected',
    decidedBy: { via: 'client' },
  })
  const second = await asked()
  await answer(second.taskId, { action: 'cancel' })
  expect((await decided(second.taskId)).structuredContent).toMatchObject({ decision: 'undecided' })
  expect(textOf(await send(second.url, APPROVE))).toContain('Dismissed without an answer')
})

test('of two links that are pressed at once exactly one decides', async () => {
  const { taskId, url } = await asked()
  const pages = await Promise.all([
    send(url, APPROVE),
    send(url, { 'field.decision': 'reject' }),
    send(url, APPROVE),
    send(url, { 'field.decision': 'reject' }),
  ])
  expect(pages.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409, 409, 409])
  const winner = pages.find(({ status }) => status === 200)
  const told = winner && textOf(winner).includes('Answer Approve') ? 'approved' : 'rejected'
  expect((await decided(taskId)).structuredContent.decision).toBe(told)
  const answers = pages.map((page) => /Answer (\w+)/.exec(textOf(page))?.[1])
  expect(new Set(answers).size).toBe(1)
})

test('an answer that the platform delivers twice is accepted twice and counts once', async () => {
  const { taskId } = await asked()
  // The object implements TaskApi; the generated RPC types of it exceed the compiler's depth.
  const task = env.TASKS.getByName(taskId) as unknown as TaskApi
  const response = { action: 'accept', content: { decision: 'approve' } }
  const by = { via: 'link', at: Date.now() } as const
  const first = await task.answer('approval', { response, by, nonce: 'one' })
  const again = await task.answer('approval', { response, by, nonce: 'one' })
  expect(again).toEqual(first)
  expect(again.accepted).toBe(true)
  expect((await task.answer('approval', { response, by, nonce: 'two' })).accepted).toBe(false)
  expect((await decided(taskId)).structuredContent.decision).toBe('approved')
})

test('a link and the client at once: exactly one decides, and the result is the winner', async () => {
  for (let i = 0; i < 4; i++) {
    const { taskId, url } = await asked()
    const accept = { action: 'accept', content: { decision: 'reject' } }
    const calls = [() => send(url, APPROVE), () => answer(taskId, accept)]
    const [first, second] = i % 2 === 0 ? calls : calls.toReversed()
    const pages = await Promise.all([first?.(), second?.()])
    const page = pages.find((answered) => answered && 'html' in answered)
    const { structuredContent } = await decided(taskId)
    expect(structuredContent).toMatchObject(
      page?.status === 200
        ? { decision: 'approved', decidedBy: { via: 'link' } }
        : { decision: 'rejected', decidedBy: { via: 'client' } },
    )
  }
})

test('what a tool writes is shown, never run', async () => {
  const { url } = await asked({
    title: '<script>alert(1)</script>',
    details: '</div><img src=x onerror=alert(2)>&amp;"\'',
    approvers: '"><b>boss</b>',
  })
  const page = await open(url)
  expect(page.html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
  expect(page.html).toContain('&lt;/div&gt;&lt;img src=x onerror=alert(2)&gt;&amp;amp;&quot;&#39;')
  expect(page.html).not.toMatch(/<script|<img|<b>/)
  const answered = await send(url, APPROVE)
  expect(answered.html).not.toMatch(/<script|<img|<b>/)
})

test('the page may not be framed, indexed, cached, scripted, or told to others', async () => {
  const { url } = await asked()
  for (const page of [await open(url), await open(`${url}x`), await send(url, APPROVE)]) {
    const policy = page.headers.get('content-security-policy')
    expect(policy).toMatch(/default-src 'none'; style-src 'nonce-[\w-]+'; form-action 'self'/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(page.headers.get('x-frame-options')).toBe('DENY')
    expect(page.headers.get('x-robots-tag')).toBe('noindex, nofollow')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('cache-control')).toBe('no-store')
    const nonce = /nonce-([\w-]+)/.exec(policy ?? '')?.[1]
    expect(page.html).toContain(`<style nonce="${nonce}">`)
    expect(page.html).not.toContain('<script')
  }
})

test('a form of another web page is refused, although the address is known there', async () => {
  const { taskId, url } = await asked()
  const type = 'application/x-www-form-urlencoded'
  const foreign = { headers: { 'content-type': type, origin: 'https://evil.example' } }
  expect((await send(url, APPROVE, foreign)).status).toBe(403)
  // Only the page behind a link may hide its origin.
  const hidden = await exports.default.fetch(
    new Request('http://localhost/mcp', { method: 'POST', headers: { origin: 'null' } }),
  )
  expect(hidden.status).toBe(403)
  expect((await get(taskId)).status).toBe('input_required')
  const own = { headers: { 'content-type': type, origin: 'http://localhost' } }
  expect((await send(url, APPROVE, own)).status).toBe(200)
})

test('the return key in a field presses no button that decides', async () => {
  const { url } = await asked()
  const first = /<button[^>]*>/.exec((await open(url)).html)?.[0]
  expect(first).toContain('disabled')
})

test('a link of another task, a damaged one, or one made for something else opens nothing', async () => {
  const { taskId, url } = await asked()
  const other = await asked()
  const expiresAt = Date.now() + 60_000
  const callback = (await callbackUrl(keys, 'http://localhost', taskId, 'approval', expiresAt))
    .split('/')
    .at(-1)
  const links = [
    url.replace(taskId, other.taskId),
    url.slice(0, -1) + (url.endsWith('A') ? 'B' : 'A'),
    `http://localhost/approvals/${taskId}/${callback}`,
    `http://localhost/approvals/${taskId}/x`,
  ]
  const pages = await Promise.all(links.flatMap((link) => [open(link), send(link, APPROVE)]))
  expect(pages.map(({ status }) => status)).toEqual(pages.map(() => 404))
  expect(new Set(pages.map(textOf)).size).toBe(1)
  expect((await get(taskId)).status).toBe('input_required')
  expect((await get(other.taskId)).status).toBe('input_required')
  // Nor is a link an address for callbacks.
  const json = { headers: { 'content-type': 'application/json' }, body: '{}' }
  const posted = await send(url.replace('/approvals/', '/callbacks/'), {}, json)
  expect(posted.status).toBe(404)
})

test('a link whose time is over is told from a damaged one', async () => {
  const { taskId } = await asked()
  const expired = { question: 'approval', expiresAt: Date.now() - 1, holder: undefined }
  const url = await answerUrl(keys, 'http://localhost', taskId, expired)
  const pages = [await open(url), await send(url, APPROVE)]
  expect(pages.map(({ status }) => status)).toEqual([410, 410])
  expect(textOf(await open(url))).toContain('expired')
  expect((await get(taskId)).status).toBe('input_required')
})

test('when nobody decides in time the result says so', async () => {
  const { taskId, url } = await asked({ expiresIn: '1 minute' })
  await passTime(taskId)
  const { structuredContent, content } = await decided(taskId)
  expect(structuredContent).toEqual({ decision: 'undecided' })
  expect(content[0].text).toMatch(/^Not approved: nobody decided\. It was open until .* UTC\.$/)
  const late = await send(url, APPROVE)
  expect(late.status).toBe(409)
  expect(textOf(late)).toContain('Nobody answered')
})

test('after a cancellation the link says that it is too late', async () => {
  const { taskId, url } = await asked()
  await rpc('tasks/cancel', { taskId })
  await untilEnded(taskId)
  const page = await send(url, APPROVE)
  expect(page.status).toBe(410)
  expect(textOf(page)).toContain('The task has ended (cancelled)')
  expect((await open(url)).status).toBe(410)
})

test('a question that is not asked yet can be looked at, and answered when it is', async () => {
  const taskId = await start('linked_early')
  const url = await vi.waitUntil(() => handedOut.get(taskId), { timeout: 10_000 })
  await vi.waitUntil(async () => (await open(url)).status === 409)
  expect(textOf(await open(url))).toContain('Not asked yet')
  expect((await send(url, { 'field.confirm': 'true' })).status).toBe(409)
  await rpc('tasks/cancel', { taskId })
})

test('any form can be answered by link, and is checked like the answer of a client', async () => {
  const taskId = await start('linked_form')
  await until(taskId, ['input_required'])
  const url = handedOut.get(taskId) ?? ''
  const page = await open(url)
  expect(Object.keys(buttonsOf(page))).toEqual(['Send', 'Decline'])
  expect(page.html).toContain('<option value="large">Large</option>')

  const wrong = await press(url, 'Send', { 'field.street': 'Elm', 'field.floor': 'third' })
  expect(wrong.status).toBe(422)
  expect(textOf(wrong)).toContain('That answer does not fit: floor')
  const filled = { 'field.street': 'Elm 5', 'field.floor': '3', 'field.gift': 'true', 'field.size': '' }
  expect((await press(url, 'Send', filled)).status).toBe(200)
  const { result } = await untilEnded(taskId)
  expect(JSON.parse(result.content[0].text)).toEqual({
    answer: { action: 'accept', content: { street: 'Elm 5', floor: 3, gift: true } },
    by: { via: 'link', name: 'the shop', at: expect.any(Number) },
  })
})

test('declining a form by link declines the question', async () => {
  const taskId = await start('linked_form')
  await until(taskId, ['input_required'])
  expect((await press(handedOut.get(taskId) ?? '', 'Decline')).status).toBe(200)
  const { result } = await untilEnded(taskId)
  expect(JSON.parse(result.content[0].text).answer).toEqual({ action: 'decline' })
})

test('the link is shown to the user who is asked, not in the status text', async () => {
  const { task, message, url } = await asked({ approvers: 'release managers' })
  expect(task.statusMessage).toBe('Waiting for release managers to decide')
  expect(message).toContain(`To let release managers decide, pass on this link: ${url}`)
})

test('a client that cannot ask its user is refused before anything happens', async () => {
  const call = { name: 'request_approval', arguments: { title: 'Deploy' } }
  const { body } = await rpc('tools/call', call, { capabilities: TASKS })
  expect(body.error).toMatchObject({ code: -32021 })
  const bad = { name: 'request_approval', arguments: { title: 'Deploy', expiresIn: '9 weeks' } }
  const { body: refused } = await rpc('tools/call', bad, { capabilities: ALL_CAPABILITIES })
  expect(refused.result).toMatchObject({ isError: true })
})

/** Lets the time to decide run out: what is stored says so, and the alarm rings. */
async function passTime(taskId: string): Promise<void> {
  const stub = env.TASKS.getByName(taskId)
  const sql = <T>(use: (sql: SqlStorage) => T) =>
    runInDurableObject(stub, (_, { storage }) => use(storage.sql))
  await vi.waitUntil(async () => {
    const { phase } = await sql((db) => db.exec('SELECT phase FROM task').one())
    return phase === 'waiting'
  })
  await sql((db) => {
    db.exec(`UPDATE journal SET at = ? WHERE name = 'approval'`, Date.now() - 1)
    db.exec('UPDATE task SET wake_at = ?', Date.now() - 1)
  })
  await evictDurableObject(stub)
  await runInDurableObject(stub, (_, { storage }) => storage.setAlarm(Date.now()))
}
