// The last gate before a vendor: the durable hold, with every limit checked by the same statement.
import type { Catalog, Product } from '../catalog/store.ts'
import { type Database, SHORT_MS, sql } from '../database/database.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { singleFlight } from '../kernel/timers.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Limited, Reservation, Reserved, Short } from '../ledger/operation.ts'
import { type Bound, mostOf, rateMost } from '../meter/bounds.ts'
import type { Unit } from '../meter/kind.ts'
import { amountOf, limitWords, spanWords } from '../meter/limits.ts'
import type { Pricing } from '../meter/price.ts'
import { tokensOf, type Usage } from '../meter/usage.ts'
import type { PaidRequestFacts } from '../protocols/protocol.ts'
import type { ByokKeys, OwnUse } from '../upstream/credentials/byok-keys.ts'
import { accountInactive, type Principal } from './api-key.ts'
import type { Labels } from './labels.ts'

/** A request for one model, with that model's price. */
export interface Offered {
  readonly paidRequest: PaidRequestFacts
  readonly product: Product
  /** It may use BYOK keys of the account. */
  readonly own?: OwnUse | undefined
  /** The same request to fallback models, in the order to try them. The hold covers the most expensive one. */
  readonly fallbacks?: readonly Offered[] | undefined
}

export interface Application extends Offered {
  readonly requestId: string
  /** Its caller, who may leave while the call waits for credits. */
  readonly out?: { readonly signal: AbortSignal } | undefined
  readonly principal: Principal
  readonly catalog: Catalog
  /** The caller's own bound on what the call may cost. */
  readonly costMax?: Credits | undefined
  /** Held in addition: tokens that the gateway itself may add to the request. */
  readonly room?: Credits | undefined
  /** The hold is made first, and becomes a job later. */
  readonly isApart?: boolean | undefined
  /** The labels of the call, which select its budgets. */
  readonly labels?: Labels | undefined
  /** `keepsAll`: its answer is stored however large it is, because it is made again otherwise. */
  readonly idempotency?:
    | { readonly key: string; readonly requestHash: string; readonly keepsAll?: true | undefined }
    | undefined
}

export interface Admitted {
  readonly id: string
  readonly held: Credits
  readonly rate: { max: number; left: number } | null
  /**
   * Set if the caller gave no output limit: the output tokens that the hold covers, for each choice. The vendor gets it
   * as the cap.
   */
  readonly outputTokensCap?: number
  /**
   * The cap is below what the model could write: the balance or a limit allows no more, or earlier calls of the key
   * wrote much less.
   */
  readonly isCut?: boolean
  /** Set if tools run at the vendor: how often the hold covers them. The vendor gets it as the limit. */
  readonly usesCap?: number
}

interface Estimate {
  /** Held while it is there. */
  readonly want: Credits
  /** The least that is worth holding. */
  readonly floor: Credits
  /** The most that the call can cost: equal to `want`, unless the caller gave no output limit. */
  readonly most: Credits
}

/** A move takes seconds. */
const MOVING_SECONDS = 5

/** What a call may hold and cost. */
export function estimate({ paidRequest, product, own, fallbacks }: Offered): Estimate {
  if (!own && !fallbacks) return estimateAt(paidRequest, product.pricing)
  const all = pricesOf({ product, own }).map((pricing) => estimateAt(paidRequest, pricing))
  for (const fallback of fallbacks ?? []) all.push(estimate(fallback))
  const dearest = (part: keyof Estimate) => all.reduce((most, one) => (one[part] > most ? one[part] : most), 0n)
  return { want: dearest('want'), floor: dearest('floor'), most: dearest('most') }
}

/** Nothing is added beyond the caller's own maximum, because everything that is held may be spent on output. */
function withRoom({ want, floor, most }: Estimate, { room = 0n, costMax = want + room }: Application): Estimate {
  const left = costMax > want ? costMax - want : 0n
  const more = room < left ? room : left
  return { want: want + more, floor: floor + more, most: most + more }
}

const pricesOf = ({ product, own }: Pick<Offered, 'product' | 'own'>) => own?.prices ?? [product.pricing]

function estimateAt(paidRequest: PaidRequestFacts, pricing: Pricing): Estimate {
  const want = mostOf(pricing, paidRequest).amount
  const { worst, outputOpen, usesOpen } = paidRequest
  if (!outputOpen && !usesOpen) return { want, floor: want, most: want }
  const most = mostOf(pricing, { ...paidRequest, worst: worstAtMost(paidRequest) }).amount
  if (!outputOpen) return { want, floor: want, most }
  const { floorTokens, unit = 'output' } = outputOpen
  const least = Math.min(floorTokens + beyondLimit(paidRequest), worst[unit] ?? 0)
  return { want, floor: mostOf(pricing, withWorst(paidRequest, unit, least)).amount, most }
}

/** What of the worst case's output is billed beyond the limit that the vendor is told: a prediction. */
function beyondLimit({ worst, outputOpen }: PaidRequestFacts): number {
  const { reserveTokens, unit = 'output' } = outputOpen ?? {}
  return reserveTokens === undefined ? 0 : (worst[unit] ?? 0) - reserveTokens
}

/** What the call could use with any balance. */
export function worstAtMost(paidRequest: PaidRequestFacts): Usage {
  const { outputOpen, usesOpen } = paidRequest
  const worst = worstAt(paidRequest, usesOpen?.most)
  if (!outputOpen) return worst
  const { mostTokens, unit = 'output' } = outputOpen
  return { ...worst, [unit]: Math.max(mostTokens + beyondLimit(paidRequest), worst[unit] ?? 0) }
}

/** What the call can use if its vendor is told this many uses of its tools. */
export function worstAt({ worst, usesOpen }: PaidRequestFacts, usesCap = 1): Usage {
  if (!usesOpen || usesCap === 1) return worst
  const more: Record<string, number> = { ...worst }
  for (const [unit, each] of Object.entries(usesOpen.each)) more[unit] = (more[unit] ?? 0) + each * (usesCap - 1)
  return more
}

const withWorst = (bound: Bound, unit: Unit, quantity: number): Bound => ({
  ...bound,
  worst: { ...bound.worst, [unit]: quantity },
})

/** `req_<id>` outside, `<id>` in the ledger, whose ids all sort by time. */
const ID_AT = 'req_'.length

/** It could cost more than a call of its person may. */
interface Above {
  readonly outcome: 'above'
  readonly needed: Credits
}

interface Asking {
  readonly job: Reservation['job']
  /** Until this signal it waits for credits that running calls hold. */
  readonly waits: AbortSignal | undefined
}

const lesser = (a: Credits, b: Credits) => (a < b ? a : b)

/** The hold of a call, and of what it would be. */
async function reserve(application: Application, ledger: Ledger, { job, waits }: Asking) {
  const { paidRequest, principal, requestId, catalog, fallbacks = NONE } = application
  const { costMax, isApart } = application
  const dearest = estimate(application)
  const { want, floor, most } = application.room ? withRoom(dearest, application) : dearest
  const { callMax = most } = principal
  if (floor > callMax) return { application, id: '', floor, reserved: { outcome: 'above', needed: floor } as const }
  const id = requestId.slice(ID_AT)
  const { idempotency } = application
  const plain: Reservation = {
    id,
    account: principal.accountId,
    key: principal.keyId,
    product: paidRequest.product,
    products: fallbacks.length > 0 ? [application, ...fallbacks].map((one) => one.paidRequest.product) : undefined,
    catalogVersion: catalog.version,
    want: want < callMax ? want : callMax,
    floor,
    most: (paidRequest.outputOpen ?? paidRequest.usesOpen) && lesser(lesser(most, callMax), costMax ?? most),
    tokens: fallbacks.reduce(
      (sum, { paidRequest: { worst } }) => Math.max(sum, tokensOf(worst)),
      tokensOf(paidRequest.worst),
    ),
    labels: application.labels,
    firstKey: principal.firstKeyId,
    isApart,
  }
  const repeatable = idempotency ? { ...plain, idempotency } : plain
  const reservation = job ? { ...repeatable, job } : repeatable
  const reserved = await (job && isApart ? ledger.makeJob(reservation) : ledger.reserve(reservation, waits))
  return { application, id, floor, reserved }
}

/** With the tokens of its texts instead of their bytes; undefined if they cannot be counted. */
async function counted<T extends Offered>(offered: T): Promise<T | undefined> {
  const { paidRequest } = offered
  const less = await paidRequest.exact?.()
  if (!less) return undefined
  const fallbacks = await Promise.all((offered.fallbacks ?? []).map(async (one) => (await counted(one)) ?? one))
  const others = fallbacks.length > 0 ? { fallbacks } : {}
  return { ...offered, ...others, paidRequest: { ...paidRequest, worst: { ...paidRequest.worst, ...less } } }
}

/** Whether less input would fit: into the balance, or into a limit of credits or tokens. */
function isUnfit(reserved: Reserved | Above): boolean {
  if (reserved.outcome !== 'limited') return reserved.outcome === 'short' || reserved.outcome === 'above'
  return reserved.unit === 'credits' || reserved.unit === 'tokens'
}

/** Answers `replay` when an earlier call with the same idempotency key has its answer stored. */
export async function admit(
  asked: Application,
  ledger: Ledger,
  job?: Reservation['job'],
): Promise<Admitted | 'replay'> {
  const waits = asked.out?.signal
  // What can be counted waits for credits only when it is counted.
  const bounded = await reserve(asked, ledger, { job, waits: asked.paidRequest.exact ? undefined : waits })
  const isAgain = asked.paidRequest.exact && isUnfit(bounded.reserved)
  const { application, id, floor, reserved } = isAgain
    ? await reserve((await counted(asked)) ?? asked, ledger, { job, waits })
    : bounded
  const { paidRequest } = application
  switch (reserved.outcome) {
    case 'held': {
      const { amount: held, rate } = reserved
      const { outputOpen, choices = 1 } = paidRequest
      if (!outputOpen && !paidRequest.usesOpen) return { id, held, rate }
      const caps = capsOf(application, held)
      if (!outputOpen) return { id, held, rate, ...caps }
      const { modelTokens, mostTokens } = outputOpen
      return { id, held, rate, ...caps, isCut: (caps.outputTokensCap ?? 0) * choices < (modelTokens ?? mostTokens) }
    }
    case 'above':
      throw aboveFault(reserved.needed, asked.principal.callMax ?? 0n)
    case 'short':
      throw shortFault(floor, reserved)
    case 'limited':
      throw reserved.fault ?? limitFault(reserved)
    case 'idem_conflict':
      throw new Fault('conflict', { message: 'This Idempotency-Key was used with a different request.' })
    case 'idem_running':
      throw new Fault('conflict', {
        message: 'A request with this Idempotency-Key is still running.',
        retryAfterSeconds: 1,
      })
    case 'idem_replay':
      return 'replay'
    case 'blocked':
      throw accountInactive(reserved)
    case 'frozen':
      throw new Fault('unavailable', {
        message:
          'This account is being moved to another database, or has been, and accepts no calls here. Nothing was charged; try again shortly.',
        retryAfterSeconds: MOVING_SECONDS,
      })
  }
}

function aboveFault(needed: Credits, callMax: Credits): Fault {
  return new Fault('access_denied', {
    message: `This call could cost ${formatCredits(needed)} credits, and the settings of your team allow ${formatCredits(callMax)} for one call. Ask for less, or use a cheaper model.`,
    headers: { 'x-tollgate-limit': 'callMax', 'x-should-retry': 'false' },
  })
}

function shortFault(floor: Credits, { available, running }: Short): Fault {
  const needs = `this call needs ${formatCredits(floor)} credits, ${formatCredits(available)} are available`
  // For programs, which must not read messages.
  const headers = { 'x-tollgate-required': formatCredits(floor), 'x-tollgate-available': formatCredits(available) }
  if (!running) return new Fault('credits_short', { message: `Insufficient credit: ${needs}.`, headers })
  const [held, calls] = [formatCredits(running.held), running.calls === 1 ? '1 call' : `${running.calls} calls`]
  return new Fault('rate_limited', {
    message: `Credits are in use: ${needs}, and ${held} are held by ${calls} in progress. Try again in ${CROWDED_SECONDS} s.`,
    retryAfterSeconds: CROWDED_SECONDS,
    headers: { ...headers, 'x-tollgate-held': held },
  })
}

/** A call that waited in vain has waited for long already. */
const CROWDED_SECONDS = 1
const NONE: readonly Offered[] = []

/** What the hold covers of another model's answer. */
export function admittedFor(fallback: Offered, { outputTokensCap: _, usesCap: __, ...admitted }: Admitted): Admitted {
  return { ...admitted, ...capsOf(fallback, admitted.held) }
}

/** What the vendor is told. Uses come first, beside the reserve of output; what they leave is for more output. */
function capsOf(offered: Offered, held: Credits): Pick<Admitted, 'outputTokensCap' | 'usesCap'> {
  const { paidRequest } = offered
  const { outputOpen, usesOpen } = paidRequest
  if (!outputOpen && !usesOpen) return NO_CAPS
  const prices = pricesOf(offered)
  if (!usesOpen) return { outputTokensCap: coveredOutput(paidRequest, prices, held) }
  const usesCap = coveredUses(paidRequest, prices, held)
  if (!outputOpen) return { usesCap }
  const used = { ...paidRequest, worst: worstAt(paidRequest, usesCap) }
  return { usesCap, outputTokensCap: coveredOutput(used, prices, held) }
}

const NO_CAPS = {}

/** How many uses of the vendor's tools the held amount covers. */
function coveredUses(paidRequest: PaidRequestFacts, prices: readonly Pricing[], held: Credits): number {
  const most = paidRequest.usesOpen?.most ?? 1
  const isCovered = (uses: number) =>
    prices.every((pricing) => mostOf(pricing, { ...paidRequest, worst: worstAt(paidRequest, uses) }).amount <= held)
  let uses = 1
  while (uses < most && isCovered(uses + 1)) uses++
  return uses
}

const HAS_CREDITS = sql('account_has_credits', SHORT_MS)`select posted > 0 as has from account where id = $1`

/** Rejects an account that cannot pay for any call, before expensive work such as reading a large body. */
export function createCreditCheck(
  database: Pick<Database, 'query'>,
  byokKeys: Pick<ByokKeys, 'has'>,
): (account: string) => Promise<void> {
  const asking = singleFlight<boolean>()
  return async (account) => {
    if (byokKeys.has(account)) return
    const paidRequest = () =>
      database.query<{ has: boolean }>(HAS_CREDITS, [account]).then(([row]) => row?.has === true)
    if (!(await asking(account, paidRequest)))
      throw new Fault('credits_short', {
        message: 'Insufficient credit: this account has no credits, so no body of more than 64 KB is read.',
      })
  }
}

/**
 * How many output tokens of each choice the held amount covers besides the rest of the worst case, at the price that
 * applies.
 */
function coveredOutput(paidRequest: PaidRequestFacts, prices: readonly Pricing[], held: Credits): number {
  const { mostTokens = 0, unit = 'output' } = paidRequest.outputOpen ?? {}
  const beyond = beyondLimit(paidRequest)
  const most = Math.max(mostTokens, (paidRequest.worst[unit] ?? 0) - beyond)
  const tokens = prices.map((pricing) => {
    const rate = rateMost(unit, pricing, paidRequest)
    if (!rate) return most
    const rest = mostOf(pricing, withWorst(paidRequest, unit, beyond)).amount
    return Number(((held - rest) * 1_000_000n) / rate)
  })
  return Math.max(1, Math.floor(Math.min(most, ...tokens) / (paidRequest.choices ?? 1)))
}

/** SDK retries give up before such a budget has room again. */
const PATIENCE_SECONDS = 60

/** Which limit or budget, and when there is room again. */
function limitFault(refused: Limited): Fault {
  const { limit, unit, span, max, waitSeconds, scope } = refused
  if (scope !== undefined) return budgetFault(refused, scope)
  const isSpend = unit === 'credits'
  const allowed = amountOf(unit, BigInt(max)) + (isSpend ? ' credits' : '')
  return new Fault('rate_limited', {
    message: `Rate limit exceeded: ${allowed} ${limitWords(refused)}. Try again in ${waitSeconds} s.`,
    retryAfterSeconds: waitSeconds,
    headers: {
      'x-tollgate-limit': limit,
      ...(unit === 'requests' && span === 'minute' ? rateHeaders({ max: Number(max), left: 0 }, waitSeconds) : {}),
      // SDK retries cannot succeed while a budget is used up.
      ...(isSpend ? { 'x-should-retry': 'false' } : {}),
    },
  })
}

/** Says what is left as well. It was ended a moment ago where nothing is known of it. */
function budgetFault({ unit, span, max, waitSeconds, left = '0', isFull, budget }: Limited, scope: string): Fault {
  const [id = '', value = ''] = [scope.split('=', 1)[0], budget?.value ?? '']
  const label = budget?.scope.replace(/^session:.*/, 'session') ?? 'value'
  // Without quotation marks: quoted text is removed when the rejection is stored, because it may come from a caller.
  const whose = `${budget?.name ?? ''} for ${label} "${value}"`
  const rest = BigInt(left) > 0n ? BigInt(left) : 0n
  const renews = span === 'total' ? 'It does not renew.' : `It has room again in ${waitSeconds} s.`
  const period = spanWords(span, budget?.windowSeconds)
  const message = isFull
    ? `The budget ${whose} cannot be counted: this account has ${max} values with budgets already. Values that are not used any more are removed every hour.`
    : `Budget exceeded: ${whose} allows ${amountOf(unit, BigInt(max))} ${unit} ${period}, and ${amountOf(unit, rest)} ${unit} are left, which is too little for this call. ${renews}`
  return new Fault('rate_limited', {
    message,
    param: label,
    retryAfterSeconds: waitSeconds,
    isFinal: waitSeconds > PATIENCE_SECONDS,
    headers: {
      'x-tollgate-limit': id,
      ...(isFull ? {} : { 'x-tollgate-left': amountOf(unit, BigInt(left)) }),
      ...(waitSeconds > PATIENCE_SECONDS ? { 'x-should-retry': 'false' } : {}),
    },
  })
}

export function rateHeaders(rate: { max: number; left: number }, resetSeconds = 60): Record<string, string> {
  return {
    'x-ratelimit-limit-requests': String(rate.max),
    'x-ratelimit-remaining-requests': String(Math.max(0, rate.left)),
    'x-ratelimit-reset-requests': `${resetSeconds}s`,
  }
}
