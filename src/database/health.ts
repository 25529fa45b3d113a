// What the server and its tables say that an operator should hear before calls are in trouble.
import type { World } from '../kernel/world.ts'
import { type Queryable, SHORT_MS, sql } from './database.ts'
import { putSetting } from './setting.ts'

/** Null: there is none, or this user of the database may not know. */
export interface StoreHealth {
  readonly bytes: number
  readonly standbys: number
  /** The most that followed within the last hour: whoever takes one away on purpose is told of it for no longer. */
  readonly standbysMost: number
  /** Whether commits wait for a synchronous standby that is not there. */
  readonly isStandbyMissing: boolean | null
  /** How much of what was written the slowest standby has not applied. */
  readonly standbyLagBytes: number | null
  /** Calls outside of the partitions of months, counted up to a thousand. */
  readonly unpartitionedRows: number
  /** How long the slowest export that fails has sent nothing. */
  readonly exportLagSeconds: number | null
  readonly backupAgeSeconds: number | null
  /** The month that cannot be archived, or whose archive is not what was written, and why. */
  readonly archiveFault: string | null
}

const FRESH_MS = 4_000
const HEALTH = sql('store_health', SHORT_MS)`
  with standby as (select sync_state, replay_lsn from pg_stat_replication where state is distinct from 'backup')
   select pg_database_size(current_database())::float8 as bytes, (select count(*)::int from standby) as standbys,
     greatest((select count(*)::int from standby), (select (value::jsonb ->> 'most')::int from setting
       where name = 'standbys' and (value::jsonb ->> 'at')::timestamptz > now() - interval '1 hour')) as "standbysMost",
     case when pg_has_role('pg_read_all_stats', 'usage') then current_setting('synchronous_standby_names') <> ''
       and not exists (select 1 from standby where sync_state in ('sync', 'quorum')) end as "isStandbyMissing",
     (select max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))::float8 from standby) as "standbyLagBytes",
     (select count(*)::int from (select 1 from usage_rest limit 1000) r) as "unpartitionedRows",
     (select max(extract(epoch from now() - coalesce(sent_at, created_at)))::float8 from export where open and paused_at is null and failures > 0) as "exportLagSeconds",
     (select extract(epoch from now() - value::timestamptz)::float8 from setting where name = 'backup-at') as "backupAgeSeconds",
     (select to_char(month, 'YYYY-MM') || ': ' || coalesce(failure, problems ->> 0) from ledger_archive
       where failure is not null or problems <> '[]' order by month limit 1) as "archiveFault"`
/** In the database, so that processes that start later know it too, and all of them say the same. */
const STANDBYS = sql('standbys_seen')`
  insert into setting (name, value) values ('standbys', jsonb_build_object('most', $1::int, 'at', now())::text) on conflict (name) do update set value = excluded.value`
const NOTED_MS = 60_000

export const noteBackup = (database: Queryable, at: string) => putSetting(database, 'backup-at', at)

export type StoreWatch = ReturnType<typeof createStoreWatch>

export function createStoreWatch(database: Queryable, world: World) {
  let health: StoreHealth | undefined
  let readMs = Number.NEGATIVE_INFINITY
  let noted = { standbys: 0, atMs: Number.NEGATIVE_INFINITY }
  let reading: Promise<void> | undefined
  async function look(): Promise<void> {
    try {
      ;[health] = await database.query<StoreHealth>(HEALTH)
      const { standbys = 0, standbysMost = 0 } = health ?? {}
      const isNew = standbys !== noted.standbys || world.elapsedMs() - noted.atMs > NOTED_MS
      if (standbys === 0 || standbys < standbysMost || !isNew) return
      noted = { standbys, atMs: world.elapsedMs() }
      await database.query(STANDBYS, [standbys])
    } catch {
      // Other incidents tell of a database that does not answer.
      health = undefined
    } finally {
      readMs = world.elapsedMs()
      reading = undefined
    }
  }
  async function read(): Promise<StoreHealth | undefined> {
    if (world.elapsedMs() - readMs < FRESH_MS) return health
    reading ??= look()
    await reading
    return health
  }
  return {
    read,
    /** As it was a few seconds ago. Reading it has it read anew. */
    latest(): StoreHealth | undefined {
      void read()
      return health
    },
  }
}
