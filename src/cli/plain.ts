/** Text of a server on a person's terminal: escape sequences could hide or fake what is shown, so they go. */

/** Without control characters, except line breaks and tabs. */
export function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll('\r\n', '\n').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
}

/** The same on one line, cut to `columns`. */
export function oneLine(text: string, columns: number = Number.POSITIVE_INFINITY): string {
  const line = plain(text)
    .replace(/[\t\n]+/g, ' ')
    .trim()
  return line.length > columns ? `${line.slice(0, Math.max(columns - 1, 0))}…` : line
}
