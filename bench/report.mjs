/** The figures as charts for people. Pure: figures in, text out. */

/** What is aimed at. A benchmark tells, it does not judge: nothing fails for missing one. */
export const AIMS = { getToFloor: 0.9, getToSdk: 2, createToFloor: 0.7, oneStepRows: 12 }

const BAR_CHARS = 24

/** @param {Record<string, any>} figures of all measurements */
export function report({ machine, polling, creation, lives, company, news, fanOut, idle, bundle }) {
  return [
    `Longhaul, measured on ${machine}`,
    pollingChart(polling),
    creationChart(creation),
    lifeChart(lives),
    companyChart(company),
    newsChart(news),
    `One change to ${fanOut.sockets} sockets of one task: half of them have it after ${fanOut.medianMs.toFixed(0)} ms, ` +
      `all after ${fanOut.lastMs.toFixed(0)} ms.`,
    `${idle.tasks} idle tasks with subscribers: ${idle.awakeAtOnce} objects awake at first, ` +
      `${idle.awake} after ${(idle.afterMs / 1_000).toFixed(0)} s.`,
    `The Worker that is deployed: ${kib(bundle.rawBytes)}, ${kib(bundle.gzipBytes)} with gzip.`,
  ].join('\n\n')
}

function pollingChart({ floor, working, completed, sdk }) {
  const line = (name, way, aim) => speedLine(name, way, [ratio(way.toSdk), ...toFloor(way, aim)])
  return chart(
    'tasks/get',
    ['requests/s', 'CPU each', 'of SDK', 'of floor', '(CPU)', 'aim'],
    [
      line('floor', floor),
      line('a working task', working, AIMS.getToFloor),
      line('a completed task', completed, AIMS.getToFloor),
      line('by the SDK alone', sdk),
    ],
  )
}

function creationChart({ floor, task }) {
  return chart(
    'Creating a task',
    ['requests/s', 'CPU each', 'of floor', '(CPU)', 'aim'],
    [speedLine('floor', floor, toFloor(floor)), speedLine('a task', task, toFloor(task, AIMS.createToFloor))],
  )
}

function lifeChart({ oneStep, hundredSteps }) {
  const line = (name, life, aim) => ({
    name,
    size: life.rows,
    cells: [String(life.rows), aim, String(life.requests), counts(life.rowsBy)],
  })
  return chart(
    'The life of a task',
    ['rows written', 'aim', 'object requests', 'rows by call'],
    [line('one step', oneStep, `≤ ${AIMS.oneStepRows}`), line('a hundred steps', hundredSteps, '≈ 100')],
  )
}

function companyChart({ longTasks, alone, beside }) {
  const line = (name, { medianMs, worstMs }) => ({
    name,
    size: medianMs,
    cells: [`${medianMs.toFixed(0)} ms`, `${worstMs.toFixed(0)} ms`],
  })
  return chart(
    'A one-step task, from call to result',
    ['median', 'worst'],
    [line('alone', alone), line(`beside ${longTasks} long ones`, beside)],
  )
}

function newsChart({ answer, websocket, sse, poll }) {
  const line = (name, { medianMs, p99Ms }) => ({
    name,
    size: medianMs,
    cells: [`${medianMs.toFixed(1)} ms`, `${p99Ms.toFixed(1)} ms`, (medianMs / answer.medianMs).toFixed(2)],
  })
  return chart(
    'From the request that ends a task to',
    ['median', '99th percentile', 'of its answer'],
    [
      line('its answer', answer),
      line('a WebSocket', websocket),
      line('an event stream', sse),
      line('a poll at the interval told', poll),
    ],
  )
}

function speedLine(name, { perSecond, cpuUs }, cells) {
  const cpu = cpuUs === undefined ? '-' : `${cpuUs.toFixed(0)} us`
  return { name, size: perSecond, cells: [perSecond.toFixed(0), cpu, ...cells] }
}

const toFloor = (way, aim) => [
  ratio(way.toFloor),
  way.toFloor.cpu?.toFixed(2) ?? '-',
  aim === undefined ? '' : `≥ ${aim.toFixed(2)}`,
]
const ratio = ({ throughput }) => throughput.toFixed(2)
const kib = (bytes) => `${(bytes / 1024).toFixed(0)} KiB`
const counts = (by) =>
  Object.entries(by)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')

/** Rows with a bar each, and columns as wide as they need to be. */
function chart(title, headers, rows) {
  const nameWidth = Math.max(...rows.map(({ name }) => name.length))
  const most = Math.max(...rows.map(({ size }) => size))
  const widths = headers.map((header, column) =>
    Math.max(header.length, ...rows.map(({ cells }) => cells[column].length)),
  )
  // Figures to the right; the last column may be words.
  const last = headers.length - 1
  const pad = (cell, column) =>
    column === last ? cell.padEnd(widths[column]) : cell.padStart(widths[column])
  const columns = (cells) => cells.map(pad).join('   ')
  const lines = rows.map(({ name, size, cells }) => {
    const bar = '█'.repeat(Math.max(1, Math.round((size / most) * BAR_CHARS))).padEnd(BAR_CHARS)
    return `  ${name.padEnd(nameWidth)}  ${bar}  ${columns(cells)}`.trimEnd()
  })
  const head = `${title.padEnd(2 + nameWidth + 2 + BAR_CHARS)}  ${columns(headers)}`.trimEnd()
  return [head, ...lines].join('\n')
}
