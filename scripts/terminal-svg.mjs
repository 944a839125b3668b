/** A recording of a terminal as an animated SVG: every screen that lasted, one after the other. */
import xterm from '@xterm/headless'

const COLOURS = ['#3b4048', '#e06c75', '#98c379', '#e5c07b', '#61afef', '#c678dd', '#56b6c2', '#d7dae0']
const INK = '#d7dae0'
const [CHAR, LINE, PAD, BAR] = [8.4, 20, 18, 34]

/** @typedef {{ at: number, data: string }} Chunk what was printed, and when (ms). */
/** @typedef {{ lines: string[], forMs: number }} Frame */

/**
 * @param {readonly Chunk[]} chunks
 * @param {{ columns: number, rows: number, title: string, everyMs?: number, lastMs?: number }} options
 *   `everyMs`: how often the screen is looked at; `lastMs`: how long the last one stays.
 */
export async function terminalSvg(chunks, { columns, rows, title, everyMs = 250, lastMs = 5_000 }) {
  const terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
  /** @type {Frame[]} */
  const frames = []
  const end = chunks.at(-1)?.at ?? 0
  let next = 0
  for (let at = 0; at < end + everyMs; at += everyMs) {
    for (let chunk = chunks[next]; chunk && chunk.at <= at; chunk = chunks[++next]) {
      const { data } = chunk
      await new Promise((resolve) => terminal.write(data, () => resolve(undefined)))
    }
    const lines = screen(terminal, columns, rows)
    const before = frames.at(-1)
    if (before?.lines.join() === lines.join()) before.forMs += everyMs
    else frames.push({ lines, forMs: everyMs })
  }
  const last = frames.at(-1)
  if (last) last.forMs += lastMs
  const height = Math.max(...frames.map(({ lines }) => lines.findLastIndex((line) => line !== '') + 1))
  return draw(frames, columns, height, title)
}

/**
 * @param {import('@xterm/headless').Terminal} terminal
 * @param {number} columns @param {number} rows
 */
function screen(terminal, columns, rows) {
  const { active } = terminal.buffer
  return Array.from({ length: rows }, (_, y) => {
    const line = active.getLine(active.baseY + y)
    let text = ''
    let style = ''
    let run = ''
    const flush = () => {
      if (run.trim() !== '') text += `<tspan ${style}>${escape(run)}</tspan>`
      else text += run
      run = ''
    }
    for (let x = 0; x < columns; x++) {
      const cell = line?.getCell(x)
      if (!cell || cell.getWidth() === 0) continue
      const colour = cell.isFgPalette() ? COLOURS[cell.getFgColor() % 8] : INK
      const next = `fill="${colour}"${cell.isBold() ? ' font-weight="700"' : ''}${cell.isDim() ? ' opacity=".6"' : ''}`
      if (next !== style) flush()
      style = next
      run += cell.getChars() || ' '
    }
    flush()
    return text.replace(/\s+(<\/tspan>)?\s*$/, '$1')
  })
}

/** @param {readonly Frame[]} frames @param {number} columns @param {number} rows @param {string} title */
function draw(frames, columns, rows, title) {
  const total = frames.reduce((sum, { forMs }) => sum + forMs, 0)
  const [width, height] = [Math.ceil(columns * CHAR + 2 * PAD), rows * LINE + BAR + 2 * PAD]
  let from = 0
  const shown = frames.map(({ lines, forMs }, index) => {
    const [start, end] = [from, (from += forMs)].map((ms) => ((ms / total) * 100).toFixed(2))
    const text = lines
      .slice(0, rows)
      .map((line, y) =>
        line === '' ? '' : `<text x="${PAD}" y="${BAR + PAD + y * LINE + 6}">${line}</text>`,
      )
      .join('')
    const keys =
      `@keyframes f${index}{0%{opacity:0}${start}%{opacity:1}${end}%{opacity:0}100%{opacity:0}}` +
      `.f${index}{opacity:0;animation:f${index} ${total}ms steps(1) infinite}`
    return { keys, group: `<g class="f${index}">${text}</g>` }
  })
  const last = frames.length - 1
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escape(title)}">
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}${shown.map(({ keys }) => keys).join('')}@media (prefers-reduced-motion:reduce){g{animation:none!important}.f${last}{opacity:1!important}}</style>
<rect width="${width}" height="${height}" rx="10" fill="#1d2026"/>
${['#ff5f57', '#febc2e', '#28c840'].map((fill, i) => `<circle cx="${20 + i * 20}" cy="18" r="6" fill="${fill}"/>`).join('')}
${shown.map(({ group }) => group).join('\n')}
</svg>
`
}

/** @param {string} text */
function escape(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
