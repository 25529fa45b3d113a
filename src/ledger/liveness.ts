// Liveness of processes. Each process sends a heartbeat; the holds of a process without heartbeats are released, and so
// are holds that this process has lost track of.
import { SHORT_MS, sql } from '../database/database.ts'
import type { Around } from './write-watch.ts'

/** A hold or a lease of this process that it may have lost track of. */
export interface Forgotten {
  readonly id: string
  readonly account: string
  readonly key: string
  /** Null for a lease. */
  readonly product: string | null
  readonly catalogVersion: number
  /** Of its budgets. */
  readonly scopes: readonly string[] | null
}

interface LivenessOptions extends Around {
  /** How long the database must have answered before processes without heartbeats count as dead. */
  readonly graceMs: number
  /** Releases what dead processes hold of an account; returns how many holds expired. */
  readonly expire: (account: string) => Promise<number>
  /** Settlements stand in the journal. */
  readonly unposted: () => Promise<void>
  /** Other processes may consider this process dead. */
  readonly presumedDead: () => void
  /**
   * Holds and leases that are older than a minute or needed by others, and all after the server became another. Unknown
   * ones are released: their commit's answer was lost, or arrived late, or their end is not known to a standby that
   * lagged.
   */
  readonly found: (row: Forgotten) => void
}

export const SILENT_SECONDS = 20
/** Other processes consider this process dead after 20 s. It must stop admitting calls with leases before that. */
export const HEARD_SECONDS = 15
const HEARD_MS = HEARD_SECONDS * 1_000
/**
 * A process whose last heartbeat is older than this was disconnected from the database, and the others may have been
 * too.
 */
const CUT_OFF_MS = 10_000
/** If the database's clock moved by more than this relative to ours, it was changed. */
const CLOCK_JUMP_MS = 3_000
const FORGOTTEN_SECONDS = 60
/** Also those of a server whose clock was ahead. */
const EVER_SECONDS = -86_400

export function createLiveness({ database, watch, world, processId, ...options }: LivenessOptions) {
  const { graceMs, expire, unposted, presumedDead, found } = options
  let heardMs = Number.NEGATIVE_INFINITY
  /** Until then, on the clock for durations, all other processes still consider this process alive. */
  const heard = { untilMs: Number.NEGATIVE_INFINITY }
  let judgeFromMs = Number.NEGATIVE_INFINITY
  /** By how much the database's clock is ahead of ours. */
  let aheadMs: number | undefined
  let others = false
  /** A standby that was promoted started at another moment. */
  let server: string | undefined

  return {
    heard,
    /** Whether there are other processes, as far as is known. */
    hasOthers: () => others,
    async sweep(): Promise<number> {
      const sentMs = world.elapsedMs()
      const [beat] = await watch(database.query<Beat>(HEARTBEAT, [processId]))
      const nowMs = world.elapsedMs()
      // A process that was disconnected must not declare others dead at once: they first get time to send a heartbeat.
      // The same applies after the database's clock was changed, because it measures the age of heartbeats.
      const ahead = (beat?.now_ms ?? 0) - nowMs
      const jumped = aheadMs !== undefined && Math.abs(ahead - aheadMs) > CLOCK_JUMP_MS + (nowMs - sentMs)
      aheadMs = ahead
      if (nowMs - heardMs > CUT_OFF_MS || jumped) judgeFromMs = nowMs + graceMs
      if (nowMs - heardMs >= HEARD_MS) presumedDead()
      heardMs = sentMs
      heard.untilMs = sentMs + HEARD_MS
      others = beat?.others ?? false
      if (beat?.unposted) await unposted()
      const isNew = beat?.server !== server
      for (const row of await database.query<Forgotten>(FORGOTTEN, [
        processId,
        isNew ? EVER_SECONDS : FORGOTTEN_SECONDS,
      ]))
        found(row)
      server = beat?.server
      if (nowMs < judgeFromMs) return 0
      const silent = await database.query<{ account: string }>(SILENT, [SILENT_SECONDS])
      // An account that somebody else has locked waits for the next sweep.
      const gone = await Promise.all(silent.map(({ account }) => expire(account).catch(() => 0)))
      return gone.reduce((sum, count) => sum + count, 0)
    },
  }
}

interface Beat {
  readonly now_ms: number
  readonly unposted: boolean
  readonly others: boolean
  readonly server: string
}
const HEARTBEAT = sql('heartbeat', SHORT_MS)`
  insert into gateway_instance (id) values ($1) on conflict (id) do update set heartbeat_at = now()
   returning (extract(epoch from heartbeat_at) * 1000)::double precision as now_ms, exists (select 1 from journal) as unposted, pg_postmaster_start_time()::text as server,
     exists (select 1 from gateway_instance p where p.id <> $1 and p.heartbeat_at > now() - make_interval(secs => ${SILENT_SECONDS})) as others`
/** A heartbeat from the future was written before the clock was set back. */
const SILENT = sql('ledger_silent')`
  select distinct x.account_id as account from (select account_id, process_id from hold where not job union all select account_id, process_id from lease) x
   where not exists (select 1 from gateway_instance p where p.id = x.process_id
     and p.heartbeat_at between now() - make_interval(secs => $1) and now() + make_interval(secs => $1)) limit 1000`
const FORGOTTEN = sql('ledger_forgotten')`
  select id, account_id as account, key_id as key, product, catalog_version as "catalogVersion", scopes from hold
   where process_id = $1 and not job and created_at <= now() - make_interval(secs => $2)
   union all
   select id, account_id, key_id, null, 0, scopes from lease
   where process_id = $1 and (recalled_at is not null or created_at <= now() - make_interval(secs => $2))`
