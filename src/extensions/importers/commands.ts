// Imports from another gateway: its configuration becomes a catalog, its database accounts, balances and keys. Reports
// line by line what was taken, and applies nothing unless asked.
import { readFile } from 'node:fs/promises'
import { accountIdFrom } from '../../admission/accounts.ts'
import type { KeyView } from '../../admission/views.ts'
import { describeChanges } from '../../catalog/change-sentences.ts'
import { type CatalogInput, checkDocument } from '../../catalog/document.ts'
import { belowCostNotes } from '../../catalog/margin.ts'
import { readPresets } from '../../catalog/preset.ts'
import { sectionReviews } from '../../catalog/section.ts'
import type { Applied, CurrentView } from '../../catalog/views.ts'
import { Refused } from '../../cli/api.ts'
import {
  at,
  CliError,
  type Command,
  flag,
  type Invocation,
  type Option,
  type Told,
  takes,
  text,
} from '../../cli/command.ts'
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import type { Page } from '../../kernel/view.ts'
import type { AccountView } from '../../ledger/views.ts'
import { type ImportOptions, Placement } from './deployment.ts'
import { importLitellm } from './litellm.ts'
import { type AccountOptions, litellmAccounts, readLitellm } from './litellm-accounts.ts'
import { readPriceTable } from './litellm-costs.ts'
import { importNewApi, newApiAccounts, readNewApi } from './new-api.ts'
import {
  createReport,
  type ImportLine,
  ImportProblem,
  type PlannedAccount,
  type PlannedKey,
  type Report,
  type Say,
} from './report.ts'
import { type ForeignSource, openSource } from './source.ts'

const FILE_BYTES_MAX = 4 * 1024 * 1024

const OPTIONS: Readonly<Record<string, Option>> = {
  markup: takes('factor', 'Price = cost × this, if costs are known; 1 by default.'),
  'credits-per-dollar': takes('number', 'For costs, prices, budgets and balances; 100 by default.'),
  source: takes('name', 'A name for the installation, if you import several of one kind.'),
  replace: flag(
    'Existing models of the same name get the imported routes and prices; otherwise the imported ones are renamed.',
  ),
  apply: flag('Applies the import; otherwise it is only shown.'),
}
const ABOUT =
  'Reports for each entry whether it was taken, changed or left. A second run creates only what is missing. Vendor credentials are not copied: store them with "tollgate vendors credential". The password may be left out of an address if ~/.pgpass has it.'

export const IMPORT_COMMANDS: readonly Command[] = [
  {
    name: 'import litellm',
    summary:
      'Imports models and fallbacks from a configuration of LiteLLM’s proxy, and teams, budgets and keys from its database.',
    args: ['[file]'],
    options: {
      database: takes('address', 'Its database: postgres://user:password@host:5432/litellm'),
      prices: takes('file', 'LiteLLM’s price table; by default that of an installed Python package.'),
      balance: takes('credits', 'Opening balance of accounts without a budget; 0 by default.'),
      ...OPTIONS,
    },
    about: ABOUT,
    run: (call) => importing(call, 'LiteLLM', fromLitellm),
  },
  {
    name: 'import new-api',
    summary: 'Imports channels, prices, users, balances and tokens from a database of new-api.',
    args: ['database'],
    options: OPTIONS,
    about: `The database is an SQLite file, such as one-api.db, or an address postgres://user:password@host:5432/new-api. ${ABOUT}`,
    run: (call) => importing(call, 'new-api', fromNewApi),
  },
]

/** The result of converting another gateway's data. */
interface Plan {
  readonly document: CatalogInput
  readonly accounts: readonly PlannedAccount[]
}

interface Reading {
  readonly current: CatalogInput
  readonly report: Report
  readonly options: ImportOptions & AccountOptions
}

async function importing(
  call: Invocation,
  from: string,
  read: (call: Invocation, reading: Reading) => Promise<Plan>,
): Promise<Told> {
  const options = {
    presets: await readPresets(),
    markup: factor(call, 'markup', '1'),
    creditsPerDollar: factor(call, 'credits-per-dollar', '100'),
    replace: call.values.replace === true,
    balance: balanceOf(call),
    source: text(call, 'source') ?? '',
    nowMs: call.world.nowMs(),
  }
  const { document: current } = await call.api.call<CurrentView>('GET', '/catalog')
  const report = createReport()
  const { document, accounts } = await read(call, { current, report, options }).catch(asCliError)
  const checked = checkDocument(document)
  const problems = checked.ok ? [] : checked.problems
  const notes = checked.ok ? belowCostNotes(checked.document) : []
  const changes = describeChanges(current, document, sectionReviews())
  const found = problems.length > 0 ? [] : await findAccounts(call, accounts, report.say)
  const { lines } = report
  const answer = { lines, changes, problems, notes, accounts: accounts.length }
  const words = [
    ...lines.map(inWords),
    ...notes.map((note) => `Note: ${note}`.replaceAll(/[\p{Cc}\p{Cf}]/gu, ' ')),
  ].join('\n')
  if (problems.length > 0)
    return {
      answer,
      words: `${words}\nNothing was applied: ${problems.join('; ').replaceAll(/[\p{Cc}\p{Cf}]/gu, ' ')}`,
      failed: true,
    }
  const missing = found.filter(({ account }) => !account).length
  if (!call.values.apply) {
    const sum = `${changes.length} changes of the catalog, ${missing} new accounts.`
    return { answer, words: `${words}\n${sum} Nothing was applied; add --apply to do so.` }
  }
  // The catalog comes first, because keys refer to models.
  const note = `import from ${from}`
  const applied = changes.length > 0 ? await call.api.call<Applied>('PUT', '/catalog', { document, note }) : undefined
  const made = await makeAccounts(call, found)
  const ends = [
    applied ? `Version ${applied.version} is in force.` : 'The catalog stays as it is.',
    `${made.accounts} accounts and ${made.keys} keys were made.`,
    ...made.refused.map((line) => `Refused: ${line}`),
  ]
  return {
    answer: { ...answer, ...applied, made },
    words: `${words}\n${ends.join('\n')}`,
    failed: made.refused.length > 0,
  }
}

function asCliError(error: unknown): never {
  throw error instanceof ImportProblem ? new CliError(error.message, error.isUsage ? 2 : 1) : error
}

async function fromLitellm(call: Invocation, { current, report, options }: Reading): Promise<Plan> {
  const [file] = call.args
  const address = text(call, 'database')
  if (file === undefined && address === undefined)
    throw new CliError(
      'Name a configuration, a database, or both: tollgate import litellm config.yaml --database postgres://…',
      2,
    )
  const { say } = report
  const found = file === undefined ? undefined : await readPriceTable(text(call, 'prices'), file)
  if (found) say('prices', 'taken', `Costs that the file does not name are read from ${found.path}.`)
  const placement = new Placement(current, 'litellm', options)
  const reading = { ...options, say, placement, prices: found?.table, variable: call.settings.credential }
  const document = file === undefined ? current : importLitellm(await readYaml(file), current, reading)
  if (address === undefined) return { document, accounts: [] }
  const rows = await withSource(address, readLitellm, 'LiteLLM')
  return { document, accounts: litellmAccounts(rows, document, { ...options, placement }, report.say) }
}

async function fromNewApi(call: Invocation, { current, report, options }: Reading): Promise<Plan> {
  const rows = await withSource(call.args[0] ?? '', readNewApi, 'new-api')
  const placement = new Placement(current, 'new-api', options)
  const document = importNewApi(rows, current, { ...options, placement, say: report.say })
  return { document, accounts: newApiAccounts(rows, document, { ...options, placement }, report.say) }
}

async function withSource<T>(
  where: string,
  read: (source: ForeignSource) => Promise<T | undefined>,
  from: string,
): Promise<T> {
  const source = await openSource(where)
  try {
    const rows = await read(source)
    if (!rows) throw new CliError(`This is not a database of ${from}: its tables are missing.`)
    return rows
  } finally {
    await source.close()
  }
}

/** Names are untrusted, so control characters that move the terminal's cursor are removed. */
const inWords = ({ at, what, words }: ImportLine) =>
  `${what.padEnd(7)}  ${at}: ${words}`.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')

function balanceOf(call: Invocation): bigint {
  const balance = parseCredits(text(call, 'balance') ?? '0')
  if (balance === undefined || balance < 0n) throw new CliError('--balance takes an amount of credits such as 12.5.', 2)
  return balance
}

function factor(call: Invocation, option: string, usual: string): string {
  const value = text(call, option) ?? usual
  if ((parseCredits(value) ?? 0n) <= 0n) throw new CliError(`--${option} takes a positive decimal such as 1.2.`, 2)
  return value
}

async function readYaml(file: string): Promise<unknown> {
  const content = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError(`${file} cannot be read: ${error.code === 'ENOENT' ? 'there is no such file' : error.message}.`)
  })
  if (content.length > FILE_BYTES_MAX) throw new CliError(`${file} is too large for a configuration.`)
  // Loaded here, because only imports need it.
  const { parse } = await import('yaml')
  try {
    // Limits aliases, so that a small file cannot expand to a huge value.
    return parse(content, { maxAliasCount: 100, uniqueKeys: false })
  } catch (error) {
    throw new CliError(`${file} is not YAML: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`)
  }
}

// An account's id is derived from its name at the other gateway, and a key is recognized by its hash. So an import that
// is repeated, or was interrupted, creates only what is missing.

/** The parts of a plan that already exist. */
interface FoundAccount {
  readonly planned: PlannedAccount
  readonly id: string
  readonly account: AccountView | undefined
  readonly keys: readonly KeyView[]
}

async function findAccounts(
  call: Invocation,
  plan: readonly PlannedAccount[],
  say: Say,
): Promise<readonly FoundAccount[]> {
  const found: FoundAccount[] = []
  for (const planned of plan) {
    const id = accountIdFrom(planned.reference)
    const account = await orNothing(call.api.call<AccountView>('GET', at`/accounts/${id}`))
    const keys = account ? await keysOf(call, id) : []
    if (account) say(planned.at, 'left', `Account ${id} is there already, and stays as it is.`)
    for (const key of planned.keys)
      if (keys.some((one) => isSame(one, key))) say(key.at, 'left', 'The key is there already, and stays as it is.')
    found.push({ planned, id, account, keys })
  }
  return found
}

const isSame = (one: KeyView, key: PlannedKey) => one.name === key.name && one.last4 === key.last4 && !one.replacedBy

interface Made {
  accounts: number
  keys: number
  readonly refused: string[]
}

/** Creates what is missing; returns the numbers, and what was rejected. */
async function makeAccounts(call: Invocation, found: readonly FoundAccount[]): Promise<Made> {
  const made: Made = { accounts: 0, keys: 0, refused: [] }
  for (const { planned, id, account, keys } of found) {
    const { name, credits, note, limits, reference } = planned
    const body = { name, credits: formatCredits(credits), note, limits }
    try {
      if (!account) await call.api.call('POST', '/accounts', body, { 'idempotency-key': reference })
    } catch (error) {
      made.refused.push(`${planned.at}: ${messageOf(error)}`)
      continue
    }
    if (!account) made.accounts += 1
    for (const { at: where, ...key } of planned.keys) {
      try {
        const { id: keyId } = await call.api.call<KeyView>('POST', at`/accounts/${id}/imported-keys`, key)
        if (!keys.some((one) => one.id === keyId)) made.keys += 1
      } catch (error) {
        made.refused.push(`${where}: ${messageOf(error)}`)
      }
    }
  }
  return made
}

async function keysOf(call: Invocation, account: string): Promise<readonly KeyView[]> {
  const keys: KeyView[] = []
  let next: string | null = ''
  while (next !== null) {
    const page: Page<KeyView> = await call.api.call(
      'GET',
      at`/accounts/${account}/keys` + (next === '' ? '?limit=200' : `?limit=200&cursor=${encodeURIComponent(next)}`),
    )
    keys.push(...page.items)
    next = page.next
  }
  return keys
}

function orNothing<T>(asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    if (error instanceof Refused && error.status === 404) return undefined
    throw error
  })
}

/** A rejected entry is reported, and the import continues. If the gateway cannot be reached, it ends. */
function messageOf(error: unknown): string {
  if (error instanceof Refused && error.status < 500 && error.status !== 401) return error.message
  if (error instanceof CliError) throw new CliError(`${error.message} Run it again: what was made is not made twice.`)
  throw error
}
