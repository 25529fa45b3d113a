import { type ChaosProxy, startProxy } from '../../test/chaos/proxy.ts'
import { freshDatabase } from '../../test/database.ts'
import { assert, atOnce, before, started, test, until } from '../../test/kit.ts'
import { Fault } from '../kernel/fault.ts'
import { addressProblem, splitAddress, withoutPassword } from './address.ts'
import { openDatabase, SHORT_MS } from './database.ts'
import { openPool } from './pool.ts'

const fresh = started(freshDatabase)
const database = started(() => openDatabase({ connection: fresh.connection, connectionsMax: 4 }))
before(async () => {
  await database.query({ text: `insert into account (id, name) values ('one', ''), ('two', '')` })
})

const isAway = (error: unknown) => error instanceof Fault && error.kind === 'unavailable'
const rename = { text: `update account set name = $2 where id = $1` }

test('an address may have several hosts; what is wrong with it is said without the password in it', () => {
  assert.deepEqual(splitAddress('postgres://u:p%40@a:1,[::1]:2,%2Ftmp/db?sslmode=require'), [
    'postgres://u:p%40@a:1/db?sslmode=require',
    'postgres://u:p%40@[::1]:2/db?sslmode=require',
    'postgres://u:p%40@%2Ftmp/db?sslmode=require',
  ])
  for (const good of ['postgres://a,b/db?target_session_attrs=read-write', 'postgresql://a/db', 'postgres://a:1,b:2'])
    assert.equal(addressProblem(good), undefined, good)
  const bad = {
    'mysql://u:hunter2@a/db': /must be an address such as/,
    'postgres://u:hunter2@a,b:x/db': /must be an address such as/,
    'postgres://a,,b/db': /must be an address such as/,
    'postgres://u:hunter2@a,b/db?target_session_attrs=standby': /must be read-write or primary: Tollgate writes/,
    hunter2: /must be an address such as/,
  }
  for (const [address, problem] of Object.entries(bad)) {
    assert.match(addressProblem(address) ?? '', problem, address)
    assert.doesNotMatch(addressProblem(address) ?? '', /hunter2/)
  }
  assert.deepEqual(withoutPassword('postgres://u:hunter2@a:1,b:2/db'), {
    text: 'postgres://u@a:1,b:2/db',
    password: true,
  })
})

test('every session and every transaction has an end to waiting for locks and to being idle with its own', async () => {
  const show = {
    text: `select current_setting('lock_timeout') as locks, current_setting('idle_in_transaction_session_timeout') as idle`,
  }
  assert.deepEqual(await database.query(show), [{ locks: '5s', idle: '10s' }])
  assert.deepEqual(await database.transaction((tx) => tx.query(show)), [{ locks: '3s', idle: '5s' }])
  const queue = openPool({ connection: fresh.connection, connectionsMax: 1 })
  assert.deepEqual((await queue.query(show)).rows, [{ locks: '5s', idle: '10s' }])
  await queue.close()
})

test('a transaction that stops in the middle loses its locks, and is told; nobody waits for a lock without end', async () => {
  const waited = await database
    .transaction(
      async (tx) => {
        await tx.query(rename, ['one', 'stuck'])
        const impatient = database.transaction((other) => other.query(rename, ['one', 'second']), {
          locksMs: 50,
          idleMs: 0,
        })
        let isRefused = false
        const refused = assert.rejects(impatient, isAway).finally(() => {
          isRefused = true
        })
        // However long that takes here, this one is not idle meanwhile.
        await until(async () => {
          await tx.query({ text: 'select pg_sleep(0.02)' })
          return isRefused
        })
        await refused
        // The server ends this session; whoever waits for its lock goes on.
        await database.query(rename, ['one', 'third'])
        await assert.rejects(tx.query(rename, ['one', 'fourth']), isAway)
        return 'done'
      },
      { locksMs: 0, idleMs: 2_000 },
    )
    .catch((error: unknown) => error)
  assert.ok(isAway(waited), String(waited))
  assert.deepEqual(await database.query({ text: `select name from account where id = 'one'` }), [{ name: 'third' }])
})

test('a server that vanishes silently costs one short deadline: what is dead is dropped, and another host is found', async (t) => {
  const path = `${fresh.connection.host}/.s.PGSQL.${fresh.connection.port}`
  const doors: ChaosProxy[] = [await startProxy({ path }), await startProxy({ path })]
  const [first, second] = doors as [ChaosProxy, ChaosProxy]
  second.refuse()
  const { user, database: name } = fresh.connection
  const connectionString = `postgres://${user}@${doors.map(({ port }) => `127.0.0.1:${port}`)}/${name}?target_session_attrs=read-write`
  const away = openDatabase({ connection: { connectionString }, connectionsMax: 6 })
  t.after(async () => {
    await Promise.all(doors.map((door) => door.close()))
    await away.close()
  })
  // Several connections, all of them idle, and two that wait for an answer when it happens.
  await atOnce(6, () => away.query({ text: 'select pg_sleep(0.1)' }))
  assert.equal(second.connections, 0)
  const long = away.query({ text: 'select pg_sleep(20)' })
  const within = away.transaction((tx) => tx.query({ text: 'select pg_sleep(20)' }))
  const lost = Promise.all([assert.rejects(long, isAway), assert.rejects(within, isAway)])
  await away.query({ text: 'select 1' })
  first.stall()
  second.heal()
  await assert.rejects(away.query({ text: 'select 1', withinMs: SHORT_MS }), isAway)
  // In production as short; here a busy machine connects.
  await away.query({ text: 'select 1', withinMs: 60_000 })
  await lost
  assert.ok(second.connections > 0)
})

test('an address none of whose hosts answers is away, not wrong', async () => {
  const nowhere = openDatabase({ connection: { connectionString: 'postgres://u@127.0.0.1:1,127.0.0.1:2/db' } })
  await assert.rejects(nowhere.query({ text: 'select 1' }), isAway)
  await nowhere.close()
})

test('a connection that the server ends takes no other with it', async () => {
  const pool = openDatabase({ connection: { ...fresh.connection, application_name: 'one ends' }, connectionsMax: 3 })
  const pid = { text: 'select pg_backend_pid() as pid, pg_sleep(0.2)' }
  const before = await Promise.all([1, 2, 3].map(async () => (await pool.query<{ pid: number }>(pid))[0]!.pid))
  assert.equal(new Set(before).size, 3)
  const busy = assert.rejects(pool.query({ text: 'select pg_sleep(30)' }), isAway)
  const end = {
    text: `with busy as materialized (select pid from pg_stat_activity where application_name = 'one ends' and state = 'active')
      select pid from busy where pg_terminate_backend(pid)`,
  }
  const ended = await until(
    () => database.query<{ pid: number }>(end),
    ({ length }) => length > 0,
  )
  await busy
  const after = await Promise.all([1, 2].map(async () => (await pool.query<{ pid: number }>(pid))[0]!.pid))
  await pool.close()
  assert.deepEqual(new Set(after), new Set(before).difference(new Set(ended.map((row) => row.pid))))
})

test('a statement has no longer than its deadline, and the connection that it waited on is not used again', async () => {
  const began = performance.now()
  const late = database.query({ text: 'select pg_sleep(30)', withinMs: 300 })
  await assert.rejects(late, isAway)
  const tookMs = performance.now() - began
  assert.ok(tookMs >= 200, `${tookMs} ms`)
  assert.deepEqual(await database.query({ text: 'select 1 as one' }), [{ one: 1 }])
})
