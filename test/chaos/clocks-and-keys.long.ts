// F38, F39, F42: keys that are revoked under load, clocks that jump, bursts beyond a limit.
import { realWorld, type World } from '../../src/kernel/world.ts'
import { freshDatabase } from '../database.ts'
import { count, post } from '../faults/raw-client.ts'
import { BY, startGateway, type TestGateway, textOf } from '../gateway.ts'
import { above, afterEach, assert, FULL, runs, started, test, until } from '../kit.ts'

/** The bounds of a machine of its own. */
const LOCAL_MS_MAX = FULL ? 100 : 2_000
const REMOTE_MS_MAX = FULL ? 5_000 : 15_000
const HOUR_MS = 3_600_000

let offsetMs = 0
const jumping: World = { ...realWorld, nowMs: () => realWorld.nowMs() + offsetMs }
const fresh = started(freshDatabase)
const here = started(() => startGateway({ database: fresh, world: jumping }))
const there = started(() => startGateway({ database: fresh }))
afterEach(async () => {
  offsetMs = 0
  await here.settled()
})

test('a key that is revoked under load stops working at once here, and within 5 s elsewhere', async (t) => {
  for (const clockMs of [0, HOUR_MS, -HOUR_MS]) {
    offsetMs = clockMs
    const { id } = await here.account()
    const { id: keyId, key } = await here.gateway.keys.create(id, { name: 'short-lived' }, BY)
    let revokedMs = Number.POSITIVE_INFINITY
    let stop = false
    const late = { here: 0, there: 0 }
    const last = { here: 0, there: 0 }
    const ask = async (name: 'here' | 'there', gateway: TestGateway) => {
      while (!stop) {
        const sentMs = performance.now()
        const { status } = await gateway.call('/v1/models', key)
        assert.ok(status === 200 || status === 401, `${status}`)
        if (status !== 200) {
          assert.ok(revokedMs < Number.POSITIVE_INFINITY, 'refused before it was revoked')
          continue
        }
        last[name] = sentMs
        const afterMs = sentMs - revokedMs
        if (afterMs > (name === 'here' ? LOCAL_MS_MAX : REMOTE_MS_MAX)) late[name] += 1
      }
    }
    const askers = [ask('here', here), ask('here', here), ask('there', there), ask('there', there)]
    await until(() => last.here > 0 && last.there > 0)
    await here.gateway.keys.revoke(keyId, BY)
    revokedMs = performance.now()
    await until(
      async () =>
        (await there.call('/v1/models', key)).status === 401 && (await here.call('/v1/models', key)).status === 401,
    )
    await until(() => performance.now() - revokedMs, above(runs(0, 6_000)))
    stop = true
    await Promise.all(askers)
    assert.deepEqual(late, { here: 0, there: 0 })
    t.diagnostic(
      `clock ${clockMs / HOUR_MS} h off: last success ${Math.max(0, Math.round(last.here - revokedMs))} ms after the revocation here, ${Math.max(0, Math.round(last.there - revokedMs))} ms elsewhere`,
    )
  }
})

test('a clock that jumps by an hour ends no stream, no hold, no key and no limit', async () => {
  const { id, key } = await here.account()
  const body = JSON.stringify({
    model: 'alpha-5.4',
    max_tokens: 100,
    stream: true,
    messages: [{ role: 'user', content: 'go on [[slow=10]]' }],
  })
  for (const jumpMs of [HOUR_MS, -HOUR_MS, 24 * HOUR_MS, -24 * HOUR_MS]) {
    offsetMs = 0
    const streams = [...count(10)].map(() => post(here.url, { key, body }))
    await Promise.all(streams.map((stream) => stream.until((text) => text.includes('data:'))))
    offsetMs = jumpMs
    assert.equal(await here.gateway.ledger.sweep(), 0, 'holds expired by a clock')
    assert.equal((await here.call('/v1/account', key)).status, 200)
    for (const stream of streams) assert.match(await stream.text(), /\[DONE\]\n\n$/)
  }
  const [expired] = await here.sql<{ n: bigint }>(
    `select count(*) as n from usage where account_id = $1 and outcome <> 'settled'`,
    [id],
  )
  assert.equal(expired!.n, 0n)
})

test('dates are those of UTC, wherever the machine stands', async () => {
  const { key } = await here.account()
  const asked = async () => {
    await textOf(here.call('/v1/siteanalytics/websites/visits?keys=example.com', key))
    const url = here.sandbox.seen.calls.filter(({ room }) => room.includes('analytics')).at(-1)!.url
    return url.replace(/^.*\?/, '')
  }
  const zone = process.env.TZ
  try {
    process.env.TZ = 'UTC'
    const expected = await asked()
    for (const name of ['Asia/Kathmandu', 'Pacific/Kiritimati', 'America/St_Johns', 'Etc/GMT+12']) {
      process.env.TZ = name
      assert.equal(await asked(), expected, name)
    }
  } finally {
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
  }
})

test('a burst of ten times the limit admits the limit, and the rest is told when to come again and not charged', async (t) => {
  const limit = 60
  const id = await here.gateway.accounts.create(
    { name: 'limited', credits: 1_000_000_000n, limits: { requestsPerMinute: limit } },
    BY,
  )
  const { key } = await here.gateway.keys.create(id, { name: 'limited' }, BY)
  const startedMs = performance.now()
  const answers = await Promise.all(
    [...count(limit * 10)].map((i) =>
      (i % 2 === 0 ? here : there).call('/v1/siteanalytics/websites/visits?keys=example.com', key),
    ),
  )
  const tookMs = performance.now() - startedMs
  const admitted = answers.filter(({ status }) => status === 200).length
  for (const answer of answers) {
    if (answer.status === 200) continue
    assert.equal(answer.status, 429)
    assert.ok(Number(answer.headers.get('retry-after')) >= 1)
    assert.equal(((await answer.json()) as { error: { code: number } }).error.code, 40001)
  }
  // What passes out of the minute while the burst runs may be used again.
  assert.ok(admitted >= limit && admitted <= Math.ceil(limit * (1 + tookMs / 60_000)), `${admitted} in ${tookMs} ms`)
  await here.settled()
  const [row] = await here.sql<{ n: bigint }>('select count(*) as n from usage where account_id = $1', [id])
  assert.equal(row!.n, BigInt(admitted))
  t.diagnostic(
    `${answers.length} calls at two processes in ${Math.round(tookMs)} ms: ${admitted} admitted of ${limit} a minute`,
  )
})
