// From usage to money: what an ending costs, and its one resolution.
import { worstAt } from '../admission/admit.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import type { Fault } from '../kernel/fault.ts'
import type { ReplayAnswer, Resolution } from '../ledger/operation.ts'
import { type Attributes, chargeOf, costOf, decidingOf, type VendorCost } from '../meter/charge.ts'
import { UNIT_NAMES, type Unit, USE_UNITS, unitRow } from '../meter/kind.ts'
import { INPUT_UNITS, inputTokensOf, OUTPUT_UNITS, outputTokensOf, type Usage } from '../meter/usage.ts'
import type { PriceAttributes } from '../protocols/protocol.ts'
import { readRunCharge } from '../reports/figures.ts'
import type { Answered, Held, PathDeps } from './call.ts'

/** The most uses of one vendor tool in one answer; a larger report is treated as wrong. */
const USES_MOST = 1_000

/**
 * What the gateway measures itself before the call: seconds of sound, pages, searches. A report above that is charged
 * up to the hold.
 */
const MEASURED_UNITS = ['second', 'page', 'call'] as const

export interface Settled {
  readonly status: number
  readonly outcome: string
  readonly charged: Credits
  readonly usage?: Usage
  /** Of the vendor that answered; none has answered where a response was cached. */
  readonly vendor?: string | undefined
  readonly model?: string | undefined
  readonly cost?: Credits | undefined
  /** What the run of the call has cost so far, with this call. Absent: it belongs to none. */
  readonly runCharged?: Credits | undefined
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
 * The possible usage of the call. A report is bounded by what the model can read and write, not by the hold: usage
 * beyond the hold is taken from the balance. A report beyond the bound is wrong, and is charged only up to the hold.
 */
export function possibleUsage({ paidRequest }: Pick<Held, 'paidRequest'>, usage: Usage): Usage {
  const { outputTokensMost = Number.POSITIVE_INFINITY, inputTokensMost = Number.POSITIVE_INFINITY } = paidRequest
  const { worst, most = worst } = paidRequest
  const output = outputTokensOf(usage)
  const isInputPossible = inputTokensOf(usage) <= inputTokensMost
  const over: Unit[] = []
  for (const unit of USE_UNITS) if ((usage[unit] ?? 0) > USES_MOST) over.push(unit)
  for (const unit of MEASURED_UNITS) if ((usage[unit] ?? 0) > (most[unit] ?? Number.POSITIVE_INFINITY)) over.push(unit)
  if (output <= outputTokensMost && isInputPossible && over.length === 0) return usage
  const uses = Object.fromEntries(over.map((unit) => [unit, worst[unit] ?? 0]))
  const written = output <= outputTokensMost ? {} : { ...noneOf(OUTPUT_UNITS), output: outputTokensMost }
  const read = isInputPossible ? {} : { ...noneOf(INPUT_UNITS), input: inputTokensOf(worst) }
  return { ...usage, ...uses, ...written, ...read }
}

/** With the uses of tools at the vendor that go with every answer whose vendor does not count them. */
export function withUses({ paidRequest: { uses } }: Pick<Held, 'paidRequest'>, usage: Usage): Usage {
  return uses ? { ...uses, ...usage } : usage
}

/** What is reported above the bound is not charged, and told like what is charged above it. */
function logImpossible(held: Parameters<typeof settle>[0], usage: Usage, deps: PathDeps): void {
  const { requestId, paidRequest, seen } = held
  deps.log.warn({ requestId, product: paidRequest.product, usage, anomaly: true }, 'vendor reported impossible usage')
  deps.monitor.impossible(paidRequest.product, held.attempted?.candidate.vendorName ?? '')
  seen.aboveHold(`${whyAbove(held, usage, paidRequest.price)} It was charged up to what was held.`)
}

/**
 * Why a charge is above its hold: which quantities are larger than those that were held for, and what decided another
 * price.
 */
function whyAbove({ paidRequest, admitted }: Held, usage: Usage, attributes: PriceAttributes): string {
  const { price, outputOpen, choices = 1 } = paidRequest
  const worst = worstAt(paidRequest, admitted.usesCap)
  const output = outputOpen ? (admitted.outputTokensCap ?? 0) * choices : outputTokensOf(worst)
  const more = UNIT_NAMES.filter((unit) => !unitRow(unit).side && (usage[unit] ?? 0) > (worst[unit] ?? 0))
  const words = more.map((unit) => `${usage[unit]} of ${unit} for at most ${worst[unit] ?? 0}`)
  const compare = (side: string, used: number, most: number) =>
    used > most ? [`${used} ${side} tokens for at most ${most}`] : []
  words.push(...compare('input', inputTokensOf(usage), inputTokensOf(worst)))
  words.push(...compare('output', outputTokensOf(usage), output))
  for (const [name, value] of Object.entries(attributes)) if (price[name] !== value) words.push(`${name} ${value}`)
  return words.length > 0 ? `the vendor reports ${words.join(', ')}.` : 'its units have a higher rate than was held.'
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
  const reported = answered.paidRequest.uses ? withUses(answered, ending.usage) : ending.usage
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
  const rates = candidate?.cost
  const cost = fee || !candidate ? FREE : rates && costOf(rates, usage, attributes, { ...charge, attributes: deciding })
  // An estimate, also one that replaces an impossible report, is never above the hold.
  const estimated = ending.estimated || isImpossible
  const amount = estimated && charge.amount > answered.admitted.held ? answered.admitted.held : charge.amount
  if (amount > answered.admitted.held) answered.seen.aboveHold(whyAbove(answered, usage, attributes))
  const isCut = answered.admitted.isCut === true && wasCut(answered, usage)
  if (isCut) answered.seen.cutAt(answered.admitted.outputTokensCap ?? 0)
  if (answered.paidRequest.outputOpen && !estimated && ending.status < 300)
    deps.usualOutput.wrote(
      { key: answered.principal.keyId, product: answered.paidRequest.product },
      outputTokensOf(usage),
      isCut,
    )
  const owed = { amount, lines: charge.lines, estimated, usage, attempted: answered.attempted, cost, deciding }
  const resolved = await deps.ledger.resolve(resolutionOf(answered, ending, deps, owed))
  if (answered.attempted && answered.paidRequest.stream && !estimated) noteSpeed(answered.attempted, usage, deps)
  const run = answered.labels?.session
  return {
    status: ending.status,
    outcome: 'settled',
    charged: resolved.paid,
    usage,
    cost: cost?.amount,
    vendor: candidate?.vendorName,
    model: candidate?.target.model,
    runCharged: run === undefined ? undefined : await chargedOfRun(run, answered, deps),
  }
}

/** The call is charged by now: without an answer of the database, the caller gets theirs without this sum. */
function chargedOfRun(run: string, { principal, requestId }: Held, { database, log }: PathDeps) {
  return readRunCharge(database, principal.accountId, run).catch((error: unknown) => {
    log.warn({ requestId, error }, 'the cost of a run could not be read')
    return undefined
  })
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
  /** The attributes that decide the price. */
  readonly deciding: Attributes | undefined
}

const FREE: VendorCost = { amount: 0n, basis: undefined }

/** Without a charge, the hold is released. */
function resolutionOf(
  held: Held,
  { status, fault, replay }: Pick<Ending, 'status' | 'fault' | 'replay'>,
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
    replay,
    attributes: owed?.deciding,
    cost: owed?.cost?.amount,
    costBasis: owed?.cost?.basis,
    credential: owed?.attempted?.candidate.credential,
    vendor: owed?.attempted?.candidate.vendorName ?? attemptLog?.attempts.at(-1)?.vendor,
  }
}

/** An SSE comment with the cost, for the end of a stream. */
export function receiptComment({ charged, runCharged }: Settled): string {
  const run = runCharged === undefined ? '' : ` run-cost=${formatCredits(runCharged)}`
  return `: tollgate charge=${formatCredits(charged)}${run}\n`
}
