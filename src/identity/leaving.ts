// What ends when a person leaves an account, or stops being one of the gateway's operators. Every way of leaving calls
// this, in the transaction that removes the membership or the role: removal, SCIM, the loss of a group at a login
// provider, and deleting one's own login. The table in docs/guides/15-people.md says the same.
import type { Keys } from '../admission/keys.ts'
import type { By } from '../database/audit.ts'
import { type Queryable, sql } from '../database/database.ts'
import { invalid } from '../kernel/fault.ts'
import type { EndedView } from './views.ts'

export interface LeavingDeps {
  readonly keys: Pick<Keys, 'endOf' | 'endPrograms' | 'noticed'>
  /** What extensions end in the same transaction; what it gives is to be called when that is committed. */
  readonly onLeave: (tx: Queryable, of: { account: string; person: string }, by: By) => Promise<() => Promise<unknown>>
}

interface Leaver {
  readonly account: string
  readonly person: string
  /** The member who gets the keys. Absent: they end. */
  readonly heir?: string | undefined
  /**
   * The person stays, with a role that may not call. A token has at most the rights of its maker, so theirs stay too.
   */
  readonly stays?: boolean
}

export interface Left {
  readonly ended: EndedView
  /** Call it after the commit. */
  readonly told: () => Promise<void>
}

const MINE = (column: string) => `${column} = (select email from person where id = $1)`
const END_LINKS = sql('leave_links')`
  delete from invite where account_id = $2 and (${MINE('email')} or ${MINE('made_by')}) returning kind`
const END_OPERATOR_LINKS = sql('leave_operator_links')`
  delete from invite where ${MINE('made_by')} or (kind <> 'member' and ${MINE('email')}) returning kind`
// Each token that they made with one of these has their name too.
const END_TOKENS = sql('leave_tokens')`
  update access_token set revoked_at = now() where person_id = $1 and account_id is not distinct from $2 and revoked_at is null returning id`
// What lies in another ledger ends there, a moment later (extensions/ledgers/crossings.ts).
const CROSS = sql('leave_cross')`
  insert into crossing (ledger, kind, detail) select ledger, 'leave', $2 from account where id = $1 and ledger is not null`
const CROSS_ALL = sql('leave_cross_all')`
  insert into crossing (ledger, kind, detail) select distinct ledger, 'leave-outside', $1::jsonb from account where ledger is not null`
const MEMBER = sql('leave_heir')`select 1 from membership where account_id = $1 and person_id = $2 for update`
/** After the membership or the role is gone: whoever belongs nowhere is signed out. */
const END_SESSIONS = sql('leave_sessions')`
  delete from session s using person p where s.person_id = $1 and p.id = s.person_id and p.operator_role is null
     and not exists (select 1 from membership m where m.person_id = p.id) returning s.id`

/**
 * Links that the person made or was sent. They are locked before everything else, as when a link is used: one order of
 * locks prevents deadlocks.
 */
export async function endLinks(tx: Queryable, { account, person }: Leaver): Promise<number> {
  return (await tx.query(END_LINKS, [person, account])).length
}

/** Before the membership is removed. Locks links, then the account, whose members are locked after it. */
export async function leaveAccount(tx: Queryable, deps: LeavingDeps, leaver: Leaver, by: By): Promise<Left> {
  const { account, person, heir } = leaver
  if (heir === person) throw invalid('keysTo: name another member.', 'keysTo')
  const links = await endLinks(tx, leaver)
  const keys = await deps.keys.endOf(tx, leaver, by)
  if (heir !== undefined && !(await tx.query(MEMBER, [account, heir]))[0])
    throw invalid('keysTo: nobody with this id belongs to this account.', 'keysTo')
  const tokens = leaver.stays ? 0 : (await tx.query(END_TOKENS, [person, account])).length
  const told = await deps.onLeave(tx, { account, person }, by)
  await tx.query(CROSS, [account, JSON.stringify({ account, person, heir, by })])
  return {
    ended: { ...keys, links, tokens },
    told: async () => {
      await deps.keys.noticed()
      await told()
    },
  }
}

/** Before the role is taken. Keys that an operator made in accounts of others stay: they are those accounts'. */
export async function leaveOperators(
  tx: Queryable,
  deps: LeavingDeps,
  { person, stays = false }: { person: string; stays?: boolean },
  by: By,
): Promise<Left> {
  const links = (await tx.query(END_OPERATOR_LINKS, [person])).length
  const programs = await deps.keys.endPrograms(tx, { person, isOutside: true }, by)
  await tx.query(CROSS_ALL, [JSON.stringify({ person, by })])
  const tokens = stays ? 0 : (await tx.query(END_TOKENS, [person, null])).length
  return { ended: { keys: 0, handedOver: 0, programs, links, tokens }, told: deps.keys.noticed }
}

/** After the membership or the role is gone. */
export async function signOutIfNowhere(tx: Queryable, person: string): Promise<void> {
  await tx.query(END_SESSIONS, [person])
}
