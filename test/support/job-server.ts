/**
 * A small CI server over real HTTP: it takes jobs, keeps one per idempotency key, "runs" each for a
 * moment and posts the outcome to the job's callback address.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Job {
  readonly commit: string
  readonly pipeline: string
  readonly callbackUrl: string
  readonly idempotencyKey: string
}

export interface JobServerOptions {
  /** What is posted to the callback address, or `undefined` to stay silent. */
  outcome(job: Job): unknown
  /** How often the outcome is posted. Default once. */
  readonly deliveries?: number
  /** Status of the answer to a request that starts a job, for the first `times` requests. */
  readonly refuse?: { readonly status: number; readonly times: number }
  /** 0 for any. */
  readonly port?: number
  /** Answers with this delay, as a job takes a while. Default 100 ms. */
  readonly runsForMs?: number
}

export class JobServer {
  readonly jobs = new Map<string, Job>()
  /** Every request that wanted to start a job. */
  readonly requests: { readonly headers: IncomingMessage['headers']; readonly body: Job }[] = []
  /** Status codes that the callback address answered with. */
  readonly answers: number[] = []
  readonly #options: JobServerOptions
  readonly #server: Server
  readonly #working: Promise<void>[] = []

  private constructor(options: JobServerOptions) {
    this.#options = options
    this.#server = createServer((request, response) => {
      this.#receive(request, response).catch((error: unknown) => {
        response.writeHead(500).end(String(error))
      })
    })
  }

  static async start(options: JobServerOptions): Promise<JobServer> {
    const jobServer = new JobServer(options)
    await new Promise<void>((resolve, reject) => {
      jobServer.#server.once('error', reject)
      jobServer.#server.listen(options.port ?? 0, '127.0.0.1', resolve)
    })
    return jobServer
  }

  get port(): number {
    // A TCP server that listens has such an address.
    return (this.#server.address() as AddressInfo).port
  }

  /** Where jobs are started. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/jobs`
  }

  /** Resolves when every job so far has called back. */
  async idle(): Promise<void> {
    await Promise.all(this.#working)
  }

  async stop(): Promise<void> {
    await this.idle()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const body = JSON.parse(text) as Job
    this.requests.push({ headers: request.headers, body })
    const { refuse } = this.#options
    if (refuse && this.requests.length <= refuse.times) {
      response.writeHead(refuse.status).end('Not now.')
      return
    }
    const key = String(request.headers['idempotency-key'])
    const known = this.jobs.has(key)
    this.jobs.set(key, body)
    response.writeHead(known ? 200 : 202, { 'content-type': 'application/json' }).end('{"accepted":true}')
    if (!known) this.#working.push(this.#work(body))
  }

  async #work(job: Job): Promise<void> {
    await new Promise((resolve) => {
      setTimeout(resolve, this.#options.runsForMs ?? 100)
    })
    const outcome = this.#options.outcome(job)
    if (outcome === undefined) return
    for (let i = 0; i < (this.#options.deliveries ?? 1); i++) {
      this.answers.push((await deliver(job.callbackUrl, outcome)).status)
    }
  }
}

export function deliver(callbackUrl: string, outcome: unknown): Promise<Response> {
  return fetch(callbackUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(outcome),
  })
}
