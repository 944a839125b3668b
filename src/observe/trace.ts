/**
 * Traces: a call's `traceparent` (W3C Trace Context) is kept with its task and travels in the queue
 * message, so that every run can be found from the call that caused it. Spans are the platform's own.
 *
 * @see https://www.w3.org/TR/trace-context/#traceparent-header
 */
import { tracing } from 'cloudflare:workers'

const SHAPE = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

/** From `_meta`, where MCP carries it, or from the header; `undefined` when there is none that is valid. */
export function traceparentOf(meta: Record<string, unknown>, headers: Headers): string | undefined {
  const found = meta['traceparent'] ?? headers.get('traceparent')
  return typeof found === 'string' && SHAPE.test(found) ? found : undefined
}

/** Runs `work` in a span. Without tracing it just runs. */
export function inSpan<T>(
  name: string,
  attributes: Record<string, string | number | boolean | undefined>,
  work: () => Promise<T>,
): Promise<T> {
  // Older runtimes do not have it.
  const platform = tracing as typeof tracing | undefined
  if (!platform) return work()
  return platform.enterSpan(name, (span) => {
    span.setAttributes(attributes)
    return work()
  })
}
