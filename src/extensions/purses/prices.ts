// What an account charges its customers: a markup on what it is charged itself, or prices of its own, by model. Each
// change is a new version, and a call keeps the version by which it was held. The database charges by the list
// (functions.sql); this reads it, and says what a call may need.
import * as z from 'zod'
import { type Catalog, findProduct } from '../../catalog/store.ts'
import type { By } from '../../database/audit.ts'
import { type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { type Credits, formatCredits, parseCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { type ChargeLine, countedUnits, MILLION, rateAt } from '../../meter/charge.ts'
import { UNIT_NAMES, type Unit, unitRow } from '../../meter/kind.ts'
import { type Pricing, tier } from '../../meter/price.ts'
import { INPUT_UNITS } from '../../meter/usage.ts'
import { amount, text } from '../../operator/resource.ts'
import { requireAccount } from './purses.ts'
import type { PricesView } from './views.ts'

const PERCENT_MAX = 10_000
const percent = z
  .union([z.string().max(20), z.number()])
  .refine((value) => {
    const parsed = parseCredits(value)
    return parsed !== undefined && parsed >= -100n * MILLION && parsed <= BigInt(PERCENT_MAX) * MILLION
  }, `must be a percentage from -100 to ${PERCENT_MAX}`)
  .refine((value) => (parseCredits(value) ?? 0n) % 100n === 0n, 'must have at most four decimals')
  .transform((value) => parseCredits(value) ?? 0n)

export const priceListInput = z.strictObject({
  markupPercent: percent
    .default(0n)
    .meta({ description: 'On what the account pays, for all other models', value: 'percent' }),
  models: z
    .array(
      z
        .strictObject({
          model: text(100),
          markupPercent: percent.optional(),
          prices: z
            .array(tier.omit({ when: true }))
            .min(1)
            .max(10)
            .optional(),
        })
        .refine(({ markupPercent, prices }) => markupPercent !== undefined || prices !== undefined, {
          error: 'must name "markupPercent" or "prices"',
        }),
    )
    .max(500)
    .default([])
    .meta({ description: 'By model; a name that ends in * stands for all that begin so, and the first one counts' }),
  volume: z
    .array(
      z.strictObject({
        from: amount.refine((value) => value > 0n, 'must be above 0'),
        discountPercent: percent.refine((value) => value > 0n && value <= 100n * MILLION, 'must be above 0, to 100'),
      }),
    )
    .max(10)
    .default([])
    .meta({ description: 'Discounts on calls of a purse that has paid so much for calls in this month (UTC)' }),
})
type PriceListInput = z.output<typeof priceListInput>

/** As it is stored: factors in millionths, rates as those of charges. */
export interface PriceList {
  readonly inputs: readonly string[]
  readonly rules: readonly Rule[]
  /** From what a purse has paid in the month on: the lowest first. Absent: no discounts. */
  readonly volume?: readonly VolumeTier[]
}
interface VolumeTier {
  readonly from: string
  readonly factor: string
}
interface Rule {
  readonly model: string
  readonly factor: string
  readonly tiers?: ReadonlyArray<{ readonly upTo?: number; readonly rates: Readonly<Record<string, string>> }>
}

const NO_LIST: PriceList = { inputs: INPUT_UNITS, rules: [] }

const factorOfPercent = (given: Credits) => String(MILLION + given / 100n)

function storedList({ markupPercent, models, volume }: PriceListInput): PriceList {
  const all = models.map(({ model, markupPercent: own = markupPercent, prices }): Rule => {
    const factor = factorOfPercent(own)
    if (!prices) return { model, factor }
    const tiers = prices.map((one) => ({
      ...(one.upTo === undefined ? {} : { upTo: one.upTo }),
      rates: Object.fromEntries(
        UNIT_NAMES.flatMap((unit) => {
          const rate = rateAt(one, unit)
          return rate === undefined ? [] : [[unit, String(rate)]]
        }),
      ),
    }))
    return { model, factor, tiers }
  })
  const rules = [...all, { model: '*', factor: factorOfPercent(markupPercent) }]
  const tiers = volume.map(({ from, discountPercent }) => ({
    from: String(from),
    factor: factorOfPercent(-discountPercent),
  }))
  return { inputs: INPUT_UNITS, rules, volume: tiers }
}

/** As it was given, with amounts as text. */
function shownInput({ markupPercent, models, volume }: PriceListInput): PriceListRow['given'] {
  return {
    markupPercent: formatCredits(markupPercent),
    volume: volume.map(({ from, discountPercent }) => ({
      from: formatCredits(from),
      discountPercent: formatCredits(discountPercent),
    })),
    models: models.map(({ model, markupPercent: own, prices }) => ({
      model,
      ...(own === undefined ? {} : { markupPercent: formatCredits(own) }),
      ...(prices && {
        prices: prices.map((one) =>
          Object.fromEntries(
            Object.entries(one).map(([name, value]) => [
              name,
              typeof value === 'bigint' ? formatCredits(value) : Number(value),
            ]),
          ),
        ),
      }),
    })),
  }
}

/** What is sold by pieces that its own price does not count would cost customers nothing. */
function checkList({ models, volume }: PriceListInput, catalog: Catalog): void {
  if (volume.some(({ from }, at) => from <= (volume[at - 1]?.from ?? 0n)))
    throw invalid('volume: each "from" must be above the one before it.', 'volume')
  for (const [at, { model, prices = [] }] of models.entries()) {
    if (prices.length > 0 && prices.at(-1)?.upTo !== undefined)
      throw invalid(`models.${at}.prices: the last one must have no "upTo".`, 'models')
    if (model.endsWith('*')) continue
    const product = findProduct(catalog, model)
    if (!product) throw invalid(`models.${at}.model: there is no model ${JSON.stringify(model)}.`, 'models')
    const counted = countedUnits(product.pricing)
    const own = new Set(prices.flatMap((one) => UNIT_NAMES.filter((unit) => one[unit] !== undefined)))
    const unknown = [...own].find((unit) => !counted.has(unit) && !isDerived(unit, counted))
    if (unknown) throw invalid(`models.${at}.prices: calls of ${model} are not counted by "${unknown}" here.`, 'models')
  }
}

function isDerived(unit: Unit, counted: ReadonlySet<Unit>): boolean {
  const { side, times } = unitRow(unit)
  return side !== undefined && times !== undefined && counted.has(side)
}

const ruleFor = ({ rules }: PriceList, product: string): Rule | undefined =>
  rules.find(({ model }) => model === product || (model.endsWith('*') && product.startsWith(model.slice(0, -1))))

const upward = (amount: bigint, per: bigint) => (amount + per - 1n) / per

interface Charged {
  readonly product: string
  readonly lines: readonly ChargeLine[]
  readonly charged: Credits
  /** What the purse has paid in the month before it; 0: no discount. */
  readonly volume: Credits
}

/** What a call costs its customer. The same as `purse_charge`, in other words. */
export function purseCharge(list: PriceList, call: Charged): Credits {
  const factor = list.volume?.findLast(({ from }) => BigInt(from) <= call.volume)?.factor ?? MILLION
  return upward(priceOf(list, call) * BigInt(factor), MILLION)
}

function priceOf(list: PriceList, { product, lines, charged }: Charged): Credits {
  const rule = ruleFor(list, product)
  const factor = BigInt(rule?.factor ?? MILLION)
  if (!rule?.tiers) return upward(charged * factor, MILLION)
  const input = lines.reduce((sum, [unit, quantity]) => (list.inputs.includes(unit) ? sum + quantity : sum), 0)
  const rates = rule.tiers.find(({ upTo }) => upTo === undefined || upTo >= input)?.rates ?? {}
  let total = 0n
  for (const [unit, quantity, rate] of lines)
    total += BigInt(quantity) * BigInt(rates[unit] ?? upward(BigInt(rate) * factor, MILLION))
  return upward(total, MILLION)
}

/** What a purse holds for each credit that its account holds, in millionths, and at least. */
export interface Need {
  readonly factor: bigint
  readonly least: Credits
}

/** What a purse holds while its account holds so much. The same as `purse_need`. */
export function purseNeed({ factor, least }: Need, amount: Credits): Credits {
  const needed = upward(amount * factor, MILLION)
  return needed > least ? needed : least
}

/**
 * The most that a customer can pay for each credit of the account: unit by unit, because nobody knows yet which are
 * used.
 */
export function needOf(list: PriceList, product: string, catalog: Catalog, tokens: number): Need {
  const rule = ruleFor(list, product)
  const plain = { factor: BigInt(rule?.factor ?? MILLION), least: 0n }
  const pricing = rule?.tiers && findProduct(catalog, product)?.pricing
  if (!rule?.tiers || !pricing) return plain
  let factor = 0n
  let least = 0n
  for (const unit of UNIT_NAMES) {
    // Cached input is held for as plain input.
    const paid = leastRate(pricing, unit === 'cachedInput' ? 'input' : unit)
    if (paid === undefined) continue
    const own = rule.tiers.map(({ rates }) => BigInt(rates[unit] ?? upward(paid * plain.factor, MILLION)))
    const most = own.reduce((high, one) => (one > high ? one : high), 0n)
    if (paid > 0n) {
      const ratio = upward(most * MILLION, paid)
      if (ratio > factor) factor = ratio
    } else least += upward(most * (unitRow(unit).side ? BigInt(tokens) : 1n), MILLION)
  }
  return { factor, least }
}

/** The lowest that the account may pay for a unit. */
function leastRate(pricing: Pricing, unit: Unit): bigint | undefined {
  let lowest = MILLION
  for (const values of Object.values(pricing.multipliers ?? {}))
    lowest = (lowest * Object.values(values).reduce((low, one) => (one < low ? one : low), MILLION)) / MILLION
  const all = pricing.tiers.flatMap((one) => rateAt(one, unit, lowest) ?? [])
  return all.length === 0 ? undefined : all.reduce((low, one) => (one < low ? one : low))
}

export interface Versioned {
  readonly version: number
  readonly list: PriceList
}

interface PriceListRow {
  readonly version: number
  readonly given: Pick<PricesView, 'markupPercent' | 'models' | 'volume'>
  readonly list: PriceList
  readonly actor: string
  readonly created_at: Date
}

const FRESH_MS = 2_000
const ACCOUNTS_MAX = 10_000

interface ListDeps extends Pick<CoreParts, 'database' | 'world' | 'audit'> {
  readonly catalog: { readonly current: Catalog }
}

export type PurseLists = ReturnType<typeof createPurseLists>

export function createPurseLists({ database, world, catalog, audit }: ListDeps) {
  const known = new Map<string, { readonly readMs: number; readonly list: Promise<Versioned> }>()

  async function read(account: string): Promise<Versioned> {
    const [row] = await database.query<PriceListRow>(LAST, [account])
    return { version: row?.version ?? 0, list: row?.list ?? NO_LIST }
  }

  return {
    /** That by which calls are held now: of a few seconds ago at most. */
    current(account: string): Promise<Versioned> {
      const kept = known.get(account)
      if (kept && world.elapsedMs() - kept.readMs < FRESH_MS) return kept.list
      const list = read(account)
      known.delete(account)
      known.set(account, { readMs: world.elapsedMs(), list })
      // Whoever asks next tries again.
      list.catch(() => known.delete(account))
      const [oldest] = known.keys()
      if (known.size > ACCOUNTS_MAX && oldest !== undefined) known.delete(oldest)
      return list
    },
    at: readList,
    view: (account: string): Promise<PricesView> => view(database, account),
    async set(account: string, input: PriceListInput, by: By): Promise<PricesView> {
      checkList(input, catalog.current)
      const given = shownInput(input)
      const made = await database.transaction(async (tx) => {
        await requireAccount(tx, account)
        const before = await view(tx, account)
        const values = [account, JSON.stringify(given), JSON.stringify(storedList(input)), by.actor]
        const [row] = await tx.query<PriceListRow>(ADD, values)
        if (!row) throw new Fault('conflict', { message: 'The price list was changed at the same moment: look at it.' })
        await audit.write(tx, by, {
          action: 'purse-prices.set',
          object: account,
          before: told(before),
          after: told(viewPrices(row)),
        })
        return row
      })
      known.delete(account)
      return viewPrices(made)
    },
  }
}

async function view(on: Queryable, account: string): Promise<PricesView> {
  const [row] = await on.query<PriceListRow>(LAST, [account])
  return row
    ? viewPrices(row)
    : { version: 0, markupPercent: '0', models: [], volume: [], actor: null, createdAt: null }
}

/** For the audit log: what each model costs, in a line. */
const told = ({ version, markupPercent, models, volume }: PricesView) => ({
  version,
  markupPercent,
  volume: volume.map(({ from, discountPercent }) => `from ${from}: ${discountPercent} % less`),
  models: models.map(({ model, markupPercent: own, prices = [] }) =>
    [model, ...(own === undefined ? [] : [`${own} %`]), ...prices.map((one) => JSON.stringify(one))].join(' '),
  ),
})

export async function readList(on: Queryable, account: string, version: number): Promise<PriceList> {
  const [row] = version === 0 ? [] : await on.query<PriceListRow>(AT, [account, version])
  return row?.list ?? NO_LIST
}

const viewPrices = ({ version, given, actor, created_at }: PriceListRow): PricesView => ({
  version,
  ...given,
  actor,
  createdAt: created_at.toISOString(),
})

const COLUMNS = 'version, given, list, actor, created_at'
const LAST = sql('purse_prices_last')`
  select ${COLUMNS} from purse_prices where account_id = $1 order by version desc limit 1`
const AT = sql('purse_prices_at')`select ${COLUMNS} from purse_prices where account_id = $1 and version = $2`
const ADD = sql('purse_prices_add')`insert into purse_prices (account_id, version, given, list, actor)
   select $1, coalesce(max(version), 0) + 1, $2, $3, $4 from purse_prices where account_id = $1
   on conflict (account_id, version) do nothing returning ${COLUMNS}`
