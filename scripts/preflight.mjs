/** The tools need Node 22.12; the `node` package among the dependencies brings one. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 12)) {
  console.error(
    `Longhaul needs Node 22.12 or later and found ${process.versions.node}.\n` +
      'Run "npm ci" without --ignore-scripts (it installs a Node of its own), then use the npm scripts.',
  )
  process.exit(1)
}
