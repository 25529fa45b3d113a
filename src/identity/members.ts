// Members of accounts, operators of the gateway, and invitation and password-reset links.

import { accountUnknown } from '../admission/accounts.ts'
import type { Audit, By } from '../database/audit.ts'
import { type Queryable, sql } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { asView } from '../kernel/view.ts'
import { endLinks, type LeavingDeps, leaveAccount, leaveOperators, signOutIfNowhere } from './leaving.ts'
import {
  checkLogin,
  digestOfToken,
  FIND_PERSON,
  findWithin,
  hashCounted,
  insertPerson,
  inviteLink,
  lend,
  lockBeforeRole,
  type MayGive,
  newToken,
  type PeopleDeps,
  type PersonRow,
  replacePassword,
  requireCovered,
  requireGood,
} from './people.ts'
import { END_LOGINS, endOtherWays, proveAddress } from './proving.ts'
import { type AccountRole, type AnyRole, coversRole, type OperatorRole, roleMay } from './roles.ts'
import type { Person, SessionUse } from './sessions.ts'
import {
  type EndedView,
  type InviteView,
  type MemberView,
  memberView,
  type OperatorView,
  operatorView,
  type PendingInvite,
  pendingInvite,
} from './views.ts'

export interface Members {
  list(account: string): Promise<MemberView[]>
  /**
   * Sends a link that is valid for a week, if there is a mail server. Returns its token, except to account roles if it
   * was sent: who can open it could be taken for the mailbox's owner.
   */
  invite(account: string, input: { email: string; role: AccountRole }, inviter: Inviter, by: By): Promise<string | null>
  /** Ends everything that leaving.ts lists. `keysTo`: the member who gets the person's keys instead. */
  remove(account: string, person: string, options: Leave & { keysTo?: string | undefined }, by: By): Promise<EndedView>
  /** A role that may not make keys ends the person's keys as leaving does. */
  changeRole(account: string, person: string, input: Leave & { role: AccountRole }, by: By): Promise<EndedView | null>
  /** Links that have not been used yet: those of an account, or with null those for new operators. */
  pending(account: string | null): Promise<PendingInvite[]>
  withdraw(account: string | null, invite: string, mayGive: MayGive, by: By): Promise<void>
  operators(): Promise<OperatorView[]>
  inviteOperator(input: { email: string; role: OperatorRole }, mayGive: MayGive, by: By): Promise<string>
  /** Null removes the gateway role; the person keeps their account memberships. The last operator cannot be removed. */
  changeOperator(
    person: string,
    change: Pick<Leave, 'mayGive' | 'also'> & { role: OperatorRole | null },
    by: By,
  ): Promise<EndedView | null>
  /** Returns the token of a password-reset link that is valid for a day. */
  resetPassword(email: string, mayGive: MayGive, by: By): Promise<string>
  look(token: string): Promise<InviteView>
  /** Returns the value of the session cookie and the person's email address. */
  accept(token: string, chosen: Chosen, visit: SessionUse, by: By): Promise<{ session: string; email: string }>
  /**
   * The same for a person who is signed in with the invited address. They need no password, which people with single
   * sign-on do not have.
   */
  acceptAs(person: Pick<Person, 'id' | 'email'>, token: string, by: By): Promise<void>
}

interface Inviter {
  readonly mayGive: MayGive
  /**
   * A person or token of the gateway that could make a password link too: whom they give a link to counts as the
   * mailbox's owner.
   */
  readonly vouches: boolean
}

interface Chosen {
  readonly password: string
  /** Of a reset: also ends logins at providers, programs and tokens. */
  readonly endOthers?: boolean | undefined
}

interface Leave {
  readonly mayRemoveLastOwner: boolean
  readonly mayGive: MayGive
  /** In the same transaction. */
  readonly also?: ((tx: Queryable) => Promise<unknown>) | undefined
}

interface InviteRow {
  kind: InviteView['kind']
  account_id: string | null
  account: string | null
  email: string
  role: AnyRole | null
  proves: boolean
}

const LIST = sql('member_list')`
  select p.id as user_id, p.email, m.role, m.created_at, (select max(s.seen_at) from session s where s.person_id = p.id) as last_seen_at
   from membership m join person p on p.id = m.person_id where m.account_id = $1 order by p.email limit 1000`
const ACCOUNT = sql('member_account')`select 1 from account where id = $1`
export const INVITE = sql('invite_insert')`
  insert into invite (digest, kind, account_id, email, role, made_by, expires_at, proves)
   values ($1, $2, $3, $4, $5, $6, now() + make_interval(hours => $7), $8)`
const LOOK = sql('invite_find')`
  select i.kind, i.account_id, a.name as account, i.email, i.role, i.proves from invite i left join account a on a.id = i.account_id
   where i.digest = $1 and i.expires_at > now() and i.kind <> 'sign-up'`
const LOCK_LINKS = sql('invite_lock')`select 1 from invite where email = $1 order by digest for update`
const USE = sql('invite_use')`delete from invite where digest = $1 and expires_at > now() returning kind`
const LOCK_MEMBER = sql('member_lock_one')`
  select role from membership where account_id = $1 and person_id = $2 for update`
// A table of another server takes no `on conflict do update`.
export const JOIN = sql('member_join')`
  with had as (update membership set role = $3 where account_id = $1 and person_id = $2 returning role)
   insert into membership (account_id, person_id, role) select $1, $2, $3 where not exists (select 1 from had)
   on conflict do nothing`
const LOCK_MEMBERS = sql('member_lock')`
  select m.person_id, p.email, m.role from membership m join person p on p.id = m.person_id
   where m.account_id = $1 order by m.person_id for update of m`
const PENDING = sql('invite_pending')`
  select encode(digest, 'hex') as id, email, role, created_at, expires_at from invite
   where kind = $1 and account_id is not distinct from $2 and expires_at > now() order by created_at desc limit 200`
const WITHDRAW = sql('invite_withdraw')`
  delete from invite where kind = $1 and account_id is not distinct from $2 and encode(digest, 'hex') = $3 returning email, role`
const OPERATORS = sql('operator_list')`
  select p.id as user_id, p.email, p.operator_role as role, p.created_at, (select max(s.seen_at) from session s where s.person_id = p.id) as last_seen_at
   from person p where p.operator_role is not null order by p.email limit 200`
export const LOCK_OPERATORS = sql('operator_lock')`
  select id, email, operator_role as role from person where operator_role is not null order by id for update`
const OTHER_WAYS = sql('person_other_ways')`
  select coalesce(l.name, i.issuer) as name, i.email from identity i left join login_provider l on l.id = i.provider_id where i.person_id = $1
   union all select case f.kind when 'passkey' then 'Passkey' else 'Authenticator app' end, f.name from second_factor f where f.person_id = $1 and f.confirmed`
const SET_OPERATOR = sql('operator_set')`update person set operator_role = $2 where id = $1`
const SET_ROLE = sql('member_role')`update membership set role = $3 where account_id = $1 and person_id = $2`
const REMOVE = sql('member_remove')`delete from membership where account_id = $1 and person_id = $2`

export const INVITE_HOURS = 7 * 24
const RESET_HOURS = 24
const INVITES_PER_DAY = 200
/** From all accounts. */
const INVITES_PER_MAILBOX = 5

export interface LinkMails {
  add(tx: Queryable, to: string, name: 'member' | 'operator', link: string): Promise<void>
  wake(): void
}

interface MemberDeps extends PeopleDeps, LeavingDeps {
  /** Undefined: no mail server is configured. */
  readonly linkMails: LinkMails | undefined
  readonly publicUrl: () => string
}

export function createMembers(deps: MemberDeps): Members {
  const { database, world, audit, sessions } = deps

  async function find(token: string): Promise<InviteRow> {
    const [row] = await database.query<InviteRow>(LOOK, [digestOfToken(token)])
    if (!row) throw linkUnknown()
    return row
  }

  return {
    async list(account) {
      const rows = await database.query(LIST, [account])
      return rows.map((row) => asView(memberView, row))
    },

    async invite(account, { email, role }, { mayGive, vouches }, by) {
      requireCovered(mayGive, role, account)
      const token = newToken(world)
      const isMailed = deps.linkMails !== undefined
      if (isMailed && !vouches) await brakeMails(deps, account, email)
      const proves = vouches || isMailed
      await database.transaction(async (tx) => {
        const [found] = await tx.query(ACCOUNT, [account])
        if (!found) throw accountUnknown()
        await tx.query(INVITE, [digestOfToken(token), 'member', account, email, role, by.actor, INVITE_HOURS, proves])
        await deps.linkMails?.add(tx, email, 'member', inviteLink(deps.publicUrl(), token))
        await audit.write(tx, by, {
          action: 'member.invite',
          object: account,
          detail: { email, role },
          before: {},
          after: { email, role },
        })
      })
      deps.linkMails?.wake()
      return isMailed && !vouches ? null : token
    },

    async remove(account, person, { keysTo: heir, ...options }, by) {
      const left = await database.transaction(async (tx) => {
        const { ended, told } = await leaveAccount(tx, deps, { account, person, heir }, by)
        const before = await lockMember(tx, account, person, options)
        await tx.query(REMOVE, [account, person])
        await options.also?.(tx)
        await signOutIfNowhere(tx, person)
        const detail = { person, email: before.email, ...ended, ...(heir === undefined ? {} : { keysTo: heir }) }
        await audit.write(tx, by, { action: 'member.remove', object: account, detail, before, after: {} })
        return { ended, told }
      })
      await left.told()
      return left.ended
    },

    async changeRole(account, person, { role, mayRemoveLastOwner, mayGive, also }, by) {
      requireCovered(mayGive, role, account)
      const left = await database.transaction(async (tx) => {
        const isCaller = roleMay(role, 'keys:write')
        const ending = isCaller ? undefined : await leaveAccount(tx, deps, { account, person, stays: true }, by)
        if (isCaller && role !== 'owner') await endLinks(tx, { account, person })
        const isKept = mayRemoveLastOwner || role === 'owner'
        const before = await lockMember(tx, account, person, { mayGive, mayRemoveLastOwner: isKept })
        if ((await lockBeforeRole(tx, person)).lent && !coversRole((right) => roleMay(before.role, right), role))
          throw lentOut(before.email)
        await tx.query(SET_ROLE, [account, person, role])
        await also?.(tx)
        await audit.write(tx, by, {
          action: 'member.role',
          object: account,
          detail: { person, email: before.email, role, ...ending?.ended },
          before,
          after: { ...before, role },
        })
        return ending
      })
      await left?.told()
      return left?.ended ?? null
    },

    ...operatorsOf(deps),

    async resetPassword(email, mayGive, by) {
      const token = newToken(world)
      await database.transaction(async (tx) => {
        const person = await findWithin(tx, email, mayGive)
        const proves = mayGive('operator')
        await tx.query(INVITE, [digestOfToken(token), 'password', null, email, null, by.actor, RESET_HOURS, proves])
        await audit.write(tx, by, { action: 'person.reset', object: person.id, detail: { name: email } })
      })
      return token
    },

    async look(token) {
      const { kind, account, email, role } = await find(token)
      const [known] = kind === 'password' ? await database.query<PersonRow>(FIND_PERSON, [email]) : []
      const others = known?.verified ? await database.query<OtherWay>(OTHER_WAYS, [known.id]) : []
      return { kind, account: account ?? '', email, role, others: others.map(wayText) }
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

    async accept(token, { password, endOthers }, visit, by) {
      const invite = await find(token)
      const [known] = await database.query<PersonRow>(FIND_PERSON, [invite.email])
      const { email } = invite
      const mine = { ...by, actor: email }
      if (invite.kind === 'password') {
        if (!known) throw linkUnknown()
        requireGood(password, invite.email)
        const hash = await hashCounted(deps, password, visit)
        const done = await database.transaction(async (tx) => {
          await useLink(tx, token, email)
          const told = [invite.proves ? await proveAddress(tx, deps, known.id, mine) : undefined]
          if (endOthers) told.push(await endOtherWays(tx, deps, known.id, mine))
          if (!invite.proves) await lend(tx, known.id)
          const session = await replacePassword(tx, sessions, { id: known.id, hash }, visit)
          // The person is locked: whoever was connecting a login has done so, or finds their session ended.
          if (endOthers) for (const end of END_LOGINS) await tx.query(end, [known.id])
          await audit.write(tx, mine, { action: 'person.password', object: known.id, detail: { name: email } })
          return { session, told }
        })
        for (const told of done.told) await told?.()
        return { session: done.session, email }
      }
      // Checked for everybody, so that the answer to a bad password does not say whether the address has a login.
      requireGood(password, email)
      const isFirst = !known || (invite.proves && (!known.verified || known.lent))
      // A person whose address is proved must log in too: the link does not prove that it was they who opened it.
      if (!isFirst) await checkLogin(deps, { email, password }, visit, by)
      const hash = isFirst ? await hashCounted(deps, password, visit) : undefined
      const done = await database.transaction(async (tx) => {
        await useLink(tx, token, email)
        const told = known && isFirst ? await proveAddress(tx, deps, known.id, mine) : undefined
        const person =
          known?.id ??
          (await insertPerson(tx, world, { email, role: null, password: hash ?? null, verified: invite.proves }))
        const first = known && hash ? await replacePassword(tx, sessions, { id: person, hash }, visit) : undefined
        await join(tx, { person, invite }, audit, mine)
        return { session: first ?? (await sessions.start(tx, person, visit)), told }
      })
      await done.told?.()
      return { session: done.session, email }
    },
  }
}

interface OtherWay {
  readonly name: string
  readonly email: string | null
}

const wayText = ({ name, email }: OtherWay) => (email ? `${name} (${email})` : name)

/** Mails that members of an account cause: to strangers, and to one mailbox. */
async function brakeMails({ attempts }: MemberDeps, account: string, email: string): Promise<void> {
  await attempts.brake([
    { subject: `invites:${account}`, max: INVITES_PER_DAY, perSeconds: 86_400 },
    { subject: `invited:${digestOfToken(email).toString('base64url')}`, max: INVITES_PER_MAILBOX, perSeconds: 86_400 },
  ])
}

/**
 * Locks all links of the mailbox first, in one order: using a link ends others, and two links used at once would wait
 * for each other.
 */
export async function useLink(tx: Queryable, token: string, email: string): Promise<void> {
  await tx.query(LOCK_LINKS, [email])
  const [used] = await tx.query(USE, [digestOfToken(token)])
  if (!used) throw linkUnknown()
}

const lentOut = (email: string) =>
  new Fault('conflict', {
    message: `${email} must prove the mailbox again first, by a link for a new password: somebody with fewer rights has signed in as them.`,
  })

/** A link never lowers a role: a member with more rights keeps theirs. */
async function join(
  tx: Queryable,
  { person, invite }: { person: string; invite: InviteRow },
  audit: Audit,
  by: By,
): Promise<void> {
  const { account_id: account, role } = invite
  if (role === null) return
  const [member] = account === null ? [] : await tx.query<{ role: AnyRole }>(LOCK_MEMBER, [account, person])
  const joining = await lockBeforeRole(tx, person)
  if (joining.lent || (account === null && !joining.verified))
    throw new Fault('access_denied', {
      message: 'Your email address is not proved yet. Sign out, open the link again and choose a new password.',
    })
  const before = account === null ? joining.role : (member?.role ?? null)
  const isMore = before === null || coversRole((permission) => roleMay(role, permission), before)
  if (account === null) {
    if (isMore) await tx.query(SET_OPERATOR, [person, role])
    await audit.write(tx, by, {
      action: 'operator.join',
      object: person,
      detail: { role },
      before: { role: before },
      after: { role: isMore ? role : before },
    })
  } else {
    if (isMore) await tx.query(JOIN, [account, person, role])
    await audit.write(tx, by, {
      action: 'member.join',
      object: account,
      detail: { person, role },
      before: before === null ? {} : { role: before },
      after: { email: invite.email, role: isMore ? role : before },
    })
  }
}

/**
 * Returns the member before the change. Throws if there is no such member, if it is the last owner, or if its role has
 * more rights than the actor, unless that is allowed.
 */
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

const kindOf = (account: string | null): InviteView['kind'] => (account === null ? 'operator' : 'member')

/** Pending links and the operators. */
function operatorsOf(
  deps: MemberDeps,
): Pick<Members, 'pending' | 'withdraw' | 'operators' | 'inviteOperator' | 'changeOperator'> {
  const { database, world, audit } = deps
  return {
    async pending(account) {
      const rows = await database.query(PENDING, [kindOf(account), account])
      return rows.map((row) => asView(pendingInvite, row))
    },

    async withdraw(account, invite, mayGive, by) {
      await database.transaction(async (tx) => {
        const [gone] = await tx.query<{ email: string; role: AnyRole }>(WITHDRAW, [kindOf(account), account, invite])
        if (!gone) throw new Fault('not_found', { message: 'There is no such invitation; it may have been used.' })
        requireCovered(mayGive, gone.role, account ?? undefined)
        await audit.write(tx, by, {
          action: 'invite.withdraw',
          object: account ?? 'operators',
          detail: { email: gone.email },
          before: { email: gone.email, role: gone.role },
          after: {},
        })
      })
    },

    async operators() {
      const rows = await database.query(OPERATORS)
      return rows.map((row) => asView(operatorView, row))
    },

    async inviteOperator({ email, role }, mayGive, by) {
      requireCovered(mayGive, role)
      const token = newToken(world)
      await database.transaction(async (tx) => {
        await tx.query(INVITE, [digestOfToken(token), 'operator', null, email, role, by.actor, INVITE_HOURS, true])
        await deps.linkMails?.add(tx, email, 'operator', inviteLink(deps.publicUrl(), token))
        await audit.write(tx, by, {
          action: 'operator.invite',
          object: 'operators',
          detail: { email, role },
          before: {},
          after: { email, role },
        })
      })
      deps.linkMails?.wake()
      return token
    },

    async changeOperator(person, { role, mayGive, also }, by) {
      if (role !== null) requireCovered(mayGive, role)
      const left = await database.transaction(async (tx) => {
        const ending =
          role === 'operator' ? undefined : await leaveOperators(tx, deps, { person, stays: role !== null }, by)
        const all = await tx.query<{ id: string; email: string; role: OperatorRole }>(LOCK_OPERATORS)
        const held = all.find(({ id }) => id === person)
        if (!held) throw new Fault('not_found', { message: 'There is no such operator.' })
        requireCovered(mayGive, held.role)
        const operators = all.filter((one) => one.role === 'operator').length
        if (held.role === 'operator' && role !== 'operator' && operators === 1)
          throw new Fault('conflict', { message: 'This is the last operator. Invite another one first.' })
        await tx.query(SET_OPERATOR, [person, role])
        await also?.(tx)
        await signOutIfNowhere(tx, person)
        const detail = { name: held.email, ...(role === null ? {} : { role }), ...ending?.ended }
        await audit.write(tx, by, {
          action: role === null ? 'operator.remove' : 'operator.role',
          object: person,
          detail,
          before: { role: held.role },
          after: { role },
        })
        return ending
      })
      await left?.told()
      return left?.ended ?? null
    },
  }
}

export function linkUnknown(): Fault {
  return new Fault('not_found', { message: 'This link is not valid any more. Ask for a new one.' })
}
