import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Json } from '../../../src/json'
import { answered, askedAgain, newQuestion, questionOf } from '../../../src/task/entries'
import {
  describe,
  judge,
  MAX_ENTRY_BYTES,
  type OpenQuestion,
  problemBy,
  supersede,
  unanswered,
} from '../../../src/task/questions'
import type { InputRequest } from '../../../src/task/types'

const schema = {
  type: 'object',
  properties: { confirm: { type: 'boolean' }, size: { type: 'string', enum: ['S', 'M'] } },
  required: ['confirm'],
}
const form: InputRequest = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Sure?', requestedSchema: schema },
}
const json = fc.jsonValue() as fc.Arbitrary<Json>

test('whatever a client sends, it is judged and never thrown at', () => {
  const methods = ['elicitation/create', 'sampling/createMessage', 'roots/list', 'something/else']
  fc.assert(
    fc.property(fc.constantFrom(...methods), json, json, (method, params, response) => {
      const verdict = judge({ method, params: params as never }, response)
      if (verdict.fits) JSON.stringify(verdict.answer)
      else expect(verdict.problem).not.toBe('')
    }),
  )
})

test('an accepted form is one whose content fits; extra properties are let through', () => {
  fc.assert(
    fc.property(json, (content) => {
      const verdict = judge(form, { action: 'accept', content })
      const good =
        typeof content === 'object' &&
        content !== null &&
        !Array.isArray(content) &&
        typeof (content as Record<string, Json>)['confirm'] === 'boolean'
      if (verdict.fits) expect(good).toBe(true)
    }),
  )
  expect(judge(form, { action: 'accept', content: { confirm: true, size: 'S', more: 1 } })).toEqual({
    fits: true,
    answer: { action: 'accept', content: { confirm: true, size: 'S', more: 1 } },
  })
  expect(judge(form, { action: 'accept', content: { confirm: true, size: 'XL' } }).fits).toBe(false)
})

test('who declines or cancels gives no content, whatever came with it', () => {
  for (const action of ['decline', 'cancel']) {
    expect(judge(form, { action, content: { confirm: 7 } })).toEqual({ fits: true, answer: { action } })
  }
})

test('a URL question is accepted without content', () => {
  const url: InputRequest = { method: 'elicitation/create', params: { mode: 'url', url: 'https://x.test' } }
  expect(judge(url, { action: 'accept' })).toEqual({ fits: true, answer: { action: 'accept' } })
})

test('an answer past the limit does not fit', () => {
  const content = { confirm: true, text: 'é'.repeat(MAX_ENTRY_BYTES / 2) }
  expect(judge(form, { action: 'accept', content })).toMatchObject({
    fits: false,
    problem: expect.stringContaining(String(MAX_ENTRY_BYTES)),
  })
})

test('a schema that nobody can read judges nothing', () => {
  expect(problemBy({ type: 'object', not: { $ref: 'https://elsewhere.test/schema' } }, {})).toBeUndefined()
})

test('what is wrong is said in a sentence, not without end', () => {
  const many = z.object(Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`field${i}`, z.string()])))
  const { error } = many.safeParse({})
  expect(error && describe(error).split(';')).toHaveLength(5)
  const strict = z.strictObject({}).safeParse({ ['x'.repeat(100_000)]: 1 })
  expect(strict.error && describe(strict.error).length).toBeLessThan(600)
})

const question: OpenQuestion = { name: 'sure', key: 'sure', request: form, tries: 1 }

test('a question put again has a new key each time, the same form, and says only the last problem', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 10 }), (problems) => {
      const asked = [question]
      for (const problem of problems) asked.push(supersede(asked.at(-1) ?? question, problem))
      expect(new Set(asked.map(({ key }) => key)).size).toBe(asked.length)
      const last = asked.at(-1)
      expect(last?.tries).toBe(problems.length + 1)
      const { message, ...rest } = last?.request.params ?? {}
      expect(rest).toEqual({ mode: 'form', requestedSchema: schema })
      expect(message).toMatch(/^Sure\?\n\n/)
      expect(JSON.stringify(message).endsWith(JSON.stringify(problems.at(-1)).slice(1))).toBe(true)
    }),
  )
})

test('putting a question again does not change the one before', () => {
  const before = structuredClone(question)
  supersede(question, 'wrong')
  expect(question).toEqual(before)
})

test('a row keeps its question, and its time, through answers and new tries', () => {
  const row = { ...newQuestion({ name: 'sure', request: form, at: 7 }), seq: 1 }
  expect(questionOf(row)).toEqual(question)
  const once = answered(row, { action: 'decline' })
  expect(once).toMatchObject({ state: 'answered', at: null, data: { answer: { action: 'decline' } } })
  const again = askedAgain(once, supersede(questionOf(once), 'no'))
  expect(again).toMatchObject({ state: 'open', at: 7, seq: 1 })
  expect(questionOf(again)).toMatchObject({ key: 'sure~2', tries: 2 })
  const patient = { ...newQuestion({ name: 'sure', request: form, at: null }), seq: 1 }
  expect(askedAgain(answered(patient, {}), question).at).toBeNull()
})

test('nobody answering a form is a cancel; for other requests it is an error', () => {
  expect(unanswered(form)).toEqual({ action: 'cancel' })
  expect(unanswered({ method: 'roots/list' })).toMatchObject({ error: { code: -32603 } })
})
