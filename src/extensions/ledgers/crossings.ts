// What control decides and a ledger does: control writes it down with the decision, the ledger does it, and then it
// goes. A process that dies in between changes nothing: another one finds it, and done twice it has no second effect.
import type { Keys } from '../../admission/keys.ts'
import type { By } from '../../database/audit.ts'
import { type Database, statement } from '../../database/database.ts'
import type { LeavingDeps } from '../../identity/leaving.ts'

const OPEN = statement(
  'crossings_open',
  'select id, kind, detail from crossing where ledger = $1 order by created_at, id limit 500',
)
// Its account may have moved meanwhile, and then another ledger does it.
const DONE = statement('crossing_done', 'delete from crossing where id = $1 and ledger = $2')
/**
 * Of a code, control has counted the use before the ledger granted the credits. If the ledger never did, the use is
 * given back; not before its transaction must have ended.
 */
const GIVE_BACK = statement(
  'crossing_code_back',
  `with gone as (delete from crossing where id = $1 and ledger = $2 and created_at < now() - interval '2 minutes' returning detail)
   update code set uses = uses - 1 from gone where hash = decode(gone.detail ->> 'hash', 'hex')`,
)
const GRANTED = statement(
  'crossing_code_granted',
  `select 1 from code_use where account_id = $1 and hash = decode($2, 'hex')`,
)

interface CrossingRow {
  readonly id: string
  readonly kind: 'leave' | 'leave-outside' | 'code'
  readonly detail: {
    readonly account: string
    readonly person: string
    readonly heir?: string
    readonly hash: string
    readonly by: By
  }
}

export interface Crossed {
  readonly database: Database
  readonly keys: Pick<Keys, 'endOf' | 'endPrograms' | 'noticed'>
  readonly onLeave: LeavingDeps['onLeave']
}

/** Does what is open for a ledger. What fails is tried again, and keeps nothing else waiting. */
export async function cross(control: Pick<Database, 'query'>, name: string, cell: Crossed): Promise<void> {
  const failed: unknown[] = []
  for (const { id, kind, detail } of await control.query<CrossingRow>(OPEN, [name]))
    try {
      const isUndone =
        kind === 'code' && (await cell.database.query(GRANTED, [detail.account, detail.hash])).length === 0
      if (kind === 'leave') await leave(cell, detail)
      if (kind === 'leave-outside') await leaveOutside(cell, detail)
      await control.query(isUndone ? GIVE_BACK : DONE, [id, name])
    } catch (error) {
      failed.push(error)
    }
  if (failed.length > 0) throw failed[0]
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
