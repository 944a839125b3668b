#!/usr/bin/env node
/** The command. Checks the runtime before anything that needs it is loaded. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(`longhaul needs Node 22.18 or newer; this is ${process.versions.node}.`)
  process.exit(2)
}

// SQLite in Node 22 works, and says at every start that it is new. Other warnings stay.
const emitWarning = process.emitWarning.bind(process)
/** @param {Parameters<typeof emitWarning>} given */
process.emitWarning = (...given) => {
  if (!String(given[0]).includes('SQLite is an experimental feature')) emitWarning(...given)
}

const { main } = await import('./main.ts')
const code = await main(process.argv)
// Sockets that are closed linger for seconds, waiting for a peer's goodbye. Pipes get what was written first.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)))
