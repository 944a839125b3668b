/** Tools for the tests of callbacks and answer links: they hand out their addresses in the status text. */
import { z } from 'zod'
import { defineTool, type Tool } from '../../../src/index'
import { requestApproval } from '../../../src/tools/request-approval'

/** The addresses that `start` handed out, by task. */
export const handedOut = new Map<string, string>()

/** Waits for an outside job and says what came of it. */
const outsideJob = defineTool({
  name: 'outside_job',
  description: 'Waits for an outside job.',
  input: z.object({
    timeoutMs: z.number().int().default(60_000),
    /** The other system's id for the job. */
    upstreamId: z.string().optional(),
    /** Puts a status text of its own. */
    says: z.string().optional(),
  }),
  async run({ input, step, task }) {
    const outcome = await step.waitForEvent('build', {
      timeout: input.timeoutMs,
      schema: z.object({ status: z.enum(['passed', 'failed']), tests: z.number().optional() }),
      async start({ callbackUrl }) {
        handedOut.set(task.id, callbackUrl)
        if (input.says !== undefined) await step.status(input.says)
        if (input.upstreamId === undefined) return
        return {
          upstreamId: input.upstreamId,
          upstreamUrl: `https://ci.example/runs/${input.upstreamId}`,
        }
      },
    })
    return JSON.stringify(outcome)
  },
})

/** Takes any JSON for an answer. */
const outsideAny = defineTool({
  name: 'outside_any',
  description: 'Waits for any JSON.',
  input: z.object({}),
  async run({ step, task }) {
    const outcome = await step.waitForEvent('anything', {
      async start({ callbackUrl }) {
        handedOut.set(task.id, callbackUrl)
      },
    })
    return JSON.stringify(outcome)
  },
})

/** A form with a field of every kind, to be answered by link. */
const linkedForm = defineTool({
  name: 'linked_form',
  description: 'Asks a form that can be answered by link.',
  input: z.object({}),
  asks: ['elicitation'],
  async run({ step, task }) {
    handedOut.set(task.id, await step.answerLink('form', { holder: 'the shop' }))
    const answer = await step.elicit('form', {
      message: 'Where to?',
      schema: z.object({
        street: z.string().max(40),
        floor: z.number().int().max(99),
        gift: z.boolean(),
        size: z.enum(['small', 'large']).optional(),
      }),
    })
    return JSON.stringify({ answer, by: step.answeredBy('form') })
  },
})

/** Hands out the link of a question that it puts only after a while. */
const linkedEarly = defineTool({
  name: 'linked_early',
  description: 'Asks later.',
  input: z.object({}),
  asks: ['elicitation'],
  async run({ step, task }) {
    handedOut.set(task.id, await step.answerLink('later'))
    await step.sleep('a while', '1 hour')
    const answer = await step.elicit('later', {
      message: 'Now?',
      schema: z.object({ confirm: z.boolean() }),
    })
    return JSON.stringify(answer)
  },
})

export const SLACK_SECRET = 'slack-signing-secret-of-the-tests'
export const SLACK_WEBHOOK = 'https://hooks.slack.com/services/T0/B0/tests'

/** The same tool where Slack is configured. */
const approvalInSlack = defineTool({
  ...requestApproval,
  name: 'request_approval_in_slack',
  run: (context) =>
    requestApproval.run({
      ...context,
      env: { ...context.env, SLACK_WEBHOOK_URL: SLACK_WEBHOOK, SLACK_SIGNING_SECRET: SLACK_SECRET },
    }),
})

export const outsideTools: readonly Tool[] = [
  outsideJob,
  outsideAny,
  linkedForm,
  linkedEarly,
  approvalInSlack,
]
