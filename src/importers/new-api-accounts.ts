// Users and tokens of new-api's database as accounts and keys. Its quota is a balance already.
import { hash } from 'node:crypto'
import { readIpRanges } from '../admission/api-key.ts'
import type { CatalogInput } from '../catalog/document.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { creditsOf, type PlannedAccount, type PlannedKey, referenceOf, warnShort } from './accounts.ts'
import type { Placement } from './deployment.ts'
import type { AccountOptions } from './litellm-accounts.ts'
import { type NewApiRows, quotaPerDollar } from './new-api.ts'
import { isUnset, plain, type Say } from './report.ts'
import type { ForeignRow } from './source.ts'

const ENABLED = 1
const PREFIX = 'sk-'

type Options = Omit<AccountOptions, 'balance'> & { readonly placement: Pick<Placement, 'uidOf'> }

interface Reading {
  readonly models: CatalogInput['models']
  readonly channels: readonly ForeignRow[]
  readonly options: Options
  readonly perDollar: number
  readonly say: Say
}

export function newApiAccounts(
  rows: NewApiRows,
  { models }: CatalogInput,
  options: Options,
  say: Say,
): PlannedAccount[] {
  const { channels } = rows
  const reading = { models, channels, options, perDollar: quotaPerDollar(rows.options), say }
  const tokens = Map.groupBy(rows.tokens, ({ user_id }) => Number(user_id))
  return rows.users.flatMap((user) => accountOf(user, tokens.get(Number(user.id)) ?? [], reading) ?? [])
}

function accountOf(user: ForeignRow, tokens: readonly ForeignRow[], reading: Reading): PlannedAccount | undefined {
  const { options, say } = reading
  const id = String(user.id)
  const name = plain(user.username) || `user ${id}`
  const at = `user ${name}`
  if (!isUnset(user.deleted_at) || Number(user.status) !== ENABLED) {
    say(at, 'left', `It is switched off there, and its ${tokens.length} tokens with it.`)
    return undefined
  }
  const credits = balanceOf(user.quota, reading)
  say(
    at,
    'taken',
    `An account that begins with ${formatCredits(credits)} credits, which is the quota that it has left.`,
  )
  if (!isUnset(user.group) && user.group !== 'default')
    say(`${at}.group`, 'left', 'There are no groups here; models are named at keys, and prices are the same for all.')
  if (!isUnset(user.email)) say(`${at}.email`, 'left', 'People are invited: tollgate members invite <account> <e-mail>')
  return {
    ...{ at, credits, limits: {}, name: plain(user.display_name) || name },
    reference: referenceOf('new-api', options.source, 'user', id),
    note: 'opening balance from new-api: the quota that was left',
    keys: tokens.flatMap((token) => keyOf(token, { name, group: groupOf(token, user) }, reading) ?? []),
  }
}

function balanceOf(quota: unknown, { perDollar, options }: Reading): Credits {
  const credits = creditsOf(Number(quota ?? 0) / perDollar, options.creditsPerDollar) ?? 0n
  return credits > 0n ? credits : 0n
}

/** A token's own, or its user's. */
function groupOf(token: ForeignRow, user: ForeignRow): string {
  const named = [token.group, user.group].find((group) => !isUnset(group))
  return named === undefined ? 'default' : String(named)
}

function keyOf(
  token: ForeignRow,
  user: { readonly name: string; readonly group: string },
  reading: Reading,
): PlannedKey | undefined {
  const { options, say } = reading
  const at = `token ${user.name}/${plain(token.name, 60) || plain(token.id)}`
  const value = typeof token.key === 'string' ? token.key.trim().replace(/^sk-/, '') : ''
  const expiresMs = Number(token.expired_time ?? -1) * 1_000
  const models = both(modelsOf(token, at, reading), modelsOfGroup(user.group, reading))
  const ipRanges = rangesOf(token.allow_ips)
  const why =
    !isUnset(token.deleted_at) || Number(token.status) !== ENABLED
      ? 'It is switched off or used up there.'
      : !/^[\x21-\x7e]{8,250}$/.test(value)
        ? 'It has no value that a header could carry.'
        : expiresMs >= 0 && expiresMs <= options.nowMs
          ? 'It has expired.'
          : models?.length === 0
            ? 'None of the models that it may use is offered here.'
            : ipRanges === undefined
              ? 'It is restricted to addresses that are not understood.'
              : undefined
  if (why !== undefined || ipRanges === undefined) {
    say(at, 'left', why ?? '')
    return undefined
  }
  if (!isUnset(token.group))
    say(`${at}.group`, 'changed', 'There are no groups here; it may use the models of the channels that its group has.')
  const limits = isTrue(token.unlimited_quota)
    ? {}
    : { spendTotal: formatCredits(balanceOf(token.remain_quota, reading)) }
  const words = limits.spendTotal === undefined ? '' : ` Limit: spendTotal ${limits.spendTotal}, what it has left.`
  say(at, 'taken', `Kept by its hash; its holders go on using it.${words}`)
  const known = { sha256: hash('sha256', PREFIX + value, 'hex'), last4: value.slice(-4) }
  warnShort(at, known, say, value)
  return {
    ...{ at, limits, models, ipRanges, name: plain(token.name) || `token ${plain(token.id)}`, ...known },
    expiresAt: expiresMs < 0 ? null : new Date(Math.min(expiresMs, LATEST_MS)).toISOString(),
  }
}

/** Later than anybody's clock, and still a year of four digits. */
const LATEST_MS = Date.UTC(9999, 0)

/** SQLite has no booleans. */
const isTrue = (value: unknown) => value === true || value === 1

/** Null: everything. */
function modelsOf(token: ForeignRow, at: string, { models, options, say }: Reading): readonly string[] | null {
  const uidOf = (name: string) => options.placement.uidOf(name)
  if (!isTrue(token.model_limits_enabled)) return null
  const names = String(token.model_limits ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean)
  const missing = names.filter((name) => !Object.hasOwn(models, uidOf(name)))
  if (missing.length > 0)
    say(
      `${at}.model_limits`,
      'left',
      `Not offered here: ${missing
        .slice(0, 20)
        .map((name) => plain(name, 60))
        .join(', ')}.`,
    )
  return [...new Set(names.map(uidOf).filter((uid) => Object.hasOwn(models, uid)))]
}

/** What its channels offer; null: its group has all of them. */
function modelsOfGroup(group: string, { models, channels, options }: Reading): readonly string[] | null {
  const names = (value: unknown) =>
    String(value ?? '')
      .split(',')
      .map((one) => one.trim())
      .filter(Boolean)
  const enabled = channels.filter(({ status }) => Number(status) === ENABLED)
  const reached = enabled.filter((channel) =>
    (isUnset(channel.group) ? ['default'] : names(channel.group)).includes(group),
  )
  if (reached.length === enabled.length) return null
  const uids = reached.flatMap((channel) => names(channel.models).map((name) => options.placement.uidOf(name)))
  return [...new Set(uids)].filter((uid) => Object.hasOwn(models, uid))
}

function both(some: readonly string[] | null, others: readonly string[] | null): readonly string[] | null {
  return some === null || others === null ? (some ?? others) : some.filter((one) => others.includes(one))
}

/** Null: from everywhere; undefined: not understood. */
function rangesOf(value: unknown): readonly string[] | null | undefined {
  if (typeof value !== 'string' || value.trim() === '') return null
  const ranges = value.split(/[\s,]+/).filter(Boolean)
  try {
    readIpRanges(ranges)
    return ranges.length > 0 ? ranges : null
  } catch {
    return undefined
  }
}
