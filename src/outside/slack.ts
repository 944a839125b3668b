/**
 * Buttons in Slack: `POST /slack/interactions` verifies that Slack sent it, answers the question that
 * the button stands for, and replaces the message by what was decided.
 */
import { checkFormType, readBody } from '../auth/door'
import { isObject } from '../json'
import type { JsonObject } from '../json'
import type { Services } from '../mcp/services'
import { fault } from '../observe/observer'
import { parseJson } from '../protocol/jsonrpc'
import { callTask } from '../run/stub'
import type { AnsweredBy, LinkedQuestion } from '../task/types'
import { openLink } from './answer-link'
import { answeredMessage, onlyToYou, type Pressed, pressedIn } from './slack-message'

export interface SlackEnv {
  /** Incoming webhook of the channel that approvals are posted to. */
  readonly SLACK_WEBHOOK_URL?: string
  /** Signing secret of the Slack app, from its Basic Information. Turns on `POST /slack/interactions`. */
  readonly SLACK_SIGNING_SECRET?: string
}

const MAX_BODY_BYTES = 256 * 1024
/** Older requests may be replays (Slack, Verifying requests). */
const MAX_AGE_S = 300
const UPDATE_TIMEOUT_MS = 10_000

/** 200 for everything that Slack has signed: anything else it shows to the user as a failure. */
export async function answerSlack(
  request: Request,
  services: Services,
  waitUntil: (work: Promise<unknown>) => void,
): Promise<Response> {
  const secret = services.env.SLACK_SIGNING_SECRET
  if (!secret) return refusal(404, 'Slack is not configured here: SLACK_SIGNING_SECRET is not set.')
  const wrongType = checkFormType(request)
  if (wrongType) return refusal(wrongType.status, wrongType.message)
  const body = await readBody(request, MAX_BODY_BYTES)
  if (typeof body !== 'string') return refusal(body.status, body.message)
  const problem = await signatureProblem(secret, request.headers, body, Date.now())
  if (problem !== undefined) return refusal(401, problem)

  const parsed = parseJson(new URLSearchParams(body).get('payload') ?? '')
  if (!parsed.ok || !isObject(parsed.value)) return refusal(400, 'There is no "payload" of JSON.')
  const payload = parsed.value
  const pressed = pressedIn(payload)
  // Another button of the same app, or one that only opens a page: nothing to do, and no failure.
  if (!pressed) return new Response(null, { status: 200 })
  const message = await answer(pressed, userOf(payload), services)
  const responseUrl = slackUrl(payload['response_url'])
  if (responseUrl) waitUntil(update(responseUrl, message))
  return new Response(null, { status: 200 })
}

/** Answers the question, and says what to show in place of the button. */
async function answer(
  { taskId, token, content }: Pressed,
  name: string,
  services: Services,
): Promise<JsonObject> {
  const link = await openLink(services.keys, taskId, token)
  if (!link.ok) {
    return onlyToYou(link.reason === 'expired' ? 'Too late: this has expired.' : 'This button is not valid.')
  }
  const by: AnsweredBy = { via: 'slack', name, at: Date.now() }
  const pressing = { response: { action: 'accept', content }, by, nonce: crypto.randomUUID() }
  const reply = await callTask(services.stubs, taskId, (task) => task.answer(link.question, pressing))
  return messageFor(reply.question, reply.problem)
}

function messageFor(question: LinkedQuestion, problem: string | undefined): JsonObject {
  switch (question.state) {
    case 'answered':
      return answeredMessage(question)
    case 'open':
      return onlyToYou(`That answer does not fit: ${problem ?? 'it was refused.'}`)
    case 'not_asked':
      return onlyToYou('The task has not come to this question. Try again in a moment.')
    case 'ended':
      return onlyToYou(`Too late: the task has ended (${question.status}) before anybody answered.`)
    case 'unknown':
      return onlyToYou('Too late: the task is over, and nothing of it is kept any more.')
  }
}

/** The message is only shown: that it could not be updated takes nothing back. */
async function update(url: string, message: JsonObject): Promise<void> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(message),
      redirect: 'manual',
      signal: AbortSignal.timeout(UPDATE_TIMEOUT_MS),
    })
    await response.body?.cancel()
    if (!response.ok) fault({ event: 'slack_update_failed' }, `Slack answered ${response.status}.`)
  } catch (error) {
    fault({ event: 'slack_update_failed' }, error)
  }
}

/** Why Slack cannot have sent this just now, if so (Slack, Verifying requests). */
export async function signatureProblem(
  secret: string,
  headers: Headers,
  body: string,
  now: number,
): Promise<string | undefined> {
  const timestamp = headers.get('x-slack-request-timestamp') ?? ''
  const given = /^v0=([0-9a-f]{64})$/.exec(headers.get('x-slack-signature') ?? '')?.[1]
  if (!/^\d{1,12}$/.test(timestamp) || given === undefined)
    return 'The request carries no signature of Slack.'
  if (Math.abs(now / 1_000 - Number(timestamp)) > MAX_AGE_S) {
    return 'The timestamp is more than five minutes off.'
  }
  const encoder = new TextEncoder()
  const key = await crypto.subtle.importKey(
    'raw',
    encoder.encode(secret),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['verify'],
  )
  const signature = Uint8Array.from(given.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  // `verify` compares in constant time.
  const genuine = await crypto.subtle.verify(
    'HMAC',
    key,
    signature,
    encoder.encode(`v0:${timestamp}:${body}`),
  )
  return genuine ? undefined : 'The signature is not one of Slack for this body.'
}

/** `ada (U012AB3CD)`: the name for people, the id because names change. */
function userOf(payload: Record<string, unknown>): string {
  const user = isObject(payload['user']) ? payload['user'] : {}
  const id = typeof user['id'] === 'string' ? user['id'] : 'unknown'
  const name = user['username'] ?? user['name']
  return typeof name === 'string' ? `${name} (${id})` : id
}

/** Slack's own address for answers to an interaction, and no other. */
function slackUrl(value: unknown): string | undefined {
  const url = typeof value === 'string' ? URL.parse(value) : null
  return url?.origin === 'https://hooks.slack.com' ? url.href : undefined
}

function refusal(status: number, error: string): Response {
  return Response.json({ error }, { status })
}
