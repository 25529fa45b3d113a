// Reads teams, users and keys from LiteLLM's database as accounts and keys. Rows are read column by column, because the
// columns differ between LiteLLM versions. A key whose restriction cannot be kept is not imported, rather than imported
// without it.
import type { CatalogInput } from '../../catalog/document.ts'
import { type Credits, formatCredits } from '../../kernel/credits.ts'
import type { LimitsInput } from '../../meter/limits.ts'
import type { Placement } from './deployment.ts'
import {
  creditsOf,
  isUnset,
  type PlannedAccount,
  type PlannedKey,
  plain,
  referenceOf,
  type Say,
  warnShort,
} from './report.ts'
import type { ForeignRow, ForeignSource } from './source.ts'

export interface AccountOptions {
  readonly creditsPerDollar: string
  /** The starting balance of accounts without a budget. */
  readonly balance: Credits
  /** A name that distinguishes several installations. */
  readonly source: string
  readonly nowMs: number
}

interface LitellmRows {
  readonly keys: readonly ForeignRow[]
  readonly teams: readonly ForeignRow[]
  readonly users: readonly ForeignRow[]
  readonly budgets: readonly ForeignRow[]
  readonly models: readonly ForeignRow[]
  readonly customers: readonly ForeignRow[]
}

/** Undefined if it is not a LiteLLM database. */
export async function readLitellm(source: ForeignSource): Promise<LitellmRows | undefined> {
  const keys = await source.rows('LiteLLM_VerificationToken')
  if (!keys) return undefined
  return {
    keys,
    teams: (await source.rows('LiteLLM_TeamTable')) ?? [],
    users: (await source.rows('LiteLLM_UserTable')) ?? [],
    budgets: (await source.rows('LiteLLM_BudgetTable')) ?? [],
    models: (await source.rows('LiteLLM_ProxyModelTable')) ?? [],
    customers: (await source.rows('LiteLLM_EndUserTable')) ?? [],
  }
}

/**
 * Columns that are imported or are LiteLLM's own bookkeeping. Every other column that is set is reported as left out.
 */
const READ = new Set([
  'token',
  'key_name',
  'key_alias',
  'spend',
  'total_spend',
  'expires',
  'models',
  'user_id',
  'team_id',
  'budget_id',
  'max_parallel_requests',
  'blocked',
  'tpm_limit',
  'rpm_limit',
  'max_budget',
  'budget_duration',
  'allowed_routes',
  'team_alias',
  'user_alias',
  'user_email',
  'user_role',
  'teams',
  'key_type',
  'budget_reset_at',
  'created_at',
  'created_by',
  'updated_at',
  'updated_by',
  'settings_updated_at',
  'last_active',
  'soft_budget_cooldown',
  'model_spend',
  'rotation_count',
  'last_rotation_at',
  'key_rotation_at',
  'password',
  'last_breach_check_at',
])

type PlacedOptions = AccountOptions & { readonly placement: Pick<Placement, 'uidOf'> }

interface Owner {
  readonly at: string
  readonly reference: string
  readonly name: string
  readonly row: ForeignRow | undefined
  readonly keys: { readonly planned: PlannedKey; readonly rest: Credits | undefined }[]
}

export function litellmAccounts(
  rows: LitellmRows,
  { models }: CatalogInput,
  options: PlacedOptions,
  say: Say,
): PlannedAccount[] {
  const owners = new Map<string, Owner>()
  const teams = new Map(rows.teams.map((row) => [String(row.team_id), row]))
  const users = new Map(rows.users.map((row) => [String(row.user_id), row]))
  const budgets = new Map(rows.budgets.map((row) => [String(row.budget_id), row]))
  for (const row of teams.values()) if (!row.blocked) ownerOf(owners, 'team', row, options)
  for (const key of rows.keys) {
    const at = `key ${keyName(key)}`
    const why = reasonToLeave(key, { teams, nowMs: options.nowMs })
    if (why !== undefined) {
      say(at, 'left', why)
      continue
    }
    const [kind, holder] = isUnset(key.team_id)
      ? (['user', users.get(String(key.user_id))] as const)
      : (['team', teams.get(String(key.team_id))] as const)
    const read = readKey(withBudget(key, budgets), holder, { at, models, say, options })
    if (read) ownerOf(owners, kind, holder, options).keys.push(read)
  }
  for (const [id, row] of teams) if (row.blocked) say(`team ${nameOf('team', row, id)}`, 'left', 'It is blocked there.')
  for (const [id, row] of users) {
    const name = nameOf('user', row, id)
    if (!owners.has(`user ${id}`)) say(`user ${name}`, 'left', 'There is no key of its own that could be kept.')
    if (!isUnset(row.user_email))
      say(`user ${name}.user_email`, 'left', 'People are invited: tollgate members invite <account> <email>')
  }
  for (const row of rows.models) say(`model ${plain(row.model_name)}`, 'left', MODEL_LEFT)
  if (rows.customers.length > 0)
    say('customers', 'left', `${rows.customers.length} that callers name in "user": there are no such budgets here.`)
  return [...owners.values()].map((owner) => accountOf(owner, options, say))
}

const MODEL_LEFT =
  'Its parameters are encrypted in the database: put it into the configuration, or connect it with "tollgate connect".'

const keyName = (key: ForeignRow) => plain(key.key_alias) || plain(key.key_name, 40) || plain(key.token, 8)

function nameOf(kind: 'team' | 'user', row: ForeignRow | undefined, id: string): string {
  const alias = kind === 'team' ? row?.team_alias : (row?.user_alias ?? row?.user_email)
  return plain(alias) || plain(id) || 'LiteLLM'
}

function ownerOf(
  owners: Map<string, Owner>,
  kind: 'team' | 'user',
  row: ForeignRow | undefined,
  { source }: AccountOptions,
): Owner {
  const id = row ? String(row[`${kind}_id`]) : ''
  const found = owners.get(`${kind} ${id}`)
  if (found) return found
  const name = row ? nameOf(kind, row, id) : 'LiteLLM, keys without an owner'
  const owner: Owner = {
    name,
    row,
    keys: [],
    at: row ? `${kind} ${name}` : 'keys without an owner',
    reference: referenceOf('litellm', source, row ? kind : 'nobody', id),
  }
  owners.set(`${kind} ${id}`, owner)
  return owner
}

function reasonToLeave(
  key: ForeignRow,
  { teams, nowMs }: { teams: ReadonlyMap<string, ForeignRow>; nowMs: number },
): string | undefined {
  if (!/^[0-9a-f]{64}$/.test(String(key.token))) return 'It is not kept as a SHA-256 there.'
  if (key.team_id === 'litellm-dashboard') return 'It is a login of LiteLLM’s own console.'
  if (key.blocked === true) return 'It is blocked there.'
  if (!isUnset(key.team_id)) {
    const team = teams.get(String(key.team_id))
    if (!team) return `Its team ${plain(key.team_id)} is not in the database.`
    if (team.blocked === true) return 'Its team is blocked there.'
  }
  const expires = momentOf(key.expires)
  if (expires !== undefined && !(expires > nowMs)) return 'It has expired.'
  const routes = Array.isArray(key.allowed_routes) ? key.allowed_routes : []
  if (routes.length > 0 && !routes.includes('llm_api_routes'))
    return 'It is restricted to certain routes, which keys are not here.'
  return undefined
}

/** Timestamps have no time zone and are UTC. */
function momentOf(value: unknown): number | undefined {
  if (typeof value !== 'string') return undefined
  return Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(value) ? value : `${value}Z`)
}

/** Merges the named budget that several keys may share; the key's own values take precedence. */
function withBudget(key: ForeignRow, budgets: ReadonlyMap<string, ForeignRow>): ForeignRow {
  const budget = isUnset(key.budget_id) ? undefined : budgets.get(String(key.budget_id))
  const names = ['max_budget', 'budget_duration', 'tpm_limit', 'rpm_limit', 'max_parallel_requests'] as const
  return { ...key, ...Object.fromEntries(names.map((name) => [name, key[name] ?? budget?.[name]])) }
}

function readKey(
  key: ForeignRow,
  holder: ForeignRow | undefined,
  { at, models, say, options }: { at: string; models: CatalogInput['models']; say: Say; options: PlacedOptions },
): Owner['keys'][number] | undefined {
  const allowed = allowedModels(key, holder)
  const here = allowed?.map((name) => [name, options.placement.uidOf(name)] as const)
  const missing = (here ?? []).filter(([, uid]) => !Object.hasOwn(models, uid)).map(([name]) => plain(name, 60))
  if (missing.length > 0) say(`${at}.models`, 'left', `Not offered here: ${missing.slice(0, 20).join(', ')}.`)
  const uids = here && [...new Set(here.map(([, uid]) => uid).filter((uid) => Object.hasOwn(models, uid)))]
  if (uids?.length === 0) {
    say(at, 'left', 'None of the models that it may use is offered here.')
    return undefined
  }
  const rest = restOf(key, options)
  const limits = { ...ratesOf(key), ...spendOf(key, { at, rest, say, options }) }
  const expires = momentOf(key.expires)
  sayLeft(key, at, say)
  const planned: PlannedKey = {
    at,
    name: keyName(key),
    limits,
    ipRanges: null,
    models: uids ?? null,
    sha256: String(key.token),
    last4: plain(key.key_name).slice(-4) || String(key.token).slice(-4),
    expiresAt: expires === undefined ? null : new Date(expires).toISOString(),
  }
  say(at, 'taken', `Imported by its hash; callers keep using it.${inWords(limits)}`)
  warnShort(at, planned, say)
  return { planned, rest }
}

/** Null: all models. */
function allowedModels(key: ForeignRow, holder: ForeignRow | undefined): readonly string[] | null {
  const list = (value: unknown) => (Array.isArray(value) ? value.map(String) : [])
  const own = list(key.models)
  const theirs = list(holder?.models).filter((name) => name !== 'all-proxy-models')
  const ofHolder = theirs.length === 0 ? null : theirs.filter((name) => name !== 'no-default-models')
  const inherits = own.length === 0 || own.includes('all-team-models') || own.includes('all-proxy-models')
  if (inherits) return ofHolder
  return own.filter((name) => name !== 'no-default-models' && (ofHolder?.includes(name) ?? true))
}

/** The rest of a budget; undefined if there is no budget. */
function restOf(row: ForeignRow | undefined, { creditsPerDollar }: AccountOptions): Credits | undefined {
  const budget = creditsOf(row?.max_budget, creditsPerDollar)
  if (budget === undefined) return undefined
  const rest = budget - (creditsOf(row?.spend, creditsPerDollar) ?? 0n)
  return rest > 0n ? rest : 0n
}

function ratesOf(row: ForeignRow | undefined): LimitsInput {
  const count = (value: unknown) => (Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined)
  const [requestsPerMinute, tokensPerMinute, concurrency] = [
    count(row?.rpm_limit),
    count(row?.tpm_limit),
    count(row?.max_parallel_requests),
  ]
  return {
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    ...(tokensPerMinute === undefined ? {} : { tokensPerMinute }),
    ...(concurrency === undefined ? {} : { concurrency }),
  }
}

interface Spending {
  readonly at: string
  readonly rest: Credits | undefined
  readonly say: Say
  readonly options: AccountOptions
}

/**
 * A budget that resets daily or monthly becomes such a limit. Any other budget becomes a total limit of what is left of
 * it.
 */
function spendOf(row: ForeignRow, { at, rest, say, options }: Spending): LimitsInput {
  const budget = creditsOf(row.max_budget, options.creditsPerDollar)
  if (budget === undefined || rest === undefined) return {}
  if (isUnset(row.budget_duration)) return { spendTotal: formatCredits(rest) }
  const period = periodOf(row, at, say)
  return period === undefined ? { spendTotal: formatCredits(rest) } : { [period]: formatCredits(budget) }
}

function periodOf(row: ForeignRow, at: string, say: Say): 'spendPerDay' | 'spendPerMonth' | undefined {
  const duration = plain(row.budget_duration, 20)
  const period = /^(1d|24h|1day|daily)$/.test(duration)
    ? 'spendPerDay'
    : /^(1mo|30d|31d|monthly)$/.test(duration)
      ? 'spendPerMonth'
      : undefined
  const words = period
    ? `It renews every ${duration} there; here it is ${period}, by the calendar in UTC, and counts from now on.`
    : `There are budgets for a day and for a month here, and none for ${duration}: what it has left is all there is.`
  say(`${at}.budget_duration`, 'changed', words)
  return period
}

function accountOf({ at, name, reference, row, keys }: Owner, options: AccountOptions, say: Say): PlannedAccount {
  const own = restOf(row, options)
  const ofKeys = keys.reduce((sum, { rest }) => sum + (rest ?? 0n), 0n)
  const credits = own ?? ofKeys + options.balance
  const period = own === undefined || isUnset(row?.budget_duration) || !row ? undefined : periodOf(row, at, say)
  const budget = creditsOf(row?.max_budget, options.creditsPerDollar)
  const limits = { ...ratesOf(row), ...(period && budget !== undefined ? { [period]: formatCredits(budget) } : {}) }
  if (row) sayLeft(row, at, say)
  const why = own === undefined ? 'there is no budget; what its keys’ budgets leave, and --balance' : LEFT_OF_BUDGET
  const short = credits > 0n ? '' : ' It can pay for nothing until it is given credits.'
  say(at, 'taken', `An account that begins with ${formatCredits(credits)} credits (${why}).${short}${inWords(limits)}`)
  return { at, reference, name, credits, note: `opening balance from LiteLLM: ${why}`, limits, keys: keyed(keys) }
}

const LEFT_OF_BUDGET = 'its budget less what was spent of it'
const keyed = (keys: Owner['keys']) => keys.map(({ planned }) => planned)

function sayLeft(row: ForeignRow, at: string, say: Say): void {
  for (const [name, value] of Object.entries(row))
    if (!READ.has(name) && !isUnset(value)) say(`${at}.${plain(name, 40)}`, 'left', 'It has no counterpart here.')
}

function inWords(limits: LimitsInput): string {
  const words = Object.entries(limits).map(([name, value]) => `${name} ${value}`)
  return words.length > 0 ? ` Limits: ${words.join(', ')}.` : ''
}
