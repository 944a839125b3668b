/**
 * One slice of one task: claim the dispatch, run the tool from the top against the journal, and
 * leave the object in a state from which it goes on by itself: ended, waiting, or dispatched again.
 */
import { ProtocolError } from '@modelcontextprotocol/server'
import { isObject, type JsonObject, utf8Bytes } from '../json'
import type { Observer } from '../observe/observer'
import { describe } from '../task/questions'
import type { WorkMessage } from '../task/outbox'
import type { Claim, Outcome, TaskError } from '../task/types'
import { NonRetryableError, type TaskTool, type ToolOutput } from '../tool'
import { LeaseLostError, StepError } from './errors'
import { gatherAnswers } from './gather'
import { Lease } from './lease'
import { asRecorded, messageOf } from './recorded'
import { Steps } from './step'
import { callTask, type TaskStubs } from './stub'

const INTERNAL_ERROR = -32603
/** The platform ends a consumer after 15 minutes; a run that long lets its lease go and is taken over. */
const MAX_RUN_MS = 13 * 60_000

/** `_meta` key of a result: the jobs it comes from, by the names that other systems gave them. */
const META_UPSTREAM = 'longhaul.dev/upstream'
/** Steps that are still at work when the tool throws get this long to finish. */
const LEFTOVER_MS = 5_000
/** A tool whose run is void gets this long to react to its signal. */
const LOST_GRACE_MS = 1_000

/** Larger results go to the bucket, when there is one. */
const INLINE_RESULT_BYTES = 256 * 1024

export interface RunDeps {
  readonly tools: ReadonlyMap<string, TaskTool>
  readonly env: Cloudflare.Env
  readonly stubs: TaskStubs
  readonly observer: Observer
  /** How long steps may begin before the run makes room for others. */
  readonly sliceMs: number
  callbackUrl(claim: Claimed, event: string, expiresAt: number): Promise<string>
  answerUrl(claim: Claimed, question: string, expiresAt?: number, holder?: string): Promise<string>
}

export type Claimed = Extract<Claim, { ok: true }>

/** What became of a message, for logs and tests. */
export type RunEnd =
  | 'refused'
  | 'completed'
  | 'failed'
  | 'retry'
  | 'cancelled'
  | 'suspended'
  | 'yielded'
  | 'lost'

/**
 * Runs a message. Never throws for what a tool does.
 * @throws when the object cannot be reached at all; the message should be tried again then.
 */
export async function run(message: WorkMessage, deps: RunDeps): Promise<RunEnd> {
  const startedAt = Date.now()
  const { taskId: task, n, sentAt, traceparent } = message
  const token = crypto.randomUUID()
  const claim = await callTask(deps.stubs, task, (object) => object.claim(n, token))
  if (!claim.ok) {
    deps.observer.occurred({ event: 'run_refused', task, n, reason: claim.reason })
    return 'refused'
  }
  const lease = new Lease(deps.stubs, task, token, claim.cancelRequested)
  const beating = lease.keep(startedAt + MAX_RUN_MS)
  let end: RunEnd = 'lost'
  try {
    end = await slice(claim, lease, deps, startedAt)
    return end
  } catch (error) {
    if (error instanceof LeaseLostError || lease.lost) return 'lost'
    throw error
  } finally {
    lease.end()
    await beating
    deps.observer.occurred({
      event: 'run_ended',
      task,
      tool: claim.tool,
      tenant: claim.tenantHash,
      n,
      end,
      ms: Date.now() - startedAt,
      queueDelayMs: startedAt - sentAt,
      attempts: claim.attempts,
      ...(traceparent !== undefined && { traceparent }),
    })
  }
}

async function slice(claim: Claimed, lease: Lease, deps: RunDeps, startedAt: number): Promise<RunEnd> {
  const tool = deps.tools.get(claim.tool)
  if (!tool) {
    // A rollback, or a gradual deployment: another version of the Worker may know it.
    return fail(
      lease,
      internal(`This version of the server has no tool ${JSON.stringify(claim.tool)}.`),
      false,
    )
  }
  const input = await tool.input.safeParseAsync(JSON.parse(claim.input))
  if (!input.success) {
    return fail(
      lease,
      internal(`The stored arguments no longer fit ${tool.name}: ${describe(input.error)}`),
      true,
    )
  }
  const steps = new Steps({
    lease,
    journal: claim.journal,
    lineage: claim.lineage,
    capabilities: claim.capabilities,
    sliceEndsAt: startedAt + deps.sliceMs,
    callbackUrl: (event, expiresAt) => deps.callbackUrl(claim, event, expiresAt),
    answerUrl: (question, expiresAt, holder) => deps.answerUrl(claim, question, expiresAt, holder),
  })
  const work = async () =>
    tool.run({
      input: input.data,
      step: steps,
      env: deps.env,
      signal: lease.signal,
      principal: claim.principal,
      // Checked answers of the client; the tool's own schemas typed them.
      gathered: (await gatherAnswers(tool, claim.gathered, steps)) as never,
      task: {
        id: claim.taskId,
        createdAt: claim.createdAt,
        expiresAt: claim.expiresAt,
        attempt: claim.attempts,
      },
    })
  const running = work().then(
    (output) => ({ kind: 'returned', output }) as const,
    (error: unknown) => ({ kind: 'threw', error }) as const,
  )
  const end = await Promise.race([
    running,
    steps.allParked.then(() => ({ kind: 'parked' }) as const),
    lease.whenLost.then(() => ({ kind: 'lost' }) as const),
  ])
  if (lease.lost) {
    // Its signal is aborted; what it does about that (closing, giving back) needs a moment.
    await Promise.race([running, scheduler.wait(LOST_GRACE_MS)])
    return 'lost'
  }
  switch (end.kind) {
    case 'lost':
      return 'lost'
    case 'parked':
      return leave(lease, steps)
    case 'returned':
      return finish(tool, claim, lease, steps, end.output, deps.env.RESULTS)
    case 'threw':
      await steps.quiet(LEFTOVER_MS)
      return threw(lease, steps, end.error)
  }
}

/** Nothing but parked calls is left. */
async function leave(lease: Lease, steps: Steps): Promise<RunEnd> {
  const { parked } = steps
  if (steps.yielding) {
    await lease.write((task, token, note) => task.proceed(token, note))
    return 'yielded'
  }
  const mismatch = await steps.mismatch()
  if (mismatch !== undefined) return fail(lease, internal(mismatch), true)
  await lease.write((task, token, note) => task.suspend(token, parked, note))
  return 'suspended'
}

async function finish(
  tool: TaskTool,
  claim: Claimed,
  lease: Lease,
  steps: Steps,
  output: ToolOutput,
  bucket: R2Bucket | undefined,
): Promise<RunEnd> {
  const mismatch = await steps.mismatch()
  if (mismatch !== undefined) return fail(lease, internal(mismatch), true)
  const outcome = await outcomeOf(tool, output, claim, bucket, steps.upstream)
  try {
    await lease.write((task, token, note) => task.settle(token, outcome, note))
  } catch (error) {
    // Refused, so nobody points to it. (Unreachable is not refused: it may have got there.)
    if (error instanceof LeaseLostError && 'stored' in outcome) await bucket?.delete(outcome.stored.key)
    throw error
  }
  return outcome.status
}

async function threw(lease: Lease, steps: Steps, error: unknown): Promise<RunEnd> {
  if (lease.lost) return 'lost'
  if (error instanceof ProtocolError) return fail(lease, protocolError(error), true)
  if (lease.cancelled) {
    await lease.write((task, token) => task.stop(token))
    return 'cancelled'
  }
  if (steps.violation !== undefined) return fail(lease, internal(steps.violation), true)
  const final = error instanceof NonRetryableError || error instanceof StepError
  return fail(lease, internal(messageOf(error)), final)
}

/** The error a tool chose, with its data as long as that is JSON of a size that can be stored. */
function protocolError(error: ProtocolError): TaskError {
  const { code } = error
  const message = messageOf(error)
  try {
    const data = asRecorded(error.data)
    return { code, message, ...(data !== undefined && { data }) }
  } catch {
    return { code, message }
  }
}

async function fail(lease: Lease, error: TaskError, final: boolean): Promise<RunEnd> {
  await lease.write((task, token) => task.throwError(token, error, final))
  return final ? 'failed' : 'retry'
}

/** The final result as it is stored: a CallToolResult of the current revision. */
async function outcomeOf(
  tool: TaskTool,
  output: ToolOutput,
  { taskId, maxResultBytes: maxBytes }: Claimed,
  bucket: R2Bucket | undefined,
  upstream: JsonObject,
): Promise<Outcome> {
  const failed = (message: string): Outcome => ({ status: 'failed', error: internal(message) })
  const result: Record<string, unknown> =
    typeof output === 'string' ? { content: [{ type: 'text', text: output }] } : output
  if (!isObject(result) || !Array.isArray(result['content'])) {
    return failed(`${tool.name} returned no result: return a text or { content: [...] }.`)
  }
  if (tool.output && result['isError'] !== true) {
    const checked = await tool.output.safeParseAsync(result['structuredContent'])
    if (!checked.success) {
      return failed(
        `${tool.name} returned structuredContent that does not fit its output schema: ${describe(checked.error)}`,
      )
    }
  }
  let text: string
  try {
    text = JSON.stringify({ ...withUpstream(result, upstream), resultType: 'complete' })
  } catch (error) {
    return failed(`${tool.name} returned a result that is not JSON: ${messageOf(error)}`)
  }
  const bytes = utf8Bytes(text)
  if (bytes > maxBytes) {
    return failed(
      `The result of ${tool.name} is ${bytes} bytes; this server keeps at most ${maxBytes}. ` +
        'Return a summary and a link to the whole (a resource_link), or raise maxResultBytes.',
    )
  }
  if (!bucket || bytes <= INLINE_RESULT_BYTES)
    return { status: 'completed', result: JSON.parse(text) as JsonObject }
  const key = `results/${taskId}/${crypto.randomUUID()}`
  await bucket.put(key, text, { httpMetadata: { contentType: 'application/json' } })
  return { status: 'completed', stored: { key, bytes } }
}

/** What the tool itself says there stays. */
function withUpstream(result: Record<string, unknown>, upstream: JsonObject): Record<string, unknown> {
  if (Object.keys(upstream).length === 0) return result
  const meta = isObject(result['_meta']) ? result['_meta'] : {}
  return { ...result, _meta: { [META_UPSTREAM]: upstream, ...meta } }
}

function internal(message: string): TaskError {
  return { code: INTERNAL_ERROR, message }
}
