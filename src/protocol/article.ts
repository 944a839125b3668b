/**
 * Codec of the abbreviated shapes that the introductory article on Tasks shows: a nested `task` at
 * creation, no `resultType` elsewhere, questions as `{type, message, schema}`, and plain answers. No
 * published client speaks it; requests written from that text do. Pure.
 */
import { isObject, type Json, type JsonObject } from '../json'
import type { InputRequest, TaskSnapshot } from '../task/types'

/** The answer to a call that became a task. */
export function createdTask(task: TaskSnapshot): Record<string, unknown> {
  const { taskId, status, statusMessage, ttlMs, pollIntervalMs } = task
  const message = statusMessage === undefined ? {} : { statusMessage }
  return { resultType: 'task', task: { taskId, status, ...message, ttlMs, pollIntervalMs } }
}

/** The answer to `tasks/get`: what the article shows, and nothing else. */
export function polledTask(task: TaskSnapshot): Record<string, unknown> {
  const { taskId, status, statusMessage, inputRequests, result, error } = task
  return {
    taskId,
    status,
    ...(statusMessage !== undefined && { statusMessage }),
    ...(inputRequests && { inputRequests: mapValues(inputRequests, question) }),
    ...(result && { result: withoutResultType(result) }),
    ...(error && { error }),
  }
}

/** `notifications/tasks`, with the whole task inside. */
export function taskPush(task: TaskSnapshot): string {
  return JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tasks', params: { task: polledTask(task) } })
}

/** A synchronous result. */
export function withoutResultType(result: JsonObject): JsonObject {
  const { resultType: _, ...rest } = result
  return rest
}

/** Forms in the article's shape; other kinds, which it does not show, as published. */
function question(request: InputRequest): Record<string, unknown> {
  const params = request.params ?? {}
  if (request.method !== 'elicitation/create' || params['mode'] === 'url') return { ...request }
  return { type: 'elicitation', message: params['message'], schema: params['requestedSchema'] }
}

/**
 * Answers as the core knows them. `{confirm: true}` is accepted content, unless the object already is
 * an answer: an `action` of accept, decline or cancel, to a question that has no property of that name.
 */
export function answersOf(responses: JsonObject, questions: TaskSnapshot['inputRequests'] = {}): JsonObject {
  return mapValues(responses, (response, key) => {
    const request = questions[key]
    if (request?.method !== 'elicitation/create' || !isObject(response)) return response
    const { action } = response
    const isAction = action === 'accept' || action === 'decline' || action === 'cancel'
    if (isAction && !asksFor(request, 'action')) return response
    // It came out of JSON.parse.
    return { action: 'accept', content: response as Json }
  })
}

function asksFor({ params }: InputRequest, property: string): boolean {
  const schema = params?.['requestedSchema']
  return isObject(schema) && isObject(schema['properties']) && property in schema['properties']
}

function mapValues<V, W>(
  object: Readonly<Record<string, V>>,
  map: (value: V, key: string) => W,
): Record<string, W> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]))
}
