/** The public API of the client: what the caller of long tools needs, in browsers, Node and Workers alike. */
export {
  createTasks,
  type CallOptions,
  type Tasks,
  type TasksOptions,
  type ToolCallOptions,
} from './tasks.ts'
export type { Call } from './call.ts'
export type { QuestionHandler } from './context.ts'
export type { Outcome, Progress, Update } from './update.ts'
export { accept, decline, dismiss, type Question, type QuestionResponse } from './questions.ts'
export {
  type KeyValueStorage,
  localStorageStore,
  memoryStore,
  type TaskReference,
  type TaskStore,
} from './store.ts'
export type { ToolDefinition } from './tools.ts'
export type { InputRequest, RpcError, Status, Task, ToolResult } from './wire.ts'
export { isTerminal } from './wire.ts'
export type { PollOptions } from './pace.ts'
export type { Token } from './endpoint.ts'
export type { Socket, SocketConstructor } from './push-websocket.ts'
export type { Clock } from './clock.ts'
export * from './errors.ts'
