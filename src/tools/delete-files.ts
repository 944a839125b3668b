/**
 * `delete_files`: deletes what matches a pattern from the R2 bucket, after the user has seen how many
 * files that is. The keys are recorded before the question, so that exactly what was counted is deleted,
 * however long the answer takes and however often a step runs.
 */
import { z } from 'zod'
import { defineTool, toolError } from '../index'
import { utf8Bytes } from '../json'
import { type FilePattern, filePattern } from './file-pattern'
import { counted, size } from './wording'

/** Both what one listing returns and what one deletion takes, at most. */
const MAX_KEYS = 1_000
/** Of key names in one recorded page: a step may record 128 KB. */
const MAX_PAGE_BYTES = 90_000
/** Listings of one step, when few keys match. */
const MAX_LISTINGS = 20
/** Of one call: what the journal has to carry. */
const MAX_FILES = 100_000
const MAX_NAME_BYTES = 8_000_000
const EXAMPLES = 3

export const deleteFiles = defineTool({
  name: 'delete_files',
  title: 'Delete files',
  description:
    'Deletes all files whose key matches a glob pattern from the file bucket. Counts them first and asks ' +
    'the user to confirm the number; nothing is deleted before that. Files that are uploaded again ' +
    'meanwhile are kept. Example: {"pattern": "logs/2025-*/**"}.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: z.object({
    pattern: z
      .string()
      .min(1)
      .max(1_024)
      .describe(
        'Glob over the whole key: `*` and `?` stay within a segment between slashes, `**` as a segment ' +
          'crosses them, a backslash makes the next character literal.',
      ),
  }),
  output: z.object({
    pattern: z.string(),
    matched: z.int().describe('Files that matched when they were counted.'),
    deleted: z.int(),
    kept: z.int().describe('Files uploaded again since, which were left alone.'),
    bytes: z.int().describe('Size of the files that matched, in bytes.'),
  }),
  task: {
    ttl: '24 hours',
    retention: '6 hours',
    poll: { min: '1 second', max: '15 seconds' },
    retry: { limit: 5, delay: '1 second', maxDelay: '1 minute' },
  },
  asks: ['elicitation'],

  async run({ input, step, env }) {
    const pattern = filePattern(input.pattern)
    const pages: Page[] = []
    let matched = 0
    let bytes = 0
    let nameBytes = 0
    let scanned = 0
    for (let from: string | null = ''; from !== null;) {
      const after: string = from
      const page: Page = await step.do(`count ${pages.length + 1}`, () => findPage(env.FILES, pattern, after))
      pages.push(page)
      matched += page.keys.length
      bytes += page.bytes
      nameBytes += page.nameBytes
      scanned += page.scanned
      from = page.next
      if (matched > MAX_FILES || nameBytes > MAX_NAME_BYTES) {
        return toolError(
          `At least ${counted(matched, 'file')} match ${input.pattern}: too many for one call. ` +
            'Nothing was deleted; use a narrower pattern.',
        )
      }
      await step.status(`Counting: ${counted(matched, 'file')} of ${counted(scanned, 'key')} match so far`)
    }
    const result = { pattern: input.pattern, matched, bytes }
    if (matched === 0) {
      return {
        content: [{ type: 'text', text: `No file matches ${input.pattern}; nothing was deleted.` }],
        structuredContent: { ...result, deleted: 0, kept: 0 },
      }
    }

    const files = `${counted(matched, 'file')} (${size(bytes)}) matching ${input.pattern}`
    const examples = pages.flatMap(({ keys }) => keys.slice(0, EXAMPLES)).slice(0, EXAMPLES)
    const answer = await step.elicit('confirm', {
      message: `Delete ${files}? This cannot be undone.\n\n${matched > examples.length ? 'Among them' : 'That is'}: ${examples.join(', ')}`,
      schema: z.object({ confirm: z.boolean().describe('Yes, delete them.') }),
      timeout: '12 hours',
    })
    if (answer.action !== 'accept' || !answer.content.confirm) {
      return toolError(`Nothing was deleted: the user did not confirm the deletion of ${files}.`)
    }

    let done = 0
    let kept = 0
    await step.status({ message: `Deleting ${input.pattern}`, done, total: matched })
    for (const [i, page] of pages.entries()) {
      if (page.keys.length === 0) continue
      kept += await step.do(`delete ${i + 1}`, () => deletePage(env.FILES, pattern, page))
      done += page.keys.length
      await step.status({ message: `Deleting ${input.pattern}`, done, total: matched })
    }
    const deleted = matched - kept
    const but = kept === 0 ? '' : ` ${counted(kept, 'file')} uploaded again since the count: kept.`
    return {
      content: [
        { type: 'text', text: `Deleted ${counted(deleted, 'file')} matching ${input.pattern}.${but}` },
      ],
      structuredContent: { ...result, deleted, kept },
    }
  },
})

/** A stretch of the bucket in the order of its keys, and what matched in it. Recorded. */
type Page = {
  /** The stretch begins after this key, `''` for the first. */
  readonly after: string
  readonly keys: readonly string[]
  /** Last upload among them, in R2's own clock, in milliseconds since the epoch. */
  readonly newest: number
  readonly bytes: number
  readonly nameBytes: number
  readonly scanned: number
  /** Where the next stretch begins, or `null` after the last one. */
  readonly next: string | null
}

async function findPage(bucket: R2Bucket, pattern: FilePattern, after: string): Promise<Page> {
  const keys: string[] = []
  let newest = 0
  let bytes = 0
  let nameBytes = 0
  let scanned = 0
  let at = after
  const page = (next: string | null): Page => ({ after, keys, newest, bytes, nameBytes, scanned, next })
  for (let listing = 0; listing < MAX_LISTINGS; listing++) {
    // By key and not by cursor: a task may rest for hours between two pages.
    const { objects, truncated } = await bucket.list(listFrom(pattern, at))
    for (const object of objects) {
      if (pattern.matches(object.key)) {
        const length = utf8Bytes(JSON.stringify(object.key)) + 1
        if (keys.length === MAX_KEYS || nameBytes + length > MAX_PAGE_BYTES) return page(at)
        keys.push(object.key)
        nameBytes += length
        bytes += object.size
        newest = Math.max(newest, object.uploaded.getTime())
      }
      scanned++
      at = object.key
    }
    if (!truncated) return page(null)
  }
  return page(at)
}

function listFrom(pattern: FilePattern, after: string): R2ListOptions {
  return { prefix: pattern.prefix, limit: MAX_KEYS, ...(after !== '' && { startAfter: after }) }
}

/**
 * Deletes the keys of a page, except those that were uploaded again since they were counted: these
 * are other files. A second attempt finds less to delete and keeps the same.
 *
 * @returns how many were kept.
 */
async function deletePage(bucket: R2Bucket, pattern: FilePattern, page: Page): Promise<number> {
  const left = new Set(page.keys)
  const last = page.keys.at(-1) ?? ''
  const kept = new Set<string>()
  for (let after = page.after; ;) {
    const { objects, truncated } = await bucket.list(listFrom(pattern, after))
    for (const { key, uploaded } of objects) {
      if (left.has(key) && uploaded.getTime() > page.newest) kept.add(key)
      after = key
    }
    if (!truncated || !inOrder(after, last)) break
  }
  const doomed = page.keys.filter((key) => !kept.has(key))
  if (doomed.length > 0) await bucket.delete(doomed)
  return kept.size
}

/** Whether `a` comes before `b` in the order of R2, which is that of UTF-8 and so of code points. */
function inOrder(a: string, b: string): boolean {
  const others = b[Symbol.iterator]()
  for (const char of a) {
    const other = others.next()
    if (other.done) return false
    const difference = (char.codePointAt(0) ?? 0) - (other.value.codePointAt(0) ?? 0)
    if (difference !== 0) return difference < 0
  }
  return !others.next().done
}
