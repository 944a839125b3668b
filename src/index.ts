/** The public API: what a tool author and a deployment need. */
export { createLonghaul, type Longhaul, type LonghaulOptions } from './longhaul'
export type { SealState } from './mcp/request-state'
export type { Limits, LonghaulEnv } from './mcp/services'
export {
  type Answer,
  type AnswerLink,
  type Ask,
  defineTool,
  type EventOutcome,
  type EventWait,
  type Gather,
  type Gathered,
  NonRetryableError,
  type PlainContext,
  type PlainTool,
  type PlainToolDefinition,
  type Question,
  type RetryPolicy,
  type RunContext,
  type StartedJob,
  type Step,
  type StepContext,
  type StepOptions,
  type TaskOptions,
  type TaskTool,
  type TaskToolDefinition,
  type Tool,
  toolError,
  type ToolOutput,
} from './tool'
export { CancelledError, StepError } from './run/errors'
export type { Duration } from './duration'
export type { Json, JsonObject } from './json'
export { type Applied, applyOnce, type Statement, sweepMarks } from './tools/apply-once'
export type { Progress } from './progress'
export type { Principal } from './auth/principal'
export type { AnsweredBy } from './task/types'
export { TaskObject } from './push/task-object'
export { TenantObject } from './tenant/object'
export { ProtocolError } from '@modelcontextprotocol/server'
