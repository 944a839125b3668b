/**
 * The key or token of whoever uses the console. In `sessionStorage`: it outlives a reload, which must not lose a
 * task, but not the tab, and nothing of it stays on the disk for whoever opens the browser next.
 */
const NAME = 'longhaul.key'

export function readKey(): string | undefined {
  try {
    return sessionStorage.getItem(NAME) ?? undefined
  } catch {
    return inMemory
  }
}

let inMemory: string | undefined

export function keepKey(key: string | undefined): void {
  inMemory = key
  try {
    if (key === undefined) sessionStorage.removeItem(NAME)
    else sessionStorage.setItem(NAME, key)
  } catch {
    // The browser keeps nothing for this page; memory has it until the reload.
  }
}
