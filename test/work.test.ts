// Everything that waits: whoever has a thousand of it holds up nobody else, and where there is nothing to do the
// database is hardly asked.
import type { Queryable } from '../src/database/database.ts'
import { startJobs } from '../src/jobs/engine.ts'
import { realWorld, type World } from '../src/kernel/world.ts'
import { startReceiver, startTestEngine } from './job-engine.ts'
import { after, assert, atLeast, closing, listen, started, test, until } from './kit.ts'

/** Longer than any test takes: who waits for a vendor that is silent waits for as long as it likes. */
const SILENT_MS = 300_000
const on = started(() =>
  startTestEngine({
    catalog(document) {
      document.vendors.videogen!.timeouts = { firstByteMs: SILENT_MS, totalMs: SILENT_MS }
    },
  }),
)
after(async () => {
  await on.engine.stop(0)
  // What waits for the vendor ends with it.
  await on.sandbox.close()
})

test('a thousand jobs of one account, whose vendor is silent, do not hold up another’s single one', async () => {
  const many = await on.account(1_000_000_000_000n)
  const ids: string[] = []
  while (ids.length < 1_000) {
    const some = Array.from({ length: 50 }, () => on.store(many, { prompt: 'a wall [[submit-timeout]]' }))
    ids.push(...(await Promise.all(some)))
  }
  await on.begin(...ids)
  const running = async () => {
    const text =
      'select count(*)::int as count, sum(version)::int as steps from job where account_id = $1 and lease_until > now()'
    const [row] = await on.database.query<{ count: number; steps: number }>({ text }, [many])
    return row
  }
  // As many as an account may have, each in its first step.
  await until(async () => (await running())?.count, 500, 300_000)
  const one = await on.create(await on.account(), { prompt: 'a gate' })
  await until(async () => (await on.row(one)).status, 'COMPLETED')
  assert.deepEqual(await running(), { count: 500, steps: 500 })
})

test('a thousand deliveries of one account to a silent receiver do not hold up another’s single one', async () => {
  // One that was given up makes room for the next.
  let waiting = 0
  let most = 0
  await using silent = await listen((_, response) => {
    waiting += 1
    most = Math.max(most, waiting)
    response.once('close', () => (waiting -= 1))
  })
  await using receiver = closing(await startReceiver())
  await using sender = closing(await startTestEngine({ allow: [silent.host, receiver.host] }))
  const { deliveries } = sender.engine
  const message = { kind: 'webhook', event: 'job.completed', subject: 'x', body: '{}' } as const
  const mine = { ...message, account: await sender.account(), to: `${silent.url}/` }
  const many = Array.from({ length: 1_000 }, (_, place) => ({ ...mine, id: `msg_many_${place}` }))
  await deliveries.add(sender.database, many)
  deliveries.wake()
  await until(() => waiting, 3)
  const one = { ...message, id: 'msg_one', account: await sender.account(), to: receiver.url }
  await deliveries.add(sender.database, [one])
  deliveries.wake()
  await until(() => receiver.got.length, atLeast(1))
  assert.equal(most, 3)
})

test('where there is nothing to do, one statement asks for everything that waits, and more rarely', async () => {
  const idle = await startTestEngine()
  await idle.engine.stop(0)
  const asked: string[] = []
  const pauses: number[] = []
  const looked = Promise.withResolvers<void>()
  const query: Queryable['query'] = (statement, values) => {
    asked.push(statement.name ?? statement.text)
    if (asked.length === 45) looked.resolve()
    return idle.database.query(statement, values)
  }
  const fetchEveryMs = 20
  const world: World = {
    ...realWorld,
    after(ms, run) {
      if (ms === fetchEveryMs || ms === fetchEveryMs * 5) pauses.push(ms)
      return realWorld.after(ms, run)
    },
  }
  const timing = { ...idle.deps.timing, fetchEveryMs }
  const engine = startJobs({ ...idle.deps, world, timing, database: { ...idle.database, query } })
  await looked.promise
  await engine.stop(0)
  await idle.close()
  // The first two are what an earlier process may have left.
  assert.deepEqual(new Set(asked.slice(0, 2)), new Set(['job_take', 'delivery_take']))
  assert.deepEqual(new Set(asked.slice(2)), new Set(['work_due']))
  assert.equal(pauses.at(-1), fetchEveryMs * 5)
})
