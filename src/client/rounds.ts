/**
 * Input that a server wants before it begins: the call is made again, with the answers and the server's own
 * state, until it is answered otherwise (SEP-2322). Keys mean something within a round only.
 */
import type { Json, JsonObject } from '../json.ts'
import { TooManyRoundsError } from './errors.ts'
import type { QuestionResponse } from './questions.ts'
import type { InputRequests } from './wire.ts'

/** How often a server may ask before it begins. */
const MOST_ROUNDS = 10

export class Rounds {
  #count = 0
  #requests: InputRequests | undefined
  #state: string | undefined
  #responses: Record<string, Json> = {}

  /** The questions of the round; `undefined` when there is none. */
  get requests(): InputRequests | undefined {
    return this.#requests
  }

  get count(): number {
    return this.#count
  }

  /** Whether every question of the round has an answer. */
  get complete(): boolean {
    return Object.keys(this.#requests ?? {}).every((key) => Object.hasOwn(this.#responses, key))
  }

  /** @throws TooManyRoundsError */
  begin(requests: InputRequests, state: string | undefined): void {
    this.#count += 1
    if (this.#count > MOST_ROUNDS) throw new TooManyRoundsError(MOST_ROUNDS)
    this.#requests = requests
    this.#state = state
    this.#responses = {}
  }

  answer(key: string, response: QuestionResponse): void {
    // Made of JSON by its type, except that members may be absent.
    this.#responses[key] = response as Json
  }

  /** Ends the round: what the call is made again with. */
  end(): JsonObject {
    const state = this.#state
    const inputResponses = this.#responses
    this.#requests = undefined
    return {
      ...(Object.keys(inputResponses).length > 0 && { inputResponses }),
      ...(state !== undefined && { requestState: state }),
    }
  }
}
