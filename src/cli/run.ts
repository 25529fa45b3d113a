// From words to a command, its help, and an exit code: 0 done, 1 refused or failed, 2 not understood.
import { parseArgs } from 'node:util'
import type { World } from '../kernel/world.ts'
import { ACCOUNT_COMMANDS } from './accounts.ts'
import { AGENT_SETUP_COMMAND } from './agent-setup.ts'
import { ALERT_COMMANDS } from './alerts.ts'
import { createApi } from './api.ts'
import { BATCH_COMMANDS } from './batches.ts'
import { CALL_COMMAND } from './call.ts'
import { CATALOG_COMMANDS } from './catalog.ts'
import { CliError, type Command, type Option, type Settings } from './command.ts'
import { completionCommand } from './completion.ts'
import { CONNECT_COMMANDS } from './connect.ts'
import { CONTENT_COMMANDS } from './content.ts'
import { DELIVERY_COMMANDS } from './deliveries.ts'
import { DOCTOR_COMMAND } from './doctor.ts'
import { IMPORT_COMMANDS } from './import.ts'
import { KEY_COMMANDS } from './keys.ts'
import { MONEY_COMMANDS } from './money.ts'
import { MOVE_COMMAND } from './move.ts'
import { OWN_KEY_COMMANDS } from './own-keys.ts'
import { PEOPLE_COMMANDS } from './people.ts'
import { PSQL_COMMAND } from './psql.ts'
import { VENDOR_COMMANDS } from './vendors.ts'

export const COMMANDS: readonly Command[] = [
  CALL_COMMAND,
  ...ACCOUNT_COMMANDS,
  MOVE_COMMAND,
  ...KEY_COMMANDS,
  ...OWN_KEY_COMMANDS,
  ...MONEY_COMMANDS,
  ...CONTENT_COMMANDS,
  ...BATCH_COMMANDS,
  ...CONNECT_COMMANDS,
  ...IMPORT_COMMANDS,
  ...CATALOG_COMMANDS,
  ...VENDOR_COMMANDS,
  ...ALERT_COMMANDS,
  ...DELIVERY_COMMANDS,
  ...PEOPLE_COMMANDS,
  AGENT_SETUP_COMMAND,
  DOCTOR_COMMAND,
  PSQL_COMMAND,
  completionCommand(() => COMMANDS),
]

interface Terminal {
  /** What a command has to say; pieces of a download come without a line's end of their own. */
  out(text: string): void
  err(text: string): void
  input(): Promise<string>
  /** Absent: there is no person at a terminal. */
  ask?: ((question: string) => Promise<string>) | undefined
}

interface CliOptions {
  readonly args: readonly string[]
  readonly terminal: Terminal
  readonly world: World
  /** Read only when a command is really run: help needs no configuration. */
  readonly settings: () => Settings | Promise<Settings>
  /** Verbs that are not ours, for the help. */
  readonly otherVerbs: ReadonlyArray<readonly [name: string, summary: string]>
}

const SHARED: Readonly<Record<string, Option>> = {
  json: { type: 'boolean', help: 'Prints JSON for programs.' },
  help: { type: 'boolean', short: 'h', help: 'Prints this help.' },
}

export async function runCli(options: CliOptions): Promise<number> {
  const { args, terminal } = options
  try {
    const words = args.filter((word) => !word.startsWith('-'))
    const command = findCommand(words)
    if (!command) return explain(words, args, options)
    return await runCommand(command, args, options)
  } catch (error) {
    if (error instanceof CliError) {
      terminal.err(`tollgate: ${error.message}\n`)
      return error.exitCode
    }
    throw error
  }
}

/** `accounts list …`; a group that is a single command needs one word. */
function findCommand(words: readonly string[]): Command | undefined {
  const name = words.slice(0, 2).join(' ')
  return COMMANDS.find((command) => command.name === name) ?? COMMANDS.find((command) => command.name === words[0])
}

function explain(words: readonly string[], args: readonly string[], options: CliOptions): number {
  const [first, second] = words
  const group = first === undefined || first === 'help' ? second : first
  const inGroup = group === undefined ? [] : COMMANDS.filter((command) => command.name.split(' ')[0] === group)
  const asked = first === 'help' || args.includes('--help') || args.includes('-h') || first === undefined
  if (inGroup.length > 0 && (asked || second === undefined)) {
    options.terminal.out(`${groupHelp(inGroup)}\n`)
    return asked ? 0 : 2
  }
  if (asked && (first === undefined || first === 'help')) {
    options.terminal.out(`${generalHelp(options)}\n`)
    return first === undefined && !args.includes('--help') && !args.includes('-h') ? 2 : 0
  }
  const known = inGroup.map((command) => command.name).join(', ')
  throw new CliError(
    known
      ? `There is no "${words.slice(0, 2).join(' ')}". There are: ${known}.`
      : `There is no command "${first}". See: tollgate help`,
    2,
  )
}

async function runCommand(command: Command, args: readonly string[], options: CliOptions): Promise<number> {
  const { terminal, world } = options
  const words = args.filter((word) => !word.startsWith('-')).slice(command.name.split(' ').length)
  const known = command.optionsFor?.(words) ?? command.options ?? {}
  const { values, positionals } = readArgs(command, known, args)
  if (values.help) {
    terminal.out(`${commandHelp(command, known, command.aboutFor?.(words))}\n`)
    return 0
  }
  const given = positionals.slice(command.name.split(' ').length)
  const required = (command.args ?? []).filter((name) => !name.startsWith('['))
  if (given.length < required.length || given.length > (command.args?.length ?? 0))
    throw new CliError(`The command is: ${usageOf(command)}`, 2)
  const settings = await options.settings()
  const api = createApi(settings, world)
  try {
    const outcome = await command.run({
      args: given,
      values,
      settings,
      api,
      say: terminal.out,
      note: terminal.err,
      world,
      input: terminal.input,
      ask: terminal.ask,
      otherVerbs: options.otherVerbs.map(([name]) => name),
    })
    if (outcome) terminal.out(`${values.json ? JSON.stringify(outcome.answer) : outcome.words}\n`)
    return outcome?.failed ? 1 : 0
  } finally {
    await api.close()
  }
}

function readArgs(command: Command, options: Command['options'], args: readonly string[]) {
  const known = { ...options, ...SHARED }
  const config = Object.fromEntries(
    Object.entries(known).map(([name, { type, short }]) => [name, short === undefined ? { type } : { type, short }]),
  )
  try {
    return parseArgs({ args: [...args], options: config, allowPositionals: true, strict: true }) as {
      values: Record<string, string | boolean | undefined>
      positionals: string[]
    }
  } catch (error) {
    throw new CliError(`${(error as Error).message.split('.')[0]}. See: tollgate ${command.name} --help`, 2)
  }
}

function usageOf(command: Command): string {
  const names = (command.args ?? []).map((name) => (name.startsWith('[') ? `[${name.slice(1, -1)}]` : `<${name}>`))
  return ['tollgate', command.name, ...names].join(' ')
}

function commandHelp(command: Command, options: Command['options'], about = command.about): string {
  const entries = Object.entries({ ...options, ...SHARED }).map(
    ([name, { value, help }]) => [`  --${name}${value ? ` <${value}>` : ''}`, help] as const,
  )
  const width = Math.max(...entries.map(([left]) => left.length))
  return [
    `${usageOf(command)} [options]`,
    '',
    command.summary,
    ...(about ? [about] : []),
    '',
    ...entries.map(([left, help]) => `${left.padEnd(width)}  ${help}`),
  ].join('\n')
}

function groupHelp(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((command) => usageOf(command).length))
  return commands.map((command) => `${usageOf(command).padEnd(width)}  ${command.summary}`).join('\n')
}

function generalHelp({ otherVerbs }: CliOptions): string {
  const rows = [...otherVerbs, ...COMMANDS.map((command) => [command.name, command.summary] as const)]
  const width = Math.max(...rows.map(([name]) => name.length))
  return [
    'tollgate <command> [options]',
    '',
    ...rows.map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'Every command takes --help and --json. They are clients of a running gateway: its address is TOLLGATE_URL, or what the',
    'gateway wrote into the data directory (TOLLGATE_DATA); its token is TOLLGATE_OPERATOR_TOKEN, or lies there as well. Only call\nasks as a caller, with TOLLGATE_KEY.',
  ].join('\n')
}
