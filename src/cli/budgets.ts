// Budgets and teams of an account, on the command line.
import type { TeamView } from '../admission/views.ts'
import type { Page } from '../kernel/view.ts'
import type { BudgetValueView, BudgetView } from '../ledger/views.ts'
import { spanWords } from '../meter/budget.ts'
import { at, type Command, text, told } from './command.ts'
import { query, table } from './table.ts'

const shownBudgets = (items: readonly BudgetView[]) =>
  table(
    items.map((one) => ({
      ...{ id: one.id, name: one.name, for: one.value === null ? `each ${one.scope}` : `${one.scope} ${one.value}` },
      allows: `${one.max} ${one.unit} ${spanWords(one.span, one.windowSeconds)}`,
      used: one.value === null ? `${one.values} values` : one.used,
      kind: one.hard ? 'hard' : 'soft',
      renews: one.renewsAt?.slice(0, 10) ?? '',
    })),
    { BUDGET: 'id', NAME: 'name', FOR: 'for', ALLOWS: 'allows', USED: 'used', KIND: 'kind', RENEWS: 'renews' },
  )

const shownValues = (items: readonly BudgetValueView[]) =>
  table(
    items.map((one) => ({
      ...one,
      share: `${Math.round(one.share * 100)} %`,
      renews: one.renewsAt?.slice(0, 10) ?? '',
    })),
    { VALUE: 'value', USED: 'used', LEFT: 'left', MAX: 'max', SHARE: 'share', RENEWS: 'renews' },
  )

const shownTeams = (items: readonly TeamView[]) =>
  table(
    items.map((one) => ({
      ...{ id: one.id, name: one.parentId === null ? one.name : `  ${one.name}`, keys: one.keys },
      members: one.members.map(({ email }) => email).join(', '),
    })),
    { TEAM: 'id', NAME: 'name', KEYS: 'keys', MEMBERS: 'members' },
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
      name: { type: 'string', value: 'text', help: 'Its name; the scope by default.' },
      value: { type: 'string', value: 'text', help: 'Only for this value; without it each value has its own.' },
      unit: { type: 'string', value: 'unit', help: 'credits, requests or tokens; credits by default.' },
      span: { type: 'string', value: 'span', help: 'day, week, month, total or rolling; month by default.' },
      window: { type: 'string', value: 'seconds', help: 'The length of a rolling window.' },
      soft: { type: 'boolean', help: 'Only count and alert; reject nothing.' },
      alert: { type: 'string', value: 'percent', help: 'Alert when so much of it is used.' },
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
    summary: 'Changes the maximum of a budget; with --value, that of one value alone.',
    args: ['account', 'budget', 'max'],
    options: { value: { type: 'string', value: 'text', help: 'Only for this value.' } },
    run(call) {
      const [account, budget, max] = call.args
      const value = text(call, 'value')
      const path = at`/accounts/${account}/budgets/${budget}`
      return value === undefined
        ? told(call.api.call<BudgetView>('PATCH', path, { max }), (one) => shownBudgets([one]))
        : told(call.api.call<BudgetValueView>('PUT', `${path}/values`, { value, max }), (one) => shownValues([one]))
    },
  },
  {
    name: 'budgets values',
    summary: 'The values that used most of a budget.',
    args: ['account', 'budget'],
    options: { value: { type: 'string', value: 'text', help: 'Only this value.' } },
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
    summary: 'Ends a budget. What it counted is forgotten.',
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
    options: { parent: { type: 'string', value: 'team', help: 'The team of a project.' } },
    run: (call) =>
      told(
        call.api.call<TeamView>('POST', at`/accounts/${call.args[0]}/teams`, {
          ...{ name: call.args[1], parentId: text(call, 'parent') ?? null },
        }),
        (made) => shownTeams([made]),
      ),
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
