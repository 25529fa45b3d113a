// The last gate before a vendor: the durable hold, with every limit checked by the same statement.
import type { Catalog, Product } from '../catalog/store.ts'
import type { ByokKeys, OwnUse } from '../credentials/byok-keys.ts'
import { type Database, SHORT_MS, statement } from '../database/database.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { singleFlight } from '../kernel/timers.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Limited, Reservation } from '../ledger/operation.ts'
import { chargeOf, rateFor } from '../meter/charge.ts'
import { LIMITS, type LimitName, spanWords } from '../meter/limits.ts'
import type { Pricing } from '../meter/price.ts'
import { tokensOf } from '../meter/usage.ts'
import type { PaidRequestFacts } from '../protocols/protocol.ts'
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
  /** Set if the caller gave no output limit: the output tokens that the hold covers, for each choice. The vendor gets it as the cap. */
  readonly outputTokensCap?: number
  /** The cap is below what the model could write, because the balance or a limit allows no more. */
  readonly isCut?: boolean
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
  const want = chargeOf(pricing, paidRequest.worst, paidRequest.price).amount
  if (!paidRequest.outputOpen) return { want, floor: want, most: want }
  const { floorTokens, mostTokens, unit = 'output' } = paidRequest.outputOpen
  const reserve = paidRequest.worst[unit] ?? 0
  const withOutput = (output: number) =>
    chargeOf(pricing, { ...paidRequest.worst, [unit]: output }, paidRequest.price).amount
  return { want, floor: withOutput(Math.min(floorTokens, reserve)), most: withOutput(Math.max(mostTokens, reserve)) }
}

/** `req_<id>` outside, `<id>` in the ledger, whose ids all sort by time. */
function callId(requestId: string): string {
  return requestId.slice('req_'.length)
}

/** Answers `replay` when an earlier call with the same idempotency key has its answer stored. */
export async function admit(
  application: Application,
  ledger: Ledger,
  job?: Reservation['job'],
): Promise<Admitted | 'replay'> {
  const { paidRequest, principal, requestId, catalog, fallbacks = NONE } = application
  const { costMax, isApart } = application
  const { want, floor, most } = withRoom(estimate(application), application)
  const id = callId(requestId)
  const { idempotency } = application
  const plain: Reservation = {
    id,
    account: principal.accountId,
    key: principal.keyId,
    product: paidRequest.product,
    products: fallbacks.length > 0 ? [application, ...fallbacks].map((one) => one.paidRequest.product) : undefined,
    catalogVersion: catalog.version,
    want,
    floor,
    most: paidRequest.outputOpen && (costMax !== undefined && costMax < most ? costMax : most),
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
  const reserved = await (job && isApart ? ledger.makeJob(reservation) : ledger.reserve(reservation))
  switch (reserved.outcome) {
    case 'held': {
      const { amount: held, rate } = reserved
      if (!paidRequest.outputOpen) return { id, held, rate }
      return { id, held, rate, ...capOf(application, held), isCut: held < most }
    }
    case 'short':
      throw new Fault('credits_short', {
        message: `Insufficient credit: this call needs ${formatCredits(floor)} credits, ${formatCredits(reserved.available)} are available.`,
        // For programs, which must not read messages.
        headers: {
          'x-tollgate-required': formatCredits(floor),
          'x-tollgate-available': formatCredits(reserved.available),
        },
      })
    case 'limited':
      throw reserved.limit === BUDGET
        ? budgetFault(reserved)
        : limitFault(reserved.limit, reserved.max, reserved.waitSeconds)
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

const NONE: readonly Offered[] = []

/** What the hold covers of another model's answer. */
export function admittedFor(fallback: Offered, { outputTokensCap: _, ...admitted }: Admitted): Admitted {
  return fallback.paidRequest.outputOpen ? { ...admitted, ...capOf(fallback, admitted.held) } : admitted
}

function capOf(offered: Offered, held: Credits): { readonly outputTokensCap: number } {
  return { outputTokensCap: coveredOutput(offered.paidRequest, pricesOf(offered), held) }
}

const HAS_CREDITS = statement('account_has_credits', 'select posted > 0 as has from account where id = $1', SHORT_MS)

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

/** How many output tokens of each choice the held amount covers besides the rest of the worst case, at the price that applies. */
function coveredOutput(paidRequest: PaidRequestFacts, prices: readonly Pricing[], held: Credits): number {
  const { mostTokens = 0, unit = 'output' } = paidRequest.outputOpen ?? {}
  const most = Math.max(mostTokens, paidRequest.worst[unit] ?? 0)
  const tokens = prices.map((pricing) => {
    const rate = rateFor(unit, pricing, paidRequest.worst, paidRequest.price)
    if (!rate) return most
    const rest = chargeOf(pricing, { ...paidRequest.worst, [unit]: 0 }, paidRequest.price).amount
    return Number(((held - rest) * 1_000_000n) / rate)
  })
  return Math.max(1, Math.floor(Math.min(most, ...tokens) / (paidRequest.choices ?? 1)))
}

/** The name of all counters of budgets: functions/budget.sql. */
const BUDGET = 'budget'
/** SDK retries give up before such a budget has room again. */
const PATIENCE_SECONDS = 60

/** Which budget, what is left of it, and when it renews. */
function budgetFault({ max, waitSeconds, scope = '', left = '0', isFull, budget }: Limited): Fault {
  const { id, name, value, unit, span, windowSeconds } = budget ?? { ...UNKNOWN, id: scope.split('=', 1)[0] ?? '' }
  const show = (amount: string) =>
    unit === 'credits' ? `${formatCredits(BigInt(amount))} credits` : `${amount} ${unit}`
  const label = budget?.scope ?? 'value'
  // Without quotation marks: quoted text is removed when the rejection is stored, because it may come from a caller.
  const whose = `${name} for ${label} "${value ?? ''}"`
  const rest = show(BigInt(left) > 0n ? left : '0')
  const renews = span === 'total' ? 'It does not renew.' : `It has room again in ${waitSeconds} s.`
  const message = isFull
    ? `The budget ${whose} cannot be counted: this account has ${max} values with budgets already. Values that are not used any more are removed every hour.`
    : `Budget exceeded: ${whose} allows ${show(max)} ${spanWords(span, windowSeconds)}, and ${rest} are left, which is too little for this call. ${renews}`
  return new Fault('rate_limited', {
    message,
    param: label,
    retryAfterSeconds: waitSeconds,
    isFinal: waitSeconds > PATIENCE_SECONDS,
    headers: {
      'x-tollgate-limit': id,
      ...(isFull ? {} : { 'x-tollgate-left': unit === 'credits' ? formatCredits(BigInt(left)) : left }),
      ...(waitSeconds > PATIENCE_SECONDS ? { 'x-should-retry': 'false' } : {}),
    },
  })
}

/** The budget was ended a moment ago. */
const UNKNOWN = { name: '', value: null, unit: 'requests', span: 'day', windowSeconds: null } as const

function limitFault(limit: string, max: string, waitSeconds: number): Fault {
  const { unit, words } = LIMITS[limit as LimitName] // as the database was told
  const spend = unit === 'credits'
  const shown = spend ? `${formatCredits(BigInt(max))} credits` : max
  const headers: Record<string, string> = { 'x-tollgate-limit': limit }
  if (limit === 'requestsPerMinute') Object.assign(headers, rateHeaders({ max: Number(max), left: 0 }, waitSeconds))
  // SDK retries cannot succeed while a budget is used up.
  if (spend) headers['x-should-retry'] = 'false'
  return new Fault('rate_limited', {
    message: `Rate limit exceeded: ${shown} ${words}. Try again in ${waitSeconds} s.`,
    retryAfterSeconds: waitSeconds,
    headers,
  })
}

export function rateHeaders(rate: { max: number; left: number }, resetSeconds = 60): Record<string, string> {
  return {
    'x-ratelimit-limit-requests': String(rate.max),
    'x-ratelimit-remaining-requests': String(Math.max(0, rate.left)),
    'x-ratelimit-reset-requests': `${resetSeconds}s`,
  }
}
