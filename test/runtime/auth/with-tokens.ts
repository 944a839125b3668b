/** A Worker that accepts tokens of the issuer of the tests. Each call of it is a request of its own. */
import { WorkerEntrypoint } from 'cloudflare:workers'
import { createLonghaul } from '../../../src/index'
import { tools } from '../tools'

export const ISSUER = 'https://issuer.example'
export const AUDIENCE = 'http://localhost/mcp'

/** One configuration object for all requests, as one isolate has. */
let variables: Cloudflare.Env | undefined

/** As if the isolate were new. */
export function forget(): void {
  variables = undefined
}

const worker = createLonghaul({ name: 'with-tokens', version: '1.0.0', tools })

export class WithTokens extends WorkerEntrypoint {
  override fetch(request: Request): Promise<Response> {
    variables ??= { ...this.env, API_KEYS: '', OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: AUDIENCE }
    return worker.fetch(request, variables, this.ctx)
  }
}
