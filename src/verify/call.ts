// What must be true of one movement and the usage row of the same id.
import { formatCredits } from '../kernel/credits.ts'
import { timeOfId } from '../kernel/world.ts'
import { movement } from '../ledger/views.ts'
import type { Attributes, ChargeLine, CostBasis } from '../meter/charge.ts'
import { movedBy } from '../reports/movements.ts'
import type { RateCheck } from './rate-check.ts'

export interface TransferRow {
  readonly id: string
  readonly kind: string
  readonly amount: bigint
  readonly loss: bigint
  readonly held: bigint
  readonly note: string | null
  readonly actor: string | null
  readonly at: Date
  /** Whether it is in the chain. */
  readonly has_place: boolean
  readonly balance: bigint | null
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
/** Clocks of processes may be wrong by so much, and a transaction takes a while. */
const CLOCKS_MS = 3_600_000
const KINDS: readonly string[] = movement.options

export function isOfCall({ kind }: TransferRow): boolean {
  return kind !== 'grant' && kind !== 'takeback'
}

/** What the transfer alone says. `chainedMs`: from when on those that moved nothing have a place in the chain too. */
export function* checkTransfer(
  row: TransferRow,
  { nowMs, chainedMs }: { readonly nowMs: number; readonly chainedMs: number },
): Generator<string> {
  const { id, kind, at } = row
  if (!KINDS.includes(kind)) yield `Transfer ${id} is a "${kind}", which is nothing that moves money.`
  if (row.amount < 0n || row.loss < 0n || row.held < 0n) yield `Transfer ${id} has a negative amount.`
  if (!isOfCall(row) && (row.loss !== 0n || row.held !== 0n))
    yield `Transfer ${id} is a ${kind}, but has a loss or a hold.`
  const hasPlace = row.has_place
  if (hasPlace !== (row.balance !== null) || (!hasPlace && (movedBy(row) !== 0n || at.getTime() >= chainedMs)))
    yield `Transfer ${id} has no place in the statement that it must have.`
  const madeMs = timeOfId(id)
  if (at.getTime() < madeMs - CLOCKS_MS) yield `Transfer ${id} was written before its id was made.`
  if (Math.max(at.getTime(), madeMs) > nowMs + CLOCKS_MS) yield `Transfer ${id} lies in the future.`
}

/** A resolution and the usage row that its statement wrote say the same. */
export function* checkPair(row: TransferRow, usage: UsageRow): Generator<string> {
  const { id, kind } = row
  if (!isOfCall(row)) {
    yield `Transfer ${id} is a ${kind} but has a usage row.`
    return
  }
  if (kind !== usage.outcome) yield `Transfer ${id} is ${kind}, but its usage row says ${usage.outcome}.`
  const amounts = [
    ['charge', row.amount, usage.charged],
    ['loss', row.loss, usage.loss],
    ['hold', row.held, usage.held],
  ] as const
  for (const [what, moved, used] of amounts)
    if (moved !== used)
      yield `The ${what} of call ${id} is ${formatCredits(moved)} in the ledger and ${formatCredits(used)} in its usage row.`
  if (kind !== 'settled' && usage.charged + usage.loss !== 0n)
    yield `Call ${id} was ${kind}, but something was charged.`
  if (row.at.getTime() !== usage.at.getTime()) yield `Transfer ${id} and its usage row were written at different times.`
}

/** `heldFor`: what was held for the call; a late settlement has no hold of its own any more. */
export async function checkCharge(
  usage: UsageRow,
  { heldFor, chainedMs }: { readonly heldFor: bigint; readonly chainedMs: number },
  rates: RateCheck,
): Promise<string | undefined> {
  if (usage.outcome !== 'settled' && usage.cost !== null)
    return `Call ${usage.id} was ${usage.outcome}, but has a cost.`
  const cost = usage.at.getTime() >= chainedMs ? usage.cost : undefined
  const checking =
    usage.outcome === 'settled'
      ? rates.check({ ...usage, charge: usage.charged + usage.loss, held: heldFor, cost })
      : rates.knows(usage.catalog_version, usage.product)
  const wrong = checking instanceof Promise ? await checking : checking
  return wrong && `Call ${usage.id}: ${wrong}`
}
