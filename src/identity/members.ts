// Members of accounts, operators of the gateway, and invitation and password-reset links.

import { accountUnknown } from '../admission/accounts.ts'
import type { Keys } from '../admission/keys.ts'
import type { ToolConnections } from '../credentials/tool-connections.ts'
import type { Audit, By } from '../database/audit.ts'
import { type Queryable, statement } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import {
  checkLogin,
  digestOfToken,
  FIND_PERSON,
  findWithin,
  hashCounted,
  insertPerson,
  type MayGive,
  newToken,
  type PeopleDeps,
  type PersonRow,
  replacePassword,
  requireCovered,
  requireGood,
} from './people.ts'
import { type AccountRole, type AnyRole, coversRole, type OperatorRole, roleMay } from './roles.ts'
import type { Person, SessionUse } from './sessions.ts'
import type { InviteView, MemberView, OperatorView, PendingInvite } from './views.ts'

export interface Members {
  list(account: string): Promise<MemberView[]>
  /** Returns the token of a link that is valid for a week. */
  invite(account: string, input: { email: string; role: AccountRole }, mayGive: MayGive, by: By): Promise<string>
  /** Also revokes the OAuth programs that the person authorized and the links that they made or were sent, so that none of these lead back in. */
  remove(account: string, person: string, options: Leave, by: By): Promise<void>
  changeRole(account: string, person: string, input: Leave & { role: AccountRole }, by: By): Promise<void>
  /** Links that have not been used yet: those of an account, or with null those for new operators. */
  pending(account: string | null): Promise<PendingInvite[]>
  withdraw(account: string | null, invite: string, mayGive: MayGive, by: By): Promise<void>
  operators(): Promise<OperatorView[]>
  inviteOperator(input: { email: string; role: OperatorRole }, mayGive: MayGive, by: By): Promise<string>
  /** Null removes the gateway role; the person keeps their account memberships. The last operator cannot be removed. */
  changeOperator(person: string, role: OperatorRole | null, mayGive: MayGive, by: By): Promise<void>
  /** Returns the token of a password-reset link that is valid for a day. */
  resetPassword(email: string, mayGive: MayGive, by: By): Promise<string>
  look(token: string): Promise<InviteView>
  /** Returns the value of the session cookie and the person's e-mail address. */
  accept(token: string, password: string, visit: SessionUse, by: By): Promise<{ session: string; email: string }>
  /** The same for a person who is signed in with the invited address. They need no password, which people with single sign-on do not have. */
  acceptAs(person: Pick<Person, 'id' | 'email'>, token: string, by: By): Promise<void>
}

interface Leave {
  readonly mayRemoveLastOwner: boolean
  readonly mayGive: MayGive
}

interface InviteRow {
  kind: InviteView['kind']
  account_id: string | null
  account: string | null
  email: string
  role: AnyRole | null
}

const LIST = statement(
  'member_list',
  `select p.id, p.email, m.role, m.created_at, (select max(s.seen_at) from session s where s.person_id = p.id) as seen_at
   from membership m join person p on p.id = m.person_id where m.account_id = $1 order by p.email limit 1000`,
)
const ACCOUNT = statement('member_account', 'select 1 from account where id = $1')
export const INVITE = statement(
  'invite_insert',
  `insert into invite (digest, kind, account_id, email, role, made_by, expires_at)
   values ($1, $2, $3, $4, $5, $6, now() + make_interval(hours => $7))`,
)
const LOOK = statement(
  'invite_find',
  `select i.kind, i.account_id, a.name as account, i.email, i.role from invite i left join account a on a.id = i.account_id
   where i.digest = $1 and i.expires_at > now() and i.kind <> 'sign-up'`,
)
const LOCK_LINKS = statement('invite_lock', 'select 1 from invite where email = $1 order by digest for update')
const USE = statement('invite_use', 'delete from invite where digest = $1 and expires_at > now() returning kind')
const LOCK_MEMBER = statement(
  'member_lock_one',
  'select role from membership where account_id = $1 and person_id = $2 for update',
)
export const JOIN = statement(
  'member_join',
  `insert into membership (account_id, person_id, role) values ($1, $2, $3)
   on conflict (person_id, account_id) do update set role = excluded.role`,
)
const LOCK_MEMBERS = statement(
  'member_lock',
  `select m.person_id, p.email, m.role from membership m join person p on p.id = m.person_id
   where m.account_id = $1 order by m.person_id for update of m`,
)
const PENDING = statement(
  'invite_pending',
  `select encode(digest, 'hex') as id, email, role, created_at, expires_at from invite
   where kind = $1 and account_id is not distinct from $2 and expires_at > now() order by created_at desc limit 200`,
)
const WITHDRAW = statement(
  'invite_withdraw',
  `delete from invite where kind = $1 and account_id is not distinct from $2 and encode(digest, 'hex') = $3 returning email, role`,
)
const MINE = (column: string) => `${column} = (select email from person where id = $1)`
const REMOVE_INVITES = statement(
  'invite_remove_member',
  `delete from invite where account_id = $2 and (${MINE('email')} or ${MINE('made_by')})`,
)
const REMOVE_OPERATOR_INVITES = statement(
  'invite_remove_operator',
  `delete from invite where ${MINE('made_by')} or (kind <> 'member' and ${MINE('email')})`,
)
const OPERATORS = statement(
  'operator_list',
  `select p.id, p.email, p.operator_role as role, p.created_at, (select max(s.seen_at) from session s where s.person_id = p.id) as seen_at
   from person p where p.operator_role is not null order by p.email limit 200`,
)
export const LOCK_OPERATORS = statement(
  'operator_lock',
  'select id, email, operator_role as role from person where operator_role is not null order by id for update',
)
const LOCK_PERSON = statement('person_lock', 'select operator_role as role from person where id = $1 for update')
const SET_OPERATOR = statement('operator_set', 'update person set operator_role = $2 where id = $1')
const SET_ROLE = statement('member_role', 'update membership set role = $3 where account_id = $1 and person_id = $2')
const REMOVE = statement('member_remove', 'delete from membership where account_id = $1 and person_id = $2')

export const INVITE_HOURS = 7 * 24
const RESET_HOURS = 24

interface MemberDeps extends PeopleDeps {
  readonly keys: Pick<Keys, 'endConnections' | 'noticed'>
  readonly toolConnections: Pick<ToolConnections, 'leave'>
}

export function createMembers(deps: MemberDeps): Members {
  const { database, world, audit, sessions, keys, toolConnections } = deps

  async function find(token: string): Promise<InviteRow> {
    const [row] = await database.query<InviteRow>(LOOK, [digestOfToken(token)])
    if (!row) throw linkUnknown()
    return row
  }

  return {
    async list(account) {
      const rows = await database.query<PersonSeen & { role: AccountRole }>(LIST, [account])
      return rows.map((row) => ({ ...personView(row), role: row.role }))
    },

    async invite(account, { email, role }, mayGive, by) {
      requireCovered(mayGive, role, account)
      const token = newToken(world)
      await database.transaction(async (tx) => {
        const [found] = await tx.query(ACCOUNT, [account])
        if (!found) throw accountUnknown()
        await tx.query(INVITE, [digestOfToken(token), 'member', account, email, role, by.actor, INVITE_HOURS])
        await audit.write(tx, by, {
          ...{ action: 'member.invite', object: account, detail: { email, role } },
          before: {},
          after: { email, role },
        })
      })
      return token
    },

    async remove(account, person, options, by) {
      const signedOut = await database.transaction(async (tx) => {
        // Before the members are locked, as when a link is accepted: the same order of locks prevents deadlocks.
        await tx.query(REMOVE_INVITES, [person, account])
        const before = await lockMember(tx, account, person, options)
        const left = await toolConnections.leave(tx, { account, person }, by)
        await tx.query(REMOVE, [account, person])
        await keys.endConnections(tx, { account, person }, by)
        await audit.write(tx, by, {
          action: 'member.remove',
          object: account,
          detail: { person, email: before.email },
          before,
          after: {},
        })
        return left
      })
      await keys.noticed()
      await signedOut()
    },

    async changeRole(account, person, { role, mayRemoveLastOwner, mayGive }, by) {
      requireCovered(mayGive, role, account)
      await database.transaction(async (tx) => {
        if (role !== 'owner') await tx.query(REMOVE_INVITES, [person, account])
        const isKept = mayRemoveLastOwner || role === 'owner'
        const before = await lockMember(tx, account, person, { mayGive, mayRemoveLastOwner: isKept })
        await tx.query(SET_ROLE, [account, person, role])
        await audit.write(tx, by, {
          ...{ action: 'member.role', object: account, detail: { person, email: before.email, role } },
          before,
          after: { ...before, role },
        })
      })
    },

    ...operatorsOf(deps),

    async resetPassword(email, mayGive, by) {
      const token = newToken(world)
      await database.transaction(async (tx) => {
        const person = await findWithin(tx, email, mayGive)
        await tx.query(INVITE, [digestOfToken(token), 'password', null, email, null, by.actor, RESET_HOURS])
        await audit.write(tx, by, { action: 'person.reset', object: person.id, detail: { name: email } })
      })
      return token
    },

    async look(token) {
      const { kind, account, email, role } = await find(token)
      return { kind, account: account ?? '', email, role }
    },

    async acceptAs(person, token, by) {
      const invite = await find(token)
      if (invite.kind === 'password' || invite.email !== person.email)
        throw new Fault('access_denied', { message: `This link is for ${invite.email}. Sign out to use it.` })
      await database.transaction(async (tx) => {
        await useLink(tx, token, invite.email)
        await join(tx, { person: person.id, invite }, audit, by)
      })
    },

    async accept(token, password, visit, by) {
      const invite = await find(token)
      const [known] = await database.query<PersonRow>(FIND_PERSON, [invite.email])
      const { email } = invite
      const mine = { ...by, actor: email }
      if (invite.kind === 'password') {
        if (!known) throw linkUnknown()
        requireGood(password, invite.email)
        const hash = await hashCounted(deps, password, visit)
        return database.transaction(async (tx) => {
          await useLink(tx, token, email)
          const session = await replacePassword(tx, sessions, { id: known.id, hash }, visit)
          await audit.write(tx, mine, { action: 'person.password', object: known.id, detail: { name: email } })
          return { session, email }
        })
      }
      // The link names the invited e-mail address but does not prove who opened it, so an existing person must also log in.
      if (known) await checkLogin(deps, { email: invite.email, password }, visit, by)
      else requireGood(password, invite.email)
      const hash = known ? undefined : await hashCounted(deps, password, visit)
      return database.transaction(async (tx) => {
        await useLink(tx, token, email)
        const person =
          known?.id ?? (await insertPerson(tx, world, { email: invite.email, role: null, password: hash! }))
        await join(tx, { person, invite }, audit, mine)
        return { session: await sessions.start(tx, person, visit), email }
      })
    },
  }
}

/** Locks all links of the mailbox first, in one order: using a link ends others, and two links used at once would wait for each other. */
export async function useLink(tx: Queryable, token: string, email: string): Promise<void> {
  await tx.query(LOCK_LINKS, [email])
  const [used] = await tx.query(USE, [digestOfToken(token)])
  if (!used) throw linkUnknown()
}

/** A link never lowers a role: a member with more rights keeps theirs. */
async function join(
  tx: Queryable,
  { person, invite }: { person: string; invite: InviteRow },
  audit: Audit,
  by: By,
): Promise<void> {
  const { account_id: account, role } = invite
  if (role === null) return
  const [held] =
    account === null
      ? await tx.query<{ role: AnyRole | null }>(LOCK_PERSON, [person])
      : await tx.query<{ role: AnyRole | null }>(LOCK_MEMBER, [account, person])
  const before = held?.role ?? null
  const isMore = before === null || coversRole((permission) => roleMay(role, permission), before)
  if (account === null) {
    if (isMore) await tx.query(SET_OPERATOR, [person, role])
    await audit.write(tx, by, {
      ...{ action: 'operator.join', object: person, detail: { role } },
      before: { role: before },
      after: { role: isMore ? role : before },
    })
  } else {
    if (isMore) await tx.query(JOIN, [account, person, role])
    await audit.write(tx, by, {
      ...{ action: 'member.join', object: account, detail: { person, role } },
      before: before === null ? {} : { role: before },
      after: { email: invite.email, role: isMore ? role : before },
    })
  }
}

/** Returns the member before the change. Throws if there is no such member, if it is the last owner, or if its role has more rights than the actor, unless that is allowed. */
async function lockMember(
  tx: Queryable,
  account: string,
  person: string,
  options: Leave,
): Promise<{ email: string; role: AccountRole }> {
  const { mayGive, mayRemoveLastOwner } = options
  const members = await tx.query<{ person_id: string; email: string; role: AccountRole }>(LOCK_MEMBERS, [account])
  const member = members.find((entry) => entry.person_id === person)
  if (!member) throw new Fault('not_found', { message: 'There is no such member of this account.' })
  requireCovered(mayGive, member.role, account)
  const owners = members.filter(({ role }) => role === 'owner').length
  if (member.role === 'owner' && owners === 1 && !mayRemoveLastOwner)
    throw new Fault('conflict', {
      message: 'This is the last owner of the account. Invite another one first, or ask the operator.',
    })
  return { email: member.email, role: member.role }
}

interface PersonSeen {
  id: string
  email: string
  created_at: Date
  seen_at: Date | null
}

function personView(row: PersonSeen): Omit<OperatorView, 'role'> {
  return {
    userId: row.id,
    email: row.email,
    createdAt: row.created_at.toISOString(),
    lastSeenAt: row.seen_at?.toISOString() ?? null,
  }
}

const kindOf = (account: string | null): InviteView['kind'] => (account === null ? 'operator' : 'member')

/** Pending links and the operators. */
function operatorsOf({
  database,
  world,
  audit,
}: PeopleDeps): Pick<Members, 'pending' | 'withdraw' | 'operators' | 'inviteOperator' | 'changeOperator'> {
  return {
    async pending(account) {
      const rows = await database.query<{
        id: string
        email: string
        role: AnyRole
        created_at: Date
        expires_at: Date
      }>(PENDING, [kindOf(account), account])
      return rows.map(({ id, email, role, ...at }) => ({
        ...{ id, email, role, createdAt: at.created_at.toISOString(), expiresAt: at.expires_at.toISOString() },
      }))
    },

    async withdraw(account, invite, mayGive, by) {
      await database.transaction(async (tx) => {
        const [gone] = await tx.query<{ email: string; role: AnyRole }>(WITHDRAW, [kindOf(account), account, invite])
        if (!gone) throw new Fault('not_found', { message: 'There is no such invitation; it may have been used.' })
        requireCovered(mayGive, gone.role, account ?? undefined)
        await audit.write(tx, by, {
          ...{ action: 'invite.withdraw', object: account ?? 'operators', detail: { email: gone.email } },
          ...{ before: { email: gone.email, role: gone.role }, after: {} },
        })
      })
    },

    async operators() {
      const rows = await database.query<PersonSeen & { role: OperatorRole }>(OPERATORS)
      return rows.map((row) => ({ ...personView(row), role: row.role }))
    },

    async inviteOperator({ email, role }, mayGive, by) {
      requireCovered(mayGive, role)
      const token = newToken(world)
      await database.transaction(async (tx) => {
        await tx.query(INVITE, [digestOfToken(token), 'operator', null, email, role, by.actor, INVITE_HOURS])
        await audit.write(tx, by, {
          ...{ action: 'operator.invite', object: 'operators', detail: { email, role } },
          ...{ before: {}, after: { email, role } },
        })
      })
      return token
    },

    async changeOperator(person, role, mayGive, by) {
      if (role !== null) requireCovered(mayGive, role)
      await database.transaction(async (tx) => {
        if (role !== 'operator') await tx.query(REMOVE_OPERATOR_INVITES, [person])
        const all = await tx.query<{ id: string; email: string; role: OperatorRole }>(LOCK_OPERATORS)
        const held = all.find(({ id }) => id === person)
        if (!held) throw new Fault('not_found', { message: 'There is no such operator.' })
        requireCovered(mayGive, held.role)
        const operators = all.filter((one) => one.role === 'operator').length
        if (held.role === 'operator' && role !== 'operator' && operators === 1)
          throw new Fault('conflict', { message: 'This is the last operator. Invite another one first.' })
        await tx.query(SET_OPERATOR, [person, role])
        const detail = { name: held.email, ...(role === null ? {} : { role }) }
        await audit.write(tx, by, {
          ...{ action: role === null ? 'operator.remove' : 'operator.role', object: person, detail },
          before: { role: held.role },
          after: { role },
        })
      })
    },
  }
}

export function linkUnknown(): Fault {
  return new Fault('not_found', { message: 'This link is not valid any more. Ask for a new one.' })
}
