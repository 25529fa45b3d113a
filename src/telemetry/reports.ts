// The live view across all processes. When an operator opens it, the process that gets the request notifies the others
// by a cache version. Each writes a report on its calls and vendors, and the answer merges the reports. Nothing is
// written while no operator looks.
import type { Changes } from '../database/changes.ts'
import { type Database, sql } from '../database/database.ts'
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
  /** The number of processes that reported, and of those that are alive but did not. */
  readonly processes: { readonly answering: number; readonly silent: number }
}

export type Reports = ReturnType<typeof createReports>

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

interface ProcessReportRow {
  id: string
  report: Report | null
}

const CALLS_MAX = 200
/** Other processes check for changes once a second. */
const WAIT_MS = 2_500
const LOOK_MS = 250
const ALIVE_SECONDS = 15

export function createReports({ database, changes, world, processId, own }: ReportsOptions) {
  function mine(): Report {
    const { calls, running, vendors } = own()
    return { calls: calls.slice(0, CALLS_MAX).map(reportedCallOf), running, vendors }
  }

  const write = (report: Report, aheadSeconds: number) =>
    database.query(WRITE, [processId, JSON.stringify(report), aheadSeconds])

  changes.watch('reports', () => {
    // An error is ignored: the view asks again, and nothing important may wait for a report or fail with it.
    write(mine(), 0).catch(() => undefined)
  })

  /** A report of the last seconds is good enough, so its process is not waited for: the next refresh shows more. */
  async function others(): Promise<ProcessReportRow[]> {
    const untilMs = world.elapsedMs() + WAIT_MS
    for (;;) {
      const rows = await database.query<ProcessReportRow>(READ, [processId, ALIVE_SECONDS])
      if (rows.every(({ report }) => report !== null) || world.elapsedMs() >= untilMs) return rows
      await sleep(world, LOOK_MS)
    }
  }

  return {
    async read(): Promise<Reported> {
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
    /**
     * Writes an empty report at shutdown, so that others do not wait for this process while its heartbeat still counts
     * as alive.
     */
    leave: (): Promise<unknown> => write({ calls: [], running: 0, vendors: [] }, ALIVE_SECONDS),
  }
}

/** Limits rejected calls here too, so that they leave room for others however many processes report. */
function newest(calls: readonly ReportedCall[]): ReportedCall[] {
  const sorted = calls.toSorted((a, b) => (a.at < b.at ? 1 : -1))
  let refused = 0
  return sorted.filter(({ outcome }) => outcome !== 'rejected' || ++refused <= REFUSED_KEPT).slice(0, CALLS_MAX)
}

function reportedCallOf({ atMs, charged, ...call }: LiveCall): ReportedCall {
  return { ...call, at: new Date(atMs).toISOString(), charged: formatCredits(charged) }
}

const WRITE = sql('report_write')`
  insert into gateway_instance (id, report, reported_at) values ($1, $2::jsonb, now() + make_interval(secs => $3))
   on conflict (id) do update set report = excluded.report, reported_at = excluded.reported_at`
const READ = sql('report_read')`
  select id, case when reported_at > now() - interval '8 seconds' then report end as report from gateway_instance
   where id <> $1 and heartbeat_at > now() - make_interval(secs => $2) order by id limit 200`
