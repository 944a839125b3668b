/**
 * Operator's commands: `npm run ops -- inspect <taskId>` and `npm run ops -- replay <taskId>`.
 * Reads the key from OPERATOR_KEY and the server from --url or LONGHAUL_URL (default http://localhost:8787).
 */
import { parseArgs } from 'node:util'

const USAGE = 'usage: npm run ops -- <inspect|replay> <taskId> [--url https://your-worker.example]'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: 'string', default: process.env.LONGHAUL_URL ?? 'http://localhost:8787' } },
})
const [command, taskId] = positionals
if ((command !== 'inspect' && command !== 'replay') || !taskId) {
  console.error(USAGE)
  process.exit(2)
}
if (!process.env.OPERATOR_KEY) {
  console.error('Set OPERATOR_KEY to the operator key of the server.')
  process.exit(2)
}
const path = `/ops/tasks/${encodeURIComponent(taskId)}${command === 'replay' ? '/replay' : ''}`
try {
  const response = await fetch(new URL(path, values.url), {
    method: command === 'replay' ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${process.env.OPERATOR_KEY}` },
  })
  const answer = await response.json()
  console.log(JSON.stringify(answer, null, 2))
  process.exit(response.ok ? 0 : 1)
} catch (error) {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  console.error(`${values.url} cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`)
  process.exit(1)
}
