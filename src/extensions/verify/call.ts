// The rules for one transfer and the usage row with the same id.
import { type Catalog, findProduct, type Product } from '../../catalog/store.ts'
import { type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { timeOfId } from '../../kernel/world.ts'
import { BYOK } from '../../ledger/operation.ts'
import { movement } from '../../ledger/views.ts'
import { type Attributes, type ChargeLine, type CostBasis, chargeOf, costAgain, sumOf } from '../../meter/charge.ts'
import { feePricing, type Pricing, scaled } from '../../meter/price.ts'
import type { Usage } from '../../meter/usage.ts'
import { isGiven } from '../../reports/movements.ts'
import { judge } from './rules.ts'

export interface TransferRow {
  readonly id: string
  readonly kind: string
  readonly amount: bigint
  readonly loss: bigint
  readonly held: bigint
  readonly note: string | null
  readonly actor: string | null
  readonly at: Date
  /** Whether the transfer is in the chain. */
  readonly has_place: boolean
  readonly balance: bigint | null
  /** Whether it is in the archive too, and counted there. */
  readonly archived?: boolean | null
}

export interface UsageRow {
  readonly id: string
  readonly key_id: string
  readonly product: string
  readonly outcome: string
  readonly status: number
  readonly charged: bigint
  readonly loss: bigint
  readonly held: bigint
  readonly catalog_version: number
  readonly lines: ChargeLine[]
  readonly estimated: boolean
  readonly duration_ms: number
  readonly credential: string | null
  readonly endpoint: string
  readonly route: number
  readonly first_byte_ms: number
  readonly attributes: Attributes | null
  readonly cost: bigint | null
  readonly cost_basis: CostBasis | null
  readonly client: string
  readonly at: Date
}

export const LATE = '+late'
/** Tolerance for clock differences between processes and for the duration of a transaction. */
const CLOCKS_MS = 3_600_000
const KINDS: readonly string[] = movement.options

/**
 * Money that went back for credits which were spent already is a loss; money that came back after all makes up for it.
 */
const LOSING: readonly string[] = ['refund', 'purchase']

/** Of what a refund could not take, `held` is what running calls held. */
function claimableOf({ kind, loss }: TransferRow): bigint {
  return kind === 'refund' && loss > 0n ? loss : 0n
}

export function isOfCall({ kind }: TransferRow): boolean {
  return !isGiven(kind)
}

interface Moments {
  readonly nowMs: number
}

/** Rules for the transfer alone. */
export const judgeTransfer = judge<TransferRow, Moments>({
  'Transfer {id} is a "{kind}", which is nothing that moves money.': ({ kind }) => !KINDS.includes(kind),
  'Transfer {id} has a negative amount.': (row) =>
    row.amount < 0n || row.held < 0n || (row.loss < 0n && !(row.kind === 'refund' && row.loss === -row.amount)),
  'Transfer {id} is a {kind}, but has a loss or a hold.': (row) =>
    !isOfCall(row) && ((row.loss !== 0n && !LOSING.includes(row.kind)) || row.held > claimableOf(row)),
  'Transfer {id} has no place in the statement that it must have.': (row) => !row.has_place || row.balance === null,
  'Transfer {id} was written before its id was made.': ({ id, at }) => at.getTime() < timeOfId(id) - CLOCKS_MS,
  'Transfer {id} lies in the future.': ({ id, at }, { nowMs }) =>
    Math.max(at.getTime(), timeOfId(id)) > nowMs + CLOCKS_MS,
})

/** A transfer and its usage row are written by the same statement and must agree. */
export const judgePair = judge<TransferRow, UsageRow>({
  'Transfer {id} is {kind}, but its usage row says {of.outcome}.': (row, usage) => row.kind !== usage.outcome,
  'The charge of call {id} is {amount:credits} in the ledger and {of.charged:credits} in its usage row.': (
    row,
    usage,
  ) => row.amount !== usage.charged,
  'The loss of call {id} is {loss:credits} in the ledger and {of.loss:credits} in its usage row.': (row, usage) =>
    row.loss !== usage.loss,
  'The hold of call {id} is {held:credits} in the ledger and {of.held:credits} in its usage row.': (row, usage) =>
    row.held !== usage.held,
  'Call {id} was {kind}, but something was charged.': ({ kind }, { charged, loss }) =>
    kind !== 'settled' && charged + loss !== 0n,
  'Transfer {id} and its usage row were written at different times.': (row, usage) =>
    row.at.getTime() !== usage.at.getTime(),
})

/** `heldFor`: the amount held for the call; a late settlement has no hold of its own any more. */
export async function checkCharge(usage: UsageRow, heldFor: bigint, rates: RateCheck): Promise<string | undefined> {
  if (usage.outcome !== 'settled' && usage.cost !== null)
    return `Call ${usage.id} was ${usage.outcome}, but has a cost.`
  const checking =
    usage.outcome === 'settled'
      ? rates.check({ ...usage, charge: usage.charged + usage.loss, held: heldFor })
      : rates.knows(usage.catalog_version, usage.product)
  const wrong = checking instanceof Promise ? await checking : checking
  return wrong && `Call ${usage.id}: ${wrong}`
}

// Checks that a charge is the sum of its lines, at the rates of the catalog version that it names.

export interface ChargedCall {
  readonly product: string
  readonly catalog_version: number
  readonly lines: readonly ChargeLine[]
  readonly charge: Credits
  readonly held: Credits
  readonly estimated: boolean
  readonly endpoint: string
  /** Zero: a cached response. */
  readonly route: number
  /** Zero: no vendor answered. */
  readonly first_byte_ms: number
  /** The attributes of the request and its answer that decided the rates. */
  readonly attributes: Readonly<Record<string, string>> | null
  /** Which of several vendor credentials the call used, or that it used the account's own key. */
  readonly credential: string | null
  /**
   * The vendor's cost; null if its route has no cost. Undefined: the row is older than the stored inputs of the cost.
   */
  readonly cost: Credits | null | undefined
  readonly cost_basis: CostBasis | null
}

export type RateCheck = ReturnType<typeof createRateCheck>

/** The price for such a call, and its route's cost: free, as in the catalog, or unknown. */
interface Rates {
  readonly pricing: Pricing
  readonly cost: Pricing | 'free' | undefined
}
/** The rates, or a sentence on what is wrong. */
type RatesOrProblem = Rates | string
/** The columns, besides the product, that select the price. */
type Kind = Pick<ChargedCall, 'endpoint' | 'route' | 'credential'>

export function createRateCheck(catalogs: { at(version: number): Promise<Catalog> }) {
  /** Cached by version, product and kind of call: millions of calls share a few prices. */
  const known = new Map<string, RatesOrProblem>()

  /** Synchronous if the price is cached. */
  function priceOf(version: number, product: string, kind?: Kind): RatesOrProblem | Promise<RatesOrProblem> {
    const isBatch = kind?.endpoint.startsWith(BATCH) === true
    const name = `${version} ${product} ${isBatch} ${kind?.route} ${kind?.credential === BYOK}`
    return (
      known.get(name) ??
      readPrice(version, product, kind).then((price) => {
        known.set(name, price)
        return price
      })
    )
  }

  async function readPrice(version: number, product: string, kind?: Kind): Promise<RatesOrProblem> {
    try {
      const catalog = await catalogs.at(version)
      const found = findProduct(catalog, product)
      if (!found) return `catalog version ${version} has no product "${product}", by which it was priced.`
      return kind ? ratesOf(found, catalog, kind) : { pricing: found.pricing, cost: undefined }
    } catch (error) {
      if (error instanceof Fault && error.kind === 'not_found')
        return `there is no catalog version ${version}, by which it was priced.`
      if (error instanceof Fault) throw error
      return `catalog version ${version}, by which it was priced, cannot be read.`
    }
  }

  return {
    /** Returns the problem as a sentence, or undefined. */
    check(call: ChargedCall): string | undefined | Promise<string | undefined> {
      const { product, catalog_version, lines, charge, held, estimated } = call
      let sum: Credits
      try {
        sum = sumOf(lines)
      } catch {
        return 'its arithmetic cannot be read.'
      }
      // An estimated charge is capped at the hold.
      const due = estimated && sum > held ? held : sum
      if (charge !== due)
        return `its arithmetic gives ${formatCredits(due)}, but ${formatCredits(charge)} were charged.`
      const rates = priceOf(catalog_version, product, call)
      return rates instanceof Promise ? rates.then((found) => compare(call, found)) : compare(call, rates)
    },
    /** For calls that were not charged and for open holds: checks that the version and the product exist. */
    knows(version: number, product: string): string | undefined | Promise<string | undefined> {
      const rates = priceOf(version, product)
      return rates instanceof Promise ? rates.then(wrongOf) : wrongOf(rates)
    },
  }
}

function wrongOf(rates: RatesOrProblem): string | undefined {
  return typeof rates === 'string' ? rates : undefined
}

/** Recomputes the lines from the call's price; the tier follows from quantities and attributes. */
function compare(call: ChargedCall, rates: RatesOrProblem): string | undefined {
  if (typeof rates === 'string') return rates
  const { product, catalog_version, lines, attributes } = call
  if (call.route === 0 && call.first_byte_ms > 0)
    return `it was charged as a cached response, but its vendor was heard after ${call.first_byte_ms} ms.`
  const usage: Usage = Object.fromEntries(lines.map(([unit, quantity]) => [unit, quantity]))
  let due: readonly ChargeLine[]
  try {
    due = chargeOf(rates.pricing, usage, attributes ?? {}).lines
  } catch {
    return `no tier of the price of "${product}" in catalog version ${catalog_version} is for such a call.`
  }
  const quantities = lines.filter(([, quantity]) => quantity !== 0)
  if (due.length === quantities.length && due.every(([unit, , rate], at) => isLine(quantities[at], unit, rate)))
    return compareCost(call, usage, rates.cost)
  const named = (all: readonly ChargeLine[]) => all.map(([unit, , rate]) => `${unit} ${rate}`).join(', ') || 'nothing'
  return `the price of "${product}" in catalog version ${catalog_version} for such a call has the rates ${named(due)}, but it was charged at ${named(lines)}.`
}

function compareCost(call: ChargedCall, usage: Usage, rates: Rates['cost']): string | undefined {
  const { product, catalog_version, route, cost, attributes, cost_basis: basis } = call
  if (cost === undefined) return undefined
  let due: Credits | null
  try {
    due = rates === undefined ? null : rates === 'free' ? 0n : costAgain(rates, { usage, attributes, basis })
  } catch {
    return `what decided its cost is not what route ${route} of "${product}" in catalog version ${catalog_version} has a cost for.`
  }
  if (cost === due) return undefined
  const amountWords = (amount: Credits | null) => (amount === null ? 'not known' : formatCredits(amount))
  return `its cost is ${amountWords(cost)}, but that of route ${route} of "${product}" in catalog version ${catalog_version} for such a call is ${amountWords(due)}.`
}

function isLine(line: ChargeLine | undefined, unit: string, rate: string): boolean {
  return line !== undefined && line[0] === unit && line[2] === rate
}

/** The prefix of the endpoint of a batch call. */
export const BATCH = 'batch:'

/** The rates for such a call: in a batch, from the response cache (route 0), or with the account's BYOK key. */
function ratesOf({ pricing, cache, ...product }: Product, { document }: Catalog, kind: Kind): RatesOrProblem {
  const { endpoint, route, credential } = kind
  const batchFactor = 'batchFactor' in product ? product.batchFactor : undefined
  const base = batchFactor !== undefined && endpoint.startsWith(BATCH) ? scaled(pricing, batchFactor) : pricing
  if (route === 0) {
    // Any model may be cached, because a key can turn the cache on; but batches never use it.
    if (endpoint.startsWith(BATCH)) return 'it was charged as a cached response, but there are none in batches.'
    return { pricing: cache?.pricing ?? base, cost: 'free' }
  }
  const given = product.routes[route - 1]
  if (!given) return `it was served by route ${route}, which its product does not have.`
  if (credential !== BYOK) return { pricing: base, cost: given.cost }
  const fee = product.byokFee ?? document.vendors[given.vendor]?.byokFee
  if (!fee) return 'it was charged as one by a BYOK key, for which its vendor takes none.'
  return { pricing: feePricing(base, fee), cost: 'free' }
}
