/** Numbers as the sentences of the tools say them, in English. Pure. */

const NUMBER = new Intl.NumberFormat('en-US')

/** `1 row`, `1,234 rows`. */
export function counted(count: number, noun: string): string {
  return `${NUMBER.format(count)} ${noun}${count === 1 ? '' : 's'}`
}

const SIZE_UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'] as const

/** `512 bytes`, `3.4 MB`; powers of 1,000, as storage is sold. */
export function size(bytes: number): string {
  const power = Math.min(SIZE_UNITS.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3))
  const value = bytes / 1_000 ** power
  return `${power === 0 ? value : value.toFixed(1)} ${SIZE_UNITS[power]}`
}

/** `850 ms`, `12.3 s`, `4m12s`, `1h05m`. */
export function elapsed(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m${String(seconds % 60).padStart(2, '0')}s`
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, '0')}m`
}
