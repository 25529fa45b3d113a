// The budgets that a process has cached: they decide for which of an account's budgets a call counts. The counters are
// in the database (functions/budget.sql), which rejects a call whose process has an outdated version of the budgets. An
// account without budgets costs nothing.
import { type Database, SHORT_MS, sql } from '../database/database.ts'
import { singleFlight } from '../kernel/timers.ts'
import type { Limited, Reservation } from './operation.ts'

/** As the message of a refused call needs it. */
export interface Budget {
  readonly id: string
  readonly name: string
  readonly scope: string
  readonly value: string | null
  readonly windowSeconds: number | null
}

/** Accounts whose budgets are remembered; the oldest are asked for again. */
const ACCOUNTS_MAX = 20_000

/** Each session of a team or project. */
const OF_TEAM = 'session:'

/** The label whose values a budget is for. Names that begin with a colon are the gateway's own. */
function labelOf(scope: string): string {
  if (scope.startsWith('tag:')) return scope.slice('tag:'.length)
  if (scope.startsWith(OF_TEAM)) return 'session'
  return scope === 'user' || scope === 'session' ? scope : `:${scope}`
}

const NO_LABELS: Readonly<Record<string, string>> = {}

interface Known {
  readonly version: number
  readonly budgets: ReadonlyArray<Budget & { readonly label: string; readonly team: string | undefined }>
}

export function createBudgets({ database }: { readonly database: Pick<Database, 'query'> }) {
  const known = new Map<string, Known>()
  const learning = singleFlight<void>()

  async function learn(account: string): Promise<void> {
    const rows = await database.query<{ version: number; budgets: Budget[] }>(READ, [account])
    const [row] = rows
    known.delete(account)
    if (!row) return
    if (known.size >= ACCOUNTS_MAX) known.delete(known.keys().next().value ?? '')
    const budgets = row.budgets.map((budget) => ({
      ...budget,
      label: labelOf(budget.scope),
      team: budget.scope.startsWith(OF_TEAM) ? budget.scope.slice(OF_TEAM.length) : undefined,
    }))
    known.set(account, { version: row.version, budgets })
  }

  return {
    /** Accounts that have budgets. */
    known: known as ReadonlyMap<string, Known>,
    /** The same call with its budgets. */
    placed(reservation: Reservation): Reservation {
      const of = known.get(reservation.account)
      if (!of) return reservation
      const scopes: string[] = []
      for (const { id, label, value, team } of of.budgets) {
        const { ':team': own, ':project': project } = reservation.labels ?? NO_LABELS
        if (team !== undefined && team !== own && team !== project) continue
        const given = label === ':key' ? (reservation.firstKey ?? reservation.key) : reservation.labels?.[label]
        if (given !== undefined && (value === null || value === given)) scopes.push(`${id}=${given}`)
      }
      return { ...reservation, budgets: of.version, scopes: scopes.length === 0 ? undefined : scopes }
    },
    /** Reads an account's budgets again. */
    learn: (account: string) => learning(account, () => learn(account)),
    /** Says which budget refused a call. */
    named(account: string, reserved: Limited): Limited {
      if (reserved.scope === undefined) return reserved
      const [id = ''] = reserved.scope.split('=', 1)
      const budget = known.get(account)?.budgets.find((one) => one.id === id)
      return budget ? { ...reserved, budget: { ...budget, value: reserved.scope.slice(id.length + 1) } } : reserved
    },
  }
}

/** Removes counters of values whose span is over. An account that somebody else has locked waits for the next time. */
export async function pruneBudgets(database: Pick<Database, 'query'>): Promise<void> {
  for (const { id } of await database.query<{ id: string }>(COUNTING))
    await database.query(END_VALUES, [id]).catch(() => undefined)
}

const COUNTING = sql('budgets_counting')`select id from account where budget_values > 0 order by id`
const END_VALUES = sql('ledger_end_budget_values')`select ledger_end_budget_values($1)`
// One statement, so that the version is that of these budgets.
const READ = sql('budgets_read', SHORT_MS)`
  select a.budgets as version, coalesce((select jsonb_agg(jsonb_build_object('id', b.id, 'name', b.name, 'scope', b.scope, 'value', b.value, 'windowSeconds', b.window_seconds) order by b.id) from budget b where b.account_id = a.id), '[]') as budgets
   from account a where a.id = $1 and a.budgets > 0`
