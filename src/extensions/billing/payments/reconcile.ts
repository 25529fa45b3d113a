// Reconciliation: every night payments are compared with the provider's list, the gateway's own and those by customers
// of each account. A missed change is applied as if its event had arrived now. Every difference is stored.
import { type Database, sql } from '../../../database/database.ts'
import type { Log } from '../../../kernel/log.ts'
import { asPage, asView, type Page, type Paging } from '../../../kernel/view.ts'
import { newId, type World } from '../../../kernel/world.ts'
import type { PaymentFacts, RemoteProvider } from './provider.ts'
import { type Difference, type ReconciliationView, reconciliationView } from './views.ts'

/** Whose payments: the account whose customers pay; empty: the gateway's own. */
type Owner = string

interface Applied {
  /** Ours, where it is one; none: it is nobody's here. */
  readonly payment: string | null
  readonly account: string | null
  readonly changes: readonly string[]
}

interface Ours {
  readonly id: string
  readonly account_id: string
  readonly provider_id: string
}

export interface ReconciledPayments {
  /** Those whose payments are compared each night. */
  owners(): Promise<readonly Owner[]>
  /** Undefined: it has no list. */
  remote(owner: Owner): Promise<RemoteProvider | undefined>
  /** Undefined: it is none of ours, such as another sale by the same account at the provider. */
  apply(owner: Owner, facts: PaymentFacts): Promise<Applied | undefined>
  /** What was paid here in this time, and is not on the list. */
  unlisted(owner: Owner, range: { from: Date; until: Date; listed: string[] }): Promise<readonly Ours[]>
}

interface ReconciliationRow {
  account_id: string
  id: string
  from_at: Date
  until_at: Date
  differences: Difference[]
}

interface Night {
  readonly untilMs: number
  /** Undefined: somebody asked for it. */
  readonly night?: string
  readonly fromMs?: number | undefined
}

const DAY_MS = 86_400_000
/** Card payments take days to settle, so an earlier run may not have seen them. */
const OVERLAP_MS = 3 * DAY_MS
/** The nightly run leaves the newest payments to the next run, because their events may still arrive. */
const YOUNG_MS = 600_000
/** UTC */
const HOUR_OF_DAY = 2
const DIFFERENCES_MAX = 1_000

const COLUMNS = 'account_id, id, provider, from_at, until_at, started_at, ended_at, checked, differences, failure'
// One process a night.
const BEGIN = sql('reconciliation_begin')`
  insert into reconciliation (account_id, id, provider, from_at, until_at, night) values ($1, $2, $3, $4, $5, $6::date)
   on conflict (account_id, night) do nothing returning 1`
const END = sql('reconciliation_end')`
  update reconciliation set ended_at = now(), checked = $3, differences = $4, failure = $5 where account_id = $1 and id = $2 returning ${COLUMNS}`
const LAST = sql('reconciliation_last')`
  select until_at from reconciliation where account_id = $1 and ended_at is not null and failure is null order by id desc limit 1`
const LIST = sql('reconciliation_list')`
  select ${COLUMNS} from reconciliation where account_id = $1 and id < $2 order by id desc limit $3`
const KEEP_FEW = sql('reconciliation_prune')`delete from reconciliation where started_at < now() - interval '400 days'`

export type Reconciliations = ReturnType<typeof createReconciliations>

export function createReconciliations(options: {
  readonly database: Database
  readonly world: World
  readonly log: Log
  readonly payments: ReconciledPayments
}) {
  const { database, world, payments, log } = options

  async function compare(owner: Owner, from: Date, until: Date): Promise<{ checked: number; found: Difference[] }> {
    const remote = await payments.remote(owner)
    const listed = new Set<string>()
    const found: Difference[] = []
    if (!remote) return { checked: 0, found }
    for await (const facts of remote.list(from.getTime(), until.getTime())) {
      const { providerId } = facts
      const applied = await payments.apply(owner, facts).catch((error: unknown) => {
        log.warn({ error, providerId, account: owner || undefined }, 'a payment could not be reconciled')
        return null
      })
      if (applied !== undefined) listed.add(providerId)
      if (applied === null)
        found.push({ ...unknown(facts), problem: 'It could not be applied here; the log says why.' })
      else if (applied && applied.changes.length > 0) {
        const { payment, account, changes } = applied
        const problem = `Stripe knew more than we did: ${changes.join('; ').replace(/\.$/, '')}.`
        found.push({ providerId, payment, account, corrected: true, problem })
      }
    }
    for (const { id: payment, account_id, provider_id } of await payments.unlisted(owner, {
      from,
      until,
      listed: [...listed],
    }))
      found.push({
        providerId: provider_id,
        payment,
        account: account_id || null,
        corrected: false,
        problem: 'It is paid here, but Stripe does not list it.',
      })
    return { checked: listed.size, found }
  }

  async function run(owner: Owner, { fromMs, untilMs, night }: Night): Promise<ReconciliationView | undefined> {
    const [last] = await database.query<{ until_at: Date }>(LAST, [owner])
    const since = new Date(fromMs ?? (last?.until_at.getTime() ?? untilMs - 30 * DAY_MS) - OVERLAP_MS)
    const until = new Date(untilMs)
    const id = newId(world)
    const [mine] = await database.query(BEGIN, [owner, id, 'stripe', since, until, night ?? null])
    if (!mine) return undefined
    let ending: [number, string, string | null]
    try {
      const { checked, found } = await compare(owner, since, until)
      ending = [checked, JSON.stringify(found.slice(0, DIFFERENCES_MAX)), null]
    } catch (error) {
      log.error({ error, account: owner || undefined, alert: true }, 'payments could not be reconciled')
      ending = [0, '[]', error instanceof Error ? error.message.slice(0, 500) : 'It failed.']
    }
    const [row] = await database.query<ReconciliationRow>(END, [owner, id, ...ending])
    if (!row) throw new Error('A reconciliation was removed while it ran.')
    if (row.differences.length > 0)
      log.error(
        { differences: row.differences.length, reconciliation: id, account: owner || undefined, alert: true },
        'payments differ from the provider’s list',
      )
    return viewOf(row)
  }

  return {
    /** Runs now; by default from three days before the last run. */
    async run(
      owner: string,
      { fromMs, untilMs = world.nowMs() }: { fromMs?: number | undefined; untilMs?: number | undefined } = {},
    ): Promise<ReconciliationView> {
      const view = await run(owner, { fromMs, untilMs })
      if (!view) throw new Error('A reconciliation that somebody asked for did not begin.')
      return view
    },
    /** Once a night, by one process. */
    async tick(): Promise<void> {
      const nowMs = world.nowMs()
      const now = new Date(nowMs)
      if (now.getUTCHours() < HOUR_OF_DAY) return
      for (const owner of await payments.owners())
        await run(owner, { untilMs: nowMs - YOUNG_MS, night: now.toISOString().slice(0, 10) })
      await database.query(KEEP_FEW)
    },
    async list(owner: string, { cursor, limit }: Paging): Promise<Page<ReconciliationView>> {
      const rows = await database.query<ReconciliationRow>(LIST, [owner, cursor ?? '~', limit + 1])
      return asPage(rows, limit, viewOf)
    },
  }
}

const unknown = ({ providerId, account }: PaymentFacts) => ({
  providerId,
  payment: null,
  account: account ?? null,
  corrected: false,
})

function viewOf(row: ReconciliationRow): ReconciliationView {
  return { ...asView(reconciliationView, row), from: row.from_at.toISOString(), until: row.until_at.toISOString() }
}
