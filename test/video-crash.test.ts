// Real gateway processes, killed in the middle of everything: no job is lost, none is made twice, every credit is
// accounted.
import pg from 'pg'
import { verifyLedger } from '../src/extensions/verify/verify.ts'
import { realWorld } from '../src/kernel/world.ts'
import { testServer } from './database.ts'
import { startTestEngine } from './job-engine.ts'
import { killable } from './killable.ts'
import { above, assert, atOnce, started, temporary, test, until } from './kit.ts'

/** The vendor's clock goes forward by this: what takes it an hour takes as long as the test wants. */
let skippedMs = 0
const HOUR_MS = 3_600_000

const data = temporary('tollgate-jobs-')
const on = started(() =>
  startTestEngine({
    // Its own worker sleeps: the processes do the work.
    timing: { fetchEveryMs: 3_600_000 },
    vendorWorld: { ...realWorld, elapsedMs: () => realWorld.elapsedMs() + skippedMs },
    catalog(document) {
      document.vendors.videogen!.timeouts = { firstByteMs: 5_000, totalMs: 10_000 }
    },
  }),
)
const start = killable()
const startProcess = () => start({ connection: on.fresh.connection, sandboxUrl: on.sandbox.url, data })

const SMALL = { duration: 4, resolution: '480p' }
const PRICE = 14_000_000n

async function make(account: string, count: number, prompt: string): Promise<string[]> {
  const ids = await atOnce(count, () => on.store(account, { ...SMALL, prompt }))
  await on.database.query({ text: `update job set step_at = now() - interval '1 hour' where id = any($1)` }, [ids])
  return ids
}

async function statuses(ids: readonly string[]): Promise<Record<string, number>> {
  const rows = await on.database.query<{ status: string; count: bigint }>(
    { text: 'select status, count(*) as count from job where id = any($1) group by status' },
    [ids],
  )
  return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]))
}

const rowsOf = (ids: readonly string[]) =>
  on.database.query(
    { text: 'select id, status, verdict, files, error, completed_at, task_id from job where id = any($1) order by id' },
    [ids],
  )

async function check(): Promise<void> {
  const verified = await verifyLedger(on.database, on.deps.catalog)
  assert.deepEqual(verified.problems, [])
  for (const [job, times] of Object.entries(on.sandbox.seen.submissions)) assert.equal(times, 1, `job ${job}`)
}

test('killed with jobs in every status, a gateway ends them all after its restart, each submitted once and paid once', async () => {
  const account = await on.account(10_000_000_000n)
  const done = [
    ...(await make(account, 50, 'a rope')),
    ...(await make(account, 50, '[[fail]]')),
    ...(await make(account, 50, '[[cancelled]]')),
  ]
  const first = await startProcess()
  await until(async () => (await on.engine.facts()).byStatus.PENDING === undefined && isEmpty(await on.engine.facts()))
  assert.deepEqual(await statuses(done), { COMPLETED: 50, FAILED: 50, CANCELLED: 50 })
  const before = await rowsOf(done)

  const running = [
    ...(await make(account, 10, `a knot [[running-ms=${HOUR_MS}]]`)),
    ...(await make(account, 40, `[[fail]] [[running-ms=${HOUR_MS}]]`)),
  ]
  // Half of them wait in the vendor's queue, half have been taken by a vendor that never answers.
  const queued = `[[queued-ms=${HOUR_MS}]]`
  const connected = [
    ...(await make(account, 5, `a sail ${queued}`)),
    ...(await make(account, 20, `[[fail]] ${queued}`)),
    ...(await make(account, 5, `a mast [[submit-timeout]] ${queued}`)),
    ...(await make(account, 20, `[[fail]] [[submit-timeout]] ${queued}`)),
  ]
  await until(
    async () =>
      (await statuses(running)).PROCESSING === 50 &&
      (await statuses(connected)).CONNECT === 50 &&
      connected.every((id) => on.sandbox.seen.submissions[id] === 1),
  )
  await first.kill()
  const pending = [...(await make(account, 10, 'an anchor')), ...(await make(account, 40, '[[fail]]'))]
  assert.deepEqual(await statuses([...done, ...running, ...connected, ...pending]), {
    PENDING: 50,
    CONNECT: 50,
    PROCESSING: 50,
    COMPLETED: 50,
    FAILED: 50,
    CANCELLED: 50,
  })

  const second = await startProcess()
  skippedMs += 3 * HOUR_MS
  await until(async () => isEmpty(await on.engine.facts()))
  assert.deepEqual(await rowsOf(done), before, 'what had ended is untouched')
  assert.deepEqual(await statuses(running), { COMPLETED: 10, FAILED: 40 })
  assert.deepEqual(await statuses(connected), { COMPLETED: 10, FAILED: 40 })
  assert.deepEqual(await statuses(pending), { COMPLETED: 10, FAILED: 40 })
  assert.equal(Object.keys(on.sandbox.seen.submissions).length, 300)
  assert.deepEqual(await on.balance(account), { posted: 10_000_000_000n - 80n * PRICE, held: 0n })
  await check()
  await second.kill()
})

test('two gateways share the jobs, and killing one loses none', async () => {
  const account = await on.account(10_000_000_000n)
  const [one, two] = await Promise.all([startProcess(), startProcess()])
  const both = async () => [
    ...(await make(account, 10, 'a fleet [[queued-ms=1500]]')),
    ...(await make(account, 50, '[[fail]] [[queued-ms=1500]]')),
  ]
  // While one of them hangs the other has no rival: each must be seen to end jobs, and neither has to be the quicker.
  two.pause()
  const ids = await both()
  await until(() => one.ended.size, above(5))
  two.resume()
  one.pause()
  ids.push(...(await both()))
  await until(() => two.ended.size, above(5))
  await one.kill()
  await until(async () => isEmpty(await on.engine.facts()))
  assert.deepEqual(await statuses(ids), { COMPLETED: 20, FAILED: 100 })
  assert.deepEqual(await on.balance(account), { posted: 10_000_000_000n - 20n * PRICE, held: 0n })
  await check()
})

test('with every connection to the database cut again and again, jobs end as if nothing had been', async () => {
  const alone = await startTestEngine()
  const server = new pg.Client(testServer())
  await server.connect()
  try {
    const account = await alone.account(10_000_000_000n)
    for (let i = 0; i < 20; i++) await alone.create(account, { ...SMALL, prompt: 'a line [[queued-ms=500]]' })
    const { database } = alone.fresh.connection
    const connections = (what: string) =>
      server.query(`select ${what} from pg_stat_activity where datname = $1`, [database])
    for (let i = 0; i < 6; i++) {
      await until(async () => (await connections('pid')).rows.length, above(1))
      await connections('pg_terminate_backend(pid)')
    }
    // The pool's own connections were cut as well: the first question may still meet one of them.
    await until(async () => isEmpty(await alone.engine.facts().catch(() => ({ byStatus: { '?': 1 } }))))
    const rows = await alone.database.query<{ status: string; submissions: number }>({
      text: 'select status, submissions from job',
    })
    assert.equal(rows.length, 20)
    assert.ok(rows.every(({ status, submissions }) => status === 'COMPLETED' && submissions === 1))
    assert.ok(Object.values(alone.sandbox.seen.submissions).every((times) => times === 1))
    assert.deepEqual(await alone.balance(account), { posted: 10_000_000_000n - 20n * PRICE, held: 0n })
  } finally {
    await server.end()
    await alone.close()
  }
})

function isEmpty(facts: { byStatus: Readonly<Record<string, number>> }): boolean {
  return Object.keys(facts.byStatus).length === 0
}
