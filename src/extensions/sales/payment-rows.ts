// The table of payments: what its rows are, and how they are found and written.

import { accountClosed, accountMoving, accountUnknown } from '../../admission/accounts.ts'
import { type Database, type Queryable, sql } from '../../database/database.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { asPage, asView, type Page, type Paging } from '../../kernel/view.ts'
import { formatMoney } from '../billing/money.ts'
import type { ChargeTerms, PaymentFacts, ProviderName } from '../billing/payments/provider.ts'
import { type PAYMENT_STATES, type PaymentView, paymentView } from './views.ts'

export type PaymentKind = PaymentView['kind']
type PaymentState = (typeof PAYMENT_STATES)[number]

export interface PaymentRow {
  account_id: string
  id: string
  provider: ProviderName
  provider_id: string | null
  kind: PaymentKind
  offer_id: string | null
  currency: string
  price_minor: bigint | null
  amount_minor: bigint
  tax_minor: bigint
  credits: bigint
  catalog_version: number | null
  state: PaymentState
  reason: string | null
  refunded_minor: bigint
  disputed_minor: bigint
  dispute: PaymentFacts['dispute']
  transfer_id: string | null
  taken: bigint
  lost: bigint
  /** What claims have taken since, of what is lost. */
  readonly claimed: bigint
  person_id: string | null
  as_of: Date | null
  created_at: Date
  paid_at: Date | null
  detail: PaymentDetail
}

export interface PaymentDetail {
  /** What was bought, in words. */
  readonly name?: string
  /** Of a pack or plan: end, products and priority of its credits. */
  readonly lot?: { readonly endsAfterDays?: number; readonly products?: readonly string[]; readonly priority?: number }
  /** Of a plan: the month that was paid. */
  readonly period?: { readonly from: string; readonly to: string }
  /** The lot with the credits that were returned after a dispute was won. */
  readonly lotId?: string
  /** Of a charge of a saved card: empty until it begins. */
  readonly charge?: Partial<ChargeTerms>
  /** The provider computed its tax, which may be 0. */
  readonly taxed?: true
  /** Of the provider's checkout. */
  readonly reference?: string
  readonly receiptUrl?: string
}

const COLUMNS = `account_id, id, provider, provider_id, kind, offer_id, currency, price_minor, amount_minor, tax_minor, credits, catalog_version, state, reason,
  refunded_minor, disputed_minor, dispute, transfer_id, taken, lost, person_id, as_of, created_at, paid_at, detail`
const ROW = `${COLUMNS}, (select coalesce(sum(c.taken), 0)::bigint from claim c where c.account_id = payment.account_id and c.payment_id = payment.id) as claimed`
const BY_ID = sql('payment_by_id')`select ${ROW} from payment where id = $1`
const LOCK_ID = sql('payment_lock_id')`select ${ROW} from payment where id = $1 for update`
const BY_PROVIDER = sql('payment_by_provider')`select ${ROW} from payment where provider = $1 and provider_id = $2`
const LOCK_PROVIDER = sql('payment_lock_provider')`
  select ${ROW} from payment where provider = $1 and provider_id = $2 for update`
const INSERT = sql('payment_insert')`
  insert into payment (account_id, id, provider, provider_id, kind, offer_id, currency, price_minor, amount_minor, credits, catalog_version, state, person_id, detail)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'pending', $12, $13) on conflict do nothing returning ${ROW}`
const UPDATE = sql('payment_update')`
  update payment set account_id = $2, provider_id = $3, amount_minor = $4, tax_minor = $5, credits = $6, state = $7, reason = $8, refunded_minor = $9, disputed_minor = $10,
     dispute = $11, transfer_id = $12, taken = $13, lost = $14, as_of = $15, paid_at = $16, detail = $17 where id = $1`
const LIST = sql('payment_list')`
  select ${ROW}, (select a.name from account a where a.id = payment.account_id) as account_name from payment
   where id < $1 and ($3::text is null or account_id = $3) and ($4::text is null or state = $4) order by id desc limit $2`
const NAME_OF = sql('payment_account_name')`select name from account where id = $1`

type NewPayment = Pick<
  PaymentRow,
  'account_id' | 'id' | 'provider' | 'kind' | 'offer_id' | 'currency' | 'price_minor' | 'credits' | 'catalog_version'
> & { readonly provider_id?: string; readonly person_id?: string | null; readonly detail?: PaymentDetail }

/** Undefined if a unique index forbids a second row like it. */
export async function insertPayment(on: Queryable, row: NewPayment): Promise<PaymentRow | undefined> {
  const [made] = await on.query<PaymentRow>(INSERT, [
    row.account_id,
    row.id,
    row.provider,
    row.provider_id ?? null,
    row.kind,
    row.offer_id,
    row.currency,
    row.price_minor,
    row.price_minor ?? 0n,
    row.credits,
    row.catalog_version,
    row.person_id ?? null,
    JSON.stringify(row.detail ?? {}),
  ])
  return made
}

export async function updatePayment(tx: Queryable, row: PaymentRow): Promise<void> {
  await tx.query(UPDATE, [
    row.id,
    row.account_id,
    row.provider_id,
    row.amount_minor,
    row.tax_minor,
    row.credits,
    row.state,
    row.reason,
    row.refunded_minor,
    row.disputed_minor,
    row.dispute,
    row.transfer_id,
    row.taken,
    row.lost,
    row.as_of,
    row.paid_at,
    JSON.stringify(row.detail),
  ])
}

/** By our id, or by the provider's. */
export async function findPayment(
  on: Queryable,
  facts: Pick<PaymentFacts, 'provider' | 'providerId' | 'payment'>,
  isLocked: boolean,
): Promise<PaymentRow | undefined> {
  const at = [facts.provider, facts.providerId]
  const [known] = await on.query<PaymentRow>(isLocked ? LOCK_PROVIDER : BY_PROVIDER, at)
  if (known || facts.payment === undefined) return known
  const [ours] = await on.query<PaymentRow>(isLocked ? LOCK_ID : BY_ID, [facts.payment])
  // If our payment was already paid by another payment at the provider, this one gets a row of its own.
  return ours?.provider === facts.provider && ours.provider_id === null ? ours : undefined
}

export async function paymentById(on: Queryable, id: string, isLocked = false): Promise<PaymentRow | undefined> {
  const [row] = await on.query<PaymentRow>(isLocked ? LOCK_ID : BY_ID, [id])
  return row
}

export interface PaymentFilter extends Paging {
  readonly account?: string | undefined
  readonly state?: PaymentState | undefined
}

export async function listPayments(on: Database, filter: PaymentFilter): Promise<Page<PaymentView>> {
  const { cursor, limit, account, state } = filter
  const values = [cursor ?? '~', limit + 1, account ?? null, state ?? null]
  const rows = await on.query<PaymentRow & { account_name: string | null }>(LIST, values)
  return asPage(rows, limit, (row) => paymentViewOf(row, row.account_name))
}

export async function showPayment(on: Queryable, row: PaymentRow): Promise<PaymentView> {
  const [account] = await on.query<{ name: string }>(NAME_OF, [row.account_id])
  return paymentViewOf(row, account?.name ?? null)
}

function paymentViewOf(row: PaymentRow, accountName: string | null): PaymentView {
  const money = (minor: bigint) => formatMoney(minor, row.currency)
  return {
    ...asView(paymentView, row),
    account: row.account_id || null,
    accountName,
    offer: row.offer_id,
    amount: money(row.amount_minor),
    tax: money(row.tax_minor),
    refunded: money(row.refunded_minor),
    creditsReversed: formatCredits(row.taken + row.claimed),
    creditsLost: formatCredits(row.lost - row.claimed),
    receiptUrl: row.detail.receiptUrl ?? null,
  }
}

// The account that a plan or a code gives credits to, locked until the transaction ends.

const LOCK = sql('buyer_lock')`
  select posted, status, coalesce(frozen_until > now(), false) or ledger is not null as moving from account where id = $1 for update`

export async function lockBuyer(tx: Queryable, account: string): Promise<{ readonly posted: bigint }> {
  const [row] = await tx.query<{ posted: bigint; status: string; moving: boolean }>(LOCK, [account])
  if (!row) throw accountUnknown()
  if (row.moving) throw accountMoving()
  if (row.status === 'closed') throw accountClosed()
  return row
}
