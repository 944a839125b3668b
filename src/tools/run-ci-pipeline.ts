/**
 * `run_ci_pipeline`: starts a job on a CI server and waits, without costing anything, until the server
 * calls back. The server is any HTTP endpoint that takes `{ commit, pipeline, callbackUrl, idempotencyKey }`
 * and later posts the outcome to `callbackUrl`. See `docs/writing-tools.md`.
 */
import { z } from 'zod'
import { defineTool, NonRetryableError, StepError, toolError } from '../index'
import { counted, elapsed } from './wording'

const TIMEOUT_HOURS = 6
const MAX_FAILURES_SHOWN = 20
/** A server that takes the connection and says nothing must not hold the step for minutes. */
const START_TIMEOUT_MS = 30_000

/** What the CI server posts to the callback address. */
const outcome = z.object({
  /** `error`: the pipeline itself broke, whatever the tests say. */
  status: z.enum(['passed', 'failed', 'error']),
  tests: z.object({ total: z.int().min(0), failed: z.int().min(0) }).optional(),
  durationMs: z.number().min(0),
  url: z.string().max(2_000).optional(),
  /** One sentence for `error`. */
  message: z.string().max(2_000).optional(),
  failures: z
    .array(z.object({ name: z.string().max(500), message: z.string().max(2_000).optional() }))
    .optional(),
})

type Outcome = z.output<typeof outcome>

export const runCiPipeline = defineTool({
  name: 'run_ci_pipeline',
  title: 'Run a CI pipeline',
  description:
    'Runs a CI pipeline on a commit and reports how its tests went, with the names of those that failed. ' +
    'Takes as long as the pipeline takes: minutes to hours. Failing tests are a normal result; an error ' +
    'means that the pipeline could not be run.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  input: z.object({
    commit: z
      .string()
      .regex(/^[0-9a-f]{7,64}$/i, 'expected the hexadecimal id of a commit, 7 digits or more')
      .describe('Id of the commit, 7 to 64 hexadecimal digits.'),
    pipeline: z
      .string()
      .regex(/^[\w./-]{1,100}$/, 'expected a name of letters, digits, `_`, `-`, `.` and `/`')
      .default('default')
      .describe('Which pipeline to run.'),
  }),
  output: z.object({
    commit: z.string(),
    pipeline: z.string(),
    status: z.enum(['passed', 'failed']),
    tests: z.object({ total: z.int(), failed: z.int() }).optional(),
    durationMs: z.number(),
    url: z.string().optional(),
    failures: z.array(z.object({ name: z.string(), message: z.string().optional() })).optional(),
  }),
  task: {
    ttl: '12 hours',
    retention: '24 hours',
    poll: { min: '2 seconds', max: '1 minute' },
    retry: { limit: 5, delay: '2 seconds', maxDelay: '1 minute' },
  },

  async run({ input: { commit, pipeline }, step, env }) {
    // Recorded: what a deployment changes must not change a task under way.
    const endpoint = await step.do('find the CI server', () => env.CI_ENDPOINT ?? '')
    if (endpoint === '') {
      return toolError(
        'No CI server is configured. Set the variable CI_ENDPOINT of the Worker to the URL that starts a ' +
          'job, such as https://ci.example.com/jobs, and CI_TOKEN if it wants a bearer token.',
      )
    }
    const what = `pipeline ${pipeline} on ${commit}`
    await step.status(`Starting ${what}`)
    let event
    try {
      event = await step.waitForEvent('pipeline', {
        timeout: `${TIMEOUT_HOURS} hours`,
        schema: outcome,
        retry: { limit: 8, delay: '1 second', maxDelay: '2 minutes' },
        async start({ callbackUrl, idempotencyKey, signal }) {
          await startJob(env, endpoint, { commit, pipeline, callbackUrl, idempotencyKey }, signal)
          await step.status(`Waiting for ${what}`)
        },
      })
    } catch (error) {
      if (!(error instanceof StepError)) throw error
      return toolError(`Could not start ${what}: ${error.message}`)
    }
    if (!event.received) {
      return toolError(`No word of ${what} within ${TIMEOUT_HOURS} hours; it may still be running.`)
    }
    return report(what, { commit, pipeline }, event.payload)
  },
})

interface Job {
  readonly commit: string
  readonly pipeline: string
  readonly callbackUrl: string
  /** The same at every attempt: the server starts one job for it. */
  readonly idempotencyKey: string
}

/** @throws NonRetryableError when the server will not have this job, however often it is asked. */
async function startJob(env: Cloudflare.Env, endpoint: string, job: Job, signal: AbortSignal): Promise<void> {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': job.idempotencyKey,
      ...(env.CI_TOKEN && { authorization: `Bearer ${env.CI_TOKEN}` }),
    },
    body: JSON.stringify(job),
    signal: AbortSignal.any([signal, AbortSignal.timeout(START_TIMEOUT_MS)]),
  })
  if (response.ok) {
    await response.body?.cancel()
    return
  }
  const message = `the CI server answered ${response.status}: ${(await response.text()).slice(0, 500)}`
  const passing = response.status >= 500 || response.status === 408 || response.status === 429
  throw passing ? new Error(message) : new NonRetryableError(message)
}

function report(what: string, head: { commit: string; pipeline: string }, event: Outcome) {
  const { status, tests, durationMs, url, failures, message } = event
  const took = elapsed(durationMs)
  const see = url === undefined ? '' : `\n${url}`
  if (status === 'error') {
    return toolError(`The ${what} broke after ${took}${message === undefined ? '.' : `: ${message}`}${see}`)
  }
  const shown = failures?.slice(0, MAX_FAILURES_SHOWN) ?? []
  const text = [
    headline(event, took),
    ...shown.map((failure) => `- ${failure.name}${failure.message ? `: ${failure.message}` : ''}`),
    ...(failures && failures.length > shown.length ? [`… and ${failures.length - shown.length} more`] : []),
  ].join('\n')
  return {
    content: [{ type: 'text' as const, text: `${text}${see}` }],
    structuredContent: {
      ...head,
      status,
      durationMs,
      ...(tests && { tests }),
      ...(url !== undefined && { url }),
      ...(shown.length > 0 && { failures: shown }),
    },
  }
}

/** `All 342 tests passed in 4m12s`. */
function headline({ status, tests }: Outcome, took: string): string {
  if (!tests) return status === 'passed' ? `Passed in ${took}` : `Failed after ${took}`
  const { total, failed } = tests
  if (status === 'passed') return `All ${counted(total, 'test')} passed in ${took}`
  return failed === 0
    ? `Failed after ${took}, although no test did (${counted(total, 'test')})`
    : `${failed.toLocaleString('en-US')} of ${counted(total, 'test')} failed in ${took}`
}
