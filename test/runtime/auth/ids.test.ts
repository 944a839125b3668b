import { listDurableObjectIds, runInDurableObject } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { ulid } from 'ulid'
import { describe, expect, test } from 'vitest'
import { PURPOSES, SigningKeys } from '../../../src/auth/keys'
import { seal, unseal } from '../../../src/auth/seal'
import { TaskIds } from '../../../src/auth/task-id'
import { ACME, get, GLOBEX, post, start, untilEnded } from '../client'
import { Deployment, message } from './deployment'

const DAY_MS = 86_400_000
const [CURRENT = '', PREVIOUS = ''] = (env.SIGNING_KEYS ?? '').split(',')
const bothKeys = new SigningKeys(`${CURRENT},${PREVIOUS}`)
const ids = new TaskIds(bothKeys, 31 * DAY_MS)
const API_KEYS = env.API_KEYS ?? ''

/** An id as the server would have made it at another time. */
async function idOf(time: number, tenant = 'acme', keys = bothKeys): Promise<string> {
  const unique = ulid(time)
  return `tsk_${unique}${await keys.sign('task-id', [tenant, unique])}`
}

const objects = async () => (await listDurableObjectIds(env.TASKS)).length

// First in this file: no object exists yet.
describe('ids that are not the caller’s own', () => {
  // Reproducible, so that a failure can be looked at.
  let seed = 20_260_728
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((seed / 2 ** 32) * below)
  }
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const letter = () => ALPHABET.charAt(random(ALPHABET.length))

  const kinds: Record<string, (own: string) => Promise<string>> = {
    forged: async (own) => own.slice(0, 31) + Array.from({ length: 16 }, letter).join(''),
    truncated: async (own) => own.slice(0, random(own.length)),
    foreign: () => ids.mint('globex'),
    changed: async (own) => {
      const at = random(own.length)
      let other = letter()
      while (other === own.charAt(at)) other = letter()
      return own.slice(0, at) + other + own.slice(at + 1)
    },
    spliced: async (own) => own.slice(0, 30) + (await ids.mint('acme')).slice(30),
    'of another key': (own) =>
      idOf(Date.now(), 'acme', new SigningKeys(`${own.charAt(30)}:a-secret-of-somewhere-else`)),
    old: () => idOf(Date.now() - 40 * DAY_MS),
    early: () => idOf(Date.now() + DAY_MS),
  }

  test(
    'a hundred thousand of them are refused without a look at any object',
    { timeout: 120_000 },
    async () => {
      const names = Object.keys(kinds)
      const own = await ids.mint('acme')
      const accepted: string[] = []
      for (let i = 0; i < 100_000; i++) {
        const name = names[i % names.length] ?? ''
        const id = (await kinds[name]?.(own)) ?? ''
        if (await ids.accept('acme', id)) accepted.push(`${name}: ${id}`)
      }
      expect(accepted).toEqual([])
      expect(await ids.accept('acme', own)).toBe(true)
    },
  )

  test('over HTTP they wake no object and write nothing', { timeout: 60_000 }, async () => {
    const own = await ids.mint('acme')
    const methods = ['tasks/get', 'tasks/update', 'tasks/cancel', 'subscriptions/listen', 'socket'] as const
    for (let i = 0; i < 400; i++) {
      const make = Object.values(kinds)[i % Object.keys(kinds).length]
      const method = methods[i % methods.length] ?? 'tasks/get'
      await attempt(method, (await make?.(own)) ?? '')
    }
    expect(await objects()).toBe(0)
  })

  test('a well signed one that nobody created finds an object, and leaves it empty', async () => {
    const before = await objects()
    const never = await ids.mint('acme')
    await attempt('tasks/get', never)
    await attempt('tasks/cancel', never)
    await attempt('tasks/update', never)
    // So that it is known that the count above would have shown it.
    expect(await objects()).toBe(before + 1)
    await runInDurableObject(env.TASKS.getByName(never), async (_, { storage }) => {
      expect([...storage.sql.exec('SELECT name FROM sqlite_master')]).toEqual([])
      expect((await storage.list()).size).toBe(0)
      expect(await storage.getAlarm()).toBeNull()
    })
  })
})

async function attempt(method: string, taskId: string, key = ACME): Promise<Response> {
  const name = { 'mcp-name': `=?base64?${btoa(taskId)}?=`, authorization: `Bearer ${key}` }
  if (method === 'socket') {
    return exports.default.fetch(`http://localhost/mcp/tasks/${encodeURIComponent(taskId) || '-'}`, {
      headers: { upgrade: 'websocket', authorization: `Bearer ${key}` },
    })
  }
  const params =
    method === 'subscriptions/listen'
      ? { notifications: { taskIds: [taskId] } }
      : { taskId, ...(method === 'tasks/update' && { inputResponses: {} }) }
  const response = await exports.default.fetch('http://localhost/mcp', message(method, params, key, name))
  await response.clone().text()
  return response
}

describe('every method answers alike for ids that lead nowhere', () => {
  const methods: [string, (taskId: string) => Promise<Response>][] = [
    ...['tasks/get', 'tasks/update', 'tasks/cancel', 'socket'].map(
      (method): [string, (taskId: string) => Promise<Response>] => [
        method,
        (taskId) => attempt(method, taskId),
      ],
    ),
    [
      'subscriptions/listen',
      async (taskId) => {
        const params = { notifications: { taskIds: [taskId] } }
        return exports.default.fetch('http://localhost/mcp', message('subscriptions/listen', params, ACME))
      },
    ],
    [
      'a callback',
      (taskId) =>
        exports.default.fetch(`http://localhost/callbacks/${encodeURIComponent(taskId) || '-'}/token`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{}',
        }),
    ],
    ...['tasks/get', 'tasks/result', 'tasks/cancel'].map(
      (method): [string, (taskId: string) => Promise<Response>] => [
        `${method} of 2025-11-25`,
        (taskId) =>
          post(
            { jsonrpc: '2.0', id: 1, method, params: { taskId } },
            { authorization: `Bearer ${ACME}`, 'mcp-protocol-version': '2025-11-25' },
          ),
      ],
    ),
  ]

  test.each(methods)('%s', { timeout: 30_000 }, async (_, ask) => {
    const foreign = await start('greet', { name: 'x' }, { key: GLOBEX })
    const expired = await start('fleeting')
    await expect.poll(() => get(expired), { timeout: 15_000 }).toBeUndefined()
    const own = await ids.mint('acme')
    const nowhere = {
      unknown: own,
      foreign,
      expired,
      'expired long ago': await idOf(Date.now() - 40 * DAY_MS),
      truncated: own.slice(0, -1),
      'with more behind it': `${own}A`,
      'in small letters': own.toLowerCase(),
      'of no key': own.slice(0, 30) + '9' + own.slice(31),
      empty: '',
      'only a prefix': 'tsk_',
      'a number': '42',
      'a path': '../tsk_x',
      long: `tsk_${'A'.repeat(5_000)}`,
    }
    const answers = new Map<string, string[]>()
    for (const [kind, taskId] of Object.entries(nowhere)) {
      const response = await ask(taskId)
      const said = JSON.stringify([response.status, [...response.headers], await response.text()])
      answers.set(said, [...(answers.get(said) ?? []), kind])
    }
    expect([...answers.values()], JSON.stringify([...answers])).toEqual([Object.keys(nowhere)])
    // And the foreign one is alive.
    expect((await untilEnded(foreign, undefined, { key: GLOBEX })).status).toBe('completed')
  })
})

describe('rotation of the signing key', () => {
  const before = new Deployment({ API_KEYS, SIGNING_KEYS: PREVIOUS })
  const after = new Deployment({ API_KEYS, SIGNING_KEYS: `${CURRENT},${PREVIOUS}` })
  const retired = new Deployment({ API_KEYS, SIGNING_KEYS: CURRENT })
  const call = { token: ACME }
  const create = async (server: Deployment): Promise<string> => {
    const { body } = await server.call('tools/call', { name: 'greet', arguments: { name: 'Ada' } }, call)
    return body.result.taskId
  }
  const known = async (server: Deployment, taskId: string) =>
    'result' in (await server.call('tasks/get', { taskId }, call)).body

  test('loses no task: one made under the old key can be read until that key is withdrawn', async () => {
    const old = await create(before)
    expect(await known(after, old)).toBe(true)
    expect((await after.call('tasks/cancel', { taskId: old }, call)).body.result).toBeDefined()
    expect(await known(retired, old)).toBe(false)
    const fresh = await create(after)
    expect([await known(after, fresh), await known(retired, fresh)]).toEqual([true, true])
    expect(await known(before, fresh)).toBe(false)
  })

  test('keeps what was sealed under the old key, too', async () => {
    const later = Date.now() + 60_000
    const sealed = await seal(new SigningKeys(PREVIOUS), 'callback', ['a'], { event: 'e' }, later)
    expect(await unseal(bothKeys, 'callback', ['a'], sealed)).toMatchObject({ event: 'e' })
    expect(await unseal(new SigningKeys(CURRENT), 'callback', ['a'], sealed)).toBeUndefined()
  })

  test('does not mistake one key for another of the same id', async () => {
    const other = new SigningKeys(`${CURRENT.charAt(0)}:another-secret-of-another-place`)
    expect(await bothKeys.verify('task-id', ['a'], await other.sign('task-id', ['a']))).toBe(false)
  })
})

describe('signatures', () => {
  test('are good for the purpose they were made for, and for no other', async () => {
    for (const made of PURPOSES) {
      const signature = await bothKeys.sign(made, ['acme', 'x'])
      const sealed = await seal(bothKeys, made, ['acme'], { x: 1 }, Date.now() + 60_000)
      for (const used of PURPOSES) {
        expect(await bothKeys.verify(used, ['acme', 'x'], signature)).toBe(made === used)
        expect((await unseal(bothKeys, used, ['acme'], sealed)) !== undefined).toBe(made === used)
      }
    }
  })

  test('cover where one field ends and the next begins', async () => {
    const signature = await bothKeys.sign('task-id', ['ab', 'c'])
    for (const fields of [['a', 'bc'], ['abc'], ['ab', 'c', ''], ['ab|1:c'], ['', 'ab', 'c']]) {
      expect(await bothKeys.verify('task-id', fields, signature)).toBe(false)
    }
  })

  test('of sealed tokens end with their time, and with their audience', async () => {
    const past = await seal(bothKeys, 'callback', ['acme'], { x: 1 }, Date.now() - 1)
    expect(await unseal(bothKeys, 'callback', ['acme'], past)).toBeUndefined()
    const mine = await seal(bothKeys, 'callback', ['acme'], { x: 1 }, Date.now() + 60_000)
    expect(await unseal(bothKeys, 'callback', ['globex'], mine)).toBeUndefined()
    expect(await unseal(bothKeys, 'callback', ['acme'], mine.slice(0, -1))).toBeUndefined()
    expect(await unseal(bothKeys, 'callback', ['acme'], '')).toBeUndefined()
  })
})
