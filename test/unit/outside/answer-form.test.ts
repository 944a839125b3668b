/** Which fields a question has, which of them decides, and what a filled-in form answers. */
import { expect, test } from 'vitest'
import { decidingField, fieldsOf, responseOf } from '../../../src/outside/answer-form'
import { headed, whatWasAnswered } from '../../../src/outside/answer-words'
import type { JsonObject } from '../../../src/json'

const request = (properties: JsonObject, required: readonly string[] = [], message = 'Well?') => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties, required } },
})
const form = (fields: Record<string, string> | [string, string][]) => new URLSearchParams(fields)

const decision = request(
  { decision: { type: 'string', enum: ['approve', 'reject'] }, comment: { type: 'string', maxLength: 9 } },
  ['decision'],
)

test('the only field that must be given decides, when it is a choice of few', () => {
  expect(decidingField(fieldsOf(decision))?.name).toBe('decision')
  const yesNo = request({ confirm: { type: 'boolean' } }, ['confirm'])
  expect(decidingField(fieldsOf(yesNo))?.options.map(({ label }) => label)).toEqual(['Yes', 'No'])
  const many = request({ day: { type: 'string', enum: ['1', '2', '3', '4', '5'] } }, ['day'])
  expect(decidingField(fieldsOf(many))).toBeUndefined()
  const two = request({ a: { type: 'boolean' }, b: { type: 'boolean' } }, ['a', 'b'])
  expect(decidingField(fieldsOf(two))).toBeUndefined()
  expect(decidingField(fieldsOf(request({ name: { type: 'string' } }, ['name'])))).toBeUndefined()
  expect(decidingField(fieldsOf(request({})))).toBeUndefined()
})

test('options are named by enumNames, by titled constants, or by themselves', () => {
  const labels = (property: JsonObject) =>
    fieldsOf(request({ x: property }))[0]?.options.map(({ label }) => label)
  expect(labels({ type: 'string', enum: ['a_b', 'cD'] })).toEqual(['A b', 'C d'])
  expect(labels({ type: 'string', enum: ['a', 'b'], enumNames: ['Alpha'] })).toEqual(['Alpha', 'B'])
  expect(labels({ type: 'string', oneOf: [{ const: 'a', title: 'Alpha' }, { const: 'b' }] })).toEqual([
    'Alpha',
    'b',
  ])
  expect(labels({ type: 'array', items: { type: 'string', enum: ['a'] } })).toEqual(['A'])
  expect(labels({ type: 'array', items: { anyOf: [{ const: 'a', title: 'Alpha' }] } })).toEqual(['Alpha'])
})

test('a pressed button is an answer; without one there is none', () => {
  expect(responseOf(decision, form({ 'field.decision': 'approve', 'field.comment': '' }))).toEqual({
    action: 'accept',
    content: { decision: 'approve' },
  })
  expect(responseOf(decision, form({ 'field.comment': 'hm' }))).toBeUndefined()
  expect(responseOf(decision, form({ action: 'accept' }))).toBeUndefined()
  const open = request({ name: { type: 'string' } })
  expect(responseOf(open, form({ action: 'decline', 'field.name': 'x' }))).toEqual({ action: 'decline' })
  expect(responseOf(open, form({ 'field.name': 'x' }))).toBeUndefined()
  expect(responseOf(open, form({ action: 'destroy' }))).toBeUndefined()
})

test('a decision between yes and no is a boolean', () => {
  const yesNo = request({ confirm: { type: 'boolean' } }, ['confirm'])
  expect(responseOf(yesNo, form({ 'field.confirm': 'false' }))).toEqual({
    action: 'accept',
    content: { confirm: false },
  })
})

test('fields become what the schema says; what does not fit is left for the schema to refuse', () => {
  const everything = request({
    text: { type: 'string' },
    count: { type: 'integer' },
    price: { type: 'number' },
    gift: { type: 'boolean' },
    wrap: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
    action: { type: 'string' },
  })
  const filled = form([
    ['action', 'accept'],
    ['field.text', ' hello '],
    ['field.count', 'three'],
    ['field.price', '1.50'],
    ['field.gift', 'true'],
    ['field.tags', 'a'],
    ['field.tags', 'b'],
    ['field.action', 'mine'],
  ])
  expect(responseOf(everything, filled)).toEqual({
    action: 'accept',
    content: {
      text: 'hello',
      count: 'three',
      price: 1.5,
      gift: true,
      wrap: false,
      tags: ['a', 'b'],
      action: 'mine',
    },
  })
})

test('a question without a schema can be accepted or declined', () => {
  const bare = { method: 'elicitation/create', params: { message: 'Well?' } }
  expect(responseOf(bare, form({ action: 'accept' }))).toEqual({ action: 'accept', content: {} })
})

test('the first paragraph is the heading, unless it is too long for one', () => {
  const of = (message: string) => headed(request({}, [], message))
  expect(of('Deploy?\n\nAll of it.\n\nNow.')).toEqual({ title: 'Deploy?', details: 'All of it.\n\nNow.' })
  expect(of('Deploy?')).toEqual({ title: 'Deploy?', details: '' })
  const long = 'x'.repeat(201)
  expect(of(`${long}\n\nmore`)).toEqual({ title: 'A question', details: `${long}\n\nmore` })
  expect(of('')).toEqual({ title: 'A question', details: '' })
})

test('what was answered is told by the choice, and never by what was written', () => {
  const by = { via: 'client', at: 0 } as const
  const told = (answer: JsonObject, more = {}) =>
    whatWasAnswered({ state: 'answered', request: decision, answer, by, ...more })
  expect(told({ action: 'accept', content: { decision: 'reject', comment: 'secret' } })).toBe('Reject')
  expect(told({ action: 'decline' })).toBe('Declined')
  expect(told({ action: 'cancel' })).toBe('Dismissed without an answer')
  expect(told({ action: 'cancel' }, { by: undefined })).toBe('Nobody answered')
  const open = request({ name: { type: 'string' } }, ['name'])
  expect(told({ action: 'accept', content: { name: 'secret' } }, { request: open })).toBe('Accepted')
})
