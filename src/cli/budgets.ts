// Budgets and teams of an account, on the command line.
import type { TeamView } from '../admission/views.ts'
import type { Page } from '../kernel/view.ts'
import type { BudgetValueView, BudgetView } from '../ledger/views.ts'
import { spanWords } from '../meter/limits.ts'
import { at, CliError, type Command, flag, takes, text, told } from './command.ts'
import { resolveName } from './names.ts'
import { query, table } from './table.ts'

const shownBudgets = (items: readonly BudgetView[]) =>
  table(
    items.map((one) => ({
      ...{ id: one.id, name: one.name, for: one.value === null ? `each ${one.scope}` : `${one.scope} ${one.value}` },
      allows: `${one.max} ${one.unit} ${spanWords(one.span, one.windowSeconds)}`,
      used: one.value === null ? `${one.values} values` : one.used,
      kind: one.hard ? 'hard' : 'soft',
      renews: one.resetsAt?.slice(0, 10) ?? '',
    })),
    { BUDGET: 'id', NAME: 'name', FOR: 'for', ALLOWS: 'allows', USED: 'used', KIND: 'kind', RENEWS: 'renews' },
  )

const shownValues = (items: readonly BudgetValueView[]) =>
  table(
    items.map((one) => ({
      ...one,
      share: `${Math.round(one.share * 100)} %`,
      renews: one.resetsAt?.slice(0, 10) ?? '',
    })),
    { VALUE: 'value', USED: 'used', LEFT: 'left', MAX: 'max', SHARE: 'share', RENEWS: 'renews' },
  )

const shownTeams = (items: readonly TeamView[]) =>
  table(
    items.map((one) => ({
      ...{ id: one.id, name: one.parentId === null ? one.name : `  ${one.name}`, keys: one.keys },
      ...{ members: one.members.map(({ email }) => email).join(', '), group: one.scimGroup ?? '' },
    })),
    { TEAM: 'id', NAME: 'name', KEYS: 'keys', MEMBERS: 'members', GROUP: 'group' },
  )

const BUDGETS: readonly Command[] = [
  {
    name: 'budgets list',
    summary: 'The budgets of an account, and how much of them is used.',
    args: ['account'],
    run: (call) =>
      told(call.api.call<Page<BudgetView>>('GET', at`/accounts/${call.args[0]}/budgets`), ({ items }) =>
        shownBudgets(items),
      ),
  },
  {
    name: 'budgets create',
    summary: 'Makes a budget: for one value, or as a default for each value.',
    about: 'The scope is user, session, key, member, team, project, or a tag such as tag:feature.',
    args: ['account', 'scope', 'max'],
    options: {
      name: takes('text', 'Its name; the scope by default.'),
      value: takes('text', 'Only for this value; without it each value has its own.'),
      unit: takes('unit', 'credits, requests or tokens; credits by default.'),
      span: takes('span', 'day, week, month, total or rolling; month by default.'),
      window: takes('seconds', 'The length of a rolling window.'),
      soft: flag('Only count and alert; reject nothing.'),
      alert: takes('percent', 'Alert when so much of it is used.'),
    },
    run(call) {
      const [account, scope, max] = call.args
      const window = text(call, 'window')
      const alert = text(call, 'alert')
      const body = {
        ...{ name: text(call, 'name') ?? scope, scope, max, value: text(call, 'value') ?? null },
        ...{ unit: text(call, 'unit') ?? 'credits', span: text(call, 'span') ?? (window ? 'rolling' : 'month') },
        windowSeconds: window === undefined ? null : Number(window),
        ...{ hard: call.values.soft !== true, alertPercent: alert === undefined ? null : Number(alert) },
      }
      return told(call.api.call<BudgetView>('POST', at`/accounts/${account}/budgets`, body), (made) =>
        shownBudgets([made]),
      )
    },
  },
  {
    name: 'budgets change',
    summary: 'Changes a budget; with --value, the maximum of one value alone.',
    about:
      'The maximum "default" resets a value to the maximum of the budget. What the budget counts, and for whom, cannot be changed.',
    args: ['account', 'budget', '[max]'],
    options: {
      value: takes('text', 'Only for this value.'),
      name: takes('text', 'A new name.'),
      hard: flag('Reject calls beyond it.'),
      soft: flag('Only count and alert.'),
      alert: takes('percent', 'Alert when so much of it is used; "none": as the rule says.'),
    },
    run(call) {
      const [account, budget, max] = call.args
      const [value, name, alert] = [text(call, 'value'), text(call, 'name'), text(call, 'alert')]
      const path = at`/accounts/${account}/budgets/${budget}`
      if (value !== undefined) {
        if (max === undefined) throw new CliError('Give the maximum of this value, or "default".', 2)
        const body = { value, max: max === 'default' ? null : max }
        return told(call.api.call<BudgetValueView>('PUT', `${path}/values`, body), (one) => shownValues([one]))
      }
      const { hard, soft } = call.values
      if (hard && soft) throw new CliError('A budget is hard or soft, not both.', 2)
      const patch = {
        ...(max === undefined ? {} : { max }),
        ...(name === undefined ? {} : { name }),
        ...(hard || soft ? { hard: hard === true } : {}),
        ...(alert === undefined ? {} : { alertPercent: alert === 'none' ? null : Number(alert) }),
      }
      return told(call.api.call<BudgetView>('PATCH', path, patch), (one) => shownBudgets([one]))
    },
  },
  {
    name: 'budgets values',
    summary: 'The values that used most of a budget.',
    args: ['account', 'budget'],
    options: { value: takes('text', 'Only this value.') },
    run: (call) =>
      told(
        call.api.call<Page<BudgetValueView>>(
          'GET',
          at`/accounts/${call.args[0]}/budgets/${call.args[1]}/values` + query({ value: text(call, 'value') }),
        ),
        ({ items }) => shownValues(items),
      ),
  },
  {
    name: 'budgets end',
    summary: 'Ends a budget and deletes its counts.',
    args: ['account', 'budget'],
    run: (call) =>
      told(
        call.api.call<BudgetView>('DELETE', at`/accounts/${call.args[0]}/budgets/${call.args[1]}`),
        ({ name }) => `The budget ${name} has ended.`,
      ),
  },
]

const TEAMS: readonly Command[] = [
  {
    name: 'teams list',
    summary: 'The teams and projects of an account.',
    args: ['account'],
    run: (call) =>
      told(call.api.call<Page<TeamView>>('GET', at`/accounts/${call.args[0]}/teams`), ({ items }) => shownTeams(items)),
  },
  {
    name: 'teams create',
    summary: 'Makes a team, or with --parent a project of a team.',
    args: ['account', 'name'],
    options: { parent: takes('team', 'The team of a project.') },
    run: (call) =>
      told(
        call.api.call<TeamView>('POST', at`/accounts/${call.args[0]}/teams`, {
          ...{ name: call.args[1], parentId: text(call, 'parent') ?? null },
        }),
        (made) => shownTeams([made]),
      ),
  },
  {
    name: 'teams rename',
    summary: 'Renames a team or project.',
    args: ['account', 'team', 'name'],
    run: (call) =>
      told(
        call.api.call<TeamView>('PATCH', at`/accounts/${call.args[0]}/teams/${call.args[1]}`, { name: call.args[2] }),
        (one) => shownTeams([one]),
      ),
  },
  {
    name: 'teams group',
    summary: 'Lets a group of the directory (SCIM) decide who is in a team or project.',
    about: 'The group is named as in the directory; "none" ends it, and the members stay. See the guide on SCIM.',
    args: ['account', 'team', 'group'],
    run(call) {
      const [account, team, group] = call.args
      const body = { scimGroup: group === 'none' ? null : group }
      return told(call.api.call<TeamView>('PATCH', at`/accounts/${account}/teams/${team}`, body), (one) =>
        shownTeams([one]),
      )
    },
  },
  {
    name: 'teams members',
    summary: 'Sets who is in a team or project.',
    about: 'People are named by e-mail address or id, with commas between them; "none" empties it.',
    args: ['account', 'team', 'people'],
    async run(call) {
      const [account = '', team, people = ''] = call.args
      const userIds: string[] = []
      if (people !== 'none')
        for (const one of people.split(',')) userIds.push(await resolveName(call.api, 'user', one.trim(), [account]))
      const path = at`/accounts/${account}/teams/${team}/members`
      return told(call.api.call<TeamView>('PUT', path, { userIds }), (one) => shownTeams([one]))
    },
  },
  {
    name: 'teams remove',
    summary: 'Removes a team or project without keys, projects and budgets.',
    args: ['account', 'team'],
    run: (call) =>
      told(
        call.api.call<TeamView>('DELETE', at`/accounts/${call.args[0]}/teams/${call.args[1]}`),
        ({ name }) => `${name} was removed.`,
      ),
  },
]

export const BUDGET_COMMANDS: readonly Command[] = [...BUDGETS, ...TEAMS]
