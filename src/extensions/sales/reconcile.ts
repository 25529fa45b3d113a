// Reconciliation: every night our payments are compared with the provider's list. A missed change is applied as if its event had arrived now. Every difference is stored.
import { type Database, statement } from '../../database/database.ts'
import type { Log } from '../../kernel/log.ts'
import { asPage, asView, type Page, type Paging } from '../../kernel/view.ts'
import { newId, type World } from '../../kernel/world.ts'
import type { Payments } from './payments.ts'
import { type Difference, type ReconciliationView, reconciliationView } from './views.ts'

export interface Reconciliations {
  /** Runs now; by default from three days before the last run. */
  run(range?: { fromMs?: number | undefined; untilMs?: number | undefined }): Promise<ReconciliationView>
  /** Once a night, by one process. */
  tick(): Promise<void>
  list(paging: Paging): Promise<Page<ReconciliationView>>
}

interface ReconciliationRow {
  id: string
  from_at: Date
  until_at: Date
  differences: Difference[]
}

const DAY_MS = 86_400_000
/** Card payments take days to settle, so an earlier run may not have seen them. */
const OVERLAP_MS = 3 * DAY_MS
/** The nightly run leaves the newest payments to the next run, because their events may still arrive. */
const YOUNG_MS = 600_000
/** UTC */
const HOUR_OF_DAY = 2
const DIFFERENCES_MAX = 1_000

const COLUMNS = 'id, provider, from_at, until_at, started_at, ended_at, checked, differences, failure'
const BEGIN = statement(
  'reconciliation_begin',
  `insert into reconciliation (id, provider, from_at, until_at) values ($1, $2, $3, $4) returning ${COLUMNS}`,
)
const END = statement(
  'reconciliation_end',
  `update reconciliation set ended_at = now(), checked = $2, differences = $3, failure = $4 where id = $1 returning ${COLUMNS}`,
)
const LAST = statement(
  'reconciliation_last',
  'select until_at from reconciliation where ended_at is not null and failure is null order by id desc limit 1',
)
const LIST = statement(
  'reconciliation_list',
  `select ${COLUMNS} from reconciliation where id < $1 order by id desc limit $2`,
)
const KEEP_FEW = statement(
  'reconciliation_prune',
  `delete from reconciliation where started_at < now() - interval '400 days'`,
)
// One process a day.
const CLAIM = statement(
  'reconciliation_claim',
  `insert into setting as s (name, value) values ('payments reconciled', $1) on conflict (name) do update set value = excluded.value where s.value < excluded.value returning 1`,
)
const UNLISTED = statement(
  'reconciliation_unlisted',
  `select id, account_id, provider_id from payment where provider = $1 and created_at >= $2 and paid_at < $3 and provider_id <> all($4) order by id`,
)

export function createReconciliations(options: {
  database: Database
  world: World
  payments: Payments
  log: Log
}): Reconciliations {
  const { database, world, payments, log } = options

  async function compare(fromMs: number, untilMs: number): Promise<{ checked: number; differences: Difference[] }> {
    const remote = payments.remote('stripe')
    const listed = new Set<string>()
    const differences: Difference[] = []
    if (!remote) return { checked: 0, differences }
    for await (const facts of remote.list(fromMs, untilMs)) {
      listed.add(facts.providerId)
      const applied = await payments.apply(facts).catch((error: unknown) => {
        log.warn({ error, providerId: facts.providerId }, 'a payment could not be reconciled')
        return undefined
      })
      if (!applied) {
        differences.push({
          ...{ providerId: facts.providerId, payment: null, account: facts.account ?? null, corrected: false },
          problem: 'It could not be applied here; the log says why.',
        })
        continue
      }
      const { row, changes } = applied
      if (changes.length > 0)
        differences.push({
          ...{
            providerId: facts.providerId,
            payment: row?.id ?? null,
            account: row?.account_id || null,
            corrected: true,
          },
          problem: `Stripe knew more than we did: ${changes.join('; ').replace(/\.$/, '')}.`,
        })
    }
    const range = ['stripe', new Date(fromMs), new Date(untilMs), [...listed]]
    const ours = await database.query<{ id: string; account_id: string; provider_id: string }>(UNLISTED, range)
    for (const { id, account_id: account, provider_id: providerId } of ours)
      differences.push({
        ...{ providerId, payment: id, account: account || null, corrected: false },
        problem: 'It is paid here, but Stripe does not list it.',
      })
    return { checked: listed.size, differences: differences.slice(0, DIFFERENCES_MAX) }
  }

  async function run({
    fromMs,
    untilMs = world.nowMs(),
  }: {
    fromMs?: number | undefined
    untilMs?: number | undefined
  } = {}) {
    const [last] = await database.query<{ until_at: Date }>(LAST)
    const since = fromMs ?? (last?.until_at.getTime() ?? untilMs - 30 * DAY_MS) - OVERLAP_MS
    const id = newId(world)
    await database.query(BEGIN, [id, 'stripe', new Date(since), new Date(untilMs)])
    let ending: [number, string, string | null]
    try {
      const { checked, differences } = await compare(since, untilMs)
      ending = [checked, JSON.stringify(differences), null]
    } catch (error) {
      log.error({ error, alert: true }, 'payments could not be reconciled')
      ending = [0, '[]', error instanceof Error ? error.message.slice(0, 500) : 'It failed.']
    }
    const [row] = await database.query<ReconciliationRow>(END, [id, ...ending])
    if (!row) throw new Error('A reconciliation was removed while it ran.')
    if (row.differences.length > 0)
      log.error(
        { differences: row.differences.length, reconciliation: id, alert: true },
        'payments differ from the provider’s list',
      )
    return viewOf(row)
  }

  return {
    run,
    async tick() {
      const nowMs = world.nowMs()
      const now = new Date(nowMs)
      if (now.getUTCHours() < HOUR_OF_DAY || !(await payments.settings.isOn('stripe'))) return
      const [mine] = await database.query(CLAIM, [now.toISOString().slice(0, 10)])
      if (!mine) return
      await run({ untilMs: nowMs - YOUNG_MS })
      await database.query(KEEP_FEW)
    },
    async list({ cursor, limit }) {
      const rows = await database.query<ReconciliationRow>(LIST, [cursor ?? '~', limit + 1])
      return asPage(rows, limit, viewOf)
    },
  }
}

function viewOf(row: ReconciliationRow): ReconciliationView {
  return {
    ...asView(reconciliationView, row),
    ...{ from: row.from_at.toISOString(), until: row.until_at.toISOString() },
  }
}
