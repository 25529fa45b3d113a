// From usage to money: what an ending costs, and its one resolution.
import { type Credits, formatCredits } from '../kernel/credits.ts'
import type { Fault } from '../kernel/fault.ts'
import type { ReplayAnswer, Resolution } from '../ledger/operation.ts'
import { chargeOf, costOf, decidingOf, type VendorCost } from '../meter/charge.ts'
import { type Unit, USE_UNITS } from '../meter/kind.ts'
import { INPUT_UNITS, inputTokensOf, OUTPUT_UNITS, outputTokensOf, type Usage } from '../meter/usage.ts'
import type { PriceAttributes } from '../protocols/protocol.ts'
import type { Answered, Held, PathDeps } from './call.ts'

/** The most uses of one vendor tool in one answer; a larger report is treated as wrong. */
const USES_MOST = 1_000

export interface Settled {
  readonly status: number
  readonly outcome: string
  readonly charged: Credits
  readonly usage?: Usage
  /** Of the vendor that answered; none has answered where a response was cached. */
  readonly vendor?: string | undefined
  readonly model?: string | undefined
  readonly cost?: Credits | undefined
}

interface Ending {
  readonly usage: Usage
  readonly estimated: boolean
  readonly status: number
  /** The answer broke off, but the usage that the vendor reported is still charged. */
  readonly fault?: Fault | undefined
  readonly price?: PriceAttributes | undefined
  readonly replay?: ReplayAnswer | undefined
}

/** An estimate of the prompt and the delivered output, for endings without a vendor report. */
export function estimatedUsage(
  { paidRequest }: Pick<Held, 'paidRequest'>,
  outputTokens: number,
  promptUsage?: Usage,
): Usage {
  const { worst } = paidRequest
  if (paidRequest.likely) return paidRequest.likely(outputTokens)
  if (worst.input === undefined && worst.output === undefined) return worst
  return promptUsage
    ? { ...promptUsage, output: Math.max(promptUsage.output ?? 0, outputTokens) }
    : { input: paidRequest.inputTokensLikely ?? Math.ceil((worst.input ?? 0) / 2), output: outputTokens }
}

const noneOf = (units: readonly Unit[]): Usage => Object.fromEntries(units.map((unit) => [unit, 0]))

/**
 * The possible usage of the call. A report is bounded by what the model can read and write, not by the hold: usage beyond the hold is taken from the balance. A report beyond the bound is wrong, and is charged only up to the hold.
 */
export function possibleUsage({ paidRequest }: Pick<Held, 'paidRequest'>, usage: Usage): Usage {
  const { outputTokensMost = Number.POSITIVE_INFINITY, inputTokensMost = Number.POSITIVE_INFINITY } = paidRequest
  const isOver = (unit: Unit) => (usage[unit] ?? 0) > USES_MOST
  const output = outputTokensOf(usage)
  const isInputPossible = inputTokensOf(usage) <= inputTokensMost
  if (output <= outputTokensMost && isInputPossible && !USE_UNITS.some(isOver)) return usage
  const uses = Object.fromEntries(USE_UNITS.filter(isOver).map((unit) => [unit, paidRequest.worst[unit] ?? 0]))
  const written = output <= outputTokensMost ? {} : { ...noneOf(OUTPUT_UNITS), output: outputTokensMost }
  const read = isInputPossible ? {} : { ...noneOf(INPUT_UNITS), input: inputTokensOf(paidRequest.worst) }
  return { ...usage, ...uses, ...written, ...read }
}

/** With the uses of tools at the vendor that go with every answer, because the format does not count them. */
export function withUses({ paidRequest: { uses } }: Pick<Held, 'paidRequest'>, usage: Usage): Usage {
  return uses ? { ...usage, ...uses } : usage
}

function logImpossible({ requestId, paidRequest }: Held, usage: Usage, deps: PathDeps): void {
  deps.log.warn({ requestId, product: paidRequest.product, usage, anomaly: true }, 'vendor reported impossible usage')
  deps.monitor.impossible(paidRequest.product)
}

/** The request had an output cap that the hold covers, and the vendor billed more. */
function logOverrun(answered: Parameters<typeof settle>[0], loss: Credits, deps: PathDeps): void {
  const vendor = answered.attempted?.candidate.vendorName ?? ''
  const { requestId, paidRequest } = answered
  deps.log.warn(
    { requestId, product: paidRequest.product, vendor, loss: formatCredits(loss), anomaly: true },
    'vendor billed more than the output cap in the request',
  )
  deps.monitor.overrun(vendor, loss)
}

/** A BYOK fee may be per call; a call without a charge counts zero calls. */
function withCall(usage: Usage, { paidRequest: { worst } }: Held): Usage {
  return worst.call === undefined ? usage : { call: 1, ...usage }
}

/** The answer was cut because the balance or a limit covered no more output. */
export function wasCut({ paidRequest, admitted: { outputTokensCap, isCut } }: Held, usage: Usage): boolean {
  return (
    isCut === true &&
    outputTokensCap !== undefined &&
    outputTokensOf(usage) >= outputTokensCap * (paidRequest.choices ?? 1)
  )
}

export async function settle(
  answered: Held & Partial<Pick<Answered, 'attempted'>>,
  ending: Ending,
  deps: PathDeps,
): Promise<Settled> {
  const reported = withUses(answered, ending.usage)
  const possible = possibleUsage(answered, reported)
  const isImpossible = possible !== reported
  if (isImpossible) logImpossible(answered, ending.usage, deps)
  const candidate = answered.attempted?.candidate
  const fee = candidate?.pricing
  const usage = fee ? withCall(possible, answered) : possible
  const { price } = answered.paidRequest
  const attributes = ending.price ? { ...price, ...ending.price } : price
  const pricing = fee ?? answered.product.pricing
  const charge = chargeOf(pricing, usage, attributes)
  const deciding = decidingOf(pricing, attributes)
  // Calls by a BYOK key and cached responses cost the gateway nothing at the vendor.
  const cost =
    fee || !candidate ? FREE : costOf(candidate.cost, usage, attributes, { lines: charge.lines, attributes: deciding })
  // An estimate, also one that replaces an impossible report, is never above the hold.
  const estimated = ending.estimated || isImpossible
  const amount = estimated && charge.amount > answered.admitted.held ? answered.admitted.held : charge.amount
  if (wasCut(answered, usage)) answered.seen.cutAt(answered.admitted.outputTokensCap ?? 0)
  const owed = { amount, lines: charge.lines, estimated, usage, attempted: answered.attempted, cost }
  const resolution = resolutionOf(answered, ending, deps, owed)
  const resolved = await deps.ledger.resolve({
    ...resolution,
    ...(ending.replay ? { replay: ending.replay } : {}),
    ...(deciding ? { attributes: deciding } : {}),
  })
  if (answered.attempted && answered.paidRequest.stream && !estimated) noteSpeed(answered.attempted, usage, deps)
  if (charge.amount > answered.admitted.held && !estimated) logOverrun(answered, resolved.loss, deps)
  return {
    ...{ status: ending.status, outcome: 'settled', charged: resolved.paid, usage, cost: cost?.amount },
    ...{ vendor: candidate?.vendorName, model: candidate?.target.model },
  }
}

/** For callers who want the vendor that writes fastest. */
function noteSpeed({ candidate, startMs, firstByteMs }: Answered['attempted'], usage: Usage, deps: PathDeps): void {
  deps.vendors.wrote(candidate.vendorName, outputTokensOf(usage), deps.world.elapsedMs() - startMs - firstByteMs)
}

export async function release(held: Held, ending: Pick<Ending, 'status' | 'fault'>, deps: PathDeps): Promise<void> {
  try {
    // A separately reserved hold may have become a job although the answer to that was lost.
    await deps.ledger.resolve({ ...resolutionOf(held, ending, deps), givenUp: held.isApart === true })
  } catch (error) {
    // The ledger keeps retrying; the caller gets the original fault.
    deps.log.error({ requestId: held.requestId, error }, 'hold could not be released')
  }
}

interface Owed {
  readonly amount: Credits
  readonly lines: Resolution['lines']
  readonly estimated: boolean
  readonly usage: Usage
  readonly attempted: Answered['attempted'] | undefined
  readonly cost: VendorCost | undefined
}

const FREE: VendorCost = { amount: 0n, basis: undefined }

/** Without a charge, the hold is released. */
function resolutionOf(
  held: Held,
  { status, fault }: Pick<Ending, 'status' | 'fault'>,
  deps: PathDeps,
  owed?: Owed,
): Resolution {
  const usage = owed?.usage
  const attemptLog = held.seen.attemptLog(fault)
  return {
    kind: owed ? 'settled' : 'released',
    id: held.admitted.id,
    account: held.principal.accountId,
    key: held.principal.keyId,
    product: held.paidRequest.product,
    catalogVersion: held.catalog.version,
    endpoint: held.endpoint,
    client: held.client,
    labels: held.labels,
    status,
    charge: owed?.amount ?? 0n,
    lines: owed?.lines ?? [],
    estimated: owed?.estimated ?? false,
    stream: held.paidRequest.stream,
    route: owed?.attempted?.candidate.number ?? 0,
    durationMs: deps.world.elapsedMs() - held.startedMs,
    firstByteMs: owed?.attempted?.firstByteMs ?? 0,
    inputTokens: usage ? inputTokensOf(usage) : 0,
    outputTokens: usage ? outputTokensOf(usage) : 0,
    attemptLog,
    idempotent: held.idempotency !== undefined,
    cost: owed?.cost?.amount,
    costBasis: owed?.cost?.basis,
    credential: owed?.attempted?.candidate.credential,
    vendor: owed?.attempted?.candidate.vendorName ?? attemptLog?.attempts.at(-1)?.vendor,
  }
}

/** An SSE comment with the cost, for the end of a stream. */
export function receiptComment({ charged }: Settled): string {
  return `: tollgate charge=${formatCredits(charged)}\n`
}

export function addReceipt(headers: Record<string, string>, { charged }: Settled): void {
  headers['x-tollgate-charge'] = formatCredits(charged)
}
