import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Server } from '../../support/server.ts'

const COMMAND = fileURLToPath(new URL('../../../src/cli/longhaul.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'longhaul-cli-'))
let server: Server
let states = 0

beforeAll(async () => {
  server = await Server.start({ config: 'test/e2e/client/wrangler.toml' })
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The command, without a terminal, with a list of tasks of its own. */
class Shell {
  readonly #env: NodeJS.ProcessEnv

  constructor(env: NodeJS.ProcessEnv = {}) {
    this.#env = {
      ...process.env,
      LONGHAUL_URL: `${server.url}/mcp`,
      LONGHAUL_TOKEN: 'acme-key-acme-key',
      LONGHAUL_STATE: join(folder, `${++states}.db`),
      ...env,
    }
  }

  start(...args: string[]): { readonly child: ChildProcess; readonly finished: Promise<Finished> } {
    const child = spawn(process.execPath, [COMMAND, ...args], {
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    // `close` comes when the pipes are empty too.
    const finished = once(child, 'close').then(() => ({ code: child.exitCode, stdout, stderr }))
    return { child, finished }
  }

  run(...args: string[]): Promise<Finished> {
    return this.start(...args).finished
  }

  async json(...args: string[]) {
    const { stdout } = await this.run('--json', ...args)
    return JSON.parse(stdout) as Record<string, unknown>
  }
}

describe('a call', () => {
  test('prints the result to stdout, and nothing else anywhere', async () => {
    const { code, stdout, stderr } = await new Shell().run('call', 'count', '--arg', 'to=3')
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'Counted to 3.\n', stderr: '' })
  })

  test('that is answered without a task looks the same', async () => {
    const { code, stdout } = await new Shell().run('call', 'add', '-a', 'a=2', '-a', 'b:=3')
    expect([code, stdout]).toEqual([0, '5\n'])
  })

  test.each([
    ['the tool answered that it went wrong', ['call', 'failing', '-a', 'as=error'], 1, 'It went wrong.'],
    ['an argument does not fit its schema', ['call', 'count', '-a', 'to=many'], 2, 'give a number'],
    ['there is no such tool', ['call', 'nonsense'], 2, 'no tool nonsense'],
    ['there is no such command', ['nonsense'], 2, 'unknown command'],
    ['the task failed', ['call', 'failing', '-a', 'as=failure'], 3, 'It broke.'],
    ['time was up', ['call', 'count', '-a', 'to=60', '--timeout', '1'], 5, 'Come back to it'],
    ['the task is unknown', ['watch', 'tsk_nonsense'], 6, 'does not know'],
    ['nobody is there to answer', ['call', 'confirm'], 7, '--answers-elsewhere'],
  ])('exits with a code of its own when %s', async (_, args, code, words) => {
    const finished = await new Shell().run(...args)
    expect(finished.code).toBe(code)
    expect(finished.stdout + finished.stderr).toContain(words)
  })

  test.each([
    ['the key is wrong', { LONGHAUL_TOKEN: 'wrong' }, 'not known'],
    ['nobody listens', { LONGHAUL_URL: 'http://127.0.0.1:9/mcp' }, 'could not be reached'],
  ])('exits with 7 when %s', async (_, env, words) => {
    const { code, stderr } = await new Shell(env).run('call', 'add', '-a', 'a=1', '-a', 'b=1')
    expect(code).toBe(7)
    expect(stderr).toContain(words)
  })

  test('prints one object for a program, or one per line as things happen', async () => {
    const shell = new Shell()
    expect(await shell.json('call', 'count', '-a', 'to=2')).toMatchObject({
      taskId: expect.stringMatching(/^tsk_/),
      tool: 'count',
      status: 'completed',
      result: { content: [{ text: 'Counted to 2.' }] },
    })
    const { stdout } = await shell.run('--events', 'call', 'count', '-a', 'to=5', '-a', 'ms=200')
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(events.length).toBeGreaterThan(2)
    expect(events.slice(0, -1).every(({ event }) => event === 'update')).toBe(true)
    expect(events.at(-1)).toMatchObject({ event: 'outcome', status: 'completed' })
  })

  test('answers questions with what was given beforehand', async () => {
    const answer = 'confirm={"confirm":true,"copies":2}'
    const { code, stdout } = await new Shell().run('call', 'confirm', '--answer', answer)
    expect([code, stdout]).toEqual([0, 'true 2\n'])
    const declined = await new Shell().run('call', 'confirm', '--answer', 'confirm=decline')
    expect(declined.stdout).toBe('decline\n')
  })
})

describe('a task that goes on alone', () => {
  test('is begun, answered by name, and watched to its end', async () => {
    const shell = new Shell()
    const begun = await shell.run('call', 'confirm', '--detach')
    const id = begun.stdout.trim()
    expect(begun.code).toBe(0)
    expect(id).toMatch(/^tsk_/)
    await expect
      .poll(async () => (await shell.run('answer', id, '--with', '{"confirm":true}')).code, {
        timeout: 20_000,
      })
      .toBe(0)
    const watched = await shell.run('watch', id)
    expect([watched.code, watched.stdout]).toEqual([0, 'true 1\n'])
    const listed = await shell.run('list')
    expect(listed.stdout).toMatch(new RegExp(`^${id} +confirm +completed`))
    expect((await shell.run('answer', id, '--with', 'yes')).code).toBe(2)
  })

  test('may ask before it is begun, and is left after that', async () => {
    const shell = new Shell()
    const { code, stdout } = await shell.run('call', 'prepared', '--answer', 'colour=red', '--detach')
    expect(code).toBe(0)
    expect((await shell.run('watch', stdout.trim())).stdout).toBe('red\n')
    // Nobody answers, so nothing is begun.
    const unanswered = await shell.run('call', 'prepared', '--detach')
    expect([unanswered.code, unanswered.stdout]).toEqual([5, ''])
    expect(unanswered.stderr).toContain('Nothing was begun.')
  })

  test('is cancelled on request', async () => {
    const shell = new Shell()
    const id = (await shell.run('call', 'count', '-a', 'to=1000', '--detach')).stdout.trim()
    const { code, stdout } = await shell.run('cancel', id)
    expect(code).toBe(0)
    // It may have happened before the acknowledgement was there.
    expect(stdout).toMatch(/^(Cancellation requested|Cancelled)\.\n$/)
    expect((await shell.run('watch', id)).code).toBe(4)
    expect((await shell.run('cancel', id)).stdout).toContain('Too late')
  })

  test('survives kill -9 of the command: resume brings the same result', async () => {
    const shell = new Shell()
    const { child, finished } = shell.start('--events', 'call', 'count', '-a', 'to=30', '-a', 'ms=100')
    let seen = ''
    child.stdout?.on('data', (chunk: Buffer) => (seen += chunk.toString()))
    await expect.poll(() => seen, { timeout: 20_000 }).toContain('"via":"websocket"')
    child.kill('SIGKILL')
    await finished
    expect(child.signalCode).toBe('SIGKILL')
    const id = (JSON.parse(seen.split('\n')[0] ?? '') as { taskId: string }).taskId

    const resumed = await shell.run('resume')
    expect([resumed.code, resumed.stdout]).toEqual([0, 'Counted to 30.\n'])
    expect(await shell.json('watch', id)).toMatchObject({
      taskId: id,
      result: { content: [{ text: 'Counted to 30.' }] },
    })
    expect((await shell.run('resume')).stdout).toBe('Nothing to resume.\n')
  })

  test('is left by Ctrl-C, which says how to come back', async () => {
    const shell = new Shell()
    const { child, finished } = shell.start('call', 'count', '-a', 'to=40', '-a', 'ms=100')
    await expect.poll(async () => (await shell.json('list'))[0], { timeout: 20_000 }).toBeTruthy()
    child.kill('SIGINT')
    const { code, stdout, stderr } = await finished
    expect([code, stdout]).toEqual([130, ''])
    const [, id = ''] = /longhaul watch (tsk_\S+)/.exec(stderr) ?? []
    const watched = await shell.run('watch', id)
    expect([watched.code, watched.stdout]).toEqual([0, 'Counted to 40.\n'])
  })

  test('of which there are several is resumed with the others', async () => {
    const shell = new Shell()
    for (const to of [2, 3]) await shell.run('call', 'count', '-a', `to=${to}`, '--detach')
    const { code, stdout } = await shell.run('resume')
    expect(code).toBe(0)
    expect(stdout.trim().split('\n').toSorted()).toEqual(['Counted to 2.', 'Counted to 3.'])
  })
})

test('the tools of the server are listed, and one is described', async () => {
  const shell = new Shell()
  expect((await shell.run('tools')).stdout).toMatch(/^count +Counts slowly, and says how far it is\.$/m)
  const { stdout } = await shell.run('tools', 'count')
  expect(stdout).toContain('to: integer  Where to stop')
  expect(stdout).not.toContain('confirm')
})
