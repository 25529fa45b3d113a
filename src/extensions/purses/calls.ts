// Calls of purses: who says which purse, and what it holds beside its account. A call without a purse passes through.
import type { Principal } from '../../admission/api-key.ts'
import type { CallerRules } from '../../api/api.ts'
import { type Catalog, type CatalogStore, catalogFor } from '../../catalog/store.ts'
import { type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Limited, Reservation, Reserved } from '../../ledger/operation.ts'
import { type Need, needOf, type PurseLists, purseNeed, type Versioned } from './prices.ts'
import type { PurseSessions } from './sessions.ts'

/** The label of the gateway's own by which a call's purse is known, wherever it goes on. */
export const PURSE = ':purse'
const PURSE_HEADER = 'x-tollgate-purse'
/** The label of the session token by which a call came. */
export const PURSE_TOKEN = ':purse-token'
export const PURSE_ID = /^[\w+-]{1,64}$/

const limitOf = (what: string) => `purse:${what}`

/** The need of a call that may be charged as several products: that of the dearest. */
function needOfAll({ list }: Versioned, products: readonly string[], catalog: Catalog, tokens: number): Need {
  const all = products.map((product) => needOf(list, product, catalog, tokens))
  const most = (part: keyof Need) => all.reduce((high, one) => (one[part] > high ? one[part] : high), 0n)
  return { factor: most('factor'), least: most('least') }
}

interface CallDeps {
  readonly lists: PurseLists
  readonly sessions: Pick<PurseSessions, 'callMax'>
  readonly catalog: Pick<CatalogStore, 'current'>
}

/** Holds on the purse what the call of one may cost, in the statement that holds on its account. */
export function withPurses(ledger: Ledger, { lists, sessions, catalog }: CallDeps): Ledger {
  async function reserve(asked: Reservation, id: string, waits: AbortSignal | undefined): Promise<Reserved> {
    const token = asked.labels?.[PURSE_TOKEN]
    const callMax = token === undefined ? null : await sessions.callMax(asked.account, token)
    const prices = await lists.current(asked.account)
    const current = catalogFor(asked.account, catalog.current)
    const need = needOfAll(prices, asked.products ?? [asked.product], current, asked.tokens)
    const needed = purseNeed(need, asked.floor)
    if (callMax !== null && needed > callMax) return above(needed, callMax)
    // The statement reads it (functions/reserve.sql). A call that a lease covers has no hold to say its purse.
    const { factor, least } = need
    const purse = { id, list: prices.version, factor: String(factor), least: String(least), max: callMax?.toString() }
    const own: Reservation & { readonly purse: typeof purse } = { ...asked, purse, isApart: asked.job === undefined }
    const reserved = await ledger.reserve(own, waits)
    if (reserved.outcome !== 'limited' || !reserved.limit.startsWith(limitOf(''))) return reserved
    // One whose input can be counted is asked for again with fewer tokens.
    return { ...reserved, ...(isShort(reserved) && { unit: 'credits' }), fault: refusal(id, reserved) }
  }
  return {
    ...ledger,
    reserve(asked, waits) {
      const id = asked.labels?.[PURSE]
      return id === undefined ? ledger.reserve(asked, waits) : reserve(asked, id, waits)
    },
    get pending() {
      return ledger.pending
    },
    get isolated() {
      return ledger.isolated
    },
    get waiting() {
      return ledger.waiting
    },
  }
}

const isShort = ({ limit }: Limited) => limit === limitOf('short') || limit === limitOf('busy')
const BUSY_SECONDS = 1

function above(needed: Credits, callMax: Credits): Reserved {
  const message = `This call could cost ${formatCredits(needed)} credits, and this session token allows ${formatCredits(callMax)} for one call. Ask for less, or use a cheaper model.`
  const headers = { 'x-tollgate-limit': 'callMax', 'x-should-retry': 'false' }
  return {
    outcome: 'limited',
    limit: limitOf('call'),
    unit: 'credits',
    span: 'total',
    max: String(needed),
    waitSeconds: 0,
    available: callMax,
    fault: new Fault('access_denied', { message, headers }),
  }
}

function refusal(id: string, { limit, max, available }: Limited): Fault {
  const headers = { 'x-tollgate-purse': id, 'x-should-retry': 'false' }
  const what = limit.slice(limitOf('').length)
  if (what === 'unknown')
    return new Fault('not_found', {
      message: `There is no purse "${id}" in this account. You were not charged.`,
      headers,
    })
  if (what === 'frozen' || what === 'closed')
    return new Fault('access_denied', { message: `The purse "${id}" is ${what}. You were not charged.`, headers })
  const [needs, has] = [formatCredits(BigInt(max)), formatCredits(available)]
  const told = { ...headers, 'x-tollgate-required': needs, 'x-tollgate-available': has }
  if (what === 'busy')
    return new Fault('rate_limited', {
      message: `Credits of the purse "${id}" are in use: this call needs ${needs}, and ${has} are available. Try again in ${BUSY_SECONDS} s.`,
      retryAfterSeconds: BUSY_SECONDS,
      headers: { ...told, 'x-should-retry': 'true' },
    })
  return new Fault('credits_short', {
    message: `The purse "${id}" has too little: this call needs ${needs} credits, ${has} are available.`,
    headers: told,
  })
}

/** Of each key, the callers that it has named. */
const PURSES_MAX = 20_000

export function purseCallers(sessions: PurseSessions): CallerRules {
  const named = new WeakMap<Principal, Map<string, Principal>>()
  return {
    header: PURSE_HEADER,
    session: sessions.open,
    named(principal, { [PURSE_HEADER]: id }) {
      if (id === undefined) return principal
      if (!PURSE_ID.test(id))
        throw invalid(`"${PURSE_HEADER}" must have 1 to 64 letters, digits or any of _ + -.`, PURSE_HEADER)
      const of = named.get(principal) ?? new Map<string, Principal>()
      named.set(principal, of)
      const known = of.get(id)
      if (known) return known
      const made = { ...principal, place: { ...principal.place, [PURSE]: id }, named: { [PURSE]: id } }
      if (of.size >= PURSES_MAX) of.clear()
      of.set(id, made)
      return made
    },
  }
}
