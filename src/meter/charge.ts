// Usage × price → credits, rounded up once.
import { CREDITS_MAX, type Credits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { UNIT_NAMES, type Unit, unitRow } from './kind.ts'
import type { PriceTier, Pricing } from './price.ts'
import { inputTokensOf, type Usage } from './usage.ts'

export const MILLION = 1_000_000n

/** [unit, quantity, rate per million units, in micro-credits]: a charge is the sum of quantity × rate ÷ a million. */
export type ChargeLine = readonly [unit: Unit, quantity: number, ratePerMillion: string]

export interface Charge {
  readonly amount: Credits
  readonly lines: readonly ChargeLine[]
}

export type Attributes = Readonly<Record<string, string>>

/** The first tier that matches the call's attributes and the size of its prompt. */
function tierOf(pricing: Pricing, usage: Usage, attributes: Attributes): PriceTier {
  for (const tier of pricing.tiers) {
    if (tier.upTo !== undefined && inputTokensOf(usage) > tier.upTo) continue
    if (tier.when && !Object.entries(tier.when).every(([name, value]) => attributes[name] === value)) continue
    return tier
  }
  throw new Fault('internal', { internal: { why: 'no price tier matches', attributes } })
}

/** The product of all multipliers that apply, in millionths. */
export function factorOf({ multipliers }: Pricing, attributes: Attributes): bigint {
  let factor = MILLION
  if (!multipliers) return factor
  for (const [name, values] of Object.entries(multipliers)) {
    const value = attributes[name]
    const by = value !== undefined && Object.hasOwn(values, value) ? values[value] : undefined
    if (by !== undefined) factor = (factor * by) / MILLION
  }
  return factor
}

/** The rate of one unit for such a call, in micro-credits per million. */
export function rateFor(unit: Unit, pricing: Pricing, usage: Usage, attributes: Attributes): bigint | undefined {
  return rateAt(tierOf(pricing, usage, attributes), unit, factorOf(pricing, attributes))
}

/** The tier's rate of a unit, in micro-credits per million. */
export function rateAt(tier: PriceTier, unit: Unit, factor = MILLION): bigint | undefined {
  const rate = rateOf(tier, unit)
  return rate === undefined ? undefined : times(rate, factor)
}

/** Rounds up to a whole micro-credit per million, the precision of a charge line. */
function times(rate: bigint, factor: bigint): bigint {
  return factor === MILLION ? rate : (rate * factor + MILLION - 1n) / MILLION
}

export function chargeOf(pricing: Pricing, usage: Usage, attributes: Attributes = {}): Charge {
  const factor = pricing.multipliers ? factorOf(pricing, attributes) : MILLION
  return chargeAt(tierOf(pricing, usage, attributes), factor, usage)
}

/** At the rates of one tier, times a factor in millionths. */
export function chargeAt(tier: PriceTier, factor: bigint, usage: Usage): Charge {
  const lines: ChargeLine[] = []
  let total = 0n
  for (const { unit, rate: base, shown } of rates.get(tier) ?? ratesOf(tier)) {
    const quantity = usage[unit]
    if (!quantity) continue
    const rate = factor === MILLION ? base : times(base, factor)
    total += BigInt(quantity) * rate
    lines.push([unit, quantity, rate === base ? shown : rate.toString()])
  }
  return { amount: rounded(total), lines }
}

/** The attributes of a call that influence its price; undefined if there are none. */
export function decidingOf(pricing: Pricing, attributes: Attributes = {}): Attributes | undefined {
  const names = deciders.get(pricing) ?? knownBy(pricing)
  if (names.size === 0) return undefined
  const deciding = Object.entries(attributes).filter(([name]) => names.has(name))
  return deciding.length === 0 ? undefined : Object.fromEntries(deciding)
}

/** Computed once per price, like the rates. */
const deciders = new WeakMap<Pricing, ReadonlySet<string>>()

function knownBy(pricing: Pricing): ReadonlySet<string> {
  const { tiers, multipliers = {} } = pricing
  const names = new Set([...Object.keys(multipliers), ...tiers.flatMap(({ when = {} }) => Object.keys(when))])
  deciders.set(pricing, names)
  return names
}

interface Rate {
  readonly unit: Unit
  readonly rate: bigint
  readonly shown: string
}

/** Computed once per tier, because every call needs them. */
const rates = new WeakMap<PriceTier, readonly Rate[]>()

function ratesOf(tier: PriceTier): readonly Rate[] {
  const found: Rate[] = []
  for (const unit of UNIT_NAMES) {
    const rate = rateOf(tier, unit)
    if (rate !== undefined) found.push({ unit, rate, shown: rate.toString() })
  }
  rates.set(tier, found)
  return found
}

/**
 * The inputs of the vendor cost that the price does not have: quantities without a charge line, and attributes that
 * differ.
 */
export interface CostBasis {
  readonly units?: Usage
  readonly attributes?: Attributes
}

/** The vendor's cost of a call and its inputs; undefined if the cost is not known. */
export interface VendorCost {
  readonly amount: Credits
  readonly basis: CostBasis | undefined
}

/** `priced`: the inputs of the price, which the usage row stores. */
export function costOf(
  cost: Pricing | undefined,
  usage: Usage,
  attributes: Attributes | undefined,
  priced: { readonly lines: readonly ChargeLine[]; readonly attributes?: Attributes | undefined },
): VendorCost | undefined {
  if (!cost) return undefined
  const { amount } = chargeOf(cost, usage, attributes)
  const known = new Set<string>(priced.lines.map(([unit]) => unit))
  const units = Object.entries(usage).filter(([unit, quantity]) => quantity && !known.has(unit))
  const deciding = decidingOf(cost, attributes) ?? {}
  const isSame = JSON.stringify(deciding) === JSON.stringify(decidingOf(cost, priced.attributes) ?? {})
  if (units.length === 0 && isSame) return { amount, basis: undefined }
  const others = units.length === 0 ? {} : { units: Object.fromEntries(units) as Usage } // A subset of usage's own members.
  return { amount, basis: isSame ? others : { ...others, attributes: deciding } }
}

/** Recomputes the cost from a usage row. */
export function costAgain(
  cost: Pricing,
  kept: { readonly usage: Usage; readonly attributes: Attributes | null; readonly basis: CostBasis | null },
): Credits {
  const { usage, basis } = kept
  return chargeOf(cost, basis?.units ? { ...usage, ...basis.units } : usage, basis?.attributes ?? kept.attributes ?? {})
    .amount
}

export function sumOf(lines: readonly ChargeLine[]): Credits {
  let total = 0n
  for (const [, quantity, rate] of lines) total += BigInt(quantity) * BigInt(rate)
  return rounded(total)
}

function rounded(total: bigint): Credits {
  const amount = (total + MILLION - 1n) / MILLION // An amount is rounded up once, here.
  return amount > CREDITS_MAX ? CREDITS_MAX : amount
}

/**
 * The tier's rate of a unit. Without one, some units cost a multiple of plain tokens, as the unit table says. Other
 * units without a rate (tokens of an image that is priced by the piece) cost nothing; the catalog's validation ensures
 * that every required unit has a rate.
 */
function rateOf(tier: PriceTier, unit: Unit): bigint | undefined {
  const { per, side, times } = unitRow(unit)
  const plain = side && times ? tier[side] : undefined
  const rate = tier[unit] ?? (plain === undefined || !times ? undefined : plain * times)
  return rate === undefined || per === 1_000_000 ? rate : rate * MILLION
}

/** Found once for each price, because every call asks. */
const unitsOf = new WeakMap<Pricing, ReadonlySet<Unit>>()

/** The units that a price names. */
export function countedUnits(pricing: Pricing): ReadonlySet<Unit> {
  let units = unitsOf.get(pricing)
  if (!units) {
    units = new Set(UNIT_NAMES.filter((unit) => pricing.tiers.some((tier) => tier[unit] !== undefined)))
    unitsOf.set(pricing, units)
  }
  return units
}
