/** Bindings of the deployable Worker, as `wrangler.toml` declares them. */
declare namespace Cloudflare {
  interface Env {
    /** What `run_migration` and `import_batch` change. */
    readonly DB: D1Database
    /** What `delete_files` deletes and `import_batch` reads. */
    readonly FILES: R2Bucket
    /** URL that starts a job of `run_ci_pipeline`. Without it the tool says that it is not configured. */
    readonly CI_ENDPOINT?: string
    /** Bearer token for that URL; a secret. */
    readonly CI_TOKEN?: string
  }
}
