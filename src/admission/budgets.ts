// Management of budgets: create, list, change, end. A change locks the account like the ledger does, gives the
// account's budgets a new version, which every process must know before its next hold, and recalls leases made under
// the old budgets.
import type { Audit, By } from '../database/audit.ts'
import { type Database, type Queryable, type Statement, sql, statement } from '../database/database.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { newId, type World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { recallLeases } from '../ledger/limits.ts'
import type { BudgetValueView, BudgetView } from '../ledger/views.ts'
import { amountOf, type BudgetUnit, readBudgetMax, shareOf } from '../meter/limits.ts'
import { lockAccount } from './accounts.ts'

type BudgetInput = Omit<BudgetView, 'id' | 'createdAt' | 'values' | keyof State> & { readonly max: string | number }
/** What is counted cannot be changed: end it, and make another. */
type BudgetPatch = { readonly [F in 'name' | 'max' | 'hard' | 'alertPercent']?: BudgetInput[F] | undefined }

interface ValuesQuery {
  readonly limit: number
  readonly value?: string | undefined
  /** Only those with a maximum of their own. */
  readonly overridden?: boolean | undefined
}

/** Every call checks each of them. */
const BUDGETS_MAX = 64

type State = Pick<BudgetView, 'max' | 'used' | 'held' | 'left' | 'share' | 'resetsAt'>
interface Counter {
  readonly max: bigint
  readonly used: bigint
  readonly held: bigint
  readonly resetsAt: Date | null
}
type BudgetRow = Omit<BudgetView, 'createdAt' | keyof State> & Counter & { readonly createdAt: Date }
type ValueRow = Omit<BudgetValueView, keyof State> & Counter & { readonly unit: BudgetUnit }

export interface BudgetsOptions {
  readonly database: Database
  readonly world: World
  readonly audit: Audit
  readonly ledger: Pick<Ledger, 'recalled'>
}

export type Budgets = ReturnType<typeof createBudgets>

export function createBudgets({ database, world, audit, ledger }: BudgetsOptions) {
  /** The transaction of a change. When it is answered, no process admits calls with earlier leases any more. */
  async function changing<T>(account: string, run: (tx: Queryable) => Promise<T>): Promise<T> {
    const changed = await database.transaction(async (tx) => {
      await lockAccount(tx, account)
      const changed = await run(tx)
      await recallLeases(tx, account)
      return changed
    })
    await ledger.recalled(account)
    return changed
  }

  async function find(on: Queryable, account: string, id: string): Promise<BudgetView> {
    const [row] = await on.query<BudgetRow>(FIND, [account, id])
    if (!row) throw new Fault('not_found', { message: 'There is no budget with this id.' })
    return budgetViewOf(row)
  }

  async function normalValue(tx: Queryable, account: string, { scope, value }: Pick<BudgetInput, 'scope' | 'value'>) {
    if (scope.startsWith('session:')) {
      const [team] = await tx.query(TEAM, [account, scope.slice('session:'.length)])
      if (!team) throw invalid('scope: this account has no team or project with this id.', 'scope')
    }
    const known = value === null ? undefined : KNOWN[scope]
    if (!known) return value
    const [found] = await tx.query<{ id: string }>(known, [account, value])
    if (!found) throw invalid(`value: this account has no ${scope} with this id.`, 'value')
    return found.id
  }

  return {
    async list(account: string) {
      const rows = await database.query<BudgetRow>(LIST, [account])
      return rows.map(budgetViewOf)
    },
    create(account: string, input: BudgetInput, by: By) {
      const max = readMax(input.unit, input.max)
      return changing(account, async (tx) => {
        const [counted] = await tx.query<{ count: number }>(COUNT, [account])
        if ((counted?.count ?? 0) >= BUDGETS_MAX)
          throw new Fault('conflict', { message: `An account has at most ${BUDGETS_MAX} budgets. End one first.` })
        const id = `bgt_${newId(world)}`
        const { name, scope, unit, span, windowSeconds, hard, alertPercent } = input
        const value = await normalValue(tx, account, input)
        const facts = [id, name, scope, value, unit, span, windowSeconds, max, hard, alertPercent]
        await tx.query(INSERT, [account, ...facts])
        await tx.query(CHANGED, [account])
        const view = await find(tx, account, id)
        const after = told(view)
        await audit.write(tx, by, {
          action: 'budget.create',
          object: id,
          detail: { account, ...after },
          before: {},
          after,
          rows: [['budget', account, id]],
        })
        return view
      })
    },
    change(account: string, id: string, patch: BudgetPatch, by: By) {
      return changing(account, async (tx) => {
        const was = await find(tx, account, id)
        const { name = was.name, hard = was.hard, alertPercent = was.alertPercent } = patch
        const max = patch.max === undefined ? null : readMax(was.unit, patch.max)
        await tx.query(CHANGE, [account, id, name, max, hard, alertPercent])
        await tx.query(CHANGE_COUNTERS, [account, `${id}=`, `${id}>`, max, !hard])
        await tx.query(CHANGED, [account])
        const view = await find(tx, account, id)
        await audit.write(tx, by, {
          action: 'budget.change',
          object: id,
          detail: { account, ...told(view) },
          before: told(was),
          after: told(view),
          rows: [['budget', account, id]],
        })
        return view
      })
    },
    end(account: string, id: string, by: By) {
      return changing(account, async (tx) => {
        const was = await find(tx, account, id)
        await tx.query(END, [account, id])
        await tx.query(END_COUNTERS, [account, `${id}=`, `${id}>`])
        await tx.query(CHANGED, [account])
        await audit.write(tx, by, {
          action: 'budget.end',
          object: id,
          detail: { account, ...told(was) },
          before: told(was),
          after: {},
          rows: [['budget', account, id]],
        })
        return was
      })
    },
    /** Those that used most of it first. */
    async values(account: string, id: string, { limit, value, overridden = false }: ValuesQuery) {
      await find(database, account, id)
      const exact = value === undefined ? null : `${id}=${value}`
      const rows = await database.query<ValueRow>(VALUES, [account, `${id}=`, `${id}>`, limit, exact, overridden])
      return rows.map((row) => shownValue(row))
    },
    /** Gives one value a maximum of its own; null: the budget's again. */
    setValue(account: string, id: string, { value, max }: { value: string; max: string | number | null }, by: By) {
      return changing(account, async (tx) => {
        const budget = await find(tx, account, id)
        if (budget.value !== null)
          throw invalid('value: this budget is for one value only; change its maximum instead.', 'value')
        const scope = `${id}=${(await normalValue(tx, account, { scope: budget.scope, value })) ?? value}`
        const amount = max === null ? null : readMax(budget.unit, max)
        const [before] = await tx.query<ValueRow>(VALUES, [account, `${id}=`, `${id}>`, 1, scope, false])
        await tx.query(MAKE, [account, [scope]])
        await tx.query(SET_VALUE, [account, scope, amount, id])
        const [row] = await tx.query<ValueRow>(VALUES, [account, `${id}=`, `${id}>`, 1, scope, false])
        if (!row) throw new Fault('conflict', { message: 'This account has 100,000 values with budgets already.' })
        const view = shownValue(row)
        await audit.write(tx, by, {
          action: 'budget.value',
          object: id,
          detail: { account, value, max: view.max },
          before: { value, max: before ? shownValue(before).max : budget.max },
          after: { value, max: view.max },
        })
        return view
      })
    },
  }
}

function readMax(unit: BudgetUnit, max: string | number): bigint {
  const read = readBudgetMax(unit, max)
  if ('problem' in read) throw invalid(`max: ${read.problem}.`, 'max')
  return read.max
}

/** What the audit keeps of a budget. */
function told({ name, scope, value, unit, span, windowSeconds, max, hard, alertPercent }: BudgetView) {
  return { name, scope, value, unit, span, windowSeconds, max, hard, alertPercent }
}

function budgetViewOf({ createdAt, ...row }: BudgetRow): BudgetView {
  return { ...row, createdAt: createdAt.toISOString(), ...state(row.unit, row) }
}

function shownValue({ unit, ...row }: ValueRow): BudgetValueView {
  return { ...row, ...state(unit, row) }
}

function state(unit: BudgetUnit, { max, used, held, resetsAt }: Counter): State {
  const left = max - used - held
  return {
    max: amountOf(unit, max),
    used: amountOf(unit, used),
    held: amountOf(unit, held),
    left: amountOf(unit, left > 0n ? left : 0n),
    share: shareOf(used, max),
    resetsAt: resetsAt?.toISOString() ?? null,
  }
}

const RENEWS = `case when b.span in ('day', 'week', 'month') then (date_trunc(b.span, clock_timestamp() at time zone 'UTC') + ('1 ' || b.span)::interval) at time zone 'UTC' end as "resetsAt"`
const NOW = `cross join lateral counter_now(c, floor(extract(epoch from clock_timestamp()))::bigint) n`
const STATE = `counter_used(n, floor(extract(epoch from clock_timestamp()))::bigint) as used, counter_held(n) as held`
const LIST = sql('budget_list')`
  select b.id, b.name, b.scope, b.value, b.unit, b.span, b.window_seconds as "windowSeconds", b.hard, b.alert_percent as "alertPercent",
     b.created_at as "createdAt", b.max, ${RENEWS}, coalesce(x.used, 0) as used, coalesce(x.held, 0) as held,
     (select count(*)::int from counter c where c.account_id = b.account_id and c.scope >= b.id || '=' and c.scope < b.id || '>') as values
   from budget b left join lateral (
     select ${STATE} from counter c ${NOW} where b.value is not null and c.account_id = b.account_id and c.scope = b.id || '=' || b.value) x on true
   where b.account_id = $1 order by b.id`
const FIND = statement('budget_find', LIST.text.replace('order by b.id', 'and b.id = $2'))
const COUNT = sql('budget_count')`select count(*)::int as count from budget where account_id = $1`
const KEY = sql('budget_key')`select coalesce(first_id, id) as id from api_key where account_id = $1 and id = $2`
const TEAM = sql('budget_any_team')`select 1 from team where account_id = $1 and id = $2`
/** Values that are ids of something that the account must have. */
const KNOWN: Readonly<Record<string, Statement | undefined>> = {
  key: KEY,
  team: sql('budget_team')`select id from team where account_id = $1 and id = $2 and parent_id is null`,
  project: sql('budget_project')`select id from team where account_id = $1 and id = $2 and parent_id is not null`,
  member: sql('budget_member')`select person_id as id from membership where account_id = $1 and person_id = $2`,
}
const INSERT = sql('budget_insert')`
  insert into budget (account_id, id, name, scope, value, unit, span, window_seconds, max, hard, alert_percent)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
const CHANGE = sql('budget_change')`
  update budget set name = $3, max = coalesce($4, max), hard = $5, alert_percent = $6 where account_id = $1 and id = $2`
const CHANGE_COUNTERS = sql('budget_change_counters')`
  update counter set max = case when own_max then max else coalesce($4, max) end, soft = $5 where account_id = $1 and scope >= $2 and scope < $3`
const END = sql('budget_end')`delete from budget where account_id = $1 and id = $2`
const END_COUNTERS = sql('budget_end_counters')`
  with gone as (delete from counter where account_id = $1 and scope >= $2 and scope < $3 returning 1)
   update account set budget_values = budget_values - (select count(*) from gone) where id = $1`
const CHANGED = sql('budget_changed')`update account set budgets = budgets + 1 where id = $1`
const MAKE = sql('budget_make')`select budget_make($1, $2)`
const SET_VALUE = sql('budget_set_value')`
  update counter c set own_max = $3::bigint is not null, max = coalesce($3::bigint, b.max) from budget b
   where c.account_id = $1 and c.scope = $2 and b.account_id = $1 and b.id = $4`
const VALUES = sql('budget_values')`
  select substr(b.scope, strpos(b.scope, '=') + 1) as value, b.own_max as overridden, b.unit, b.max, b.used, ${RENEWS}, counter_held(b.counter) as held from (
     select n.scope, n.unit, n.span, n.max, n.own_max, n.used, n.counter from counter c cross join lateral (
       select n.*, n as counter from counter_now(c, floor(extract(epoch from clock_timestamp()))::bigint) n) n
     where c.account_id = $1 and c.scope >= $2 and c.scope < $3 and ($5::text is null or c.scope = $5) and (c.own_max or not $6::boolean)
     order by n.used::float8 / greatest(n.max, 1) desc, n.used desc, n.scope limit $4) b`
