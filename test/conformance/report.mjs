/**
 * What the checks came to, for people and for the exit code. Pure but for printing.
 *
 * A warning is how the suite reports a SHOULD that is not met: it counts as failed here. The baseline lists
 * what is known to fail, as `{scenario, check, reason}`; an entry that no longer fails is an error too.
 */

const FAILED = new Set(['FAILURE', 'WARNING'])
const BAR = 20
const HEADINGS = {
  required: 'Required',
  extension: 'Extension: Tasks',
  pending: 'Not scored: ahead of the reference server',
  'added-after-release': 'Not scored: added after the release',
}

function count(checks) {
  return {
    passed: checks.filter(({ status }) => status === 'SUCCESS').length,
    failed: checks.filter(({ status }) => FAILED.has(status)).length,
    skipped: checks.filter(({ status }) => status === 'SKIPPED').length,
  }
}

/** One scenario, under its group's heading when it is the first of it. */
export function printRow({ name, group, checks, ms }, sameGroup) {
  if (!sameGroup) {
    console.log(`${HEADINGS[group] ?? group}\n  ${columns('scenario (checks)', 'pass', 'fail', 'skip')}`)
  }
  const { passed, failed, skipped } = count(checks)
  const mark = failed > 0 ? '✗' : passed > 0 ? '✓' : '-'
  const time = `${(ms / 1000).toFixed(1)} s`.padStart(7)
  console.log(`${mark} ${columns(name, passed, failed, skipped)}  ${bar(passed, failed, skipped)} ${time}`)
}

function columns(name, ...numbers) {
  return name.padEnd(46) + numbers.map((number) => String(number || '·').padStart(6)).join('')
}

/** Full for passed, light for skipped, a cross for failed: at least one cell for each there is. */
function bar(passed, failed, skipped) {
  const all = Math.max(1, passed + failed + skipped)
  const cells = (part) => (part === 0 ? 0 : Math.max(1, Math.round((part / all) * BAR)))
  const [bad, light] = [cells(failed), cells(skipped)]
  const full = passed === 0 ? 0 : Math.max(1, BAR - bad - light)
  return ('█'.repeat(full) + '░'.repeat(light) + '╳'.repeat(bad)).padEnd(BAR)
}

/** Compares what failed with what is known to fail. */
export function judge(results, baseline) {
  const checks = results.flatMap(({ name, checks: own }) =>
    own.map((check) => ({ ...check, scenario: name })),
  )
  const failed = checks.filter(({ status }) => FAILED.has(status))
  const entryOf = (check) =>
    baseline.find((entry) => entry.scenario === check.scenario && entry.check === check.id)
  const ran = new Set(results.map(({ name }) => name))
  const judged = {
    unexpected: failed.filter((check) => !entryOf(check)),
    known: failed.flatMap((check) => {
      const entry = entryOf(check)
      return entry ? [{ ...check, reason: entry.reason }] : []
    }),
    skipped: checks.filter(({ status }) => status === 'SKIPPED'),
    stale: baseline.filter(
      (entry) => ran.has(entry.scenario) && !failed.some((check) => entryOf(check) === entry),
    ),
    unexplained: baseline.filter(({ reason }) => typeof reason !== 'string' || reason.trim() === ''),
  }
  const { unexpected, stale, unexplained } = judged
  return { ...judged, ok: unexpected.length + stale.length + unexplained.length === 0 }
}

export function printProblems({ unexpected, known, skipped, stale, unexplained }) {
  section('Failed', unexpected, (check) => [
    `${check.scenario}: ${check.id} (${check.name})${check.status === 'WARNING' ? ', a SHOULD' : ''}`,
    check.description,
    check.errorMessage,
    check.details && `details: ${shorten(JSON.stringify(check.details))}`,
  ])
  section('Failed as the baseline says', known, (check) => [`${check.scenario}: ${check.id}`, check.reason])
  section('Skipped by the suite', skipped, (check) => [
    `${check.scenario}: ${check.id}`,
    shorten(check.errorMessage ?? check.details?.note ?? 'no reason given'),
  ])
  section('In the baseline, but not failing: take it out', stale, (entry) => [
    `${entry.scenario}: ${entry.check}`,
  ])
  section('In the baseline without a reason', unexplained, (entry) => [`${entry.scenario}: ${entry.check}`])
}

function section(title, items, linesOf) {
  if (items.length === 0) return
  console.log(`\n${title}`)
  for (const item of items) {
    const [first, ...rest] = linesOf(item).filter((line) => typeof line === 'string' && line !== '')
    console.log(`  ${first}`)
    for (const line of rest) console.log(`    ${line.replaceAll('\n', '\n    ')}`)
  }
}

function shorten(text) {
  return text.length > 600 ? `${text.slice(0, 600)}…` : text
}

/** The last line is for machines: checks, with known failures among the failed. */
export function printTotals(results, { unexpected, known }) {
  const { passed, failed, skipped } = count(results.flatMap(({ checks }) => checks))
  const clean = results.filter(({ checks }) => count(checks).failed === 0).length
  console.log(`\n${clean} of ${results.length} scenarios without a failure; the line below counts checks.`)
  if (known.length > 0) console.log(`${known.length} known, ${unexpected.length} not known.`)
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`)
}
