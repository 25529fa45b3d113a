// The account that a plan or a code gives credits to, locked until the transaction ends.
import { accountClosed, accountMoving, accountUnknown } from '../admission/accounts.ts'
import { type Queryable, statement } from '../database/database.ts'

const LOCK = statement(
  'buyer_lock',
  'select posted, status, coalesce(frozen_until > now(), false) as moving from account where id = $1 for update',
)

export async function lockBuyer(tx: Queryable, account: string): Promise<{ readonly posted: bigint }> {
  const [row] = await tx.query<{ posted: bigint; status: string; moving: boolean }>(LOCK, [account])
  if (!row) throw accountUnknown()
  if (row.moving) throw accountMoving()
  if (row.status === 'closed') throw accountClosed()
  return row
}
