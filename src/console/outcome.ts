/** How a task ended, and with what. */
import type { Outcome } from '../client/index.ts'
import { h } from './dom.ts'
import { jsonView } from './json-view.ts'
import { prose } from './prose.ts'
import { resultView } from './result.ts'

export function outcomeView(outcome: Outcome): HTMLElement | undefined {
  switch (outcome.status) {
    case 'completed':
      return resultView(outcome.result)
    case 'failed': {
      const { code, message, data } = outcome.error
      return h(
        'div',
        { class: 'result result-error' },
        h('p', { class: 'text' }, prose(message)),
        h('p', { class: 'quiet' }, `Error ${code}`),
        data !== undefined && jsonView('About the error', data),
      )
    }
    case 'cancelled':
      return undefined
  }
}
