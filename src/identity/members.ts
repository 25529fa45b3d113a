// Who belongs to an account, and the links by which people come to: to join, or to choose a new password.

import { accountUnknown } from '../admission/accounts.ts'
import type { By } from '../database/audit.ts'
import { type Queryable, statement } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { digestOfToken, newToken } from './link.ts'
import {
  checkLogin,
  FIND_PERSON,
  hashCounted,
  insertPerson,
  type PeopleDeps,
  type PersonRow,
  replacePassword,
  requireGood,
} from './people.ts'
import type { Visit } from './sessions.ts'
import type { InviteView, MemberView, Role } from './views.ts'

export interface Members {
  list(account: string): Promise<MemberView[]>
  /** Answers the token of a link that holds for a week. */
  invite(account: string, input: { email: string; role: Role }, by: By): Promise<string>
  remove(account: string, person: string, options: { mayRemoveLastOwner: boolean }, by: By): Promise<void>
  /** The token of a link by which somebody who forgot their password chooses another; for a day. */
  resetPassword(email: string, by: By): Promise<string>
  look(token: string): Promise<InviteView>
  /** Answers the value of the session cookie. */
  accept(token: string, password: string, visit: Visit, by: By): Promise<string>
}

interface InviteRow {
  kind: 'member' | 'password'
  account_id: string | null
  account: string | null
  email: string
  role: Role | null
}

const LIST = statement(
  'member_list',
  `select p.id, p.email, m.role, m.created_at, (select max(s.seen_at) from session s where s.person_id = p.id) as seen_at
   from membership m join person p on p.id = m.person_id where m.account_id = $1 order by p.email limit 1000`,
)
const ACCOUNT = statement('member_account', 'select 1 from account where id = $1')
const INVITE = statement(
  'invite_insert',
  `insert into invite (digest, kind, account_id, email, role, expires_at)
   values ($1, $2, $3, $4, $5, now() + make_interval(days => $6))`,
)
const LOOK = statement(
  'invite_find',
  `select i.kind, i.account_id, a.name as account, i.email, i.role from invite i left join account a on a.id = i.account_id
   where i.digest = $1 and i.expires_at > now()`,
)
const USE = statement('invite_use', 'delete from invite where digest = $1 and expires_at > now() returning kind')
// Somebody who is an owner does not become less by following an older link.
const JOIN = statement(
  'member_join',
  `insert into membership (account_id, person_id, role) values ($1, $2, $3)
   on conflict (person_id, account_id) do update set role = excluded.role where membership.role = 'member'`,
)
const LOCK_MEMBERS = statement(
  'member_lock',
  'select person_id, role from membership where account_id = $1 order by person_id for update',
)
const REMOVE = statement('member_remove', 'delete from membership where account_id = $1 and person_id = $2')

const INVITE_DAYS = 7
const RESET_DAYS = 1

export function createMembers(deps: PeopleDeps): Members {
  const { database, world, audit, sessions } = deps

  async function find(token: string): Promise<InviteRow> {
    const [row] = await database.query<InviteRow>(LOOK, [digestOfToken(token)])
    if (!row) throw linkUnknown()
    return row
  }

  async function use(tx: Queryable, token: string): Promise<void> {
    const [used] = await tx.query(USE, [digestOfToken(token)])
    if (!used) throw linkUnknown()
  }

  return {
    async list(account) {
      const rows = await database.query<{
        id: string
        email: string
        role: Role
        created_at: Date
        seen_at: Date | null
      }>(LIST, [account])
      return rows.map((row) => ({
        userId: row.id,
        email: row.email,
        role: row.role,
        createdAt: row.created_at.toISOString(),
        lastSeenAt: row.seen_at?.toISOString() ?? null,
      }))
    },

    async invite(account, { email, role }, by) {
      const token = newToken(world)
      await database.transaction(async (tx) => {
        const [found] = await tx.query(ACCOUNT, [account])
        if (!found) throw accountUnknown()
        await tx.query(INVITE, [digestOfToken(token), 'member', account, email, role, INVITE_DAYS])
        await audit.write(tx, by, { action: 'member.invite', object: account, detail: { email, role } })
      })
      return token
    },

    async remove(account, person, { mayRemoveLastOwner }, by) {
      await database.transaction(async (tx) => {
        const members = await tx.query<{ person_id: string; role: Role }>(LOCK_MEMBERS, [account])
        const member = members.find((entry) => entry.person_id === person)
        if (!member) throw new Fault('not_found', { message: 'There is no such member of this account.' })
        const owners = members.filter(({ role }) => role === 'owner').length
        if (member.role === 'owner' && owners === 1 && !mayRemoveLastOwner)
          throw new Fault('conflict', {
            message: 'This is the last owner of the account. Invite another one first, or ask the operator.',
          })
        await tx.query(REMOVE, [account, person])
        await audit.write(tx, by, { action: 'member.remove', object: account, detail: { person } })
      })
    },

    async resetPassword(email, by) {
      const token = newToken(world)
      await database.transaction(async (tx) => {
        const [person] = await tx.query<PersonRow>(FIND_PERSON, [email])
        if (!person) throw new Fault('not_found', { message: 'Nobody has this e-mail address here.' })
        await tx.query(INVITE, [digestOfToken(token), 'password', null, email, null, RESET_DAYS])
        await audit.write(tx, by, { action: 'person.reset', object: person.id })
      })
      return token
    },

    async look(token) {
      const { kind, account, email, role } = await find(token)
      return { kind, account: account ?? '', email, role }
    },

    async accept(token, password, visit, by) {
      const invite = await find(token)
      const [known] = await database.query<PersonRow>(FIND_PERSON, [invite.email])
      const mine = { ...by, actor: invite.email }
      if (invite.kind === 'password') {
        if (!known) throw linkUnknown()
        requireGood(password, invite.email)
        const hash = await hashCounted(deps, password, visit)
        return database.transaction(async (tx) => {
          await use(tx, token)
          const cookie = await replacePassword(tx, sessions, { id: known.id, hash }, visit)
          await audit.write(tx, mine, { action: 'person.password', object: known.id })
          return cookie
        })
      }
      // The link says which address was meant, not who opened it: somebody who has a login here proves that it is theirs.
      if (known) await checkLogin(deps, { email: invite.email, password }, visit, by)
      else requireGood(password, invite.email)
      const hash = known ? undefined : await hashCounted(deps, password, visit)
      return database.transaction(async (tx) => {
        await use(tx, token)
        const person =
          known?.id ?? (await insertPerson(tx, world, { email: invite.email, operator: false, password: hash! }))
        await tx.query(JOIN, [invite.account_id!, person, invite.role!])
        const cookie = await sessions.start(tx, person, visit)
        const detail = { person, role: invite.role }
        await audit.write(tx, mine, { action: 'member.join', object: invite.account_id!, detail })
        return cookie
      })
    },
  }
}

function linkUnknown(): Fault {
  return new Fault('not_found', { message: 'This link is not valid any more. Ask for a new one.' })
}
