// One figure for all processes. When an operator looks, the process that was asked lets the others know by the counters of changes; each
// then writes down what it knows of its calls and vendors, and the answer puts these together. While nobody looks, nothing is written.
import type { Changes } from '../database/changes.ts'
import { type Database, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { mergeHealth, type VendorHealth } from '../routing/vendor.ts'
import { type LiveCall, REFUSED_KEPT } from './monitor.ts'

interface ReportedCall extends Omit<LiveCall, 'atMs' | 'charged'> {
  readonly at: string
  readonly charged: string
}

interface Reported {
  /** Newest first. */
  readonly calls: ReportedCall[]
  readonly running: number
  readonly vendors: VendorHealth[]
  /** Whose reports these are, and who lives but has not told. */
  readonly processes: { readonly answering: number; readonly silent: number }
}

export interface Reports {
  read(): Promise<Reported>
  /** This process has nothing more to tell, and is not to be waited for while others still take it for alive. */
  leave(): Promise<unknown>
}

interface Report {
  readonly calls: readonly ReportedCall[]
  readonly running: number
  readonly vendors: readonly VendorHealth[]
}

interface ReportsOptions {
  readonly database: Database
  readonly changes: Changes
  readonly world: World
  readonly processId: string
  readonly own: () => { calls: readonly LiveCall[]; running: number; vendors: readonly VendorHealth[] }
}

interface Row {
  id: string
  report: Report | null
}

const CALLS_MAX = 200
/** Others look once a second. */
const WAIT_MS = 2_500
const LOOK_MS = 250
const ALIVE_SECONDS = 15

export function createReports({ database, changes, world, processId, own }: ReportsOptions): Reports {
  function mine(): Report {
    const { calls, running, vendors } = own()
    return { calls: calls.slice(0, CALLS_MAX).map(shown), running, vendors }
  }

  const write = (report: Report, aheadSeconds: number) =>
    database.query(WRITE, [processId, JSON.stringify(report), aheadSeconds])

  changes.watch('reports', () => {
    // Whoever looks asks again; nothing that matters may wait for this, or fail with it.
    write(mine(), 0).catch(() => undefined)
  })

  /** Whoever has told within the last seconds need not be waited for: the next look shows more. */
  async function others(): Promise<Row[]> {
    const untilMs = world.elapsedMs() + WAIT_MS
    for (;;) {
      const rows = await database.query<Row>(READ, [processId, ALIVE_SECONDS])
      if (rows.every(({ report }) => report !== null) || world.elapsedMs() >= untilMs) return rows
      await sleep(world, LOOK_MS)
    }
  }

  return {
    async read() {
      await changes.bump(database, 'reports')
      const rows = await others()
      const parts = [mine(), ...rows.flatMap(({ report }) => (report ? [report] : []))]
      return {
        calls: newest(parts.flatMap(({ calls }) => calls)),
        running: parts.reduce((sum, { running }) => sum + running, 0),
        vendors: mergeHealth(parts.map(({ vendors }) => vendors)),
        processes: { answering: parts.length, silent: rows.length + 1 - parts.length },
      }
    },
    leave: () => write({ calls: [], running: 0, vendors: [] }, ALIVE_SECONDS),
  }
}

/** Refused ones leave room for the others here too, however many processes tell of theirs. */
function newest(calls: readonly ReportedCall[]): ReportedCall[] {
  const sorted = calls.toSorted((a, b) => (a.at < b.at ? 1 : -1))
  let refused = 0
  return sorted.filter(({ outcome }) => outcome !== 'refused' || ++refused <= REFUSED_KEPT).slice(0, CALLS_MAX)
}

function shown({ atMs, charged, ...call }: LiveCall): ReportedCall {
  return { ...call, at: new Date(atMs).toISOString(), charged: formatCredits(charged) }
}

const WRITE = statement(
  'report_write',
  `insert into gateway_instance (id, report, reported_at) values ($1, $2::jsonb, now() + make_interval(secs => $3))
   on conflict (id) do update set report = excluded.report, reported_at = excluded.reported_at`,
)
const READ = statement(
  'report_read',
  `select id, case when reported_at > now() - interval '8 seconds' then report end as report from gateway_instance
   where id <> $1 and heartbeat_at > now() - make_interval(secs => $2) order by id limit 200`,
)
