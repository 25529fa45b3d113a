// Teams of an account, their projects, and who is in them. A call carries the team, the project and the member of its
// key as labels of the gateway's own, so that budgets and reports find them, and a key that moves leaves its history
// where it was.
import type { Audit, By } from '../database/audit.ts'
import { type Database, type Queryable, sql } from '../database/database.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { ownAccountOf, testAccountOf } from '../kernel/test-account.ts'
import { newId, type World } from '../kernel/world.ts'
import { lockAccount } from './accounts.ts'
import type { TeamView } from './views.ts'

interface TeamChange {
  readonly name?: string | undefined
  /** The group of the directory (SCIM) that says who is in it. Null: nobody but those who choose its members. */
  readonly scimGroup?: string | null | undefined
}

/** No place: the person is not a member of the account, or is in several teams. */
export interface PersonPlace {
  readonly memberId: string | null
  /** The only team that they are in, or that all their projects are in. */
  readonly teamId: string | null
  /** The project, if that is all that they are in. */
  readonly projectId: string | null
  readonly rules?: PersonRules | null
}

/** As labels of calls. Absent: none. */
export function labelsOfPlace({
  teamId,
  projectId,
  memberId,
}: PersonPlace): Readonly<Record<string, string>> | undefined {
  if (teamId === null && memberId === null) return undefined
  return {
    ...(teamId === null ? {} : { ':team': teamId }),
    ...(projectId === null ? {} : { ':project': projectId }),
    ...(memberId === null ? {} : { ':member': memberId }),
  }
}

/** What the calls of a person may use, by the settings of their project, team or account. */
export interface PersonRules {
  /** Null: every model. */
  readonly models: readonly string[] | null
  /** The most that one call may cost, in millionths. Null: no bound. */
  readonly callMax: string | null
}

/** The settings that are nearest to a call, in SQL. */
export const RULES_OF = (ACCOUNT: string, PROJECT: string, TEAM: string) =>
  `(select jsonb_build_object('models', s.models, 'callMax', s.call_max::text) from agent_settings s
     where s.account_id = ${ACCOUNT} and s.scope in (${PROJECT}, ${TEAM}, 'account')
     order by s.scope = 'account', s.scope is distinct from ${PROJECT} limit 1)`

/** Of an account: each is a line of every report by team. */
const TEAMS_MAX = 500
/** Shown of one team. A group of a directory may have more. */
const MEMBERS_MAX = 1_000

type TeamRow = Omit<TeamView, 'createdAt'> & { readonly createdAt: Date }

interface PlaceRow {
  team: string | null
  project: string | null
  rules: PersonRules | null
}

const NOWHERE: Partial<PlaceRow> = {}

export type Teams = ReturnType<typeof createTeams>

export function createTeams(options: { database: Database; world: World; audit: Audit }) {
  const { database, world, audit } = options

  async function find(on: Queryable, account: string, id: string): Promise<TeamView> {
    const [row] = await on.query<TeamRow>(FIND, [account, testAccountOf(account), id])
    if (!row) throw teamUnknown()
    return teamViewOf(row)
  }

  function changing(account: string, run: (tx: Queryable) => Promise<TeamView>): Promise<TeamView> {
    return database.transaction(async (tx) => {
      await lockAccount(tx, account)
      return run(tx)
    })
  }

  return {
    /** Teams first, each before its projects. */
    async list(account: string): Promise<TeamView[]> {
      const rows = await database.query<TeamRow>(LIST, [account, testAccountOf(account)])
      return rows.map(teamViewOf)
    },
    create(account: string, { name, parentId }: { name: string; parentId: string | null }, by: By) {
      return changing(account, async (tx) => {
        const [counted] = await tx.query<{ count: number }>(COUNT, [account])
        if ((counted?.count ?? 0) >= TEAMS_MAX)
          throw new Fault('conflict', { message: `An account has at most ${TEAMS_MAX} teams and projects.` })
        if (parentId !== null && (await find(tx, account, parentId)).parentId !== null)
          throw invalid('parentId: must be a team. A project has no projects of its own.', 'parentId')
        const id = `${parentId === null ? 'team' : 'prj'}_${newId(world)}`
        await tx.query(INSERT, [account, id, name, parentId])
        const detail = { account, name, parentId }
        await audit.write(tx, by, { action: 'team.create', object: id, detail, before: {}, after: { name, parentId } })
        return find(tx, account, id)
      })
    },
    change(account: string, id: string, input: TeamChange, by: By) {
      return changing(account, async (tx) => {
        const was = await find(tx, account, id)
        const { name = was.name, scimGroup = was.scimGroup } = input
        // When a team loses its group, its members stay. When it gets one, the group's members replace the chosen ones.
        if (scimGroup === null) await tx.query(KEEP, [account, id])
        await tx.query(CHANGE, [account, id, name, scimGroup])
        if (scimGroup !== null) await tx.query(GIVE_UP, [account, scimGroup])
        await audit.write(tx, by, {
          action: 'team.change',
          object: id,
          detail: { account, name },
          before: { name: was.name, scimGroup: was.scimGroup },
          after: { name, scimGroup },
        })
        return find(tx, account, id)
      })
    },
    /** Only when no key, no project and no budget is in it. */
    remove(account: string, id: string, by: By) {
      return changing(account, async (tx) => {
        const was = await find(tx, account, id)
        const [inside] = await tx.query(INSIDE, [account, testAccountOf(account), id])
        if (inside)
          throw new Fault('conflict', {
            message: 'This team still has keys, projects or budgets. Move or end them, and try again.',
          })
        await tx.query(REMOVE, [account, id])
        const detail = { account, name: was.name }
        await audit.write(tx, by, { action: 'team.remove', object: id, detail, before: detail, after: {} })
        return was
      })
    },
    /** Not for a team whose members come from a group of a directory. */
    setMembers(account: string, id: string, userIds: readonly string[], by: By) {
      return changing(account, async (tx) => {
        const was = await find(tx, account, id)
        if (was.scimGroup !== null)
          throw new Fault('conflict', {
            message: `The directory’s group "${was.scimGroup}" decides who is in this team. Change the group there, or remove the group from the team.`,
          })
        const wanted = [...new Set(userIds)]
        await tx.query(LEAVE, [account, id, wanted])
        await tx.query(JOIN, [account, id, wanted])
        const is = await find(tx, account, id)
        if (is.members.length !== wanted.length)
          throw invalid('userIds: must be people of this account; invite them first.', 'userIds')
        const emails = (view: TeamView) => view.members.map(({ email }) => email)
        await audit.write(tx, by, {
          action: 'team.members',
          object: id,
          detail: { account, name: is.name },
          before: { members: emails(was) },
          after: { members: emails(is) },
        })
        return is
      })
    },
    /** The teams that a person is in, with their projects. Empty: none. */
    async of(account: string, person: string): Promise<ReadonlySet<string>> {
      const rows = await database.query<{ id: string }>(OF, [ownAccountOf(account), person])
      return new Set(rows.map(({ id }) => id))
    },
    /** At least one of them has its members from a directory. */
    async areByGroup(account: string): Promise<boolean> {
      return (await database.query(BY_GROUP, [ownAccountOf(account)])).length > 0
    },
    /** The team and project of calls and connections of a person without a key. */
    async placeOf(account: string, person: string): Promise<PersonPlace> {
      const [row] = await database.query<PlaceRow>(PLACE_OF, [ownAccountOf(account), person])
      const { team: teamId = null, project: projectId = null, rules = null } = row ?? NOWHERE
      return { memberId: row ? person : null, teamId, projectId, rules }
    },
  }
}

/** A key's team and member must be the account's. Its maker may have left since the request was authenticated. */
export async function checkPlace(
  on: Queryable,
  account: string,
  { teamId, memberId }: { readonly teamId?: string | null | undefined; readonly memberId?: string | null | undefined },
  maker?: string,
): Promise<void> {
  if (!teamId && !memberId && maker === undefined) return
  const [found] = await on.query<{ team: boolean; member: boolean; maker: boolean }>(PLACE, [
    ownAccountOf(account),
    teamId ?? '',
    memberId ?? '',
    maker ?? '',
  ])
  if (maker !== undefined && !found?.maker)
    throw new Fault('access_denied', { message: 'You do not belong to this account any more.' })
  if (teamId && !found?.team) throw invalid('teamId: this account has no team or project with this id.', 'teamId')
  if (memberId && !found?.member) throw invalid('memberId: nobody with this id belongs to this account.', 'memberId')
}

function teamUnknown(): Fault {
  return new Fault('not_found', { message: 'There is no team or project with this id.' })
}

const teamViewOf = (row: TeamRow): TeamView => ({ ...row, createdAt: row.createdAt.toISOString() })

const TEAMS = `select t.id, t.name, t.parent_id as "parentId", t.scim_group as "scimGroup", t.created_at as "createdAt",
     (select count(*)::int from api_key k where k.account_id in ($1, $2) and k.team_id = t.id and k.revoked_at is null) as keys,
     exists (select 1 from scim_group g where g.scope = t.account_id and lower(g.display_name) = lower(t.scim_group)) as "scimGroupKnown",
     coalesce((select jsonb_agg(jsonb_build_object('userId', p.id, 'email', p.email) order by p.email) from (
       select i.id, i.email from team_person m join person i on i.id = m.person_id
       where m.account_id = t.account_id and m.team_id = t.id order by i.email limit ${MEMBERS_MAX}) p), '[]') as members
   from team t where t.account_id = $1`
const LIST = sql('team_list')`${TEAMS} order by coalesce(t.parent_id, t.id), t.parent_id is not null, t.id`
const FIND = sql('team_find')`${TEAMS} and t.id = $3`
const COUNT = sql('team_count')`select count(*)::int as count from team where account_id = $1`
const INSERT = sql('team_insert')`insert into team (account_id, id, name, parent_id) values ($1, $2, $3, $4)`
const CHANGE = sql('team_change')`update team set name = $3, scim_group = $4 where account_id = $1 and id = $2`
const KEEP = sql('team_keep')`
  insert into team_member (account_id, team_id, person_id) select * from team_person where account_id = $1 and team_id = $2 on conflict do nothing`
/** Of teams whose group the directory has sent. */
export const GIVE_UP = sql('team_give_up')`
  delete from team_member m using team t, scim_group g where m.account_id = $1 and t.account_id = m.account_id and t.id = m.team_id
     and g.scope = t.account_id and lower(g.display_name) = lower($2) and lower(t.scim_group) = lower($2)`
const REMOVE = sql('team_remove')`with settings as (delete from agent_settings where account_id = $1 and scope = $2)
   delete from team where account_id = $1 and id = $2`
const INSIDE = sql('team_inside')`
  select 1 from api_key k where k.account_id in ($1, $2) and k.team_id = $3 and (k.revoked_at is null or k.revoked_at > now())
   union all select 1 from team t where t.account_id = $1 and t.parent_id = $3
   union all select 1 from budget b where b.account_id = $1 and (b.scope in ('team', 'project') and b.value = $3 or b.scope = 'session:' || $3) limit 1`
const LEAVE = sql('team_leave')`
  delete from team_member where account_id = $1 and team_id = $2 and person_id <> all($3::text[])`
const JOIN = sql('team_join')`insert into team_member (account_id, team_id, person_id)
   select m.account_id, $2, m.person_id from membership m where m.account_id = $1 and m.person_id = any($3::text[]) on conflict do nothing`
const OF = sql('team_of')`
  select t.id from team t join team_person m on m.account_id = t.account_id and m.team_id in (t.id, t.parent_id)
   where t.account_id = $1 and m.person_id = $2`
const BY_GROUP = sql('team_by_group')`select 1 from team where account_id = $1 and scim_group is not null limit 1`
/** One row of somebody who belongs to the account. */
const PLACE_OF = sql('team_place_of')`select x.*, ${RULES_OF('$1', 'x.project', 'x.team')} as rules from (
   select case when count(distinct coalesce(t.parent_id, t.id)) = 1 then min(coalesce(t.parent_id, t.id)) end as team,
     case when count(t.id) = 1 and min(t.parent_id) is not null then min(t.id) end as project
   from membership s left join team_person m on m.account_id = s.account_id and m.person_id = s.person_id
     left join team t on t.account_id = m.account_id and t.id = m.team_id
   where s.account_id = $1 and s.person_id = $2 group by s.person_id) x`
const PLACE = sql('team_place')`
  select exists (select 1 from team where account_id = $1 and id = $2) as team, exists (select 1 from membership where account_id = $1 and person_id = $3) as member,
     exists (select 1 from membership where account_id = $1 and person_id = $4) or exists (select 1 from person where id = $4 and operator_role is not null) as maker`
