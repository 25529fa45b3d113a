// The checkpoints at which the replay of an account starts.
import { type Queryable, sql } from '../../database/database.ts'
import { sameBytes } from '../../kernel/secret.ts'
import { GIVEN_KINDS, isGiven } from '../../reports/movements.ts'
import { CHECKPOINTS_OF, type StoredCheckpoint, signatureOf } from './checkpoint.ts'

/** What the archive has of an account, and where its rows in the database begin. */
export interface Archived {
  /** The place of the last transfer, as text; null: the account is not in the archive. */
  readonly place: string | null
  readonly balance: bigint
  readonly settled: bigint
  readonly problems: readonly string[]
}

export const CHECKPOINTS = sql('verify_checkpoints')`${CHECKPOINTS_OF} order by ledger_checkpoint.month`
// What was given or taken back stays in the database, and must be what the checkpoint says.
const STAYED = sql('verify_checkpoint_sums')`
  select to_char(date_trunc('month', moved_at, 'UTC') at time zone 'UTC', 'YYYY-MM-DD') as month, kind, count(*)::text as rows, sum(amount)::text as amount, sum(loss)::text as loss
   from transfer where account_id = $1 and moved_at <= $2::text::timestamptz and kind in (${GIVEN_KINDS}) group by 1, 2`

export async function readArchived(on: Queryable, account: string, key: Buffer | undefined): Promise<Archived> {
  const all = await on.query<StoredCheckpoint>(CHECKPOINTS, [account])
  const last = all.at(-1)
  if (!last) return { place: null, balance: 0n, settled: 0n, problems: [] }
  const problems: string[] = []
  let before: Buffer | null = null
  for (const one of all) {
    if (key && !sameBytes(signatureOf(key, before, one), one.signature))
      problems.push(
        `Account ${account}: its checkpoint of ${nameOf(one.month)} is not what was signed, or the one before it was removed or put there.`,
      )
    before = one.signature
  }
  const stayed = await on.query<{ month: string; kind: string; rows: string; amount: string; loss: string }>(STAYED, [
    account,
    last.place,
  ])
  const said = all.flatMap(({ month, sums }) => sums.map((sum) => [month, ...sum].join(' ')))
  const is = stayed.map(({ month, kind, rows, amount, loss }) => [month, kind, rows, amount, loss].join(' '))
  const should = said.filter((sum) => isGiven(sum.split(' ')[1]))
  for (const [these, those, what] of [
    [should, is, 'are not there as its checkpoint says'],
    [is, should, 'are not in its checkpoint'],
  ] as const)
    for (const sum of these.filter((one) => !those.includes(one))) {
      const [month = '', kind = ''] = sum.split(' ')
      problems.push(`Account ${account}: its transfers of the kind ${kind} in ${nameOf(month)} ${what}.`)
    }
  const settled = all.flatMap(({ sums }) => sums.filter(([kind]) => kind === 'settled'))
  return {
    place: last.place,
    balance: last.balance,
    problems,
    settled: settled.reduce((sum, [, , amount]) => sum + BigInt(amount), 0n),
  }
}

export const nameOf = (month: string) => month.slice(0, 7)
