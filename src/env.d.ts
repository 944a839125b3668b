/** Bindings of the deployable Worker, as `wrangler.toml` declares them. */
declare namespace Cloudflare {
  interface Env {
    readonly DB: D1Database
    readonly FILES: R2Bucket
  }
}
