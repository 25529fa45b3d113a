// A database for one story after the other. Its clock is the story's: `now()` and `clock_timestamp()` are found in
// `public` before Postgres's own, so that the very same statements, functions and defaults see virtual time.
import pg from 'pg'
import { type Database, type Queryable, type Statement, type Value, withLast } from '../../src/database/database.ts'
import { migrate } from '../../src/database/migrate.ts'
import type { EmbeddedConnection } from '../../src/extensions/postgres/embedded.ts'
import { CALLS_ARRIVED } from '../../src/ledger/retention.ts'
import { closing } from '../started.ts'

export interface Lane {
  readonly database: Database
  /** From the next statement on it is this moment, until it is told otherwise. */
  setClock(nowMs: number): void
  /** Nothing is left of earlier stories. */
  clear(): Promise<void>
  close(): Promise<void>
}

const TEMPLATE = 'simulate_template'

const VIRTUAL_TIME = `
  create function public.now() returns timestamptz language sql stable
    as $$ select pg_catalog.to_timestamp(pg_catalog.current_setting('simulated.now')::float8 / 1000) $$;
  create function public.clock_timestamp() returns timestamptz language sql stable
    as $$ select pg_catalog.to_timestamp(pg_catalog.current_setting('simulated.now')::float8 / 1000) $$;`
/** A day's patience with a vendor passes in three minutes. */
const SHORT_DEADLINE = `alter table job alter column deadline_at set default now() + interval '3 minutes'`
/**
 * Everything that a story writes. Rows are deleted and not truncated with their tables, which would cost every plan.
 */
const WRITTEN = [
  'api_key',
  'budget',
  'account',
  'hold',
  'lease',
  'lot',
  'claim',
  'payment',
  'journal',
  'transfer',
  'usage',
  'usage_hour',
  'counter',
  'quota_slice',
  'idempotency',
  'gateway_instance',
  'job',
  'job_body',
  'delivery',
  'account_move',
  'usage_day',
  'label_day',
  `setting where name in ('system-limits', '${CALLS_ARRIVED}')`,
]
const CLEAR = WRITTEN.map((table) => `delete from ${table}`).join('; ')

// What is simulated is the line to the database, not its disk.
const SETTINGS = '-c search_path=public,pg_catalog -c synchronous_commit=off -c simulated.now=0 -c jit=off'

/** To be called once for a server, before any lane is opened. */
export async function makeLaneTemplate(server: EmbeddedConnection): Promise<void> {
  await withMaintenance(server, async (client) => {
    await client.query(`drop database if exists ${TEMPLATE} with (force)`)
    await client.query(`create database ${TEMPLATE}`)
  })
  await using lane = closing(await connect(server, TEMPLATE))
  await lane.database.query({ text: VIRTUAL_TIME })
  await migrate(lane.database)
  await lane.database.query({ text: SHORT_DEADLINE })
}

export async function openLane(server: EmbeddedConnection, name: string): Promise<Lane> {
  await withMaintenance(server, (client) =>
    client.query(`create database ${name} template ${TEMPLATE} strategy file_copy`),
  )
  const lane = await connect(server, name)
  return {
    ...lane,
    async close() {
      await lane.close()
      await withMaintenance(server, (client) => client.query(`drop database if exists ${name} with (force)`))
    },
  }
}

/**
 * One connection: a story's statements come one after the other anyway. The clock travels with the statement behind it.
 */
async function connect(server: EmbeddedConnection, name: string): Promise<Lane> {
  const client = new pg.Client({ ...server, database: name, options: SETTINGS, pipeline: true } as pg.ClientConfig)
  await client.connect()
  let clockMs = 0
  let setMs = 0

  const query = async (statement: Statement, values: readonly Value[] = []) => {
    const { stream } = (client as unknown as { connection: { stream: NodeJS.WritableStream & Corkable } }).connection
    stream.cork()
    if (setMs !== clockMs) void client.query(`set simulated.now = ${clockMs}`)
    setMs = clockMs
    const asked = client.query({ ...statement, values: values as unknown[] })
    stream.uncork()
    return (await asked).rows
  }
  return {
    database: {
      query: query as Queryable['query'],
      async transaction(work) {
        await query({ text: 'begin' })
        try {
          const result = await withLast({ query: query as Queryable['query'] }, work)
          await query({ text: 'commit' })
          return result
        } catch (error) {
          await query({ text: 'rollback' })
          throw error
        }
      },
      outside: () => Promise.reject(new Error('not here')),
      measure: () => undefined,
      waiting: () => 0,
      close: () => client.end(),
    },
    setClock(nowMs) {
      clockMs = nowMs
    },
    async clear() {
      await query({ text: CLEAR })
    },
    close: () => client.end(),
  }
}

interface Corkable {
  cork(): void
  uncork(): void
}

async function withMaintenance(server: EmbeddedConnection, run: (client: pg.Client) => Promise<unknown>) {
  const client = new pg.Client({ ...server, database: 'postgres' })
  await client.connect()
  try {
    await run(client)
  } finally {
    await client.end()
  }
}
