// The operator's verbs, from the table that the command line itself reads.
import type { Command } from '../../src/cli/command.ts'
import { COMMANDS, GROUPS } from '../../src/cli/run.ts'
import { code, page, table } from './markdown.ts'

function usage({ name, args = [] }: Command): string {
  return ['tollgate', name, ...args.map((arg) => (arg.startsWith('[') ? arg : `<${arg}>`))].join(' ')
}

function section(command: Command): string {
  const options = Object.entries(command.options ?? {}).map(([name, { value, help }]) => [
    code(`--${name}${value ? ` <${value}>` : ''}`),
    help,
  ])
  return [
    `## tollgate ${command.name}`,
    code(usage(command)),
    [command.summary, command.about].filter(Boolean).join(' '),
    ...(options.length > 0 ? [table(['Option', 'Meaning'], options)] : []),
  ].join('\n\n')
}

export function commandLinePage(): string {
  return page(
    'Command line',
    'In a clone, `npx tollgate <command>` runs `bin/tollgate.js`; it works with Node 18 or newer and starts the bundled runtime.',
    '`tollgate serve` starts the gateway, and is what `npm start` does. `tollgate sandbox [port]` starts only the simulated vendors. `tollgate backup <file>` writes the whole database into one file while the gateway runs, and `tollgate restore <file>` reads such a file into an empty database and verifies the ledger; both access the database directly. `tollgate version` prints the version. The other commands are clients of a running gateway: its address is `TOLLGATE_URL`, or what the gateway wrote into its data directory (`TOLLGATE_DATA`); its token is `TOLLGATE_OPERATOR_TOKEN`, or a file in the same directory. Accounts, keys and people are given by name or id. All take `--help`, and `--json` for programs. They exit with 0 on success, 1 if the command was rejected or failed, and 2 on wrong usage.',
    ...GROUPS.map(([title, commands]) =>
      table(
        [title, ''],
        commands.map((command) => [code(usage(command)), command.summary]),
      ),
    ),
    ...COMMANDS.map(section),
  )
}
