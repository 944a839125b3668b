declare namespace Cloudflare {
  interface GlobalProps {
    mainModule: typeof import('./worker')
    durableNamespaces: 'TaskObject' | 'TenantObject'
  }
  interface Env {
    readonly TIGHT_LIMITER: RateLimit
  }
}
