/** The command line: which commands and options there are. What they do is in actions.ts. */
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import * as actions from './actions.ts'
import { readAnswers } from './arguments.ts'
import { EXIT, type ExitCode, exitOfError, UsageError } from './exit.ts'
import { printError } from './output.ts'
import { Session, type SessionOptions } from './session.ts'
import { type GlobalOptions, readSettings, type Settings } from './settings.ts'

/** Runs one command; resolves to the exit code. */
export async function main(argv: readonly string[]): Promise<ExitCode> {
  const program = new Command()
  const terminal = { stdin: process.stdin.isTTY, stderr: process.stderr.isTTY }
  let settings: Settings | undefined
  let exit: ExitCode = EXIT.completed

  /** Runs an action in a session of its own. */
  const within =
    <A extends readonly unknown[]>(
      action: (session: Session, ...given: A) => Promise<ExitCode>,
      optionsOf: (...given: A) => SessionOptions = () => ({}),
    ) =>
    async (...given: A): Promise<void> => {
      settings = readSettings(program.opts<GlobalOptions>(), process.env, terminal)
      const session = new Session(settings, optionsOf(...given))
      try {
        exit = await action(session, ...given)
      } finally {
        session.close()
      }
    }

  program
    .name('longhaul')
    .description('Calls long MCP tools, and finds them again.')
    .option('--url <url>', 'the MCP endpoint (LONGHAUL_URL; default http://localhost:8787/mcp)')
    .option('--token <token>', 'bearer token; better in LONGHAUL_TOKEN, where other users cannot see it')
    .option('--state <file>', 'where task ids are kept (LONGHAUL_STATE)')
    .option('--json', 'print one JSON object when done')
    .option('--events', 'print one JSON object per line, as things happen')
    .option('-q, --quiet', 'no progress and no questions')
    .exitOverride()
    .showHelpAfterError('Run with --help to see how it is used.')

  follower(program.command('call <tool>').description('call a tool and follow it to its end'))
    .option('-a, --arg <key=value>', 'an argument; key:=json for anything but text', collect)
    .option('--args <json>', 'all arguments as one JSON object')
    .option('--answer <key=value>', 'an answer given beforehand, for when nobody is there', collect)
    .option('-d, --detach', 'only begin, print the id, and leave')
    .option('--idempotency-key <key>', 'make the call again safely: the same key joins the same task')
    .action(
      within(actions.callTool, (_tool: string, options: actions.Calling) => ({
        answers: readAnswers(options.answer ?? []),
        answersElsewhere: options.answersElsewhere ?? options.detach ?? false,
      })),
    )

  follower(program.command('watch <id>').description('follow a task to its end, whoever began it')).action(
    within(actions.watch, (_id: string, { answersElsewhere = false }: actions.Following) => ({
      answersElsewhere,
    })),
  )

  follower(
    program.command('resume').description('follow every task that was begun here and has not ended'),
  ).action(
    within(actions.resume, ({ answersElsewhere = false }: actions.Following) => ({ answersElsewhere })),
  )

  program
    .command('answer <id> [key]')
    .description('answer an open question of a task')
    .option('--with <value>', 'the answer: a value, a JSON object of fields, or "decline"')
    .action(within(actions.answer))

  program
    .command('cancel <id>')
    .description('ask for a task to be cancelled')
    .option('--wait', 'wait until it is, or has ended otherwise')
    .action(within(actions.cancel))

  program
    .command('list')
    .description('list the tasks that were begun here, as they were last seen')
    .action(within((session) => actions.list(session)))

  program
    .command('tools [name]')
    .description('list the tools of the server, or describe one')
    .action(within((session, name?: string) => actions.describeTools(session, name)))

  try {
    await program.parseAsync([...argv])
    return exit
  } catch (error) {
    // It has said what was wrong already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.completed : EXIT.usage
    printError(settings?.format ?? 'text', error)
    return error instanceof UsageError ? EXIT.usage : exitOfError(error)
  }
}

/** The options of every command that follows a task. */
function follower(command: Command): Command {
  return command
    .option('--answers-elsewhere', 'wait while somebody else answers questions')
    .option('-t, --timeout <seconds>', 'leave after so long; the task goes on', seconds)
}

function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}

function seconds(value: string): number {
  const parsed = Number(value)
  if (!Number.isFinite(parsed) || parsed <= 0) throw new InvalidArgumentError('Give a number of seconds.')
  return parsed
}
