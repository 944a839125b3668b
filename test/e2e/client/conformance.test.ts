import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const SUITE = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
)
const CLIENT = fileURLToPath(new URL('./conformance-client.ts', import.meta.url))

/** Every scenario for clients of this revision that is about tools; the others are about OAuth and skills. */
const SCENARIOS = [
  'tools_call',
  'request-metadata',
  'sep-2322-client-request-state',
  'http-standard-headers',
  'http-custom-headers',
  'http-invalid-tool-headers',
  'json-schema-ref-no-deref',
  'json-schema-2020-12-preservation',
]

test.each(SCENARIOS)('the official suite finds nothing wrong: %s', async (scenario) => {
  const { code, output } = await suite(scenario)
  expect(output).toMatch(/Passed: [1-9]\d*\/\d+, 0 failed, 0 warnings/)
  expect(code).toBe(0)
})

function suite(scenario: string): Promise<{ code: number; output: string }> {
  const command = `${process.execPath} ${CLIENT}`
  const args = [SUITE, 'client', '--command', command, '--scenario', scenario, '--spec-version', '2026-07-28']
  return new Promise((resolve) => {
    execFile(process.execPath, args, { timeout: 50_000 }, (error, stdout, stderr) =>
      resolve({ code: error ? 1 : 0, output: stdout + stderr }),
    )
  })
}
