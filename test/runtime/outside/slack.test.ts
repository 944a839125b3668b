/** Buttons in Slack: only what Slack signed just now counts, and the message says what was decided. */
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SigningKeys } from '../../../src/auth/keys'
import { createLonghaul } from '../../../src/index'
import { answerUrl } from '../../../src/outside/answer-link'
import { get, rpc, start, until, untilEnded } from '../client'
import { SLACK_SECRET, SLACK_WEBHOOK } from '../tools/outside-tools'
import { open, press, textOf } from './browser'

// Slack's messages are what is under test: nothing is assumed about them.
// oxlint-disable-next-line typescript/no-explicit-any
type SlackMessage = any

const RESPONSE_URL = 'https://hooks.slack.com/actions/T0/1/abc'
const ADA = { id: 'U012AB3CD', username: 'ada' }
const GRACE = { id: 'U9', username: 'grace' }

/** What was posted to Slack, by address. Slack itself is the one part that cannot run here. */
let posted: { url: string; message: SlackMessage; init: RequestInit | undefined }[]
let slackStatus = 200

beforeEach(() => {
  posted = []
  slackStatus = 200
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const url = input instanceof Request ? input.url : String(input)
    posted.push({ url, message: await new Response(init?.body ?? null).json(), init })
    return new Response('ok', { status: slackStatus })
  })
})

afterEach(() => {
  vi.restoreAllMocks()
})

const keys = new SigningKeys(String(env.SIGNING_KEYS))
const longhaul = createLonghaul({ name: 'slack-tests', version: '1.0.0', tools: [] })

async function request(body: string, headers: Record<string, string>, secret: string | null = SLACK_SECRET) {
  const ctx = createExecutionContext()
  const configured = { ...env, ...(secret !== null && { SLACK_SIGNING_SECRET: secret }) }
  const response = await longhaul.fetch(
    new Request('http://localhost/slack/interactions', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body,
    }),
    configured,
    ctx,
  )
  await waitOnExecutionContext(ctx)
  return response
}

async function signed(body: string, at = Date.now(), secret = SLACK_SECRET): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(at / 1_000))
  const encoder = new TextEncoder()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign'])
  const mac = await crypto.subtle.sign('HMAC', key, encoder.encode(`v0:${timestamp}:${body}`))
  const hex = [...new Uint8Array(mac)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return { 'x-slack-request-timestamp': timestamp, 'x-slack-signature': `v0=${hex}` }
}

/** The body that Slack sends when somebody presses a button. */
function interaction(action: unknown, user = ADA, more: Record<string, unknown> = {}): string {
  const payload = { type: 'block_actions', user, actions: [action], response_url: RESPONSE_URL, ...more }
  return new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
}

async function pressInSlack(action: unknown, user = ADA, more: Record<string, unknown> = {}) {
  const body = interaction(action, user, more)
  return request(body, await signed(body))
}

/** A task that asked in Slack: its message and buttons. */
async function asked(args: Record<string, unknown> = {}) {
  const taskId = await start('request_approval_in_slack', { title: 'Deploy 1.4', ...args })
  const task = await until(taskId, ['input_required'])
  const message: SlackMessage = posted.find(({ url }) => url === SLACK_WEBHOOK)?.message
  const elements: SlackMessage[] = message.blocks.find(
    (block: SlackMessage) => block.type === 'actions',
  ).elements
  const [approve, reject, link] = elements
  return { taskId, task, message, approve, reject, link }
}

const updates = () => posted.filter(({ url }) => url === RESPONSE_URL).map(({ message }) => message)
const textIn = (message: SlackMessage) =>
  message.blocks.map((block: SlackMessage) => block.text.text).join('\n')

test('the message shows what is to be approved as plain text, with a button for each answer', async () => {
  const { message, approve, reject, link, task } = await asked({
    details: '<!channel> *now*',
    approvers: 'release managers',
  })
  expect(approve).toMatchObject({ type: 'button', text: { text: 'Approve' }, style: 'primary' })
  expect(reject).toMatchObject({ type: 'button', text: { text: 'Reject' }, style: 'danger' })
  expect(link.url).toMatch(/^http:\/\/localhost\/approvals\//)
  expect(message.blocks[1]).toEqual({
    type: 'section',
    text: { type: 'plain_text', text: '<!channel> *now*', emoji: false },
  })
  expect(JSON.stringify(message)).not.toContain('mrkdwn')
  expect(JSON.stringify(message)).toContain('For release managers')
  // Who is asked in Slack gets the link there; the client's user is not told it.
  expect(task.inputRequests.approval.params.message).toBe('Deploy 1.4\n\n<!channel> *now*')
  expect(task.statusMessage).toBe('Waiting for release managers to decide (asked in Slack)')
  expect(posted.filter(({ url }) => url === SLACK_WEBHOOK)).toHaveLength(1)
})

test('a press of Approve decides, and the message says by whom and when', async () => {
  const { taskId, approve } = await asked()
  const response = await pressInSlack(approve)
  expect([response.status, await response.text()]).toEqual([200, ''])
  const { result } = await untilEnded(taskId)
  expect(result.structuredContent).toEqual({
    decision: 'approved',
    decidedBy: { via: 'slack', name: 'ada (U012AB3CD)' },
    decidedAt: expect.any(String),
  })
  expect(updates()).toHaveLength(1)
  expect(updates()[0]).toMatchObject({ replace_original: true })
  expect(textIn(updates()[0])).toMatch(/^Deploy 1\.4\nApprove: by ada \(U012AB3CD\) in Slack, .* UTC$/)
  // The channel knows already.
  expect(posted.filter(({ url }) => url === SLACK_WEBHOOK)).toHaveLength(1)
})

test('a press of Reject is a normal result', async () => {
  const { taskId, reject } = await asked()
  await pressInSlack(reject)
  expect((await untilEnded(taskId)).result.structuredContent).toMatchObject({ decision: 'rejected' })
})

test('who presses second is told what was decided', async () => {
  const { taskId, approve, reject } = await asked()
  await pressInSlack(approve)
  await untilEnded(taskId)
  expect((await pressInSlack(reject, GRACE)).status).toBe(200)
  const [first, second] = updates()
  expect(textIn(second)).toBe(textIn(first))
  expect(textIn(second)).toContain('Approve: by ada')
  expect((await untilEnded(taskId)).result.structuredContent.decision).toBe('approved')
})

test('two who press at once: one decides, both messages say the same', async () => {
  const { taskId, approve, reject } = await asked()
  await Promise.all([pressInSlack(approve), pressInSlack(reject, GRACE)])
  const { decision, decidedBy } = (await untilEnded(taskId)).result.structuredContent
  const [first, second] = updates().map(textIn)
  expect(first).toBe(second)
  expect(first).toContain(decision === 'approved' ? 'Approve: by ada' : 'Reject: by grace')
  expect(decidedBy.name).toContain(decision === 'approved' ? 'ada' : 'grace')
})

test('when the link was first, Slack is told so, in the channel and by whoever presses later', async () => {
  const { taskId, approve, link } = await asked()
  expect(textOf(await press(link.url, 'Reject'))).toContain('Answer Reject')
  await untilEnded(taskId)
  const inChannel = posted.findLast(({ url }) => url === SLACK_WEBHOOK)?.message
  expect(textIn(inChannel)).toMatch(/^Deploy 1\.4\nRejected by link, .* UTC\.$/)
  await pressInSlack(approve)
  expect(textIn(updates()[0])).toMatch(/Reject: by link, /)
  expect((await untilEnded(taskId)).result.structuredContent.decision).toBe('rejected')
})

test('when Slack was first, the page behind the link says so', async () => {
  const { taskId, approve, link } = await asked()
  await pressInSlack(approve)
  await untilEnded(taskId)
  expect(textOf(await open(link.url))).toMatch(/Answer Approve Answered by ada \(U012AB3CD\) in Slack, /)
})

test('a request that Slack did not sign is refused and decides nothing', async () => {
  const { taskId, approve } = await asked()
  const body = interaction(approve)
  const good = await signed(body)
  const bad: Record<string, string>[] = [
    {},
    { ...good, 'x-slack-signature': '' },
    { ...good, 'x-slack-signature': 'v0=zz' },
    {
      ...good,
      'x-slack-signature': good['x-slack-signature']?.replace(/.$/, (c) => (c === '0' ? '1' : '0')) ?? '',
    },
    { ...good, 'x-slack-request-timestamp': '' },
    { ...good, 'x-slack-request-timestamp': 'now' },
    await signed(body, Date.now(), 'another-signing-secret'),
    await signed(`${body}&x=1`),
  ]
  const answers = await Promise.all(bad.map((headers) => request(body, headers)))
  expect(answers.map(({ status }) => status)).toEqual(bad.map(() => 401))
  expect((await get(taskId)).status).toBe('input_required')
  expect(updates()).toEqual([])
})

test('a signature older or newer than five minutes is refused', async () => {
  const { taskId, approve } = await asked()
  const body = interaction(approve)
  for (const off of [-301_000, 302_000]) {
    const response = await request(body, await signed(body, Date.now() + off))
    expect(response.status).toBe(401)
    expect(await response.json()).toEqual({ error: 'The timestamp is more than five minutes off.' })
  }
  expect((await get(taskId)).status).toBe('input_required')
  expect((await request(body, await signed(body, Date.now() - 290_000))).status).toBe(200)
})

test('a replay within five minutes changes nothing', async () => {
  const { taskId, reject } = await asked()
  const body = interaction(reject)
  const headers = await signed(body)
  expect((await request(body, headers)).status).toBe(200)
  const before = (await untilEnded(taskId)).result
  expect((await request(body, headers)).status).toBe(200)
  expect((await untilEnded(taskId)).result).toEqual(before)
  expect(new Set(updates().map(textIn)).size).toBe(1)
})

test('other buttons, other payloads and the button that opens the page are acknowledged, and nothing happens', async () => {
  const { taskId, approve, link } = await asked()
  const others = [
    { ...approve, action_id: 'somebody.elses' },
    { ...approve, value: 'not json' },
    { ...approve, value: '{}' },
    link,
  ]
  for (const action of others) expect((await pressInSlack(action)).status).toBe(200)
  expect((await pressInSlack(approve, ADA, { type: 'view_submission' })).status).toBe(200)
  expect(updates()).toEqual([])
  expect((await get(taskId)).status).toBe('input_required')
})

test('a button whose token is of another task, damaged or expired decides nothing and says so', async () => {
  const { taskId, approve } = await asked()
  const other = await asked({ title: 'Another' })
  const value = JSON.parse(approve.value)
  const actions = [
    { ...approve, value: JSON.stringify({ ...value, taskId: other.taskId }) },
    { ...approve, value: JSON.stringify({ ...value, token: `x${value.token.slice(1)}` }) },
  ]
  const expired = { question: 'approval', expiresAt: Date.now() - 1, holder: undefined }
  const token = (await answerUrl(keys, 'http://localhost', taskId, expired)).split('/').at(-1)
  actions.push({ ...approve, value: JSON.stringify({ ...value, token }) })
  for (const action of actions) expect((await pressInSlack(action)).status).toBe(200)
  expect(updates().map(({ text, response_type }) => [text, response_type])).toEqual([
    ['This button is not valid.', 'ephemeral'],
    ['This button is not valid.', 'ephemeral'],
    ['Too late: this has expired.', 'ephemeral'],
  ])
  expect((await get(taskId)).status).toBe('input_required')
  expect((await get(other.taskId)).status).toBe('input_required')
})

test('a button of a task that was cancelled says that it is too late', async () => {
  const { taskId, approve } = await asked()
  await rpc('tasks/cancel', { taskId })
  await untilEnded(taskId)
  await pressInSlack(approve)
  expect(updates()[0].text).toContain('the task has ended (cancelled)')
})

test('the outcome is posted to Slack and nowhere else', async () => {
  const { taskId, approve } = await asked()
  const elsewhere = [
    'http://hooks.slack.com/actions/1',
    'https://hooks.slack.com.evil.example/1',
    'https://evil.example/https://hooks.slack.com/',
    'https://hooks.slack.com:8443/1',
    'not a url',
    7,
  ]
  const before = posted.length
  for (const response_url of elsewhere) {
    expect((await pressInSlack(approve, ADA, { response_url })).status).toBe(200)
  }
  await untilEnded(taskId)
  expect(posted.slice(before).filter(({ url }) => url !== SLACK_WEBHOOK)).toEqual([])
  await pressInSlack(approve)
  expect(posted.at(-1)?.init?.redirect).toBe('manual')
})

test('without a signing secret there are no buttons to press', async () => {
  const body = interaction({})
  const response = await request(body, await signed(body), null)
  expect(response.status).toBe(404)
  expect(await response.json()).toEqual({ error: expect.stringContaining('SLACK_SIGNING_SECRET') })
})

test('a body that is no form, or too large, is refused before its signature is looked at', async () => {
  const json = { 'content-type': 'application/json' }
  expect((await request('{}', { ...(await signed('{}')), ...json })).status).toBe(415)
  const large = `payload=${'x'.repeat(300_000)}`
  expect((await request(large, await signed(large))).status).toBe(413)
  const odd = 'payload=%7B'
  expect((await request(odd, await signed(odd))).status).toBe(400)
})

test('when Slack does not take the message, the link goes to the client instead', async () => {
  slackStatus = 500
  const taskId = await start('request_approval_in_slack', { title: 'Deploy 1.4' })
  const task = await until(taskId, ['input_required'])
  expect(task.inputRequests.approval.params.message).toContain('http://localhost/approvals/')
  expect(task.statusMessage).toBe('Waiting for somebody to decide')
  await rpc('tasks/update', { taskId, inputResponses: { approval: { action: 'decline' } } })
  expect((await untilEnded(taskId)).result.structuredContent.decision).toBe('rejected')
})
