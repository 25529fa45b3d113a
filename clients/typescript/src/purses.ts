// Purses: what customers of the account have, at its own prices. For the account's server, with a key that is not restricted.
import { PATHS, type Purse, type PurseSession, type PurseStatement } from './generated.ts'
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
  return {
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
    /** Of a session token, by its id. */
    revoke: (id: string, session: string, options?: CallOptions) =>
      transport.data<Omit<PurseSession, 'token'>>({ method: 'DELETE', path: at(id, `/sessions/${session}`) }, options),
  }
}
