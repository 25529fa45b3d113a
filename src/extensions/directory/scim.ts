// People and groups by SCIM 2.0: a company's directory creates, changes and deactivates logins here. A token of an
// account manages the people of that account, a token of the whole gateway its operators. A directory cannot take over
// a person who also belongs to others: it can remove its own membership from them, and neither change their email
// address nor delete them.
import { GIVE_UP } from '../../admission/teams.ts'
import type { By } from '../../database/audit.ts'
import { isTaken, type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import type { LeavingDeps } from '../../identity/leaving.ts'
import { domainOf } from '../../identity/mailbox.ts'
import { JOIN, type Members } from '../../identity/members.ts'
import { FIND_PERSON, insertPerson, lockBeforeRole, type PersonRow } from '../../identity/people.ts'
import { END_WAYS_IN, proveAddress } from '../../identity/proving.ts'
import {
  ACCOUNT_ROLES,
  type AccountRole,
  type AnyRole,
  OPERATOR_ROLES,
  type OperatorRole,
} from '../../identity/roles.ts'
import type { Sessions } from '../../identity/sessions.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Json } from '../../kernel/json.ts'
import { newId } from '../../kernel/world.ts'
import { type GivenGroup, type GivenUser, readGroup, readUser } from './scim-given.ts'
import { ScimError } from './scim-query.ts'

/**
 * The account whose people are managed, or null for the gateway's operators; and the roles that the token may give and
 * remove.
 */
export interface ScimScope {
  readonly account: string | null
  readonly mayGive: (role: AnyRole) => boolean
  readonly by: By
}

/** Computes the new resource from the current one. */
export type Next = (was: Json) => Json

export type Scim = ReturnType<typeof createScim>

interface ScimDeps extends Pick<CoreParts, 'database' | 'world' | 'audit'>, LeavingDeps {
  readonly members: Pick<Members, 'invite' | 'remove' | 'changeRole' | 'changeOperator'>
  /** Whether invitations can be sent. */
  readonly mails: boolean
  readonly sessions: Pick<Sessions, 'endAll'>
}

export const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const GROUP_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Group'
/** The attributes that a directory may set. */
export const USER_NAMES = ['userName', 'externalId', 'active', 'displayName', 'name', 'emails']
export const GROUP_NAMES = ['displayName', 'externalId', 'members']

const PEOPLE_MAX = 20_000
/** Per account or for the gateway: the number of groups, and the sum of their members. */
const GROUPS_MAX = 5_000
const PLACES_MAX = 200_000

interface UserRow {
  id: string
  email: string
  role: AnyRole | null
  user_name: string | null
  external_id: string | null
  attributes: Json | null
  active: boolean | null
  managed: boolean | null
  by_group: boolean | null
  created_at: Date
  updated_at: Date | null
  groups: Array<{ value: string; display: string }> | null
}

const USER = `select p.id, p.email, s.user_name, s.external_id, s.attributes, s.active, s.managed, s.by_group, coalesce(s.created_at, p.created_at) as created_at, s.updated_at,
     case when $1 = '' then p.operator_role else m.role end as role,
     (select json_agg(json_build_object('value', g.id, 'display', g.display_name) order by g.display_name)
      from scim_group_member n join scim_group g on g.scope = n.scope and g.id = n.group_id where n.scope = $1 and n.person_id = p.id) as groups
   from person p left join membership m on m.person_id = p.id and m.account_id = $1 left join scim_user s on s.person_id = p.id and s.scope = $1
   where (s.person_id is not null or m.person_id is not null or ($1 = '' and p.operator_role is not null))`
const LIST = sql('scim_users')`${USER} order by p.id limit ${PEOPLE_MAX}`
const FIND = sql('scim_user')`${USER} and p.id = $2`
const PERSON = sql('scim_person')`select id from person where email = $1`
/**
 * The domain is this account's or, with null, the gateway's: a login provider maps it there, or nowhere and the account
 * has proved it by DNS.
 */
const DOMAIN = sql('scim_domain')`select 1 from login_domain where domain = $1 and account_id is not distinct from $2
   union all select 1 from account_domain where domain = $1 and account_id = $2 and not exists (select 1 from login_domain where domain = $1)`
const PENDING = sql('scim_pending')`
  select 1 from invite where kind = 'member' and account_id = $1 and email = $2 and expires_at > now()`
/** A login provider maps this domain to another account. */
const OTHERS_DOMAIN = sql('scim_others_domain')`
  select 1 from login_domain where domain = $1 and account_id is distinct from $2`
const PUT_USER = sql('scim_user_put')`
  insert into scim_user (scope, person_id, user_name, external_id, attributes, active, managed, by_group) values ($1, $2, $3, $4, $5, $6, $7, $8)
   on conflict (scope, person_id) do update set user_name = excluded.user_name, external_id = excluded.external_id, attributes = excluded.attributes,
     active = excluded.active, managed = scim_user.managed or excluded.managed, by_group = excluded.by_group, updated_at = now()`
const SET_BY_GROUP = sql('scim_user_by_group')`update scim_user set by_group = $3 where scope = $1 and person_id = $2`
const TAKEN = sql('scim_user_taken')`
  select 1 from scim_user where scope = $1 and lower(user_name) = lower($2) and person_id <> $3`
/** Locks the person, if they belong to nothing but this account or gateway. */
const LOCK_OWN = sql('scim_own')`select p.id from person p where p.id = $2 and ($1 = '' or p.operator_role is null)
     and not exists (select 1 from membership o where o.person_id = p.id and o.account_id <> $1)
     and not exists (select 1 from scim_user o where o.person_id = p.id and o.scope <> $1) for update`
// Logins with the old address must not give access to the new one, so password, identities and factors are removed.
const SET_EMAIL = sql('scim_email')`update person set email = $2, password = null where id = $1`
const COUNT = sql('scim_user_count')`select count(*)::int as count from scim_user where scope = $1`
const SET_OPERATOR = sql('scim_operator')`update person set operator_role = $2 where id = $1 and operator_role is null`
const DROP_USER = sql('scim_user_drop')`delete from scim_user where scope = $1 and person_id = $2`
const DROP_PERSON = sql('scim_person_drop')`delete from person where id = $1`
const GROUP = `select g.id, g.display_name, g.external_id, g.created_at, g.updated_at,
     (select json_agg(json_build_object('value', n.person_id) order by n.person_id) from scim_group_member n
      where n.scope = g.scope and n.group_id = g.id) as members from scim_group g where g.scope = $1`
const GROUPS = sql('scim_groups')`${GROUP} order by g.id`
const GROUP_OF = sql('scim_group')`${GROUP} and g.id = $2`
const GROUP_COUNTS = sql('scim_group_counts')`
  select (select count(*)::int from scim_group where scope = $1) as groups, (select count(*)::int from scim_group_member where scope = $1) as places`
const ADD_GROUP = sql('scim_group_add')`
  insert into scim_group (scope, id, display_name, external_id) values ($1, $2, $3, $4) returning id`
const SET_GROUP = sql('scim_group_set')`
  update scim_group set display_name = $3, external_id = $4, updated_at = now() where scope = $1 and id = $2 returning id`
const LOCK_GROUP = sql('scim_group_lock')`
  select display_name, external_id from scim_group where scope = $1 and id = $2 for update`
const DROP_GROUP = sql('scim_group_drop')`delete from scim_group where scope = $1 and id = $2 returning id`
const RENAME_IN_TEAMS = sql('scim_group_rename')`
  update team set scim_group = $3 where account_id = $1 and lower(scim_group) = lower($2)`
const JOIN_GROUP = sql('scim_group_join')`
  insert into scim_group_member (scope, group_id, person_id) select $1, $2, x from unnest($3::text[]) as x on conflict do nothing`
const LEAVE_GROUP = sql('scim_group_leave')`
  delete from scim_group_member where scope = $1 and group_id = $2 and person_id = any($3::text[])`
const NAMED = sql('scim_users_named')`${USER} and p.id = any($2::text[])`
const FOLLOWING = sql('scim_users_following')`${USER} and (p.id = any($2::text[]) or s.by_group)`

/** Stores what the directory has sent. `byGroup`: whether a group gives the role. */
type Keep = (tx: Queryable, byGroup: boolean) => Promise<void>

interface GroupRow {
  id: string
  display_name: string
  external_id: string | null
  created_at: Date
  updated_at: Date | null
  members: Array<{ value: string }> | null
}

export function createScim(deps: ScimDeps) {
  const { database, world, audit, members, sessions } = deps

  async function find(scope: ScimScope, id: string): Promise<UserRow> {
    const [row] = await database.query<UserRow>(FIND, [nameOf(scope), id])
    if (!row) throw new ScimError(404, 'There is no such user here.')
    return row
  }

  /** The highest role that the person's groups give; without one, the current role or the lowest. */
  function roleOf(scope: ScimScope, row: UserRow): { role: AnyRole; byGroup: boolean } {
    const roles = rolesOf(scope)
    const given = new Set(row.groups?.map(({ display }) => roleNamed(display)))
    const best = roles.find((role) => given.has(role))
    if (best) return { role: best, byGroup: true }
    const least = scope.account === null ? 'support' : 'member'
    return { role: row.by_group ? least : (row.role ?? least), byGroup: false }
  }

  const isPlaced = (scope: ScimScope, row: UserRow) => {
    const { role, byGroup } = roleOf(scope, row)
    return row.role === role && row.by_group === byGroup
  }

  /**
   * Applies the directory's state to the membership, and stores it in the same transaction: a rejected change leaves no
   * trace, and no login in between finds a person active who is not.
   */
  async function place(scope: ScimScope, row: UserRow, active: boolean, keep: Keep): Promise<void> {
    const { role, byGroup } = roleOf(scope, row)
    const also = (tx: Queryable) => keep(tx, byGroup)
    if (active ? row.role === role : row.role === null) return database.transaction(also)
    if (!scope.mayGive(active ? role : (row.role ?? role)))
      throw new ScimError(403, `This token may not give or take the role ${active ? role : row.role}.`)
    const { account, by, mayGive } = scope
    const options = { mayGive, mayRemoveLastOwner: false, also }
    if (row.role === null) await join(scope, row.id, role, also)
    else if (account === null) {
      const next = active ? (role as OperatorRole) : null // One of the gateway's.
      await members.changeOperator(row.id, { ...options, role: next }, by)
    } else if (!active) await members.remove(account, row.id, options, by)
    else await members.changeRole(account, row.id, { ...options, role: role as AccountRole }, by) // One of the account's.
  }

  async function join(
    { account, by }: ScimScope,
    person: string,
    role: AnyRole,
    also: (tx: Queryable) => Promise<void>,
  ): Promise<void> {
    const told = await database.transaction(async (tx) => {
      // The directory vouches for the mailbox.
      const proved = (await lockBeforeRole(tx, person)).lent ? await proveAddress(tx, deps, person, by) : undefined
      if (account === null) await tx.query(SET_OPERATOR, [person, role])
      else await tx.query(JOIN, [account, person, role])
      await also(tx)
      const action = account === null ? 'operator.join' : 'member.join'
      await audit.write(tx, by, {
        action,
        object: account ?? person,
        detail: { person, role },
        before: { role: null },
        after: { role },
      })
      return proved
    })
    await told?.()
  }

  async function store(scope: ScimScope, row: UserRow, given: GivenUser, managed: boolean): Promise<Json> {
    const [taken] = await database.query(TAKEN, [nameOf(scope), given.userName, row.id])
    if (taken) throw new ScimError(409, 'Another user has this userName.', 'uniqueness')
    const isMoved = given.email !== row.email
    if (isMoved && !row.managed) throw notOurs()
    if (isMoved) await requireDomain(scope, given.email)
    await place(scope, row, given.active, async (tx, byGroup) => {
      if (isMoved) await changeEmail(tx, scope, row, given.email)
      await tx.query(PUT_USER, [
        nameOf(scope),
        row.id,
        given.userName,
        given.externalId,
        JSON.stringify(given.attributes),
        given.active,
        managed,
        byGroup,
      ])
    })
    return userView(await find(scope, row.id))
  }

  /**
   * Only for people whom this directory created and who belong nowhere else, because whoever controls the address can
   * set a new password.
   */
  async function changeEmail(tx: Queryable, scope: ScimScope, row: UserRow, email: string): Promise<void> {
    if (!(await tx.query(LOCK_OWN, [nameOf(scope), row.id]))[0]) throw notOurs()
    const [other] = await tx.query(PERSON, [email])
    if (other) throw new ScimError(409, 'Somebody has this email address already.', 'uniqueness')
    await tx.query(SET_EMAIL, [row.id, email])
    for (const end of END_WAYS_IN) await tx.query(end, [row.id])
    await sessions.endAll(tx, row.id)
    await audit.write(tx, scope.by, {
      action: 'person.email',
      object: row.id,
      before: { email: row.email },
      after: { email },
    })
  }

  /**
   * A directory of an account decides about addresses of proved domains only. The answer does not say whether an
   * address has a login.
   */
  async function requireDomain({ account }: ScimScope, email: string): Promise<void> {
    const domain = domainOf(email)
    const [own] = await database.query(DOMAIN, [domain, account])
    if (own) return
    if (account !== null) throw foreign(domain)
    if ((await database.query(OTHERS_DOMAIN, [domain, account]))[0])
      throw new ScimError(409, 'This email domain belongs to an account.', 'uniqueness')
  }

  /** Of a foreign domain, the mailbox has to accept: at most one open invitation. */
  async function inviteForeign({ account, mayGive, by }: ScimScope, email: string): Promise<void> {
    if (account === null || !deps.mails || (await database.query(PENDING, [account, email]))[0]) return
    await members.invite(account, { email, role: 'member' }, { mayGive, vouches: false }, by)
  }

  /** Creates a person, or finds an existing one who is a member here or whose domain belongs to this account. */
  async function personFor(scope: ScimScope, email: string): Promise<{ id: string; managed: boolean }> {
    const [known] = await database.query<PersonRow>(FIND_PERSON, [email])
    const [member] = known ? await database.query<UserRow>(FIND, [nameOf(scope), known.id]) : []
    if (member?.user_name) throw new ScimError(409, 'There is a user with this email address.', 'uniqueness')
    if (known && member) return { id: known.id, managed: false }
    await requireDomain(scope, email).catch(async (error: unknown) => {
      await inviteForeign(scope, email)
      throw error
    })
    if (!known) {
      const person = { email, role: null, password: null, verified: true }
      return { id: await database.transaction((tx) => insertPerson(tx, world, person)), managed: true }
    }
    if (!(await database.query(DOMAIN, [domainOf(email), scope.account]))[0])
      throw new ScimError(
        409,
        'This person has a login already and does not belong here. Invite them: joining needs their consent.',
        'uniqueness',
      )
    // The domain's owner vouches for the mailbox.
    const told = await database.transaction((tx) => proveAddress(tx, deps, known.id, scope.by))
    await told?.()
    return { id: known.id, managed: false }
  }

  async function groupOf(scope: ScimScope, id: string): Promise<GroupRow> {
    const [row] = await database.query<GroupRow>(GROUP_OF, [nameOf(scope), id])
    if (!row) throw groupUnknown()
    return row
  }

  /** Updates the roles of people from groups that are named like a role. */
  async function follow(scope: ScimScope, people: Iterable<string>): Promise<void> {
    for (const id of new Set(people)) {
      const [row] = await database.query<UserRow>(FIND, [nameOf(scope), id])
      if (!row?.user_name || row.active === false) continue
      if (isPlaced(scope, row)) continue
      await place(scope, row, true, async (tx, byGroup) => {
        await tx.query(SET_BY_GROUP, [nameOf(scope), id, byGroup])
      })
    }
  }

  /** Repairs roles that an interrupted change left behind. Roles that this token may not give or remove are skipped. */
  async function catchUp(scope: ScimScope, people: readonly string[]): Promise<void> {
    for (const row of await database.query<UserRow>(FOLLOWING, [nameOf(scope), people])) {
      if (isPlaced(scope, row)) continue
      await follow(scope, [row.id]).catch((error) => {
        if ((scimErrorOf(error)?.status ?? 500) >= 500) throw error
      })
    }
  }

  /** Without `from` the group is created, without `to` it is deleted. */
  async function storeGroup(scope: ScimScope, id: string, from?: GivenGroup, to?: GivenGroup): Promise<void> {
    await changeGroup(scope, id, from, to)
    const roles = rolesOf(scope)
    const [was, is] = [from, to].map((one) => roles.find((role) => one && role === roleNamed(one.displayName)))
    if (!was && !is) return
    const all = [to, from].flatMap((one) => one?.members ?? [])
    try {
      // People who gain a role come first, so that replacing the last owner leaves no moment without an owner.
      await follow(scope, was === is ? difference(to, from).concat(difference(from, to)) : all)
    } catch (error) {
      // A role may not be given or removed: restore the group.
      await changeGroup(scope, id, to, from)
      await catchUp(scope, all)
      throw error
    }
    await catchUp(scope, all)
  }

  async function changeGroup(scope: ScimScope, id: string, from?: GivenGroup, to?: GivenGroup): Promise<void> {
    const name = nameOf(scope)
    const [joined, left] = [difference(to, from), difference(from, to)]
    await database.transaction(async (tx) => {
      const [was] = await tx.query<Pick<GroupRow, 'display_name' | 'external_id'>>(LOCK_GROUP, [name, id])
      if (from && !was) throw groupUnknown()
      // Attributes that this change does not touch keep their stored value, which may be newer than `from`.
      const isSame = (part: 'displayName' | 'externalId') => from !== undefined && to?.[part] === from[part]
      const display = (was && isSame('displayName') ? was.display_name : to?.displayName) ?? ''
      const external = (was && isSame('externalId') ? was.external_id : to?.externalId) ?? null
      if (to) await tx.query(was ? SET_GROUP : ADD_GROUP, [name, id, display, external])
      else await tx.query(DROP_GROUP, [name, id])
      if (was && to && was.display_name !== display) await tx.query(RENAME_IN_TEAMS, [name, was.display_name, display])
      const came = await known(tx, scope, joined)
      const went = await tx.query<UserRow>(NAMED, [name, left])
      await tx.query(JOIN_GROUP, [name, id, to ? joined : []])
      await tx.query(LEAVE_GROUP, [name, id, left])
      // From now on the directory decides who is in the teams of this group.
      if (to) await tx.query(GIVE_UP, [name, display])
      // The audit log has only the members who joined or left.
      const told = (group: GivenGroup | undefined, changed: readonly UserRow[]) =>
        group ? { name: group.displayName, members: changed.map(({ email }) => email) } : {}
      await audit.write(tx, scope.by, {
        action: to ? 'scim.group.put' : 'scim.group.delete',
        object: id,
        detail: { name: (to ?? from)?.displayName ?? id },
        before: told(from, went),
        after: told(to, came),
      })
    })
  }

  /** Creates the SCIM row of members that have none yet, because groups refer to it. */
  async function known(tx: Queryable, scope: ScimScope, people: readonly string[]): Promise<UserRow[]> {
    const rows = await tx.query<UserRow>(NAMED, [nameOf(scope), people])
    const ids = new Set(rows.map(({ id }) => id))
    const missing = people.find((id) => !ids.has(id))
    if (missing !== undefined)
      throw new ScimError(400, `There is no user "${missing.slice(0, 60)}" here.`, 'invalidValue')
    for (const row of rows)
      if (!row.user_name) await tx.query(PUT_USER, userValues(scope, { ...row, user_name: row.email }, false))
    return rows
  }

  /** Checks the limits for a new or growing group. */
  async function checkRoom(scope: ScimScope, from: GivenGroup | undefined, to: GivenGroup): Promise<void> {
    const more = to.members.length - (from?.members.length ?? 0)
    if (from && more <= 0) return
    const [counts] = await database.query<{ groups: number; places: number }>(GROUP_COUNTS, [nameOf(scope)])
    if (!from && counts && counts.groups >= GROUPS_MAX)
      throw new ScimError(413, `At most ${GROUPS_MAX} groups are kept here.`)
    if (counts && counts.places + more > PLACES_MAX)
      throw new ScimError(413, `All groups together have at most ${PLACES_MAX} members.`)
  }

  return {
    users: async (scope: ScimScope): Promise<Json[]> =>
      (await database.query<UserRow>(LIST, [nameOf(scope)])).map(userView),
    user: async (scope: ScimScope, id: string): Promise<Json> => userView(await find(scope, id)),

    async createUser(scope: ScimScope, body: Json): Promise<Json> {
      const given = readUser(body)
      const [taken] = await database.query(TAKEN, [nameOf(scope), given.userName, ''])
      if (taken) throw new ScimError(409, 'Another user has this userName.', 'uniqueness')
      const [count] = await database.query<{ count: number }>(COUNT, [nameOf(scope)])
      if ((count?.count ?? 0) >= PEOPLE_MAX) throw new ScimError(413, `At most ${PEOPLE_MAX} people are managed here.`)
      const { id, managed } = await personFor(scope, given.email)
      try {
        // The row comes first, because `find` reads it.
        const blank = { by_group: false, attributes: {}, external_id: null, active: true }
        await database.query(PUT_USER, userValues(scope, { ...blank, id, user_name: given.userName, managed }, false))
        return await store(scope, await find(scope, id), given, managed)
      } catch (error) {
        await database.query(DROP_USER, [nameOf(scope), id])
        if (managed) await database.query(DROP_PERSON, [id])
        throw error
      }
    },

    async replaceUser(scope: ScimScope, id: string, next: Next): Promise<Json> {
      const row = await find(scope, id)
      return store(scope, row, readUser(next(userView(row))), false)
    },

    async deleteUser(scope: ScimScope, id: string): Promise<void> {
      const row = await find(scope, id)
      await place(scope, row, false, async (tx) => {
        // A person whom this directory created and who belongs nowhere else is deleted.
        const [own] = row.managed ? await tx.query(LOCK_OWN, [nameOf(scope), id]) : []
        await tx.query(DROP_USER, [nameOf(scope), id])
        if (own) await tx.query(DROP_PERSON, [id])
        await audit.write(tx, scope.by, {
          action: 'scim.user.delete',
          object: id,
          detail: { email: row.email },
          before: { email: row.email, userName: row.user_name, role: row.role },
          after: {},
        })
      })
    },

    groups: async (scope: ScimScope): Promise<Json[]> =>
      (await database.query<GroupRow>(GROUPS, [nameOf(scope)])).map(groupView),
    group: async (scope: ScimScope, id: string): Promise<Json> => groupView(await groupOf(scope, id)),
    async createGroup(scope: ScimScope, body: Json): Promise<Json> {
      const given = readGroup(body)
      await checkRoom(scope, undefined, given)
      const id = `grp_${newId(world)}`
      await storeGroup(scope, id, undefined, given)
      return groupView(await groupOf(scope, id))
    },
    /** Concurrent changes of members are both kept, because only the difference is stored. */
    async replaceGroup(scope: ScimScope, id: string, next: Next): Promise<Json> {
      const row = await groupOf(scope, id)
      const given = readGroup(next(groupView(row)))
      await checkRoom(scope, givenIn(row), given)
      await storeGroup(scope, id, givenIn(row), given)
      return groupView(await groupOf(scope, id))
    },
    deleteGroup: async (scope: ScimScope, id: string): Promise<void> =>
      storeGroup(scope, id, givenIn(await groupOf(scope, id))),
  }
}

const nameOf = ({ account }: ScimScope) => account ?? ''

type Stored = Pick<UserRow, 'id' | 'user_name' | 'external_id' | 'attributes' | 'active' | 'managed'>
const userValues = (scope: ScimScope, row: Stored, byGroup: boolean) => [
  nameOf(scope),
  row.id,
  row.user_name,
  row.external_id,
  JSON.stringify(row.attributes ?? {}),
  row.active ?? true,
  row.managed ?? false,
  byGroup,
]

const rolesOf = ({ account }: ScimScope): readonly AnyRole[] => (account === null ? OPERATOR_ROLES : ACCOUNT_ROLES)

/** `owner`, `tollgate-owner` or `Tollgate Owner`. */
function roleNamed(display: string): string {
  return display
    .toLowerCase()
    .replace(/^tollgate[ _-]/, '')
    .trim()
}

const givenIn = ({ display_name: displayName, external_id: externalId, members }: GroupRow): GivenGroup => ({
  displayName,
  externalId,
  members: members?.map(({ value }) => value) ?? [],
})

/** Members of the first group that are not in the second. */
function difference(one?: GivenGroup, other?: GivenGroup): string[] {
  const there = new Set(other?.members)
  return one?.members.filter((id) => !there.has(id)) ?? []
}

const foreign = (domain: string) =>
  new ScimError(
    403,
    `The domain ${domain} is not proved to be this account's: map it by a login provider, or prove it by a DNS record. People of other domains join by invitation; if a mail server is set up, one is sent.`,
  )

const notOurs = () =>
  new ScimError(
    403,
    'This person was not created by SCIM or belongs to another account too; only they can change their email address.',
    'mutability',
  )

const groupUnknown = () => new ScimError(404, 'There is no such group here.')

function metaOf(kind: 'User' | 'Group', row: Pick<GroupRow, 'created_at' | 'updated_at'>): Json {
  return {
    resourceType: kind,
    created: row.created_at.toISOString(),
    lastModified: (row.updated_at ?? row.created_at).toISOString(),
  }
}

function userView(row: UserRow): Json {
  return {
    schemas: [USER_SCHEMA],
    id: row.id,
    ...(row.external_id === null ? {} : { externalId: row.external_id }),
    userName: row.user_name ?? row.email,
    active: row.role !== null,
    emails: [{ value: row.email, type: 'work', primary: true }],
    ...row.attributes,
    ...(row.groups ? { groups: row.groups } : {}),
    meta: metaOf('User', row),
  }
}

function groupView(row: GroupRow): Json {
  return {
    schemas: [GROUP_SCHEMA],
    id: row.id,
    ...(row.external_id === null ? {} : { externalId: row.external_id }),
    displayName: row.display_name,
    members: row.members ?? [],
    meta: metaOf('Group', row),
  }
}

/** Converts a fault into a SCIM error. */
export function scimErrorOf(error: unknown): ScimError | undefined {
  if (error instanceof ScimError) return error
  if (isTaken(error)) return new ScimError(409, 'Another one has this name.', 'uniqueness')
  if (!(error instanceof Fault)) return undefined
  return new ScimError(error.status, error.message, error.kind === 'conflict' ? 'mutability' : undefined)
}
