import { cloudflareTest } from '@cloudflare/vitest-plugin'
import { defineConfig } from 'vitest/config'

/**
 * Three layers, from the inside out: `unit` is pure code in Node, `runtime` runs inside workerd with
 * real objects, queues, D1 and R2, and `e2e` drives `wrangler dev` from outside, as clients do.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: { name: 'unit', include: ['test/unit/**/*.test.ts'] },
      },
      {
        plugins: [
          cloudflareTest({ wrangler: { configPath: './test/runtime/wrangler.toml' }, verbose: false }),
        ],
        test: {
          name: 'runtime',
          include: ['test/runtime/**/*.test.ts'],
          testTimeout: 60_000,
          // These tests wait more than they work, whatever the number of cores.
          maxWorkers: 4,
          // Bundled once and kept: otherwise every test file loads them again, file by file, for five seconds.
          deps: {
            optimizer: {
              ssr: { enabled: true, include: ['@modelcontextprotocol/server', 'hono', 'ulid', 'zod'] },
            },
          },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
          // After the others: they would take the time from each other.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
