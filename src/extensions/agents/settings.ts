// What the agents of an account's people may do: the settings of each team, which the gateway enforces with the key of
// each call (api-key.ts) and programs read at one address, and the programs that people have signed in.
import * as z from 'zod'
import { mayUse, type Principal } from '../../admission/api-key.ts'
import { type Budgets, type BudgetsOptions, createBudgets } from '../../admission/budgets.ts'
import type { Api } from '../../api/api.ts'
import { type CatalogStore, catalogFor } from '../../catalog/store.ts'
import { checkModelNames } from '../../catalog/unknown-model.ts'
import type { By } from '../../database/audit.ts'
import type { Changes } from '../../database/changes.ts'
import { type Queryable, sql } from '../../database/database.ts'
import { type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { ownAccountOf } from '../../kernel/test-account.ts'
import { asView, page } from '../../kernel/view.ts'
import { amount, type Resource, resource, text } from '../../operator/resource.ts'
import { agentSetup, agentSetups, modelsFor, offeredModels } from './setup/programs.ts'
import { type AgentSettings, agentSettings, type OwnSettings, programView, SETTINGS_PATH } from './views.ts'

export interface SettingsDeps extends BudgetsOptions {
  readonly changes: Pick<Changes, 'bump' | 'notice'>
  readonly catalog: CatalogStore
}

const EVERYBODY = 'account'
const model = text(100).nullable().default(null)
const input = z.strictObject({
  models: z
    .array(text(100))
    .min(1, 'must name at least one model; null allows all')
    .max(500)
    .nullable()
    .default(null)
    .meta({ description: 'Only these models, socialapi or siteanalytics', none: 'all' }),
  defaultModel: model.meta({ description: 'The model that agents begin with', option: 'default', value: 'id' }),
  smallModel: model.meta({ description: 'For titles and summaries', option: 'small', value: 'id' }),
  callMax: amount
    .refine((value) => value >= 0n, 'must not be below zero')
    .nullable()
    .default(null)
    .meta({ description: 'The most that one call may cost', value: 'credits' }),
})
type Input = z.output<typeof input>

interface SettingsRow {
  scope: string
  models: string[] | null
  default_model: string | null
  small_model: string | null
  call_max: Credits | null
}

export function settingsResources(deps: SettingsDeps): Resource[] {
  const { database, changes, audit, catalog } = deps

  async function changed<T>(run: (tx: Queryable) => Promise<T>): Promise<T> {
    const result = await database.transaction(async (tx) => {
      await changes.bump(tx, 'keys')
      return run(tx)
    })
    await changes.notice('keys')
    return result
  }

  async function put(account: string, scope: string, given: Input, by: By): Promise<AgentSettings> {
    const { models, defaultModel, smallModel, callMax } = given
    checkModelNames(models ?? [], catalog.current.document)
    for (const [field, name] of Object.entries({ defaultModel, smallModel })) {
      if (name === null) continue
      checkModelNames([name], catalog.current.document, field)
      if (models && !models.includes(name)) throw invalid(`${field}: "${name}" is not among the models.`, field)
    }
    return changed(async (tx) => {
      if (scope !== EVERYBODY && !(await tx.query(TEAM, [account, scope]))[0])
        throw new Fault('not_found', { message: 'There is no team or project with this id.' })
      const [was] = await tx.query<SettingsRow>(FIND, [account, scope])
      const [row] = await tx.query<SettingsRow>(PUT, [account, scope, models, defaultModel, smallModel, callMax])
      const view = viewSettings(row!) // It was just written.
      await audit.write(tx, by, {
        action: 'agent-settings.put',
        object: scope,
        detail: { account },
        before: was ? told(was) : {},
        after: view,
      })
      return view
    })
  }

  return [
    resource('GET /accounts/{id}/agent-settings', 'teams:read', {
      title: 'List the settings of agents',
      answer: page(agentSettings),
      async run({ params }) {
        const rows = await database.query<SettingsRow>(LIST, [params.id])
        return { items: rows.map(viewSettings), next: null }
      },
    }),
    resource('PUT /accounts/{id}/agent-settings/{scope}', 'teams:write', {
      title: 'Set what the agents of a team may do',
      body: input,
      answer: agentSettings,
      run: ({ params, body, by }) => put(params.id, params.scope, body, by),
    }),
    resource('DELETE /accounts/{id}/agent-settings/{scope}', 'teams:write', {
      title: 'Remove the settings of a team’s agents',
      answer: agentSettings,
      run: ({ params, by }) =>
        changed(async (tx) => {
          const [was] = await tx.query<SettingsRow>(REMOVE, [params.id, params.scope])
          if (!was) throw new Fault('not_found', { message: 'There are no settings for this team.' })
          const before = told(was)
          const about = { object: params.scope, detail: { account: params.id } }
          await audit.write(tx, by, { action: 'agent-settings.remove', ...about, before, after: {} })
          return viewSettings(was)
        }),
    }),
    resource('GET /accounts/{id}/programs', 'members:read', {
      title: 'List the programs that people have signed in',
      answer: page(programView),
      async run({ params }) {
        const rows = await database.query(PROGRAMS, [params.id])
        return { items: rows.map((row) => asView(programView, row)), next: null }
      },
    }),
  ]
}

/** A program that is signed in, or has a key, reads here what it may do. */
export function mountSettings(api: Api, deps: SettingsDeps): void {
  const budgets = createBudgets(deps)
  api.add('GET', SETTINGS_PATH, {
    surface: 'native',
    alias: false,
    isRecorded: false,
    async handle({ principal, id: requestId }, out) {
      const data = await read(principal, deps, budgets)
      out.send(200, JSON_TYPE, JSON.stringify({ success: true, data, requestId }))
    },
  })
}

async function read(
  principal: Principal,
  { database, catalog }: Pick<SettingsDeps, 'database' | 'catalog'>,
  budgets: Pick<Budgets, 'list'>,
): Promise<OwnSettings> {
  const { accountId, place = {}, callMax } = principal
  const account = ownAccountOf(accountId)
  const { ':project': project = null, ':team': team = null, ':member': member } = place
  const [row] = member === undefined ? [] : await database.query<SettingsRow>(NEAREST, [account, project, team])
  const models = offeredModels(catalogFor(accountId, catalog.current).document.models).filter((one) =>
    mayUse(principal, one.id),
  )
  const offered = (name: string | null = null) => (models.some((one) => one.id === name) ? name : null)
  const listed = await budgets.list(account)
  return {
    models,
    defaultModel: offered(row?.default_model),
    smallModel: offered(row?.small_model),
    callMax: callMax === undefined ? null : formatCredits(callMax),
    budgets: listed
      .filter(({ scope, value }) => {
        const [name = '', ofTeam = ''] = scope.split(':', 2)
        if (name === 'session') return ofTeam === '' || ofTeam === team || ofTeam === project
        return value === null ? `:${scope}` in place : place[`:${scope}`] === value
      })
      // Of what each run or person may use, what is left is theirs, and not in this list.
      .map(({ name, scope, value, unit, span, max, left, hard, resetsAt }) => ({
        name,
        scope: scope.replace(/^session:.*/, 'session'),
        unit,
        span,
        max,
        hard,
        resetsAt,
        left: value === null ? null : left,
      })),
  }
}

function told({ models, default_model: defaultModel, small_model: smallModel, call_max: callMax }: SettingsRow) {
  return { models, defaultModel, smallModel, callMax: callMax === null ? null : formatCredits(callMax) }
}

const viewSettings = (row: SettingsRow): AgentSettings => ({ scope: row.scope, ...told(row) })

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }
const COLUMNS = 'scope, models, default_model, small_model, call_max'
const LIST = sql('agent_settings_list')`select ${COLUMNS} from agent_settings where account_id = $1 order by scope`
const FIND = sql('agent_settings_find')`
  select ${COLUMNS} from agent_settings where account_id = $1 and scope = $2 for update`
const NEAREST = sql('agent_settings_nearest')`
  select ${COLUMNS} from agent_settings where account_id = $1 and scope in ($2, $3, '${EVERYBODY}')
   order by scope = '${EVERYBODY}', scope is distinct from $2 limit 1`
const PUT = sql('agent_settings_put')`
  insert into agent_settings (account_id, scope, models, default_model, small_model, call_max) values ($1, $2, $3, $4, $5, $6)
   on conflict (account_id, scope) do update set models = excluded.models, default_model = excluded.default_model,
     small_model = excluded.small_model, call_max = excluded.call_max returning ${COLUMNS}`
const REMOVE = sql('agent_settings_remove')`
  delete from agent_settings where account_id = $1 and scope = $2 returning ${COLUMNS}`
/** Locked, so that a team which is being removed leaves no settings behind. */
const TEAM = sql('agent_settings_team')`select 1 from team where account_id = $1 and id = $2 for key share`
const PROGRAMS = sql('agent_programs')`
  select k.id as key_id, k.client as program, k.team_id, k.last_used_at, k.created_at, p.id as user_id, p.email,
     (select coalesce(sum(u.charged), 0)::bigint from usage_hour u
       where u.account_id = k.account_id and u.key_id = k.id and u.hour >= now() - interval '30 days') as charged
   from api_key k left join oauth_object o on o.model = 'Grant' and o.digest = sha256(convert_to(k.grant_id, 'UTF8'))
     left join person p on p.id = coalesce(k.member_id, o.payload ->> 'accountId')
   where k.account_id = $1 and k.client is not null and (k.revoked_at is null or k.revoked_at > now())
   order by p.email, k.last_used_at desc nulls last, k.id limit 1000`

/** The set-ups of all programs, for a key that the person has just made. */
export const setupResource = ({ catalog }: { readonly catalog: Pick<CatalogStore, 'current'> }): Resource =>
  resource('GET /agent-setup', 'self', {
    query: z.strictObject({ url: z.url({ protocol: /^https?$/ }).max(200) }),
    answer: page(agentSetup),
    run({ query }) {
      const models = modelsFor(offeredModels(catalog.current.document.models))
      return { items: agentSetups({ url: new URL(query.url).origin, ...models }), next: null }
    },
  })
