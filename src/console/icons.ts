/** Icons, each with a shape of its own: a state must be recognisable without its colour. */
import { svg } from './dom.ts'

const CIRCLE = 'M8 1.75a6.25 6.25 0 1 1 0 12.5 6.25 6.25 0 0 1 0-12.5Z'

const PATHS = {
  working: ['M8 1.75a6.25 6.25 0 1 1-6.25 6.25'],
  input_required: [CIRCLE, 'M6.2 6.3a1.85 1.85 0 1 1 2.7 1.65c-.6.32-.9.65-.9 1.3', 'M8 11.4v.01'],
  completed: [CIRCLE, 'm5.2 8.3 1.9 1.9 3.7-4'],
  failed: ['M8 1.9 14.6 13.6H1.4Z', 'M8 6.3v3.2', 'M8 11.6v.01'],
  cancelled: [CIRCLE, 'm3.7 12.3 8.6-8.6'],
  cancelling: [CIRCLE, 'M6 6h4v4H6Z'],
  lost: [
    'M3 3l10 10',
    'M5 7.6a5 5 0 0 1 1.6-1',
    'M2.6 5.4a8 8 0 0 1 2-1.3',
    'M8.3 4a8 8 0 0 1 5.1 1.4',
    'M8 11.6v.01',
  ],
  back: ['M13 8H3', 'M7 4 3 8l4 4'],
  next: ['m6 3.5 4.5 4.5L6 12.5'],
  close: ['m4 4 8 8', 'm12 4-8 8'],
  key: ['M10.5 1.9a3.6 3.6 0 1 1-2.9 5.7L2.2 13v1.2h2.2v-1.6h1.7v-1.7h1.2l1.1-1.1', 'M11.2 4.8v.01'],
  copy: ['M5.5 5.5h8v8h-8Z', 'M10.5 5.5v-3h-8v8h3'],
  info: [CIRCLE, 'M8 7.3v3.6', 'M8 5.1v.01'],
} as const

export type IconName = keyof typeof PATHS

/** Decoration: what it says is also said in words beside it. */
export function icon(name: IconName): SVGElement {
  return svg(
    'svg',
    { viewBox: '0 0 16 16', class: `icon icon-${name}`, 'aria-hidden': 'true', focusable: 'false' },
    ...PATHS[name].map((d) => svg('path', { d })),
  )
}
