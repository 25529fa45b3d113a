// Finds and runs the command, shows help, and sets the exit code: 0 done, 1 rejected or failed, 2 wrong usage.
import { parseArgs } from 'node:util'
import { ADDED } from '../commands.ts'
import { nearest } from '../kernel/nearest.ts'
import type { World } from '../kernel/world.ts'
import { type Api, createApi } from './api.ts'
import { CATALOG_COMMANDS } from './catalog.ts'
import { CliError, type Command, flag, type Invocation, type Option, type Settings } from './command.ts'
import { API_COMMAND, DERIVED_COMMANDS } from './derived.ts'
import { resolveName } from './names.ts'

const groupOf = (name: string) => name.split(' ')[0] ?? ''

const derived = (...nouns: readonly string[]) =>
  nouns.flatMap((noun) => DERIVED_COMMANDS.filter(({ name }) => groupOf(name) === noun))

/** The groups in `tollgate --help`. */
export const GROUPS: readonly (readonly [title: string, commands: readonly Command[]])[] = [
  ['Call endpoints', [...ADDED.call, ...derived('batches'), ...ADDED.calls]],
  [
    'Accounts, keys and people',
    [
      ...derived('accounts', 'credits', 'limits'),
      ...ADDED.accounts,
      ...derived('keys'),
      ...derived('byok-keys', 'members', 'operators', 'setup-link', 'password-link', 'tokens', 'sign-up', 'branding'),
      ...derived('login-providers', 'login-policy', 'login-link', 'second-factor-reset', 'audit-export'),
    ],
  ],
  [
    'Usage and money',
    [
      ...derived('usage', 'ledger', 'audit'),
      ...ADDED.ledger,
      ...derived('budgets', 'teams', 'agent-settings', 'programs', 'purses'),
      ...derived('balance', 'plans', 'codes', 'payments', 'payment-settings'),
      ...derived('statements', 'margins', 'billing', 'invoices', 'billing-details'),
      ...derived('exports', 'focus', 'vendor-reports', 'warehouse', 'content'),
    ],
  ],
  ['Configuration as code', ADDED.files],
  [
    'Vendors and catalog',
    [
      ...ADDED.vendors,
      ...derived('presets', 'vendors'),
      ...CATALOG_COMMANDS,
      ...derived('catalog'),
      ...ADDED.prices,
      ...derived('tool-servers', 'products'),
      ...ADDED.catalog,
    ],
  ],
  ['Alerts and deliveries', derived('alerts', 'deliveries')],
  ['Diagnosis and shell', [...ADDED.diagnosis, API_COMMAND, ...ADDED.shell]],
]
export const COMMANDS: readonly Command[] = GROUPS.flatMap(([, commands]) => commands)

interface Terminal {
  /** The output of a command; parts of a download have no line break of their own. */
  out(text: string): void
  err(text: string): void
  input(): Promise<string>
  /** Absent: there is no terminal. */
  ask?: ((question: string) => Promise<string>) | undefined
}

interface CliOptions {
  readonly args: readonly string[]
  readonly terminal: Terminal
  readonly world: World
  /** Read only when a command runs, because help needs no configuration. */
  readonly settings: () => Settings | Promise<Settings>
  /** Verbs of other programs, such as `serve`, for the help. */
  readonly otherVerbs: ReadonlyArray<readonly [name: string, summary: string]>
}

const SHARED: Readonly<Record<string, Option>> = {
  json: flag('Prints JSON for programs.'),
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

/** `accounts list …`; some commands are a single word. */
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
    options.terminal.out(`${generalHelp(options, group === 'all')}\n`)
    return first === undefined && !args.includes('--help') && !args.includes('-h') ? 2 : 0
  }
  const wanted = words.slice(0, 2).join(' ')
  const known = inGroup.map((command) => command.name)
  const all = [...options.otherVerbs.map(([name]) => name), ...COMMANDS.map(({ name }) => name)]
  const meant = nearest(wanted, known) ?? nearest(wanted, all) ?? nearest(first ?? '', all.map(groupOf))
  const hint = meant === undefined ? '' : ` Did you mean "tollgate ${meant}"?`
  throw new CliError(
    known.length > 0
      ? `There is no command "${wanted}".${hint} There are: ${known.join(', ')}.`
      : `There is no command "${first}".${hint} See: tollgate help`,
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
  const missing = required[given.length]
  if (missing !== undefined) throw new CliError(`Missing <${missing}>. Usage: ${usageOf(command)}`, 2)
  if (given.length > (command.args?.length ?? 0)) throw new CliError(`Too many words. Usage: ${usageOf(command)}`, 2)
  checkWords(command, values)
  const settings = await options.settings()
  const api = createApi(settings, world, terminal.err)
  try {
    const outcome = await command.run({
      ...(await withIds(api, command, given, values)),
      settings,
      api,
      say: terminal.out,
      note: terminal.err,
      world,
      input: terminal.input,
      ask: terminal.ask,
      otherVerbs: options.otherVerbs.map(([name]) => name),
      commands: COMMANDS,
    })
    if (outcome) terminal.out(`${values.json ? JSON.stringify(outcome.answer) : outcome.words}\n`)
    return outcome?.exitCode ?? (outcome?.failed ? 1 : 0)
  } finally {
    await api.close()
  }
}

/** Rejects a wrong word for an option with fixed words, before any request is sent. */
function checkWords(command: Command, values: Invocation['values']): void {
  for (const [name, { allowed }] of Object.entries(command.options ?? {})) {
    const value = values[name]
    if (!allowed || typeof value !== 'string' || allowed.includes(value)) continue
    const near = nearest(value, allowed)
    const hint = near === undefined ? `It takes ${allowed.join(', ')}.` : `Did you mean "${near}"?`
    throw new CliError(`--${name} does not take "${value}". ${hint}`, 2)
  }
}

/** The arguments, with names replaced by ids. */
async function withIds(
  api: Api,
  command: Command,
  given: readonly string[],
  typed: Invocation['values'],
): Promise<Pick<Invocation, 'args' | 'values'>> {
  const args: string[] = []
  for (const [index, value] of given.entries())
    args.push(await resolveName(api, (command.args?.[index] ?? '').replaceAll(/[[\]]/g, ''), value, args))
  const values = { ...typed }
  for (const [name, { refersTo }] of Object.entries(command.options ?? {})) {
    const value = values[name]
    if (refersTo && typeof value === 'string') values[name] = await resolveName(api, refersTo, value, args)
  }
  return { args, values }
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
    const names = args.flatMap((arg) => /^--([^=]*)/.exec(arg)?.[1] ?? [])
    const message = `${(error as Error).message.split('.')[0]}.`
    const unknown = names.find((name) => !Object.hasOwn(known, name) && message.includes(`'--${name}'`))
    const meant = unknown === undefined ? undefined : nearest(unknown, Object.keys(known))
    const hint = meant === undefined ? message : `${message} Did you mean --${meant}?`
    throw new CliError(`${hint} See: tollgate ${command.name} --help`, 2)
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

/** The groups and the first words of their commands; `all`: every command. */
function generalHelp({ otherVerbs }: CliOptions, isAll: boolean): string {
  const groups = [
    ['Run the gateway', otherVerbs] as const,
    ...GROUPS.map(
      ([title, commands]) => [title, commands.map(({ name, summary }) => [name, summary] as const)] as const,
    ),
  ]
  const width = Math.max(...groups.flatMap(([, rows]) => rows.map(([name]) => name.length)))
  const linesOf = (rows: typeof otherVerbs) =>
    isAll
      ? rows.map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}`)
      : wrapped([...new Set(rows.map(([name]) => groupOf(name)))].join(', '))
  return [
    'tollgate <command> [options]',
    ...groups.flatMap(([title, rows]) => ['', title, ...linesOf(rows)]),
    '',
    ...(isAll ? [] : ['tollgate help keys lists the commands of "keys", tollgate help all every command.']),
    'Accounts, keys and people can be given by name or id. Every command takes --help and --json.',
    'Commands are clients of a running gateway: its address is TOLLGATE_URL, or what the gateway wrote into the data directory',
    '(TOLLGATE_DATA); its token is TOLLGATE_OPERATOR_TOKEN, or is in that directory. Only call uses an API key: TOLLGATE_KEY.',
  ].join('\n')
}

/** Lines of at most 80 characters. */
const wrapped = (words: string) => (words.match(/.{1,78}(?: |$)/g) ?? []).map((line) => `  ${line.trimEnd()}`)
