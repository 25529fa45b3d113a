// Purses: what customers of the account have, at its own prices. For the account's server, with a key that is not
// restricted.
import {
  PATHS,
  type Purse,
  type PurseBillingDetails,
  type PurseInvoice,
  type PurseMovement,
  type PursePageLink,
  type PurseSession,
  type PurseSessionState,
  type PurseStatement,
  type PurseTopUp,
  type PurseTopUpState,
} from './generated.ts'
import { uuid } from './random.ts'
import type { CallOptions, Transport } from './transport.ts'

export interface PurseParams {
  /** Your own name of the customer: the same name is the same purse. */
  id: string
  name?: string
  /** You are told when less than this is left. */
  low?: string | null
  /** What it has at first; given once, however often it is created. */
  credits?: string
}

export interface PurseGrant {
  /** Below zero they are taken back. */
  credits: string
  /** topup if the customer paid for them. */
  kind?: 'grant' | 'topup'
  /** Your own name of this grant, such as the number of an order: the same name is granted once. */
  reference?: string
  note?: string
}

export interface PurseSessionParams {
  /** From 60 to 86,400; 3,600 unless given. */
  seconds?: number
  models?: readonly string[] | null
  endpoints?: readonly string[] | null
  /** The sites whose pages may use it; without them no page may. */
  origins?: readonly string[] | null
  /** The most that the purse pays for one call. */
  callMax?: string | null
}

const at = (id: string, rest = '') => `${PATHS.purses}/${encodeURIComponent(id)}${rest}`

export function pursesOf(transport: Transport) {
  async function* pages<T>(path: string, given: Record<string, string>, options?: CallOptions): AsyncGenerator<T> {
    for (let query = given; ; ) {
      const page = await transport.data<{ items: T[]; next: string | null }>({ method: 'GET', path, query }, options)
      yield* page.items
      if (page.next === null) return
      query = { ...given, cursor: page.next }
    }
  }

  return {
    /** By their ids, page after page. search: a part of the id or name. */
    list: (params: { search?: string; status?: Purse['status'] } = {}, options?: CallOptions) =>
      pages<Purse>(PATHS.purses, params, options),
    /** Calls, grants and changes, newest first, page after page. */
    movements: (id: string, options?: CallOptions) => pages<PurseMovement>(at(id, '/movements'), {}, options),
    /** Begins a top-up: the customer pays at its `url`. amount: such as "20.00". */
    topUp: (id: string, params: { amount: string; currency?: string; returnUrl?: string }, options?: CallOptions) =>
      transport.data<PurseTopUp>({ method: 'POST', path: at(id, '/topups'), body: params }, options),
    /** What became of a top-up, by its id. */
    topUpState: (id: string, topUp: string, options?: CallOptions) =>
      transport.data<PurseTopUpState>({ method: 'GET', path: at(id, `/topups/${topUp}`) }, options),
    /** Those in your name for what the customer paid, newest first, page after page. */
    invoices: (id: string, options?: CallOptions) => pages<PurseInvoice>(at(id, '/invoices'), {}, options),
    /** The PDF of one, by its id. */
    invoice: (id: string, invoice: string, options?: CallOptions) =>
      transport.send(
        { method: 'GET', path: at(id, `/invoices/${invoice}`) },
        { ...options, headers: { ...options?.headers, accept: 'application/pdf' } },
        async (answer) => new Uint8Array(await answer.arrayBuffer()),
      ),
    /** Whom the invoices are made out to. */
    billingDetails: (id: string, options?: CallOptions) =>
      transport.data<PurseBillingDetails>({ method: 'GET', path: at(id, '/billing-details') }, options),
    /** What is not given is removed. */
    changeBillingDetails: (id: string, details: Partial<PurseBillingDetails>, options?: CallOptions) =>
      transport.data<PurseBillingDetails>({ method: 'PUT', path: at(id, '/billing-details'), body: details }, options),
    /** A link to the page on which the customer sees the purse and tops it up. */
    page: (id: string, params: { seconds?: number } = {}, options?: CallOptions) =>
      transport.data<PursePageLink>({ method: 'POST', path: at(id, '/page'), body: params }, options),
    /** Creating it again changes nothing. */
    create: (params: PurseParams, options?: CallOptions) =>
      transport.data<Purse>({ method: 'POST', path: PATHS.purses, body: params }, options),
    get: (id: string, options?: CallOptions) => transport.data<Purse>({ method: 'GET', path: at(id) }, options),
    /** Frozen, its calls are rejected; closed, it gives back what it has, for good. */
    change: (
      id: string,
      params: { name?: string; low?: string | null; status?: Purse['status']; note?: string },
      options?: CallOptions,
    ) => transport.data<Purse>({ method: 'PATCH', path: at(id), body: params }, options),
    /** Made once, however often it is sent: give a reference, or it has one of its own. */
    grant: async (id: string, grant: PurseGrant, options?: CallOptions) => {
      const body = { ...grant, reference: grant.reference ?? (await uuid()) }
      return transport.data<Purse>({ method: 'POST', path: at(id, '/grants'), body }, options)
    },
    /** month: such as 2026-11; this month unless given. */
    statement: (id: string, { month }: { month?: string } = {}, options?: CallOptions) =>
      transport.data<PurseStatement>(
        { method: 'GET', path: at(id, '/statement'), query: month === undefined ? {} : { month } },
        options,
      ),
    /** A token for the customer's app or page, which is shown once. Calls with it pay from this purse. */
    session: (id: string, params: PurseSessionParams = {}, options?: CallOptions) =>
      transport.data<PurseSession>({ method: 'POST', path: at(id, '/sessions'), body: params }, options),
    /** Those that have not expired, newest first, page after page. */
    sessions: (id: string, options?: CallOptions) => pages<PurseSessionState>(at(id, '/sessions'), {}, options),
    /** Of a session token, by its id. */
    revoke: (id: string, session: string, options?: CallOptions) =>
      transport.data<PurseSessionState>({ method: 'DELETE', path: at(id, `/sessions/${session}`) }, options),
  }
}
