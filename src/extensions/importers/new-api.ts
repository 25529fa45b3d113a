// Reads channels, ratios and prices of new-api's database as a catalog: a channel becomes a vendor, each of its models
// a route to it. Its ratios are what callers pay there, so they become prices. The vendor's cost is the preset's list
// price, where there is one.

import { hash } from 'node:crypto'
import { readIpRanges } from '../../admission/api-key.ts'
import type { CatalogInput } from '../../catalog/document.ts'
import type { Preset } from '../../catalog/preset.ts'
import { type Credits, formatCredits } from '../../kernel/credits.ts'
import { isObject } from '../../kernel/json.ts'
import { type KindName, kindRow, unitRow } from '../../meter/kind.ts'
import type { ChosenModel } from '../connection/connection.ts'
import { type ImportOptions, Placement, uidOf, withDeployment } from './deployment.ts'
import type { AccountOptions } from './litellm-accounts.ts'
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

interface NewApiRows {
  readonly channels: readonly ForeignRow[]
  readonly tokens: readonly ForeignRow[]
  readonly users: readonly ForeignRow[]
  readonly options: Readonly<Record<string, string>>
}

/** Undefined if it is not a new-api database. */
export async function readNewApi(source: ForeignSource): Promise<NewApiRows | undefined> {
  const [channels, tokens] = [await source.rows('channels'), await source.rows('tokens')]
  if (!channels || !tokens) return undefined
  const options = (await source.rows('options')) ?? []
  return {
    channels,
    tokens,
    users: (await source.rows('users')) ?? [],
    options: Object.fromEntries(options.map(({ key, value }) => [String(key), String(value ?? '')])),
  }
}

/** new-api's default quota per dollar. */
const QUOTA_PER_DOLLAR = 500_000

function quotaPerDollar(options: NewApiRows['options']): number {
  const value = Number(options.QuotaPerUnit ?? QUOTA_PER_DOLLAR)
  return Number.isFinite(value) && value > 0 ? value : QUOTA_PER_DOLLAR
}

/** new-api's channel types, and our presets. */
const PRESETS: Readonly<Record<number, string>> = {
  1: 'openai',
  3: 'azure',
  4: 'ollama',
  14: 'anthropic',
  20: 'openrouter',
  24: 'gemini',
  25: 'moonshot',
  34: 'cohere',
  35: 'minimax',
  42: 'mistral',
  43: 'deepseek',
  45: 'volcengine',
  48: 'xai',
}
/** An OpenAI-compatible vendor at a custom address. */
const CUSTOM = 8
const COMPATIBLE = new Set([1, CUSTOM, 60])
const MODELS_MAX = 1_000

/** The columns of a channel that are imported or are new-api's own bookkeeping. */
const READ = new Set([
  'id',
  'type',
  'key',
  'status',
  'name',
  'weight',
  'base_url',
  'models',
  'group',
  'model_mapping',
  'priority',
  'created_time',
  'test_time',
  'response_time',
  'balance',
  'balance_updated_time',
  'used_quota',
  'test_model',
  'other',
  'other_info',
  'auto_ban',
  'tag',
  'remark',
  'channel_info',
])
const PRICES = ['ModelRatio', 'CompletionRatio', 'CacheRatio', 'ModelPrice', 'GroupRatio'] as const
const READ_OPTIONS = new Set<string>([...PRICES, 'QuotaPerUnit'])

type Tables = Readonly<Record<(typeof PRICES)[number], Readonly<Record<string, unknown>>>>

interface NewApiOptions extends ImportOptions {
  readonly say: Say
  readonly placement?: Placement
}
interface Reading extends NewApiOptions {
  readonly placement: Placement
}

export function importNewApi(rows: NewApiRows, current: CatalogInput, options: NewApiOptions): CatalogInput {
  const { placement = new Placement(current, 'new-api', options) } = options
  const reading: Reading = { ...options, placement }
  const { say } = reading
  // Object.fromEntries loses the type of the names.
  const tables = Object.fromEntries(PRICES.map((name) => [name, objectIn(rows.options[name])])) as Tables
  const factor = Number(tables.GroupRatio.default ?? 1)
  const channels = rows.channels
    .flatMap((row) => channelOf(row, rows, reading) ?? [])
    .sort((a, b) => b.priority - a.priority || a.id - b.id)
  const perDollar = quotaPerDollar(rows.options)
  let document = current
  /** For each model: the priority of its last route, and the order assigned to it. */
  const last = new Map<string, { priority: number; order: number }>()
  const places = new Map<string, ReturnType<Placement['model']>>()
  for (const channel of channels)
    for (const name of channel.models) {
      const at = `${channel.at}.models.${plain(name, 60)}`
      const place = places.get(uidOf(name)) ?? placement.model(uidOf(name), routesTo(name, channels), at, say)
      places.set(uidOf(name), place)
      const { uid } = place
      const type = kindOf(name, channel.preset)
      const pricing = type && priceOf(name, type, { tables, factor, perDollar, reading, at })
      const before = last.get(uid)
      const order = before ? before.order + (channel.priority < before.priority ? 1 : 0) : 0
      if (type === undefined || uid === '') {
        say(at, 'left', 'It is of a kind that is not offered here, or has no name.')
        continue
      }
      const { vendorName, vendor, preset, weight } = channel
      const model = mapped(name, channel.mapping)
      const read = { group: name, model, type, vendorName, vendor, preset, weight, order, cost: undefined, pricing }
      const made = withDeployment(document, read, place, reading)
      if (made.problems.length > 0) {
        say(at, 'left', `There is no ratio or price for it in the database, and no list price is known: ${NO_PRICE}`)
        continue
      }
      last.set(uid, { priority: channel.priority, order })
      document = made.document
      say(at, uid === name ? 'taken' : 'changed', `Offered as ${uid}, served by ${vendorName} as ${plain(model)}.`)
    }
  sayOptions(rows, tables, say)
  return document
}

const NO_PRICE =
  'save the ratios once in its console, which stores them, or connect it with "tollgate connect --price".'

/** The routes of all channels that have a model of this name. */
function routesTo(name: string, channels: readonly Channel[]) {
  return channels.flatMap(({ vendorName, models, mapping }) =>
    models.filter((one) => uidOf(one) === uidOf(name)).map((one) => ({ vendorName, model: mapped(one, mapping) })),
  )
}

/** Follows a chain of mappings like new-api does; a cycle ends where it began. */
function mapped(name: string, mapping: Channel['mapping']): string {
  const seen = new Set([name])
  let model = name
  while (Object.hasOwn(mapping, model)) {
    const next = mapping[model] ?? model
    if (seen.has(next)) break
    seen.add(next)
    model = next
  }
  return model
}

interface Channel {
  readonly id: number
  readonly at: string
  readonly vendorName: string
  readonly vendor: CatalogInput['vendors'][string]
  readonly preset: Preset | undefined
  readonly models: readonly string[]
  readonly mapping: Readonly<Record<string, string>>
  readonly priority: number
  readonly weight: number | undefined
}

function channelOf(row: ForeignRow, rows: NewApiRows, { presets, placement, say }: Reading): Channel | undefined {
  const [id, type] = [Number(row.id), Number(row.type)]
  const name = plain(row.name, 60) || `channel ${id}`
  const at = `channel ${name}`
  if (Number(row.status) !== 1) {
    say(at, 'left', 'It is switched off there.')
    return undefined
  }
  const preset = presets.find((one) => one.name === PRESETS[type])
  const address = addressOf(row.base_url, type, preset)
  if (address === undefined) {
    say(at, 'left', `Its kind of vendor (${type}) has no preset here, or no address: use "tollgate connect".`)
    return undefined
  }
  const isAlone = rows.channels.filter((one) => slug(one.name) === slug(row.name)).length === 1
  const wanted = isAlone && slug(row.name) !== '' ? slug(row.name) : `${slug(row.name) || 'channel'}-${id}`
  const { credential: usual, ...known } = preset?.vendor ?? {}
  const hasKey = !isUnset(row.key) && !(preset && usual === undefined)
  const { name: vendorName, entry: vendor } = placement.vendor(
    wanted,
    {
      // The preset's entry is validated with the whole document.
      ...(known as CatalogInput['vendors'][string]),
      baseUrl: address,
      // A separate name, because the vendor's usual variable may hold another key than the channel's.
      ...(hasKey ? { credential: placement.credential(wanted, address, undefined, undefined) } : {}),
    },
    at,
    say,
  )
  const several = String(row.key ?? '')
    .trim()
    .includes('\n')
  if (!isUnset(row.key))
    say(
      `${at}.key`,
      'changed',
      `${several ? 'Several keys stand' : 'The key stands'} in the database and ${several ? 'are' : 'is'} not copied. Store it: tollgate vendors credential ${vendorName}`,
    )
  for (const column of Object.keys(row))
    if (!READ.has(column) && !isUnset(row[column]))
      say(`${at}.${plain(column, 40)}`, 'left', 'Vendors have no such setting here.')
  const groups = String(row.group ?? 'default').split(',')
  if (!groups.includes('default'))
    say(`${at}.group`, 'changed', 'It served certain groups only; here it serves every key that may use its models.')
  const weight = Number(row.weight ?? 0)
  return {
    id,
    at,
    vendorName,
    preset,
    vendor,
    models: [
      ...new Set(
        String(row.models ?? '')
          .split(',')
          .map((one) => one.trim())
          .filter(Boolean),
      ),
    ].slice(0, MODELS_MAX),
    mapping: textsIn(objectIn(row.model_mapping)),
    priority: Number(row.priority ?? 0) || 0,
    weight: weight > 0 ? Math.round(weight) : undefined,
  }
}

function slug(name: unknown): string {
  return plain(name, 60)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[^a-z0-9]+|(?<![^a-z0-9])[^a-z0-9]+$/g, '')
}

/** new-api's base address lacks the path of the vendor's API, which is taken from the preset. */
function addressOf(base: unknown, type: number, preset: Preset | undefined): string | undefined {
  const usual = preset && Object.keys(preset.variables).length === 0 ? preset.vendor.baseUrl : undefined
  if (isUnset(base)) return usual
  const given = plain(base, 500).replace(/(?<!\/)\/+$/, '')
  if (!/^https?:\/\//.test(given) || !URL.canParse(given)) return undefined
  if (!preset && !COMPATIBLE.has(type)) return undefined
  // The full address of one endpoint, possibly with the model's name in it; only the usual chat endpoint is supported.
  if (type === CUSTOM && new URL(given).pathname !== '/') {
    const bare = given.replace(/\/chat\/completions$/, '')
    return bare === given && !/\/v\d+$/.test(given) ? undefined : bare
  }
  const path = pathOf(preset)
  return path === '' || given.endsWith(path) ? given : `${given}${path}`
}

/** The preset's path; `/v1` for a custom address. */
function pathOf(preset: Preset | undefined): string {
  const address = preset?.vendor.baseUrl.replaceAll(/\{\w+\}/g, 'x') ?? ''
  return URL.canParse(address) ? new URL(address).pathname.replace(/(?<!\/)\/+$/, '') : '/v1'
}

const KINDS: readonly (readonly [RegExp, KindName | undefined])[] = [
  [/embed|^bge-|^m3e/i, 'embedding'],
  [/image|dall-e|imagen|flux|^sd-/i, 'image'],
  [
    /rerank|moderation|tts|whisper|audio|speech|realtime|suno|^mj_|midjourney|sora|veo|kling|video|swap_face/i,
    undefined,
  ],
]

/** Guesses the kind from the name, because the database does not store it. */
function kindOf(name: string, preset: Preset | undefined): KindName | undefined {
  const facts = preset?.models[name]
  if (facts) return facts.type
  const known = KINDS.find(([pattern]) => pattern.test(name))
  return known ? known[1] : 'text'
}

interface Pricing {
  readonly tables: Tables
  /** The ratio of the default group. */
  readonly factor: number
  readonly perDollar: number
  readonly reading: Reading
  readonly at: string
}

/** A ratio of 1 means one quota unit per token; a price is in dollars per call. Undefined: the model has neither. */
function priceOf(
  name: string,
  type: KindName,
  { tables, factor, perDollar, reading, at }: Pricing,
): ChosenModel['pricing'] {
  const { say, creditsPerDollar } = reading
  // Ratios are per token; models sold by the second, the character or the call keep the list price.
  if (kindRow(type).priced.some(([usual]) => usual !== 'image' && !unitRow(usual).side)) return undefined
  const rate = (dollars: number) => {
    const credits = creditsOf(dollars * factor, creditsPerDollar)
    return credits === undefined || credits < 0n ? undefined : formatCredits(credits)
  }
  const [ratio, completion, cache, fixed] = [
    tables.ModelRatio[name],
    tables.CompletionRatio[name],
    tables.CacheRatio[name],
    tables.ModelPrice[name],
  ].map((value) => (typeof value === 'number' && value >= 0 ? value : undefined))
  if (fixed !== undefined && type === 'image') {
    const image = rate(fixed)
    return image === undefined ? undefined : { unit: 'credits', tiers: [{ image }] }
  }
  if (fixed !== undefined) say(at, 'changed', 'It has one price for each call there; here tokens have prices.')
  const input = ratio === undefined ? undefined : rate((ratio * 1_000_000) / perDollar)
  if (ratio === undefined || input === undefined) return undefined
  const million = (ratio * 1_000_000) / perDollar
  if (completion === undefined && type === 'text')
    say(
      at,
      'changed',
      'There is no completion ratio for it in the database: output is sold at the price of input. Check it.',
    )
  const [output, cachedInput] = [
    type === 'embedding' ? undefined : rate(million * (completion ?? 1)),
    cache === undefined ? undefined : rate(million * cache),
  ]
  return {
    unit: 'credits',
    tiers: [
      { input, ...(cachedInput === undefined ? {} : { cachedInput }), ...(output === undefined ? {} : { output }) },
    ],
  }
}

function sayOptions({ options }: NewApiRows, tables: Tables, say: Say): void {
  for (const [group, ratio] of Object.entries(tables.GroupRatio))
    if (group !== 'default')
      say(
        `options.GroupRatio.${plain(group, 40)}`,
        'left',
        `Prices are the same for all here; theirs were × ${plain(ratio, 20)}.`,
      )
  for (const name of Object.keys(options))
    if (!READ_OPTIONS.has(name)) say(`options.${plain(name, 60)}`, 'left', 'It has no counterpart here.')
}

const JSON_CHARS_MAX = 4_000_000

function objectIn(text: unknown): Readonly<Record<string, unknown>> {
  if (typeof text !== 'string' || text.length > JSON_CHARS_MAX) return {}
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

function textsIn(value: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, text]) => (typeof text === 'string' && text !== '' ? [[name, text]] : [])),
  )
}

// Reads users and tokens of new-api's database as accounts and keys. Its quota becomes the balance.

const ENABLED = 1
const PREFIX = 'sk-'

type Options = Omit<AccountOptions, 'balance'> & { readonly placement: Pick<Placement, 'uidOf'> }

interface AccountReading {
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

function accountOf(
  user: ForeignRow,
  tokens: readonly ForeignRow[],
  reading: AccountReading,
): PlannedAccount | undefined {
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
    say(`${at}.group`, 'left', 'There are no groups here; keys list their models, and prices are the same for all.')
  if (!isUnset(user.email)) say(`${at}.email`, 'left', 'People are invited: tollgate members invite <account> <email>')
  return {
    at,
    credits,
    limits: {},
    name: plain(user.display_name) || name,
    reference: referenceOf('new-api', options.source, 'user', id),
    note: 'opening balance from new-api: the quota that was left',
    keys: tokens.flatMap((token) => keyOf(token, { name, group: groupOf(token, user) }, reading) ?? []),
  }
}

function balanceOf(quota: unknown, { perDollar, options }: AccountReading): Credits {
  const credits = creditsOf(Number(quota ?? 0) / perDollar, options.creditsPerDollar) ?? 0n
  return credits > 0n ? credits : 0n
}

/** The token's own group, or its user's. */
function groupOf(token: ForeignRow, user: ForeignRow): string {
  const named = [token.group, user.group].find((group) => !isUnset(group))
  return named === undefined ? 'default' : String(named)
}

function keyOf(
  token: ForeignRow,
  user: { readonly name: string; readonly group: string },
  reading: AccountReading,
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
  say(at, 'taken', `Imported by its hash; callers keep using it.${words}`)
  const known = { sha256: hash('sha256', PREFIX + value, 'hex'), last4: value.slice(-4) }
  warnShort(at, known, say, value)
  return {
    at,
    limits,
    models,
    ipRanges,
    name: plain(token.name) || `token ${plain(token.id)}`,
    ...known,
    expiresAt: expiresMs < 0 ? null : new Date(Math.min(expiresMs, LATEST_MS)).toISOString(),
  }
}

/** Later than any clock, and still a year of four digits. */
const LATEST_MS = Date.UTC(9999, 0)

/** SQLite has no booleans. */
const isTrue = (value: unknown) => value === true || value === 1

/** Null: all models. */
function modelsOf(token: ForeignRow, at: string, { models, options, say }: AccountReading): readonly string[] | null {
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

/** The models of the channels that the group can use; null: it can use all channels. */
function modelsOfGroup(group: string, { models, channels, options }: AccountReading): readonly string[] | null {
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

/** Null: no restriction; undefined: the text cannot be parsed. */
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
