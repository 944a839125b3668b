/** The Durable Object class a deployment exports: the task, with the protocol its door speaks. */
import { TaskCore, type TaskEnv } from '../task/object'
import { modernDoor } from './door-protocol'

export class TaskObject extends TaskCore {
  constructor(ctx: DurableObjectState, env: TaskEnv) {
    super(ctx, env, modernDoor)
  }
}
