/** Progress as a client reads it: one line of status text. Pure. */

export interface Progress {
  readonly message: string
  /** With `total`, shown as a bar; the message then ends with `(done/total)`. */
  readonly done?: number
  readonly total?: number
}

/** `Running tests (128/342)`. */
export function progressText(progress: Progress | string): string {
  if (typeof progress === 'string') return progress
  const { message, done, total } = progress
  return done !== undefined && total !== undefined ? `${message} (${done}/${total})` : message
}
