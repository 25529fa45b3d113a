// What control decides and a ledger does: control writes it down with the decision, the ledger does it, and then it
// goes. A process that dies in between changes nothing: another one finds it, and done twice it has no second effect.
import type { AccountInput, Accounts } from '../../admission/accounts.ts'
import type { Keys } from '../../admission/keys.ts'
import type { By } from '../../database/audit.ts'
import { type Database, type Queryable, type Statement, sql } from '../../database/database.ts'
import type { LeavingDeps } from '../../identity/leaving.ts'
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import { newId, type World } from '../../kernel/world.ts'

const OPEN = sql('crossings_open')`
  select id, kind, detail from crossing where ledger = $1 order by created_at, id limit 500`
// Its account may have moved meanwhile, and then another ledger does it.
const DONE = sql('crossing_done')`delete from crossing where id = $1 and ledger = $2`
/**
 * Of a code, control has counted the use before the ledger granted the credits. If the ledger never did, the use is
 * given back; not before its transaction must have ended.
 */
const GIVE_BACK = sql('crossing_code_back')`
  with gone as (delete from crossing where id = $1 and ledger = $2 and created_at < now() - interval '2 minutes' returning detail)
  update code set uses = uses - 1 from gone where hash = decode(gone.detail ->> 'hash', 'hex')`
const GRANTED = sql('crossing_code_granted')`select 1 from code_use where account_id = $1 and hash = decode($2, 'hex')`

/** The number of an invoice that its ledger never wrote is for the next one: see billing/invoices/issuing.ts. */
const FREE = sql('crossing_number_free')`
  update crossing set ledger = '', kind = 'number', detail = detail - 'account' where id = $1 and ledger = $2
  and created_at < now() - interval '2 minutes'`
const INVOICED = sql('crossing_invoiced')`select 1 from invoice where account_id = $1 and id = $2`

/** The row that people's memberships refer to, and what its ledger makes it with. */
const SHELL = sql('crossing_account_shell')`insert into account (id, name, ledger, region) values ($1, $2, $3, $4)`
const DECIDE = sql('crossing_account')`insert into crossing (ledger, kind, detail) values ($1, 'account', $2)`

interface CrossingRow {
  readonly id: string
  readonly kind: 'leave' | 'leave-outside' | 'code' | 'account' | 'invoice'
  readonly detail: {
    readonly account: string
    readonly person: string
    readonly heir?: string
    readonly hash: string
    readonly input: Omit<AccountInput, 'credits'> & { readonly credits: string }
    readonly by: By
  }
}

export interface Crossed {
  readonly database: Database
  readonly keys: Pick<Keys, 'endOf' | 'endPrograms' | 'noticed'>
  readonly accounts: Pick<Accounts, 'create'>
  readonly onLeave: LeavingDeps['onLeave']
}

/** As a part of a transaction of control: an account that a ledger makes. */
export async function decideAccount(
  tx: Queryable,
  { name: ledger, world }: { readonly name: string; readonly world: World },
  { credits = 0n, ...input }: AccountInput,
  by: By,
): Promise<string> {
  const account = `acc_${newId(world)}`
  await tx.query(SHELL, [account, input.name, ledger, input.region ?? null])
  const detail = { account, input: { ...input, credits: formatCredits(credits) }, by }
  await tx.query(DECIDE, [ledger, JSON.stringify(detail)])
  return account
}

/** Does what is open for a ledger. What fails is tried again, and keeps nothing else waiting. */
export async function cross(control: Pick<Database, 'query'>, name: string, cell: Crossed): Promise<void> {
  const failed: unknown[] = []
  for (const { id, kind, detail } of await control.query<CrossingRow>(OPEN, [name]))
    try {
      let undo: Statement | undefined
      if (kind === 'code' && !(await cell.database.query(GRANTED, [detail.account, detail.hash]))[0]) undo = GIVE_BACK
      if (kind === 'invoice' && !(await cell.database.query(INVOICED, [detail.account, id]))[0]) undo = FREE
      if (kind === 'leave') await leave(cell, detail)
      if (kind === 'account') await open(cell, detail)
      if (kind === 'leave-outside') await leaveOutside(cell, detail)
      await control.query(undo ?? DONE, [id, name])
    } catch (error) {
      failed.push(error)
    }
  if (failed.length > 0) throw failed[0]
}

/** Again without an effect where it is there. */
async function open({ accounts }: Crossed, { account, input, by }: CrossingRow['detail']): Promise<void> {
  await accounts.create({ ...input, id: account, credits: parseCredits(input.credits) }, by)
}

async function leave({ database, keys, onLeave }: Crossed, detail: CrossingRow['detail']): Promise<void> {
  const { account, person, heir, by } = detail
  const told = await database.transaction(async (tx) => {
    await keys.endOf(tx, { account, person, heir }, by)
    return onLeave(tx, { account, person }, by)
  })
  await keys.noticed()
  await told()
}

async function leaveOutside({ database, keys }: Crossed, { person, by }: CrossingRow['detail']): Promise<void> {
  await database.transaction((tx) => keys.endPrograms(tx, { person, isOutside: true }, by))
  await keys.noticed()
}
