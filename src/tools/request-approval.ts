/**
 * `request_approval`: asks people whether something may be done, and waits until somebody decides: in the
 * MCP client, on the page behind a signed link, or with a button in Slack. See
 * `docs/recipes/approvals-slack.md`.
 */
import { z } from 'zod'
import { type Duration, toMs } from '../duration'
import {
  type AnsweredBy,
  defineTool,
  type JsonObject,
  NonRetryableError,
  type Step,
  StepError,
} from '../index'
import { readableTime, whoAnswered } from '../outside/answer-words'
import { askMessage, type Choice, noteMessage } from '../outside/slack-message'

const MAX_WAIT_MS = toMs('7 days')
/** Left of the time-to-live after the last moment to decide, to say that nobody did. */
const RESERVE_MS = toMs('1 minute')
const SLACK_RETRY = { limit: 3, delay: '1 second', maxDelay: '10 seconds' } as const

const CHOICES: readonly Choice[] = [
  { label: 'Approve', content: { decision: 'approve' }, style: 'primary' },
  { label: 'Reject', content: { decision: 'reject' }, style: 'danger' },
]

/** What a client's form shows, and the buttons of the page. */
const decision = z.object({
  decision: z.enum(['approve', 'reject']).meta({ title: 'Decision' }),
  comment: z.string().max(1_000).optional().meta({ title: 'Comment' }),
})

const duration = z
  .string()
  .regex(/^\d{1,4} (minute|hour|day)s?$/, 'expected a number and a unit, such as "30 minutes" or "2 days"')
  // The pattern is stricter than the type.
  .refine((text) => toMs(text as Duration) > 0 && toMs(text as Duration) <= MAX_WAIT_MS, 'at most 7 days')

export const requestApproval = defineTool({
  name: 'request_approval',
  title: 'Request an approval',
  description:
    'Asks people to approve or reject something before it is done, and waits for their decision: minutes to ' +
    'days. Returns who decided, what and when. Do not go on unless the decision is "approved".',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  input: z.object({
    title: z.string().trim().min(1).max(150).describe('What is to be approved, in one line.'),
    details: z
      .string()
      .trim()
      .max(10_000)
      .default('')
      .describe('What a person must know to decide: plain text or Markdown, shown as it is.'),
    approvers: z.string().trim().max(100).optional().describe('Who should decide, as people call them.'),
    expiresIn: duration.default('24 hours').describe('How long to wait, such as "30 minutes" or "2 days".'),
  }),
  output: z.object({
    decision: z.enum(['approved', 'rejected', 'undecided']),
    decidedBy: z.object({ via: z.enum(['client', 'link', 'slack']), name: z.string().optional() }).optional(),
    decidedAt: z.string().optional(),
    comment: z.string().optional(),
  }),
  task: { ttl: '8 days', retention: '24 hours', poll: { min: '5 seconds', max: '1 minute' } },
  asks: ['elicitation'],

  async run({ input, step, env, task }) {
    const { title, details, approvers } = input
    const { SLACK_WEBHOOK_URL: webhook, SLACK_SIGNING_SECRET: secret } = env
    // Recorded: every run has the same deadline, and a deployment does not change a task under way.
    const plan = await step.do('plan', () => ({
      until: Math.min(Date.now() + toMs(input.expiresIn as Duration), task.expiresAt - RESERVE_MS),
      slack: Boolean(webhook),
      // Without the secret nobody could verify what a button sends.
      buttons: Boolean(secret),
    }))
    const left = () => Math.max(plan.until - Date.now(), 0)
    const link = await step.answerLink('approval', {
      expiresIn: left(),
      ...(approvers && { holder: approvers }),
    })
    const inSlack =
      plan.slack &&
      (await post(step, 'ask in Slack', webhook, () =>
        askMessage({
          title,
          details,
          facts: [...(approvers ? [`For ${approvers}`] : []), `Open until ${readableTime(plan.until)}`],
          link,
          choices: plan.buttons ? CHOICES : [],
        }),
      ))
    // The link is for people: the question is shown to the user, a status text also to the model.
    await step.status(`Waiting for ${approvers ?? 'somebody'} to decide${inSlack ? ' (asked in Slack)' : ''}`)
    const answer = await step.elicit('approval', {
      message: [
        title,
        ...(details ? [details] : []),
        ...(inSlack ? [] : [`To let ${approvers ?? 'somebody else'} decide, pass on this link: ${link}`]),
      ].join('\n\n'),
      schema: decision,
      timeout: left(),
    })

    const by = step.answeredBy('approval')
    const chosen = answer.action === 'accept' ? answer.content.decision : undefined
    const comment = answer.action === 'accept' ? answer.content.comment : undefined
    const outcome =
      chosen === 'approve'
        ? 'approved'
        : chosen === 'reject' || answer.action === 'decline'
          ? 'rejected'
          : 'undecided'
    const headline = sentence(outcome, by, plan.until)
    const text = comment === undefined ? headline : `${headline}\nComment: ${comment}`
    await step.status(headline)
    if (inSlack && by?.via !== 'slack') {
      await post(step, 'tell Slack the outcome', webhook, () => noteMessage(title, text))
    }
    return {
      content: [{ type: 'text', text }],
      structuredContent: {
        decision: outcome,
        ...(by && {
          decidedBy: { via: by.via, ...(by.name !== undefined && { name: by.name }) },
          decidedAt: new Date(by.at).toISOString(),
        }),
        ...(comment !== undefined && { comment }),
      },
    }
  },
})

function sentence(
  outcome: 'approved' | 'rejected' | 'undecided',
  by: AnsweredBy | undefined,
  until: number,
): string {
  if (!by) return `Not approved: nobody decided. It was open until ${readableTime(until)}.`
  const what = { approved: 'Approved', rejected: 'Rejected', undecided: 'Not approved: dismissed' }[outcome]
  return `${what} ${whoAnswered(by)}, ${readableTime(by.at)}.`
}

/** Posts to the channel, as a recorded step. `false`: Slack did not take it; the link still works. */
async function post(
  step: Step,
  name: string,
  webhook: string | undefined,
  message: () => JsonObject,
): Promise<boolean> {
  try {
    await step.do(name, { retry: SLACK_RETRY, timeout: '30 seconds' }, async ({ signal }) => {
      if (!webhook) throw new NonRetryableError('SLACK_WEBHOOK_URL is not set any more.')
      const response = await fetch(webhook, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(message()),
        redirect: 'manual',
        signal,
      })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`Slack answered ${response.status}.`)
    })
    return true
  } catch (error) {
    if (!(error instanceof StepError)) throw error
    return false
  }
}
