/** What the options and the environment say: which server, who is asking, and where ids are kept. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from './exit.ts'

export interface GlobalOptions {
  readonly url?: string
  readonly token?: string
  readonly state?: string
  readonly json?: boolean
  readonly events?: boolean
  readonly quiet?: boolean
}

export interface Settings {
  readonly url: string
  readonly token: string | undefined
  readonly statePath: string
  /** `json`: one object at the end; `events`: one object per line as things happen. */
  readonly format: 'text' | 'json' | 'events'
  /** Somebody is there to be asked. */
  readonly interactive: boolean
  /** Somebody is there to look at progress. */
  readonly showProgress: boolean
  /** How this command is called here, for hints. */
  readonly command: string
}

const DEFAULT_URL = 'http://localhost:8787/mcp'

export function readSettings(
  options: GlobalOptions,
  env: NodeJS.ProcessEnv,
  terminal: { readonly stdin: boolean; readonly stderr: boolean },
): Settings {
  const url = options.url ?? env['LONGHAUL_URL'] ?? DEFAULT_URL
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new UsageError(`${url} is not the address of a server: give an http or https URL.`)
  }
  const showProgress = terminal.stderr && options.quiet !== true
  const isDefault = options.url === undefined
  return {
    url: new URL(url).href,
    token: options.token ?? env['LONGHAUL_TOKEN'],
    statePath: options.state ?? env['LONGHAUL_STATE'] ?? defaultStatePath(env),
    format: options.events ? 'events' : options.json ? 'json' : 'text',
    interactive: showProgress && terminal.stdin,
    showProgress,
    command: `${commandName(env)}${isDefault ? '' : ` --url ${url}`}`,
  }
}

/** The XDG place for what should survive restarts but is no configuration. */
function defaultStatePath(env: NodeJS.ProcessEnv): string {
  return join(env['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state'), 'longhaul', 'tasks.db')
}

function commandName(env: NodeJS.ProcessEnv): string {
  if (env['npm_lifecycle_event'] === 'cli') return 'npm run cli --'
  return env['npm_command'] === 'exec' ? 'npx longhaul' : 'longhaul'
}
