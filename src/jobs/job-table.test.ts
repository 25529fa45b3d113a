// What the database itself guarantees about jobs, however many workers there are and whatever they believe.

import { assert, atOnce, BY, started, test } from '../../test/gateway.ts'
import { startTestEngine } from '../../test/job-engine.ts'
import { release } from '../../test/settlement.ts'
import { JOB_STATUSES } from '../catalog/generation-answers.ts'
import type { ClaimedJob } from './job.ts'
import { stepJob } from './video.ts'

/** The engine's own worker sleeps, so that the tests can be the workers. */
const on = started(() => startTestEngine({ timing: { fetchEveryMs: 3_600_000, leaseMs: 600_000 } }))

const GRANTED = 100_000_000n
const PRICE = 35_000_000n

/** A job that nobody works on yet. */
async function make(body: Record<string, unknown> = {}) {
  const account = await on.account(GRANTED)
  const id = await on.store(account, { prompt: 'a tide', ...body })
  return { account, id }
}

const claim = async (id: string) => {
  const job = await on.engine.jobs.work.claim(id)
  assert.ok(job, 'the job can be claimed')
  return job
}

/** The lease runs out, as it does for a process that hangs. */
const lapse = (id: string) =>
  on.database.query({ text: `update job set lease_until = now() - interval '1 second' where id = $1` }, [id])

test('the database takes the statuses that callers are told of, and no other', async () => {
  const [row] = await on.database.query<{ rule: string }>({
    text: `select pg_get_constraintdef(oid) as rule from pg_constraint
      where conrelid = 'job'::regclass and pg_get_constraintdef(oid) like '%''PENDING''%'`,
  })
  const words = [...(row?.rule ?? '').matchAll(/'([A-Z]+)'/g)].map(([, word]) => word)
  assert.deepEqual(words, [...JOB_STATUSES])
})

test('a job is in one worker’s hands at a time', async () => {
  const { id } = await make()
  assert.equal((await atOnce(20, () => on.engine.jobs.work.claim(id))).filter(Boolean).length, 1)
})

test('a worker that was thought dead writes nothing any more', async () => {
  const { id } = await make()
  const stale = await claim(id)
  await lapse(id)
  const fresh = await claim(id)
  const { jobs } = on.engine
  const before = await on.row(id)
  assert.equal(await jobs.beginSubmission(stale, { vendor: 'videogen', route: 1 }), false)
  assert.equal(await jobs.submitted(stale, 'cgt-stale', '{}'), false)
  assert.equal(await jobs.refusedSubmission(stale), false)
  assert.equal(await jobs.decide(stale, { verdict: 'FAILED' }), false)
  assert.equal(await jobs.conclude(stale), false)
  assert.equal(await jobs.work.release(stale, { afterMs: 0, attempts: 0, misses: 0, status: 'PROCESSING' }), undefined)
  await jobs.processing(stale)
  assert.deepEqual(await on.row(id), before)
  assert.equal(await jobs.beginSubmission(fresh, { vendor: 'videogen', route: 1 }), true)
})

test('a second submission cannot begin while nothing is known of the first', async () => {
  const { id } = await make()
  const first = await claim(id)
  assert.equal(await on.engine.jobs.beginSubmission(first, { vendor: 'videogen', route: 1 }), true)
  await lapse(id)
  const second = await claim(id)
  assert.equal(await on.engine.jobs.beginSubmission(second, { vendor: 'videogen', route: 1 }), false)
})

test('large orders are read from the store a few at a time, and each gets its turn', async () => {
  const image = `data:image/png;base64,${'A'.repeat(700_000)}`
  const [first, second] = [await make({ image }), await make({ image })]
  const [reading, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const jobs = {
    ...on.engine.jobs,
    async body(id: string) {
      reading.resolve()
      await goOn.promise
      return on.engine.jobs.body(id)
    },
  }
  const submitted = ({ id }: { id: string }) => on.sandbox.seen.submissions[id]
  const going = stepJob(await claim(first.id), { ...on.step, jobs })
  await reading.promise
  const put = await stepJob(await claim(second.id), on.step)
  assert.deepEqual(put, { afterMs: on.step.timing.retryMs, attempts: 0, misses: 0 })
  assert.deepEqual([submitted(first), submitted(second)], [undefined, undefined])
  goOn.resolve()
  await going
  await lapse(second.id)
  await stepJob(await claim(second.id), on.step)
  assert.deepEqual([submitted(first), submitted(second)], [1, 1])
})

test('nothing is submitted that is not held', async () => {
  const { account, id } = await make()
  const job = await claim(id)
  const { key_id: key, product, catalog_version: catalogVersion } = job
  await on.ledger.resolve(release(account, job.hold_id, { key, product, catalogVersion, endpoint: 'video' }))
  await stepJob(job, on.step)
  assert.equal((await on.row(id)).status, 'FAILED')
  assert.equal(on.sandbox.seen.submissions[id], undefined)
})

test('a job goes forward only, and what has ended stays as it is', async () => {
  const { id } = await make()
  const set = (change: string) => on.database.query({ text: `update job set ${change} where id = '${id}'` })
  await set(`status = 'PROCESSING'`)
  for (const back of ['PENDING', 'CONNECT']) await assert.rejects(set(`status = '${back}'`), /cannot go from/)
  await assert.rejects(set(`status = 'COMPLETED'`), /otherwise than its verdict/)
  await set(`verdict = 'FAILED'`)
  await assert.rejects(set(`verdict = 'COMPLETED'`), /verdict already/)
  await set(`status = 'FAILED'`)
  for (const other of ['PROCESSING', 'COMPLETED', 'CANCELLED'])
    await assert.rejects(set(`status = '${other}'`), /cannot go from|otherwise/)
  await set(`task_id = 'cgt-1'`)
  await assert.rejects(set(`task_id = 'cgt-2'`), /task already/)
})

test('fifty workers that settle the same job at once charge it once', async () => {
  const made = await atOnce(10, () => make())
  for (const { id } of made) {
    const job = await claim(id)
    assert.equal(await on.engine.jobs.decide(job, { verdict: 'COMPLETED', delivered: { seconds: 5 } }), true)
    const decided: ClaimedJob = { ...job, verdict: 'COMPLETED', delivered: { seconds: 5 } }
    await atOnce(50, () => stepJob(decided, on.step))
  }
  for (const { account, id } of made) {
    assert.equal((await on.row(id)).status, 'COMPLETED')
    assert.deepEqual(await on.balance(account), { posted: GRANTED - PRICE, held: 0n })
    const [row] = await on.database.query<{ count: bigint }>(
      { text: `select count(*) as count from usage where account_id = $1` },
      [account],
    )
    assert.equal(row!.count, 1n)
  }
})

test('an end that was decided is settled by whoever comes next', async () => {
  const { account, id } = await make()
  const dying = await claim(id)
  await on.engine.jobs.decide(dying, { verdict: 'COMPLETED', delivered: { seconds: 4 } })
  await lapse(id)
  await stepJob(await claim(id), on.step)
  assert.equal((await on.row(id)).status, 'COMPLETED')
  assert.deepEqual(await on.balance(account), { posted: GRANTED - 28_000_000n, held: 0n })
})

test('a job does not end while its credits are held', async () => {
  const { id } = await make()
  const job = await claim(id)
  await on.engine.jobs.decide(job, { verdict: 'FAILED' })
  assert.equal(await on.engine.jobs.conclude(job), false)
  assert.equal((await on.row(id)).status, 'PENDING')
})

test('the price is that of the catalog under which the job was made', async () => {
  const { account, id } = await make()
  const { catalog } = on.deps
  const usual = catalog.current.input
  const dearer = structuredClone(usual)
  for (const tier of dearer.models['videogen-2.0']!.pricing.tiers) tier.second = '1000'
  await catalog.apply(dearer, BY, '')
  const job = await claim(id)
  await on.engine.jobs.decide(job, { verdict: 'COMPLETED', delivered: { seconds: 5, resolution: '720p' } })
  await lapse(id)
  await stepJob(await claim(id), on.step)
  assert.equal((await on.balance(account)).posted, GRANTED - PRICE)
  await catalog.apply(usual, BY, '')
})

test('a job is read by one lookup in an index', async () => {
  const [plan] = await on.database.query<{ 'QUERY PLAN': [{ Plan: { 'Node Type': string } }] }>({
    text: `explain (format json) select id from job where id = '1789000000000000001'`,
  })
  assert.match(plan!['QUERY PLAN'][0].Plan['Node Type'], /^Index/)
})

/** Throws before or after the n-th action, as a process would die there; counts the actions. */
function dieAt(n: number, when: 'before' | 'after') {
  let actions = 0
  const dying = <T extends object>(of: T): T =>
    new Proxy(of, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown
        if (typeof value !== 'function') return value
        return async (...args: unknown[]) => {
          actions += 1
          const now = actions === n
          if (now && when === 'before') throw new Error('killed')
          const result: unknown = await Reflect.apply(value, target, args)
          if (now) throw new Error('killed')
          return result
        }
      },
    })
  const { jobs, tasks, ledger, results } = on.step
  return {
    step: { ...on.step, jobs: dying(jobs), tasks: dying(tasks), ledger: dying(ledger), results: dying(results) },
    get reached() {
      return actions >= n
    },
  }
}

test('killed before or after any single action of its life, a job is submitted once and paid once', async () => {
  const killed: Array<{ account: string; id: string; at: string }> = []
  for (const when of ['before', 'after'] as const) {
    for (let n = 1; ; n++) {
      const { account, id } = await make({ duration: 4, resolution: '480p' })
      const death = dieAt(n, when)
      for (let steps = 1; (await on.row(id)).completed_at === null; steps++) {
        assert.ok(steps < 100, `${when} action ${n}: ${JSON.stringify(await on.row(id))}`)
        await lapse(id)
        const job = await on.engine.jobs.work.claim(id)
        assert.ok(job)
        const step = death.reached ? on.step : death.step
        const ending = await stepJob(job, step).catch(() => undefined)
        if (ending) await on.engine.jobs.work.release(job, ending)
      }
      if (!death.reached) break
      killed.push({ account, id, at: `${when} action ${n}` })
    }
  }
  assert.ok(killed.length > 15, `${killed.length} places`)
  const lost: string[] = []
  for (const { account, id, at } of killed) {
    const row = await on.row(id)
    const taken = on.sandbox.seen.submissions[id] ?? 0
    if (taken === 0) lost.push(at)
    assert.ok(taken <= 1, at)
    assert.equal(row.status, taken === 1 ? 'COMPLETED' : 'FAILED', at)
    const paid = taken === 1 ? 14_000_000n : 0n
    assert.deepEqual(await on.balance(account), { posted: GRANTED - paid, held: 0n }, at)
  }
  // Between the note that a submission leaves and its leaving: nobody can know that it did not, so it is refunded.
  assert.deepEqual(lost, ['after action 2'])
})
