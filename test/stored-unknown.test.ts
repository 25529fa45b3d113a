// Data of a newer version: names that this one does not know, in every column and document that holds names. The
// gateway starts, says what it sets aside, and calls go on.
import { readDocument } from '../src/catalog/document.ts'
import { readDefaultCatalog } from '../src/compose.ts'
import { silentLog } from '../src/kernel/log.ts'
import { openedAlerts } from './alerts.ts'
import { freshDatabase } from './database.ts'
import { assert, startGateway, test, words } from './gateway.ts'

const NOVEL = 'of-a-newer-version'
/** A document that is spoilt on purpose. */
type Json = any

/** Every place of a document where a name of a table stands: each `type`, `protocol`, and what else has few values. */
function* places(value: Json, path: string[] = []): Generator<string[]> {
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    const here = [...path, name]
    const isNamed = words('type protocol onAbort auth cloud policy quantization dataPolicy reports tokenField')
    if (isNamed.includes(name) && typeof member === 'string') yield here
    else yield* places(member, here)
  }
}

const spoil = (document: Json, path: string[], value: unknown): void => {
  const holder = path.slice(0, -1).reduce((at, step) => at[step], document)
  holder[path.at(-1) ?? ''] = value
}

test('a part of a stored catalog that is unknown is set aside, and nothing else is', async () => {
  const initial: Json = await readDefaultCatalog()
  const whole = readDocument(initial)
  assert.deepEqual(whole?.setAside, [])
  const names = (read: typeof whole) => Object.keys({ ...read?.document.models, ...read?.document.endpoints })
  const all = [...places(initial)]
  assert.ok(all.length > 20)
  for (const path of [...all, ...Object.keys(initial.models).map((uid) => ['models', uid, 'novelMember'])]) {
    const document = structuredClone(initial)
    spoil(document, path, NOVEL)
    const read = readDocument(document)
    assert.ok(read, path.join('.'))
    assert.ok(read.setAside.length > 0 && read.setAside.every((part) => part.includes(':')), path.join('.'))
    const [shelf, uid = ''] = path
    if (shelf !== 'models' && shelf !== 'endpoints') continue
    const left: string[] = names(whole).filter((name) => !names(read).includes(name))
    assert.ok(
      left.every((name) => name === uid),
      `${path.join('.')} also took ${left.join(', ')}`,
    )
  }
  // A guardrail protects what is sent; a catalog with one that cannot be read is not used.
  assert.equal(readDocument({ ...initial, guardrails: { x: { novel: {} } } }), undefined)
})

const CHECKED = `select c.conrelid::regclass::text as table, a.attname as column, c.conname as name from pg_constraint c
  join pg_attribute a on a.attrelid = c.conrelid and a.attnum = any(c.conkey)
  where c.contype = 'c' and c.connamespace = current_schema()::regnamespace and pg_get_constraintdef(c.oid) ~ 'ARRAY' and a.atttypid = 'text'::regtype`
const NAMED = `select table_name as table, column_name as column from information_schema.columns where table_schema = current_schema() and data_type = 'text'
  and column_name in ('kind', 'status', 'state', 'role', 'operator_role', 'unit', 'span', 'outcome', 'rule', 'level', 'source', 'provider', 'method', 'purpose', 'dispute', 'event')
  and table_name !~ '^(?:usage|transfer)_[0-9]'`
const COLUMNS = `select column_name as name, data_type as type from information_schema.columns where table_schema = current_schema() and table_name = $1
  and is_nullable = 'NO' and column_default is null and is_generated = 'NEVER'`
const VALUES: Record<string, string> = {
  text: 'x',
  bytea: '\\x00',
  jsonb: '{}',
  ARRAY: '{}',
  boolean: 'false',
  date: '2026-01-01',
  'timestamp with time zone': '2026-01-01',
}

test('names of a newer version in every column start and serve, are named, and a limit of theirs holds', async () => {
  await using fresh = await freshDatabase()
  const first = await startGateway({ database: fresh })
  const { id: account, key } = await first.account()
  await first.operator('PATCH', `/accounts/${account}`, { limits: { requestsPerDay: 3 } })
  await first.close()
  await using database = fresh.open({ connectionsMax: 2 })
  const sql = (text: string, values: string[] = []) => database.query<Record<string, string>>({ text }, values)
  const checked = await sql(CHECKED)
  const all = await sql(
    `select conrelid::regclass::text as table, conname as name from pg_constraint
     where contype = 'c' and connamespace = current_schema()::regnamespace and conrelid <> 'account'::regclass`,
  )
  for (const { table, name } of all) await sql(`alter table ${table} drop constraint if exists ${name}`)
  const columns = new Map([...checked, ...(await sql(NAMED))].map((one) => [`${one.table}.${one.column}`, one]))
  assert.ok(columns.size > 20, [...columns.keys()].join())
  await database.transaction(async (tx) => {
    await tx.query({ text: 'set local session_replication_role = replica' })
    for (const { table, column } of columns.values()) {
      const given = new Map<string, string>([[column ?? '', NOVEL]])
      for (const { name = '', type = '' } of await tx.query<Record<string, string>>({ text: COLUMNS }, [table ?? '']))
        if (!given.has(name)) given.set(name, name === 'account_id' ? account : (VALUES[type] ?? '1'))
      if (given.has('id')) given.set('id', `${column}-novel`)
      if (given.has('digest')) given.set('digest', `\\x${Buffer.from(`${table}${column}`).toString('hex')}`)
      if (given.has('email')) given.set('email', `${column}@newer.example`)
      const places = [...given.keys()].map((_, at) => `$${at + 1}`)
      await tx.query(
        {
          text: `insert into ${table} (${[...given.keys()].join(', ')}) values (${places.join(', ')}) on conflict do nothing`,
        },
        [...given.values()],
      )
    }
  })
  await sql(`update counter set name = $1 where name = 'requestsPerDay'`, [NOVEL])
  await sql(`insert into catalog_version (version, document, actor) select max(version) + 1,
    (jsonb_set(min(document)::jsonb, '{models,alpha-image-2,type}', '"${NOVEL}"'))::text, 'newer' from catalog_version`)
  const said: object[] = []
  await using again = await startGateway({
    database: fresh,
    log: { ...silentLog, warn: (fields) => said.push(fields) },
  })
  const chat = () =>
    again.call('/v1/chat/completions', key, { model: 'alpha-5.4', messages: [{ role: 'user', content: 'x' }] })
  const statuses = [await chat(), await chat(), await chat(), await chat()].map(({ status }) => status)
  assert.deepEqual(statuses, [200, 200, 200, 429])
  const { data } = await again.operator<{ setAside: string[] }>('GET', '/system')
  for (const part of [
    /^models\.alpha-image-2: type/,
    new RegExp(`^limit ${NOVEL}: in`),
    new RegExp(`^role ${NOVEL}: in`),
  ])
    assert.ok(
      data.setAside.some((one) => part.test(one)),
      `${part} of ${data.setAside.join('; ')}`,
    )
  assert.ok(said.some((fields) => 'setAside' in fields))
  await openedAlerts(again).look()
  const alerts = await sql(`select subject from alert where rule = 'stored'`)
  assert.ok(alerts.some(({ subject }) => subject === 'models.alpha-image-2'))
  assert.equal((await fetch(`${again.url}/readyz`)).status, 200)
  assert.equal((await again.operator('PATCH', `/accounts/${account}`, { name: 'Renamed' })).status, 200)
  assert.deepEqual(await sql(`select name from counter where account_id = $1 and name = $2`, [account, NOVEL]), [
    { name: NOVEL },
  ])
  const edited = await again.operator<{ message: string }>('PATCH', '/catalog/models/alpha-5.4', { enabled: true })
  assert.ok(edited.status < 500, String(edited.status))
})
