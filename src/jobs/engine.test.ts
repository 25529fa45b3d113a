// The engine against a real Postgres and the simulated vendor: what becomes of a job, and of its credits, whatever the
// vendor does.

import { startReceiver, startTestEngine } from '../../test/job-engine.ts'
import { assert, atLeast, atOnce, not, started, test, until } from '../../test/kit.ts'
import type { Queryable } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { realWorld } from '../kernel/world.ts'
import { startJobs } from './engine.ts'
import type { ClaimedJob } from './job.ts'
import type { VendorTasks } from './vendor-tasks.ts'
import { stepJob } from './video.ts'

/** The vendor's clock goes forward by this. */
let skippedMs = 0
const HOUR_MS = 3_600_000
const receiver = started(() => startReceiver((count) => (count === 1 ? 500 : 204)))
const on = started(() =>
  startTestEngine({
    allow: [receiver.host],
    vendorWorld: { ...realWorld, elapsedMs: () => realWorld.elapsedMs() + skippedMs },
    timing: { searchForMs: 1_500, submitForMs: 8_000 },
    catalog(document) {
      document.vendors.videogen!.timeouts = { firstByteMs: 2_000, totalMs: 4_000 }
    },
  }),
)

const GRANTED = 1_000_000_000n
/** Five seconds at 7 credits. */
const PRICE = 35_000_000n

async function run(body: Record<string, unknown>) {
  const account = await on.account(GRANTED)
  const id = await on.create(account, body)
  await on.ended()
  const row = await on.row(id)
  const { posted, held } = await on.balance(account)
  assert.equal(held, 0n)
  return { id, row, paid: GRANTED - posted }
}

/** How often the vendor took the job. */
const taken = (id: string) => on.sandbox.seen.submissions[id] ?? 0

test('a job is submitted once, moves forward, and is charged for what was delivered', async () => {
  const { id, row, paid } = await run({ prompt: 'a lighthouse', return_last_frame: true })
  assert.equal(row.status, 'COMPLETED')
  assert.equal(taken(id), 1)
  assert.equal(paid, PRICE)
  const [files] = row.files as Array<{ video: string; lastFrame: string }>
  assert.equal(on.results.get(files!.video)!.toString('latin1', 4, 8), 'ftyp')
  assert.equal(on.results.get(files!.lastFrame)!.toString('latin1', 1, 4), 'PNG')
  assert.ok((row.created_at as Date) <= (row.started_at as Date))
  assert.ok((row.started_at as Date) <= (row.completed_at as Date))
})

const endings = [
  // what the vendor does          the job's end  paid    taken  the caller is told
  ['[[fail]]', 'FAILED', 0n, 1, /sensitive/],
  ['[[fail=InternalServiceError]]', 'FAILED', 0n, 1, /vendor failed/i],
  ['[[expire]]', 'FAILED', 0n, 1, /too slow/],
  ['[[cancelled]]', 'CANCELLED', 0n, 1, undefined],
  ['[[reject]]', 'FAILED', 0n, 0, /sensitive/],
  ['[[lost]]', 'FAILED', 0n, 1, /lost this job/],
  ['[[no-file]]', 'FAILED', 0n, 1, /could not be fetched/],
  ['[[cut-file]]', 'FAILED', 0n, 1, /could not be fetched/],
  ['[[submit-500]]', 'FAILED', 0n, 0, /vendor failed/i],
  ['[[401]]', 'FAILED', 0n, 0, /not available/],
  ['[[poll-500=3]]', 'COMPLETED', PRICE, 1, undefined],
  ['[[poll-429=2]]', 'COMPLETED', PRICE, 1, undefined],
  ['[[poll-stall=1]]', 'COMPLETED', PRICE, 1, undefined],
  ['[[odd-status running-ms=200]] [[running-ms=200]]', 'COMPLETED', PRICE, 1, undefined],
  ['[[submit-lost]]', 'COMPLETED', PRICE, 1, undefined],
  ['[[submit-cut]]', 'COMPLETED', PRICE, 1, undefined],
  ['[[submit-timeout]]', 'COMPLETED', PRICE, 1, undefined],
  ['[[once=429 first]]', 'COMPLETED', PRICE, 1, undefined],
  ['[[no-usage]]', 'COMPLETED', PRICE, 1, undefined],
] as const

test('whatever the vendor does, a job ends once, and is paid for exactly when it was delivered', async () => {
  const made = await Promise.all(
    endings.map(async ([prompt]) => {
      const account = await on.account(GRANTED)
      return { account, id: await on.create(account, { prompt: `a harbour ${prompt}` }) }
    }),
  )
  await on.ended()
  for (const [index, [prompt, status, paid, submissions, told]] of endings.entries()) {
    const { account, id } = made[index]!
    const row = await on.row(id)
    const error = row.error as { message: string } | null
    assert.equal(row.status, status, `${prompt}: ${JSON.stringify(error)}`)
    assert.deepEqual(await on.balance(account), { posted: GRANTED - paid, held: 0n }, prompt)
    assert.equal(taken(id), submissions, prompt)
    if (told) assert.match(error?.message ?? '', told, prompt)
    else assert.equal(error, null, prompt)
  }
})

test('a shorter or smaller video than asked for costs what it is', async () => {
  const account = await on.account(GRANTED)
  const id = await on.create(account, { prompt: 'a bay', duration: 10, resolution: '480p' })
  await on.ended()
  assert.equal((await on.row(id)).status, 'COMPLETED')
  assert.equal((await on.balance(account)).posted, GRANTED - 10n * 3_500_000n)
})

test('a worker that slept while its order was on its way keeps the task for whoever has the job now', async () => {
  const account = await on.account(GRANTED)
  const id = await on.store(account, { prompt: 'a lantern' })
  const { jobs } = on.step
  const lost = { text: `update job set lease_until = now() - interval '1 second' where id = $1` }
  const first = (await jobs.work.claim(id))!
  let second: ClaimedJob | undefined
  // The vendor takes the order; its answer is read after another worker has taken the job, which this vendor does not
  // find.
  const tasks: VendorTasks = {
    ...on.step.tasks,
    async submit(...about) {
      const submission = await on.step.tasks.submit(...about)
      await on.database.query(lost, [id])
      second = await jobs.work.claim(id)
      return submission
    },
    search: async () => undefined,
  }
  await jobs.work.release(first, await stepJob(first, { ...on.step, tasks }))
  assert.ok(second && second.submit_age_ms !== null && second.task_id === null)
  assert.notEqual((await on.row(id)).task_id, null)
  // Who believes that there is no task must not end the job.
  const past = { ...second, submit_age_ms: HOUR_MS }
  await jobs.work.release(second, await stepJob(past, { ...on.step, tasks }))
  // Whoever has the job now may have ended it already.
  assert.notEqual((await on.row(id)).verdict, 'FAILED')

  await on.begin(id)
  await on.ended()
  assert.equal((await on.row(id)).status, 'COMPLETED')
  assert.equal(taken(id), 1)
  assert.deepEqual(await on.balance(account), { posted: GRANTED - PRICE, held: 0n })
})

test('past its deadline a job fails and is refunded; a success that comes later is written down', async () => {
  const account = await on.account(GRANTED)
  const id = await on.create(account, { prompt: `a slow boat [[running-ms=${HOUR_MS}]]` })
  await until(async () => (await on.row(id)).task_id, not(null))
  await on.database.query({ text: `update job set deadline_at = now() where id = $1` }, [id])
  await until(async () => (await on.row(id)).status, 'FAILED')
  skippedMs += 2 * HOUR_MS
  await on.ended()
  const row = await on.row(id)
  assert.equal(row.status, 'FAILED')
  assert.match((row.error as { message: string }).message, /in time/)
  assert.match(row.anomaly as string, /succeeded after the job had ended/)
  assert.deepEqual(await on.balance(account), { posted: GRANTED, held: 0n })
})

test('a poison job among a hundred fails alone, is refunded once, and the worker lives', async () => {
  const account = await on.account(100n * PRICE)
  const ids = await atOnce(100, (i) => on.store(account, { prompt: `wave ${i} [[queued-ms=300]]` }))
  const poison = ids[50]!
  await on.database.query({ text: `update job set request = 'not JSON' where id = $1` }, [poison])
  await on.begin(...ids)
  await on.ended()
  const rows = await on.database.query<{ id: string; status: string }>(
    { text: 'select id, status from job where id = any($1)' },
    [ids],
  )
  for (const { id, status } of rows) assert.equal(status, id === poison ? 'FAILED' : 'COMPLETED')
  assert.deepEqual(await on.balance(account), { posted: PRICE, held: 0n })
})

for (const way of ['completed', 'cancelled'] as const)
  test(`a job that is ${way} is told of, also when the database goes away at the moment of its end`, async () => {
    const told = await startReceiver()
    const other = await startTestEngine({ allow: [told.host], speed: way === 'cancelled' ? 1 : 1000 })
    await other.engine.stop(0)
    let lost = 0
    const query: Queryable['query'] = async (asked, values) => {
      const rows = await other.database.query(asked, values)
      if (asked.name === 'job_conclude' && lost++ === 0) throw new Fault('unavailable')
      return rows as never
    }
    const engine = startJobs({ ...other.deps, database: { ...other.database, query } })
    const id = await other.store(await other.account(GRANTED), { prompt: 'a pier', callback_url: told.url })
    if (way === 'completed') await other.begin(id)
    else await assert.rejects(engine.cancel((await engine.jobs.find(id))!), { kind: 'unavailable' })
    await until(() => told.got.length, atLeast(1))
    assert.equal(JSON.parse(told.got[0]!.body).type, `job.${way}`)
    await engine.stop(2_000)
    await other.close()
    await told.close()
  })

test('a webhook never reaches a private address', async () => {
  const inner = await startReceiver()
  const account = await on.account(GRANTED)
  await assert.rejects(on.store(account, { prompt: 'a reef', callback_url: inner.url }), { kind: 'request_invalid' })
  // A name may mean another address by the time that the job ends.
  const id = await on.store(account, { prompt: 'a reef' })
  await on.database.query({ text: 'update job set callback_url = $2 where id = $1' }, [id, inner.url])
  await on.begin(id)
  await on.ended()
  assert.equal((await on.row(id)).status, 'COMPLETED')
  assert.equal(inner.got.length, 0)
  await inner.close()
})
