// What a real server refuses although the call is right: whoever has to be paid is paid when it is over, and nobody
// else waits for it.

import pg from 'pg'
import { testServer } from '../../test/database.ts'
import { after, assert, atOnce, beforeEach, test, until } from '../../test/kit.ts'
import {
  account,
  call,
  count,
  eventually,
  fresh,
  lease,
  processOf,
  reserve,
  rows,
  settle,
} from '../../test/ledger-part.ts'
import { type Database, openDatabase, type Queryable } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { storeLimits } from './limits.ts'

const ROLE = `refused_${process.pid}`
const PASSWORD = 'before'
let admin: pg.Client
let gateway: Database
let wide: Database
/** What the server said, of the statements of the ledger that failed. */
const said: string[] = []
/** For whom each of these statements was, as its values say. */
const saidOf: string[] = []

let isReady = false
// With the first test: a file's own `before` does not wait for that of what it imports.
beforeEach(async () => {
  if (isReady) return
  isReady = true
  admin = new pg.Client(testServer())
  await admin.connect()
  await admin.query(`create role ${ROLE} login password '${PASSWORD}'`)
  await rows(`grant all on all tables in schema public to ${ROLE}`)
  if (fresh.connection.password === undefined) await askForPassword()
  gateway = noticing(
    openDatabase({ connection: { ...fresh.connection, user: ROLE, password: PASSWORD }, connectionsMax: 1 }),
  )
  wide = fresh.open()
})
after(async () => {
  await gateway.close()
  await wide.close()
  await rows(`drop owned by ${ROLE}`)
  await admin.query(`drop role ${ROLE}`)
  await admin.end()
})

/** Of this role alone: the server trusts whoever reaches its socket. Its file is where only itself knows the way. */
async function askForPassword(): Promise<void> {
  const { rows } = await admin.query<{ file: string; text: string }>(
    `select current_setting('hba_file') as file, pg_read_file(current_setting('hba_file')) as text`,
  )
  const { file, text } = rows[0]!
  const lines = [`local all ${ROLE} scram-sha-256`, ...text.split('\n')].map((line) => `(${pg.escapeLiteral(line)})`)
  await admin.query(`copy (values ${lines}) to ${pg.escapeLiteral(file)}`)
  await admin.query('select pg_reload_conf()')
}

function noticing(database: Database): Database {
  const query: Queryable['query'] = (statement, values) =>
    database.query<never>(statement, values).catch((error: unknown) => {
      if (statement.name?.startsWith('ledger_')) {
        said.push(String(error instanceof Fault ? error.details.internal?.code : (error as { code?: string }).code))
        saidOf.push(String(values))
      }
      throw error
    })
  return { ...database, query }
}

const endSessions = (whose = 'true') =>
  admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname in ($1, $2) and pid <> pg_backend_pid() and ${whose}`,
    [fresh.connection.database, `${fresh.connection.database}_gone`],
  )

/** Begins what the server then refuses, and answers how it is ended. */
type Trouble = (acc: string) => Promise<() => Promise<unknown>>
const ofRole = (during: string, afterwards: string) => async () => {
  await admin.query(`alter role ${ROLE} ${during}`)
  await endSessions(`usename = '${ROLE}'`)
  return () => admin.query(`alter role ${ROLE} ${afterwards}`)
}
const TROUBLES: Readonly<Record<string, Trouble>> = {
  '28P01': ofRole(`password 'after'`, `password '${PASSWORD}'`),
  '28000': ofRole('nologin', 'login'),
  async '3D000'() {
    const name = fresh.connection.database
    await endSessions()
    await admin.query(`alter database ${name} rename to ${name}_gone`)
    return () => admin.query(`alter database ${name}_gone rename to ${name}`)
  },
  async '42501'() {
    await rows(`revoke update on account from ${ROLE}`)
    return () => rows(`grant update on account to ${ROLE}`)
  },
  async '55P03'(acc) {
    const client = new pg.Client({ ...fresh.connection })
    await client.connect()
    await client.query('begin')
    await client.query('select 1 from account where id = $1 for update', [acc])
    return () => client.end()
  },
}

for (const [state, begin] of Object.entries(TROUBLES))
  test(`a settlement that the server refuses with ${state} is written when that is over, and callers hear 503`, async () => {
    const ledger = await processOf({ database: gateway, resolveForMs: 600, reserveForMs: 300, leases: false })
    const acc = await account(1_000n)
    const reserved = await reserve(ledger, acc, 10n)
    assert.equal(reserved.outcome, 'held')
    said.length = 0
    const end = await begin(acc)
    const told = [settle(ledger, acc, reserved.id, 7n), reserve(ledger, acc, 10n)].map((asked) =>
      asked.then(
        ({ outcome }) => outcome,
        (error: unknown) => (error instanceof Fault ? error.status : String(error)),
      ),
    )
    try {
      assert.deepEqual(await Promise.all(told), [503, 503])
      assert.ok(said.includes(state), `the server said ${[...new Set(said)]}`)
    } finally {
      await end()
    }
    const isPaid = async () => (await count('transfer where id = $1 and amount = 7', reserved.id)) === 1
    await eventually('the settlement was dropped', () => isPaid().catch(() => false))
    await ledger.idle()
    assert.deepEqual(await rows('select posted, held from account where id = $1', [acc]), [{ posted: 993n, held: 0n }])
  })

/** By a pooler, which hands the same session to others. */
const POOLERS: Readonly<Record<string, string>> = {
  '26000': 'deallocate all',
  '42P05': 'deallocate all; prepare ledger_resolve as select 1',
}
for (const [state, text] of Object.entries(POOLERS))
  test(`a settlement whose prepared statement is not what it was (${state}) is written all the same`, async () => {
    const ledger = await processOf({ database: gateway, leases: false })
    const acc = await account(1_000n)
    // The driver knows what it prepared: with 42P05 the session must be new to it.
    if (state === '26000') await call(ledger, acc, 1n)
    else {
      await endSessions(`usename = '${ROLE}'`)
      await eventually('no session', () =>
        reserve(ledger, acc, 1n).then(
          () => true,
          () => false,
        ),
      )
    }
    const reserved = await reserve(ledger, acc, 10n)
    said.length = 0
    await gateway.query({ text })
    await settle(ledger, acc, reserved.id, 7n)
    assert.deepEqual(said, [state])
    assert.equal(await count('transfer where id = $1 and amount = 7', reserved.id), 1)
  })

/** So often the trouble is met before it ends. */
const MET = 8
/** Statements that failed for another's trouble: a few, until it is known whose it is. */
const SHARED_MAX = 4

/**
 * Calls of others go on beside a settlement that cannot be written: what they do is not tried again and again for it.
 */
async function others(isLeased: boolean, during: (bad: string) => Promise<() => Promise<unknown>>): Promise<void> {
  const sizes: number[] = []
  const ledger = await processOf({
    database: noticing(wide),
    leases: isLeased,
    resolveForMs: 60_000,
    meters: { batch: (size) => void sizes.push(size), moved() {} },
  })
  const [bad, ...good] = await atOnce(9, () => account(1_000_000n))
  await wide.transaction((tx) => storeLimits(tx, { kind: 'account', account: bad! }, { spendPerDay: '900000' }))
  const stuck = await atOnce(6, () => reserve(ledger, bad!, 10n))
  said.length = 0
  saidOf.length = 0
  const end = await during(bad!)
  const owed = stuck.map(({ id }) => settle(ledger, bad!, id, 7n))
  /** Calls during which the trouble was not met: they cannot have waited for it. */
  let between = 0
  let isOver = false
  const isMet = () => said.length >= MET && (between >= good.length || said.length >= 20 * MET)
  const met = until(isMet).finally(() => {
    isOver = true
  })
  const calls = [...good, ...good].map(async (acc) => {
    while (!isOver) {
      const met = said.length
      assert.equal((await call(ledger, acc, 10n)).outcome, 'held')
      if (said.length === met) between += 1
      await new Promise(setImmediate)
    }
  })
  await Promise.all([met, ...calls]).finally(end)
  assert.ok(said.length > 0 && Math.max(...sizes) > 1, 'nothing was shared, or nothing was refused')
  assert.ok(between >= good.length, `${between} calls did not wait for another's trouble`)
  const shared = saidOf.filter((values) => good.some((acc) => values.includes(acc)))
  assert.ok(shared.length <= SHARED_MAX, `${shared.length} statements for others failed for another's trouble`)
  // Each once, by a try that was answered or by one before it.
  for (const { outcome } of await Promise.all(owed)) assert.match(outcome, /^(settled|already)$/)
  await ledger.idle()
  assert.deepEqual(await rows('select posted, held from account where id = $1', [bad!]), [
    { posted: 999_958n, held: 0n },
  ])
}

for (const isLeased of [false, true])
  test(`an account whose rows the server cannot write (XX) stops no other, ${isLeased ? 'with' : 'without'} leases`, () =>
    others(isLeased, async (bad) => {
      await rows(
        `create function broken() returns trigger language plpgsql as $$ begin raise exception 'broken' using errcode = 'XX001'; end $$`,
      )
      await rows(
        `create trigger broken before update on account for each row when (new.id = '${bad}') execute function broken()`,
      )
      return () => rows('drop function broken cascade')
    }))

test('a row of limits that somebody else has locked stops no other account', () =>
  others(false, async (bad) => {
    const client = new pg.Client({ ...fresh.connection })
    await client.connect()
    await client.query('begin')
    await client.query('select 1 from counter where account_id = $1 for update', [bad])
    return () => client.end()
  }))

/** A number that the column does not take (22003); nothing of ours makes it. */
const UNWRITABLE = { status: 3_000_000_000 }

test('a settlement that is refused for good leaves no hold: the sweep of its own process gives it back', async () => {
  const ledger = await processOf({ leases: false })
  const acc = await account(1_000n)
  const reserved = await reserve(ledger, acc, 10n)
  await assert.rejects(settle(ledger, acc, reserved.id, 7n, UNWRITABLE), { code: '22003' })
  await rows(`update hold set created_at = now() - interval '61 seconds' where id = $1`, [reserved.id])
  await ledger.sweep()
  await ledger.idle()
  assert.deepEqual(await rows('select posted, held from account where id = $1', [acc]), [{ posted: 1_000n, held: 0n }])
})

test('a settlement that is refused for good frees what it had of a lease', async () => {
  const ledger = await processOf()
  const acc = await account(1_000_000n)
  await lease(ledger, acc)
  const reserved = await reserve(ledger, acc, 10n)
  assert.equal(await count('hold where id = $1', reserved.id), 0, 'it is covered by the lease')
  await assert.rejects(settle(ledger, acc, reserved.id, 7n, UNWRITABLE), { code: '22003' })
  ledger.recall(acc)
  await eventually('the lease stays', async () => (await count('lease where account_id = $1', acc)) === 0)
  const [after] = await rows<{ held: bigint }>('select held from account where id = $1', [acc])
  assert.equal(after?.held, 0n)
})
