/** Runs start from the top; what the journal has is not done again. */
import { afterEach, expect, test, vi } from 'vitest'
import { type Json, NonRetryableError } from '../../../src/index'
import { start, untilEnded } from '../client'
import { letTimePass, untilWaiting } from '../inside'
import { deploy, script } from '../tools/scripted'

afterEach(() => {
  vi.restoreAllMocks()
})

const text = (task: { result: { content: { text: string }[] } }) => task.result.content[0]?.text

test('recorded steps are not run again by the runs that follow', async () => {
  const ran: string[] = []
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      runs++
      const first = await step.do('first', () => ran.push('first'))
      await step.sleep('long', '1 hour')
      const second = await step.do('second', () => ran.push('second'))
      await step.sleep('short', '100 milliseconds')
      return `${first} ${second}`
    }),
  )
  await letTimePass(taskId)
  expect(text(await untilEnded(taskId))).toBe('1 2')
  expect(ran).toEqual(['first', 'second'])
  expect(runs).toBe(2)
})

test('a replay sees exactly the values of the first time, as JSON', async () => {
  const seen: unknown[] = []
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const value = await step.do('value', () => ({ a: [1, null], when: '2026' }))
      const nothing = await step.do('nothing', (): Json | void => undefined)
      const none = await step.do('null', () => null)
      seen.push(value, nothing, none)
      await step.sleep('long', '1 hour')
      return 'done'
    }),
  )
  await letTimePass(taskId)
  await untilEnded(taskId)
  expect(seen).toHaveLength(6)
  expect(seen.slice(3)).toEqual(seen.slice(0, 3))
  expect(seen.slice(0, 3)).toStrictEqual([{ a: [1, null], when: '2026' }, undefined, null])
})

test('a step that fails is tried again after a back-off, each attempt with its number and the same key', async () => {
  const attempts: { attempt: number; idempotencyKey: string }[] = []
  const taskId = await start(
    'scripted',
    script(async ({ step, task }) => {
      const done = await step.do(
        'flaky',
        { retry: { limit: 3, delay: 10 } },
        ({ attempt, idempotencyKey }) => {
          attempts.push({ attempt, idempotencyKey })
          if (attempt < 3) throw new Error('not yet')
          return attempt
        },
      )
      return `${done} ${task.attempt}`
    }),
  )
  expect(text(await untilEnded(taskId))).toBe('3 0')
  expect(attempts.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
  expect(new Set(attempts.map(({ idempotencyKey }) => idempotencyKey))).toEqual(new Set([`${taskId}/flaky`]))
})

test('a long retry delay ends the run, and a later one goes on with the next attempt', async () => {
  // Full jitter, without the dice.
  vi.spyOn(Math, 'random').mockReturnValue(1)
  const attempts: number[] = []
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      runs++
      const done = await step.do('slow', { retry: { limit: 1, delay: '5 seconds' } }, ({ attempt }) => {
        attempts.push(attempt)
        if (attempt === 1) throw new Error('not yet')
        return attempt
      })
      return `${done}`
    }),
  )
  await untilWaiting(taskId)
  expect(attempts).toEqual([1])
  await letTimePass(taskId)
  expect(text(await untilEnded(taskId))).toBe('2')
  expect(attempts).toEqual([1, 2])
  expect(runs).toBe(2)
})

test('a step that fails for good can be caught by the tool, now and at every replay', async () => {
  let ran = 0
  const caught: string[] = []
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      try {
        await step.do('doomed', () => {
          ran++
          throw new NonRetryableError('no such account')
        })
      } catch (error) {
        caught.push(String(error))
      }
      await step.sleep('long', '1 hour')
      return 'went on'
    }),
  )
  await letTimePass(taskId)
  expect(text(await untilEnded(taskId))).toBe('went on')
  expect(ran).toBe(1)
  expect(caught).toHaveLength(2)
  expect(caught[0]).toBe(caught[1])
  expect(caught[0]).toContain('Step "doomed" failed: no such account')
})

test('a step that fails for good and is not caught fails the task, without retries of the run', async () => {
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      runs++
      await step.do('doomed', { retry: { limit: 1, delay: 1 } }, () => {
        throw new Error('out of order')
      })
      return 'unreachable'
    }),
  )
  const task = await untilEnded(taskId)
  expect(task).toMatchObject({
    status: 'failed',
    error: { code: -32603, message: 'Step "doomed" failed: out of order' },
    statusMessage: 'Step "doomed" failed: out of order',
  })
  expect(runs).toBe(1)
})

test('reaching the time limit of a step aborts its signal and counts as a failed attempt', async () => {
  const reasons: string[] = []
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const done = await step.do(
        'stuck',
        { timeout: 100, retry: { limit: 1, delay: 1 } },
        async ({ attempt, signal }) => {
          if (attempt === 2) return 'second time lucky'
          await new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              reasons.push(String(signal.reason))
              reject(new Error('aborted'))
            })
          })
          return ''
        },
      )
      return done
    }),
  )
  expect(text(await untilEnded(taskId))).toBe('second time lucky')
  expect(reasons).toEqual(['Error: Step "stuck" took longer than 100 ms.'])
})

test.each([
  ['too large', () => 'x'.repeat(128_001), /at most 128000 bytes; this one returned 128003/],
  ['a cycle', () => cyclic() as never, /must return JSON/],
  ['a function', () => (() => 0) as never, /must return JSON/],
])('what a step returns must be a JSON value of a limited size: %s', async (_, fn, message) => {
  let ran = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      await step.do('bad', () => {
        ran++
        return fn()
      })
      return 'unreachable'
    }),
  )
  const task = await untilEnded(taskId)
  expect(task.status).toBe('failed')
  expect(task.error.message).toMatch(message)
  // Its effect has happened; doing it again would not make the value smaller.
  expect(ran).toBe(1)
})

test('the largest allowed value of a step is kept', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => `${(await step.do('large', () => 'é'.repeat(63_999))).length}`),
  )
  expect(text(await untilEnded(taskId))).toBe('63999')
})

test.each([
  ['used twice', ['again', 'again'], /used twice/],
  ['empty', [''], /is not a step name/],
  ['with a tilde', ['a~2'], /is not a step name/],
  ['too long', ['x'.repeat(257)], /is not a step name/],
  ['half a character', ['\ud800'], /is not a step name/],
])(
  'a step name that is %s fails the task, even when the tool catches the error',
  async (_, names, message) => {
    const taskId = await start(
      'scripted',
      script(async ({ step }) => {
        for (const name of names) await step.do(name, () => 1).catch(() => 0)
        return 'looks fine'
      }),
    )
    const task = await untilEnded(taskId)
    expect(task.status).toBe('failed')
    expect(task.error.message).toMatch(message)
  },
)

test('code that changed under a task fails it with a sentence, at its end', async () => {
  const args = script(async ({ step }) => {
    await step.do('old', () => 1)
    await step.sleep('wait', '1 hour')
    return 'old'
  })
  const taskId = await start('scripted', args)
  await untilWaiting(taskId)
  deploy(args, async () => 'new')
  await letTimePass(taskId)
  const task = await untilEnded(taskId)
  expect(task.status).toBe('failed')
  expect(task.error.message).toContain('did not come to ("old", "wait"): the tool changed')
})

test('code that changed under a task fails it, where it would wait', async () => {
  const args = script(async ({ step }) => {
    await step.do('old', () => 1)
    await step.sleep('wait', '1 hour')
    return 'old'
  })
  const taskId = await start('scripted', args)
  await untilWaiting(taskId)
  deploy(args, async ({ step }) => {
    await step.sleep('another', '1 hour')
    return 'new'
  })
  await letTimePass(taskId)
  const task = await untilEnded(taskId)
  expect(task.error?.message).toContain('did not come to ("old", "wait")')
})

test('a name that was one kind of step and is now another fails the task', async () => {
  const args = script(async ({ step }) => {
    await step.sleep('thing', '1 hour')
    return 'old'
  })
  const taskId = await start('scripted', args)
  await untilWaiting(taskId)
  deploy(args, async ({ step }) => `${await step.do('thing', () => 1).catch(() => 'swallowed')}`)
  await letTimePass(taskId)
  const task = await untilEnded(taskId)
  expect(task.error?.message).toContain('"thing" is a step in the code but was recorded as a sleep')
})

test('a branch that is between its steps when the others wait does not look like changed code', async () => {
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const run = ++runs
      const branch = async () => {
        await step.do('before', () => 1)
        if (run > 1) await scheduler.wait(300)
        return step.do('after', () => 2)
      }
      const [, value] = await Promise.all([step.sleep('long', '1 hour'), branch()])
      await step.sleep('more', '1 hour')
      return `${value}`
    }),
  )
  await letTimePass(taskId)
  await letTimePass(taskId)
  expect(text(await untilEnded(taskId))).toBe('2')
  expect(runs).toBe(3)
})

function cyclic(): object {
  const self: Record<string, unknown> = {}
  self['self'] = self
  return self
}
