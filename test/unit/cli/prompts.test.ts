import { Readable, Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { askPerson, LEAVE } from '../../../src/cli/prompts.ts'
import type { Question } from '../../../src/client/index.ts'
import type { JsonObject } from '../../../src/json.ts'

/** A terminal with somebody at it, who sees what is shown and presses keys. */
class Person {
  readonly input = new Readable({ read() {} })
  screen = ''
  readonly output = new Writable({
    write: (chunk, _encoding, done) => {
      this.screen += String(chunk)
      done()
    },
  })

  /** Waits until `words` are shown, then presses keys: a word is typed, others are named. */
  async sees(words: string, ...keys: string[]): Promise<void> {
    await expect.poll(() => this.screen, { interval: 2 }).toContain(words)
    this.screen = ''
    for (const key of keys) {
      if (key.startsWith("'")) for (const char of key.slice(1)) this.#press(char, char)
      else this.#press(key.length === 1 ? key : undefined, key)
    }
  }

  #press(char: string | undefined, name: string): void {
    this.input.emit('keypress', char, { name })
  }
}

const properties = (fields: JsonObject, required: string[] = []): JsonObject => ({
  type: 'object',
  properties: fields,
  required,
})

function form(schema: JsonObject | undefined, more: Partial<Question> = {}): Question {
  const request = { method: 'elicitation/create' }
  const blank = { key: 'q', taskId: undefined, tool: undefined, url: undefined, request }
  return { ...blank, kind: 'form', message: 'Delete 47 files?', schema, ...more }
}

function asked(question: Question, controller = new AbortController()) {
  const person = new Person()
  return { person, answer: askPerson(question, controller.signal, person), controller }
}

describe('a question', () => {
  test('for yes or no is answered by a key', async () => {
    const { person, answer } = asked(form(properties({ confirm: { type: 'boolean' } })))
    await person.sees('Delete 47 files?', 'y')
    expect(await answer).toEqual({ action: 'accept', content: { confirm: true } })
  })

  test('without fields is agreed to, or declined', async () => {
    const { person, answer } = asked(form(properties({})))
    await person.sees('Delete 47 files?', 'n')
    expect(await answer).toEqual({ action: 'decline' })
  })

  test('with several fields is put field by field, and an optional one may stay empty', async () => {
    const schema = properties(
      {
        name: { type: 'string', title: 'Your name', description: 'as in your passport', minLength: 2 },
        size: { type: 'string', enum: ['s', 'm', 'l'] },
        copies: { type: 'integer', minimum: 1 },
        extras: { type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
        note: { type: 'string' },
      },
      ['name', 'size', 'copies'],
    )
    const { person, answer } = asked(form(schema))
    await person.sees('Your name (as in your passport)', "'A", 'return')
    await person.sees('at least 2 characters', "'da", 'return')
    await person.sees('size', 'down', 'return')
    await person.sees('copies', "'0", 'return')
    await person.sees('at least 1', 'backspace', "'3", 'return')
    await person.sees('extras', 'space', 'return')
    await person.sees('note', 'return')
    expect(await answer).toEqual({
      action: 'accept',
      content: { name: 'Ada', size: 'm', copies: 3, extras: ['a'] },
    })
  })

  test('offers what the schema proposes', async () => {
    const schema = properties({
      colour: {
        type: 'string',
        oneOf: [
          { const: '#f00', title: 'Red' },
          { const: '#0f0', title: 'Green' },
        ],
        default: '#0f0',
      },
      sure: { type: 'boolean', default: true },
    })
    const { person, answer } = asked(form(schema))
    await person.sees('Green', 'return')
    await person.sees('sure', 'return')
    expect(await answer).toEqual({ action: 'accept', content: { colour: '#0f0', sure: true } })
  })

  test('that is broken off can be declined, answered after all, or left open', async () => {
    const question = form(properties({ confirm: { type: 'boolean' } }))
    const declined = asked(question)
    await declined.person.sees('Delete', 'escape')
    await declined.person.sees('What now?', 'down', 'return')
    expect(await declined.answer).toEqual({ action: 'decline' })

    const back = asked(question)
    await back.person.sees('Delete', 'escape')
    await back.person.sees('What now?', 'return')
    await back.person.sees('Delete', 'y')
    expect(await back.answer).toMatchObject({ content: { confirm: true } })

    const left = asked(question)
    await left.person.sees('Delete', 'escape')
    await left.person.sees('What now?', 'escape')
    expect(await left.answer).toBe(LEAVE)
  })

  test('that was answered elsewhere goes away', async () => {
    const { person, answer, controller } = asked(form(properties({ confirm: { type: 'boolean' } })))
    await person.sees('Delete')
    controller.abort()
    expect(await answer).toBe(LEAVE)
  })

  test('to visit a page shows its address', async () => {
    const { person, answer } = asked(form(undefined, { kind: 'url', url: 'https://example.com/pay' }))
    await expect.poll(() => person.screen).toContain('Done?')
    expect(person.screen).toContain('https://example.com/pay')
    await person.sees('Done?', 'y')
    expect(await answer).toEqual({ action: 'accept', content: {} })
  })

  test('cannot play with the terminal', async () => {
    const message = 'Sure?\u001b[2J\u001b]0;owned\u0007'
    const { person, answer } = asked(form(properties({ ok: { type: 'boolean' } }), { message }))
    await expect.poll(() => person.screen).toContain('Sure?')
    expect(person.screen).not.toContain('\u001b]0;')
    expect(person.screen).not.toContain('\u0007')
    await person.sees('Sure?', 'y')
    await answer
  })
})
