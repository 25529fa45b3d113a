// A database for one story after the other. Its clock is the story's: `now()` and `clock_timestamp()` are found in `public`
// before Postgres's own, so that the very same statements, functions and defaults see virtual time.
import pg from 'pg'
import { type Database, openDatabase } from '../../src/database/database.ts'
import type { EmbeddedConnection } from '../../src/database/embedded.ts'
import { migrate } from '../../src/database/migrate.ts'

export interface Lane {
  readonly database: Database
  /** From now on it is this moment, until it is told otherwise. */
  setClock(nowMs: number): Promise<void>
  /** Nothing is left of earlier stories. */
  clear(): Promise<void>
  close(): Promise<void>
}

const TEMPLATE = 'simulate_template'

// A day's patience with a vendor passes in three minutes.
const VIRTUAL_TIME = `
  create function public.now() returns timestamptz language sql stable
    as $$ select pg_catalog.to_timestamp(pg_catalog.current_setting('simulated.now')::float8 / 1000) $$;
  create function public.clock_timestamp() returns timestamptz language sql stable
    as $$ select pg_catalog.to_timestamp(pg_catalog.current_setting('simulated.now')::float8 / 1000) $$;`
const SHORT_DEADLINE = `alter table job alter column deadline_at set default now() + interval '3 minutes'`

// A failed disk is not among the faults: what is simulated is the line to the database.
const SETTINGS = '-c search_path=public,pg_catalog -c synchronous_commit=off -c simulated.now=0 -c jit=off'

/** Everything that a story writes. */
const CLEAR = `truncate account, hold, transfer, usage, usage_hour, limited, idempotency, process, job, job_body, api_key cascade`

function open(server: EmbeddedConnection, database: string): Database {
  const connection = { ...server, database, options: SETTINGS, idleTimeoutMillis: 0 }
  return openDatabase({ connection, connectionsMax: 1 })
}

/** To be called once for a server, before any lane is opened. */
export async function makeLaneTemplate(server: EmbeddedConnection): Promise<void> {
  await withClient(server, async (client) => {
    await client.query(`drop database if exists ${TEMPLATE} with (force)`)
    await client.query(`create database ${TEMPLATE}`)
  })
  const database = open(server, TEMPLATE)
  try {
    await database.query({ text: VIRTUAL_TIME })
    await migrate(database)
    await database.query({ text: SHORT_DEADLINE })
  } finally {
    await database.close()
  }
}

export async function openLane(server: EmbeddedConnection, name: string): Promise<Lane> {
  await withClient(server, (client) => client.query(`create database ${name} template ${TEMPLATE}`))
  const database = open(server, name)
  let clockMs = 0
  return {
    database,
    async setClock(nowMs) {
      if (nowMs === clockMs) return
      clockMs = nowMs
      await database.query({ text: `set simulated.now = ${nowMs}` })
    },
    async clear() {
      await database.query({ text: CLEAR })
    },
    async close() {
      await database.close()
      await withClient(server, (client) => client.query(`drop database if exists ${name} with (force)`))
    },
  }
}

async function withClient(server: EmbeddedConnection, run: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ ...server, database: 'postgres' })
  await client.connect()
  try {
    await run(client)
  } finally {
    await client.end()
  }
}
