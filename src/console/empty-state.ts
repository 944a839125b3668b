/** What is shown while there is no task: what to do, and what will happen. */
import { h, svg } from './dom.ts'

export function emptyState(lasting: boolean): HTMLElement {
  return h(
    'div',
    { class: 'empty' },
    road(),
    h('p', { class: 'empty-title' }, 'No tasks yet'),
    h(
      'p',
      {},
      'Choose a tool and run it. It becomes a task that goes on at the server, ',
      'whatever happens to this page.',
    ),
    h(
      'p',
      { class: 'quiet' },
      lasting
        ? 'Reload, close the tab, come back tomorrow: the task will be here, with its questions and its result.'
        : 'This browser keeps nothing for this page, so a reload will lose sight of the tasks. They go on all the same.',
    ),
  )
}

/** A long road, and somebody on it. */
function road(): SVGElement {
  return svg(
    'svg',
    { viewBox: '0 0 220 72', class: 'road', 'aria-hidden': 'true', focusable: 'false' },
    svg('path', { class: 'road-ahead', d: 'M8 58c42 0 40-40 78-40s34 40 70 40 34-32 56-32' }),
    svg('path', { class: 'road-done', d: 'M8 58c42 0 40-40 78-40' }),
    svg('circle', { class: 'road-end', cx: 8, cy: 58, r: 4 }),
    svg('circle', { class: 'road-here', cx: 86, cy: 18, r: 6 }),
    svg('circle', { class: 'road-goal', cx: 212, cy: 26, r: 4 }),
  )
}
