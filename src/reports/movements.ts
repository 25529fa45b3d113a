// The account statement: movements of credits in the order in which they happened, each with the balance after it.
// Order and balance are written with the movement and never change.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { asPage, asView, type Page, type Paging } from '../kernel/view.ts'
import { GIVEN, type LedgerView, ledgerView, type Movement } from '../ledger/views.ts'

export interface LedgerFilter extends Paging {
  readonly account: string
  /** The range of times at which credits moved; `toMs` is exclusive. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  readonly kind?: Movement | undefined
  /** Lists the rows that moved nothing instead, in the order of their calls. */
  readonly zero?: boolean | undefined
}

interface TransferRow {
  id: string
  kind: Movement
  amount: bigint
}

const GIVES: readonly string[] = ['grant', 'correction', 'purchase', 'plan', 'code'] satisfies Movement[]
const TAKES: readonly string[] = ['takeback', 'payout', 'writeoff', 'refund', 'expiry', 'settled'] satisfies Movement[]

/** The change of the balance. */
export function movedBy({ kind, amount }: { readonly kind: string; readonly amount: bigint }): bigint {
  return GIVES.includes(kind) ? amount : TAKES.includes(kind) ? -amount : 0n
}

/** Holds that ended without a charge: they never move credits. */
const NEVER_MOVES: ReadonlySet<Movement | undefined> = new Set(['released', 'expired'])

/** The change of the balance, in SQL. */
const QUOTED = (kinds: readonly string[]) => kinds.map((kind) => `'${kind}'`).join(', ')
export const MOVED_BY = `case when kind in (${QUOTED(GIVES)}) then amount when kind in (${QUOTED(TAKES)}) then -amount else 0 end`
/** How much later `moved_at` may be than `at`: a transaction may wait for locks, and clocks may be set back. */
export const APART = `interval '1 hour'`
// The balance at a moment: that after the last transfer before it, here or in the archive, and the transfers with `at`
// before it and `moved_at` after it, which stay here.
export const BALANCE_AT = (MOMENT: string) =>
  `(coalesce((select l.balance from (
       (select t.moved_at, t.balance from transfer t where t.account_id = a.id and t.moved_at < ${MOMENT} order by t.moved_at desc limit 1)
       union all (select c.moved_at, c.balance from ledger_checkpoint c where c.account_id = a.id and c.moved_at < ${MOMENT} order by c.month desc limit 1)
     ) l order by l.moved_at desc limit 1), 0)
     + coalesce((select sum(${MOVED_BY}) from transfer t where t.account_id = a.id and t.moved_at >= ${MOMENT} and t.moved_at < ${MOMENT} + ${APART} and t.at < ${MOMENT}), 0))::bigint`
/** The kinds of movements that are not calls. */
export const GIVEN_KINDS = QUOTED(GIVEN)

/** Whether a movement is not a call. */
export const isGiven = (kind: string | undefined) => kind !== undefined && GIVEN.includes(kind)

export async function readMovements(database: Queryable, filter: LedgerFilter): Promise<Page<LedgerView>> {
  const { account, cursor, fromMs, toMs, kind, limit } = filter
  const moment = (ms: number | undefined) => (ms === undefined ? null : new Date(ms))
  const read = filter.zero || NEVER_MOVES.has(kind) ? ZERO : isGiven(kind) ? FEW : MOVED
  const values = [account, cursor ?? null, moment(fromMs), moment(toMs), kind ?? null, limit + 1]
  const rows = await database.query<TransferRow>(read, values)
  return asPage(rows, limit, viewOf)
}

function viewOf(row: TransferRow): LedgerView {
  const requestId = isGiven(row.kind) ? null : `req_${row.id}`
  return { ...asView(ledgerView, row), moved: formatCredits(movedBy(row)), requestId }
}

const READ = (AT: string, WHERE: string, ORDER: string) =>
  `select t.id, ${AT} as at, t.kind, t.amount, t.loss, t.note, t.actor, case when t.amount <> 0 then t.balance end as balance_after, u.product
   from transfer t left join usage u on u.account_id = $1 and u.id = t.id
   where t.account_id = $1 and ($3::timestamptz is null or ${AT} >= $3) and ($4::timestamptz is null or ${AT} < $4)
     and ($5::text is null or t.kind = $5) and ${WHERE}
   order by ${ORDER} desc limit $6`
// A page starts after the row of its cursor.
const AFTER = `t.moved_at < case when $2::text is null then 'infinity' else (select c.moved_at from transfer c where c.account_id = $1 and c.id = $2) end`
const MOVED = statement('statement_moved', READ('t.moved_at', `t.amount <> 0 and ${AFTER}`, 't.moved_at'))
const FEW = statement(
  'statement_given',
  READ('t.moved_at', `t.amount <> 0 and t.kind in (${GIVEN_KINDS}) and ${AFTER}`, 't.moved_at'),
)
const ZERO = statement('statement_zero', READ('t.at', `t.amount = 0 and t.id < coalesce($2, '~')`, 't.id'))
