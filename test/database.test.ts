import pg from 'pg'
import { listMigrations } from '../src/database/migrate.ts'
import { emptyDatabase, freshDatabase, testServer } from './database.ts'
import { assert, pluck, test } from './kit.ts'

async function ask(connection: pg.ClientConfig, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

test('a fresh database has every migration and nothing of another test, and is gone after drop', async () => {
  const [one, two] = await Promise.all([freshDatabase(), freshDatabase()])
  await ask(one.connection, 'create table mine (id integer)')
  assert.deepEqual(await ask(two.connection, `select to_regclass('mine') as found`), [{ found: null }])
  const applied = await ask(
    { connectionString: two.url },
    'select number from migration where number > 0 order by number',
  )
  assert.deepEqual(
    pluck(applied, 'number'),
    (await listMigrations()).map(({ number }) => number),
  )
  await Promise.all([one.drop(), two.drop()])
  const left = await ask(testServer(), `select datname from pg_database where datname = '${one.connection.database}'`)
  assert.deepEqual(left, [])
})

test('an empty database has no table', async () => {
  const database = await emptyDatabase()
  const tables = await ask(database.connection, `select 1 from pg_tables where schemaname = 'public'`)
  assert.deepEqual(tables, [])
  await database.drop()
})

test('the server of the tests keeps what it acknowledges', async () => {
  const [settings] = await ask(
    testServer(),
    `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit`,
  )
  assert.deepEqual(settings, { fsync: 'on', commit: 'on' })
})
