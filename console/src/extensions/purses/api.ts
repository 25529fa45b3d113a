// What the console asks about purses.
import { account, csv, encode, file, get, patch, post, put, remove } from '../../api.ts'
import type {
  BillingDetails,
  Invoice,
  NewPurseSession,
  Page,
  Purse,
  PurseEvents,
  PurseMargins,
  PurseMovement,
  PursePageLink,
  PursePayments,
  PursePrices,
  PurseSession,
  PurseStatement,
  PurseTopUp,
  Reconciliation,
} from '../../wire.ts'

interface Paging {
  readonly cursor?: string | undefined
  readonly limit?: number
}

const at = (id: string, purse: string, rest = '') => account(id, `/purses/${encode(purse)}${rest}`)

export const pursesApi = {
  list: (id: string, query: Paging & { search?: string; status?: string }, signal?: AbortSignal) =>
    get<Page<Purse>>(account(id, '/purses'), { ...query }, signal),
  listCsv: (id: string) => csv(account(id, '/purses')),
  create: (id: string, input: object) => post<Purse>(account(id, '/purses'), input),
  one: (id: string, purse: string, signal?: AbortSignal) => get<Purse>(at(id, purse), undefined, signal),
  change: (id: string, purse: string, input: object) => patch<Purse>(at(id, purse), input),
  grant: (id: string, purse: string, input: object) => post<Purse>(at(id, purse, '/grants'), input),
  movements: (id: string, purse: string, query: Paging, signal?: AbortSignal) =>
    get<Page<PurseMovement>>(at(id, purse, '/movements'), { ...query }, signal),
  movementsCsv: (id: string, purse: string) => csv(at(id, purse, '/movements')),
  statement: (id: string, purse: string, month: string, signal?: AbortSignal) =>
    get<PurseStatement>(at(id, purse, '/statement'), { month }, signal),
  session: (id: string, purse: string, input: object) => post<NewPurseSession>(at(id, purse, '/sessions'), input),
  sessions: (id: string, purse: string, query: Paging, signal?: AbortSignal) =>
    get<Page<PurseSession>>(at(id, purse, '/sessions'), { ...query }, signal),
  endSession: (id: string, purse: string, session: string) =>
    remove<PurseSession>(at(id, purse, `/sessions/${encode(session)}`)),
  page: (id: string, purse: string) => post<PursePageLink>(at(id, purse, '/page'), {}),
  payments: (id: string, signal?: AbortSignal) => get<PursePayments>(account(id, '/purse-payments'), undefined, signal),
  changePayments: (id: string, input: object) => patch<PursePayments>(account(id, '/purse-payments'), input),
  /** Of one purse, or of all. */
  topUps: (
    id: string,
    purse: string | undefined,
    query: Paging & { state?: string | undefined },
    signal?: AbortSignal,
  ) =>
    get<Page<PurseTopUp>>(
      purse === undefined ? account(id, '/purse-topups') : at(id, purse, '/topups'),
      { ...query },
      signal,
    ),
  refund: (id: string, topUp: string, amount: string) =>
    post<PurseTopUp>(account(id, `/purse-topups/${encode(topUp)}/refund`), { amount }),
  reconciliations: (id: string, cursor?: string, signal?: AbortSignal) =>
    get<Page<Reconciliation>>(account(id, '/purse-reconciliations'), { cursor }, signal),
  /** Of one purse, or of all. */
  invoices: (id: string, purse: string | undefined, query: Paging, signal?: AbortSignal) =>
    get<Page<Invoice>>(
      purse === undefined ? account(id, '/purse-invoices') : at(id, purse, '/invoices'),
      { ...query },
      signal,
    ),
  invoiceFile: (id: string, { purse, id: invoice }: Invoice) =>
    file(at(id, purse ?? '', `/invoices/${encode(invoice)}`), 'application/pdf'),
  billing: (id: string, purse: string, signal?: AbortSignal) =>
    get<BillingDetails>(at(id, purse, '/billing-details'), undefined, signal),
  changeBilling: (id: string, purse: string, details: object) =>
    put<BillingDetails>(at(id, purse, '/billing-details'), details),
  reconcile: (id: string) => post<Reconciliation>(account(id, '/purse-reconciliations'), {}),
  prices: (id: string, signal?: AbortSignal) => get<PursePrices>(account(id, '/purse-prices'), undefined, signal),
  setPrices: (id: string, input: object) => put<PursePrices>(account(id, '/purse-prices'), input),
  margins: (id: string, signal?: AbortSignal) => get<PurseMargins>(account(id, '/purse-margins'), undefined, signal),
  events: (id: string, signal?: AbortSignal) => get<PurseEvents>(account(id, '/purse-events'), undefined, signal),
  setEvents: (id: string, input: PurseEvents) => put<PurseEvents>(account(id, '/purse-events'), input),
}
