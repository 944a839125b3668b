/**
 * Glob patterns over R2 keys. Pure.
 *
 * Not a library's, for two reasons. Keys are not paths: `a/b`, `a//b` and `a/b/` are three objects, and
 * the path matchers take them for one; a tool that deletes must not. And patterns come from a model or a
 * user: made into a regular expression, `*a*a*a*a*a*b` takes minutes on one key of a hundred characters.
 * This one walks the key once, with all positions in the pattern at the same time (Thompson, 1968).
 */

export interface FilePattern {
  /** What every matching key begins with: where listing starts. */
  readonly prefix: string
  matches(key: string): boolean
}

/** One position in the pattern. `next` is implied: the following one. */
type Part =
  | { readonly type: 'char'; readonly char: string }
  /** `?`: one character of a segment. */
  | { readonly type: 'one' }
  /** `*`: any number of them. */
  | { readonly type: 'star' }
  /** A leading or inner `**` + `/`: any number of whole segments. Here at the start of one. */
  | { readonly type: 'segments' }
  /** The same, inside a segment: goes on to the following position only past a `/`. */
  | { readonly type: 'inside' }
  /** A final `**`: everything that is left. */
  | { readonly type: 'rest' }

/**
 * `*` and `?` stay within a segment (between two `/`), `**` as a whole segment crosses them, and a
 * backslash takes the next character as it is. Nothing else is special, dots included. A whole
 * segment `*` is at least one character: `logs/*` leaves `logs/` alone, `logs/**` does not.
 */
export function filePattern(pattern: string): FilePattern {
  const parts = parse(pattern)
  const literal = parts.findIndex(({ type }) => type !== 'char')
  const prefix = (literal === -1 ? parts : parts.slice(0, literal))
    .map((part) => (part.type === 'char' ? part.char : ''))
    .join('')
  return { prefix, matches: (key) => matches(parts, key) }
}

function parse(pattern: string): Part[] {
  const chars = Array.from(pattern)
  const parts: Part[] = []
  let i = 0
  while (i < chars.length) {
    const char = chars[i] ?? ''
    if (char === '\\' && i + 1 < chars.length) {
      parts.push({ type: 'char', char: chars[i + 1] ?? '' })
      i += 2
    } else if (char === '?') {
      parts.push({ type: 'one' })
      i++
    } else if (char === '*') {
      let end = i
      while (chars[end] === '*') end++
      const whole = (i === 0 || chars[i - 1] === '/') && (end === chars.length || chars[end] === '/')
      if (whole && end - i === 2) {
        parts.push(...(end === chars.length ? [REST] : SEGMENTS))
        // The `/` belongs to the segments.
        end++
      } else {
        parts.push(...(whole ? SEGMENT : [STAR]))
      }
      i = end
    } else {
      parts.push({ type: 'char', char })
      i++
    }
  }
  return parts
}

const STAR: Part = { type: 'star' }
const REST: Part = { type: 'rest' }
const SEGMENT: readonly Part[] = [{ type: 'one' }, STAR]
const SEGMENTS: readonly Part[] = [{ type: 'segments' }, { type: 'inside' }]

function matches(parts: readonly Part[], key: string): boolean {
  let at = new Set<number>()
  enter(parts, at, 0)
  for (const char of key) {
    const next = new Set<number>()
    for (const i of at) advance(parts, next, i, char)
    if (next.size === 0) return false
    at = next
  }
  return at.has(parts.length)
}

/** Arrives at a position, and at all that follow it without a character. */
function enter(parts: readonly Part[], at: Set<number>, i: number): void {
  at.add(i)
  const type = parts[i]?.type
  if (type === 'star' || type === 'rest') enter(parts, at, i + 1)
  if (type === 'segments') enter(parts, at, i + 2)
}

function advance(parts: readonly Part[], at: Set<number>, i: number, char: string): void {
  const part = parts[i]
  switch (part?.type) {
    case 'char':
      if (char === part.char) enter(parts, at, i + 1)
      return
    case 'one':
      if (char !== '/') enter(parts, at, i + 1)
      return
    case 'star':
      if (char !== '/') enter(parts, at, i)
      return
    case 'segments':
      if (char === '/') enter(parts, at, i)
      else at.add(i + 1)
      return
    case 'inside':
      if (char === '/') enter(parts, at, i - 1)
      else at.add(i)
      return
    case 'rest':
      enter(parts, at, i)
  }
}
