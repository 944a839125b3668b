/**
 * Answer links: signed, expiring addresses of one question of one task. Whoever has one may see the
 * question and answer it; reading decides nothing, and the first answer wins, wherever it is given.
 */
import { checkFormType, readBody } from '../auth/door'
import type { SigningKeys } from '../auth/keys'
import { type Opened, openSealed, seal } from '../auth/seal'
import type { Services } from '../mcp/services'
import { callTask } from '../run/stub'
import type { LinkedQuestion } from '../task/types'
import { responseOf } from './answer-form'
import { answeredPage, questionPage, sentencePage } from './answer-page'

const MAX_FORM_BYTES = 64 * 1024
const MAX_HOLDER_CHARS = 200

export interface LinkedTo {
  readonly question: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  readonly holder: string | undefined
}

/** The address of the page on which `question` of this task can be answered. */
export async function answerUrl(
  keys: SigningKeys,
  baseUrl: string,
  taskId: string,
  { question, expiresAt, holder }: LinkedTo,
): Promise<string> {
  const payload = { question, ...(holder !== undefined && { holder: holder.slice(0, MAX_HOLDER_CHARS) }) }
  for (let until = expiresAt; ; until--) {
    const token = await seal(keys, 'approval', [taskId], payload, until)
    // Mail and chat take a dash or an underscore at the end for punctuation, and leave it out of the link.
    if (/[A-Za-z0-9]$/.test(token)) return `${baseUrl}/approvals/${taskId}/${token}`
  }
}

export type OpenedLink =
  | { readonly ok: true; readonly question: string; readonly holder?: string }
  | Extract<Opened, { ok: false }>

/** What a link is for, or why it is worth nothing here. */
export async function openLink(keys: SigningKeys, taskId: string, token: string): Promise<OpenedLink> {
  const opened = await openSealed(keys, 'approval', [taskId], token)
  if (!opened.ok) return opened
  const { question, holder } = opened.payload
  if (typeof question !== 'string') return { ok: false, reason: 'invalid' }
  return { ok: true, question, ...(typeof holder === 'string' && { holder }) }
}

/** GET and HEAD: the page. A link preview that opens it changes nothing. */
export async function showQuestion(taskId: string, token: string, services: Services): Promise<Response> {
  const link = await openLink(services.keys, taskId, token)
  if (!link.ok) return refusedPage(link.reason)
  const question = await callTask(services.stubs, taskId, (task) => task.question(link.question))
  return question.state === 'answered'
    ? answeredPage(200, question, 'This is already decided.')
    : statePage(question, taskId)
}

/** POST of the page's form: the answer. */
export async function answerQuestion(
  request: Request,
  taskId: string,
  token: string,
  services: Services,
): Promise<Response> {
  const link = await openLink(services.keys, taskId, token)
  if (!link.ok) return refusedPage(link.reason)
  const wrongType = checkFormType(request)
  if (wrongType) return sentencePage(wrongType.status, 'Not understood', wrongType.message)
  const body = await readBody(request, MAX_FORM_BYTES)
  if (typeof body !== 'string') return sentencePage(body.status, 'Too long', body.message)

  const question = await callTask(services.stubs, taskId, (task) => task.question(link.question))
  if (question.state !== 'open') return decidedPage(question, taskId)
  const response = responseOf(question.request, new URLSearchParams(body))
  if (response === undefined) return questionPage(question, pathOf(taskId), 'no button was pressed.')

  const { holder } = link
  const by = { via: 'link', at: Date.now(), ...(holder !== undefined && { name: holder }) } as const
  const answer = { response, by, nonce: crypto.randomUUID() }
  const reply = await callTask(services.stubs, taskId, (task) => task.answer(link.question, answer))
  if (reply.question.state === 'open') return questionPage(reply.question, pathOf(taskId), reply.problem)
  return reply.accepted && reply.question.state === 'answered'
    ? answeredPage(200, reply.question, 'Thank you, your answer counts.')
    : decidedPage(reply.question, taskId)
}

/** The answer came second, or to nothing. */
function decidedPage(question: LinkedQuestion, taskId: string): Promise<Response> {
  if (question.state !== 'answered') return statePage(question, taskId)
  return answeredPage(409, question, 'This was already decided: your answer came later and changes nothing.')
}

function statePage(
  question: Exclude<LinkedQuestion, { state: 'answered' }>,
  taskId: string,
): Promise<Response> {
  switch (question.state) {
    case 'open':
      return questionPage(question, pathOf(taskId))
    case 'not_asked':
      return sentencePage(
        409,
        'Not asked yet',
        'The task has not come to this question. Reload in a moment.',
        {
          'retry-after': '5',
        },
      )
    case 'ended':
      return sentencePage(
        410,
        'Too late',
        `The task has ended (${question.status}) before anybody answered this question.`,
      )
    case 'unknown':
      return sentencePage(410, 'Too late', 'The task is over, and nothing of it is kept any more.')
  }
}

function refusedPage(reason: 'invalid' | 'expired'): Promise<Response> {
  return reason === 'expired'
    ? sentencePage(410, 'Too late', 'This link has expired.')
    : sentencePage(404, 'Not found', 'This link is not valid. Was it copied completely?')
}

export function answerMethods(): Promise<Response> {
  const sentence = 'Open this address to see the question; its form is sent by POST.'
  return sentencePage(405, 'Method not allowed', sentence, { allow: 'GET, HEAD, POST' })
}

/** What every address of this task's questions contains. */
function pathOf(taskId: string): string {
  return `/approvals/${taskId}/`
}
