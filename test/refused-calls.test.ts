// Calls that were refused: in the account's usage with their reason, at no charge, and bounded however many come.
import { Fault } from '../src/kernel/fault.ts'
import type { Page } from '../src/kernel/view.ts'
import { newId, realWorld, type World } from '../src/kernel/world.ts'
import type { Overview, UsageDetail, UsageView } from '../src/ledger/views.ts'
import type { LiveCallView } from '../src/operator/views.ts'
import { createRefusals } from '../src/telemetry/refusals.ts'
import { freshDatabase } from './database.ts'
import { OPERATOR_TOKEN, startGateway, type TestGateway, testGateway } from './gateway.ts'
import { above, assert, atOnce, pluck, test, until } from './kit.ts'

const g = testGateway()
const CHAT = '/v1/chat-completions'
const good = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'hello' }] }

const callsOf = (rows: readonly { calls: number }[]) => rows.reduce((sum, { calls }) => sum + calls, 0)
/** The refusals of an account, when as many as these are written. */
async function refusals(account: string, calls: number): Promise<UsageView[]> {
  const look = async () => {
    const items: UsageView[] = []
    // There are twice as many rows as kinds where a minute ends meanwhile: more than a page.
    for (let next: string | null = ''; next !== null; ) {
      const path: string = `/accounts/${account}/usage?outcome=rejected&limit=200${next && `&cursor=${next}`}`
      const page: Page<UsageView> = await g.ask<Page<UsageView>>('GET', path)
      items.push(...page.items)
      next = page.next
    }
    return items
  }
  return until(look, (items) => callsOf(items) >= calls)
}

/** A flood has rows in each minute that it touches, however slow the machine is. */
const minutesSince = (startedMs: number) => 2 + Math.floor((performance.now() - startedMs) / 60_000)

const read = async (reply: Promise<Response>) => {
  const response = await reply
  await response.text()
  return response
}

/** Who asks what, and how the rejection is told and kept; the first three are of different keys. */
const REJECTED = [
  ['poor', good, 402, 'credits_short', 'alpha-5.4'],
  ['bound', good, 403, 'model_restricted', 'alpha-5.4'],
  ['ended', good, 401, 'key_unknown', ''],
  ['poor', { ...good, messages: 'my secret question' }, 400, 'request_invalid', 'alpha-5.4'],
  ['poor', '{"model": ', 400, 'request_invalid', ''],
] as const

/** Asks these with keys of an account without credits: of everything, bound to another model, ended. */
async function reject(calls: readonly (typeof REJECTED)[number][]) {
  const { id, ...poor } = await g.account({ credits: 0n })
  const [bound, ended] = [await g.key(id, { models: ['beta-opus-5'] }), await g.key(id)]
  await g.sql(`update api_key set revoked_at = now() - interval '1 minute' where id = $1`, [ended.keyId])
  const keys = { poor, bound, ended }
  const answers: Response[] = []
  for (const [by, body, status] of calls) {
    answers.push(await read(g.call(CHAT, keys[by].key, body)))
    assert.equal(answers.at(-1)?.status, status)
  }
  return { id, keys, answers }
}

test('a refused call is in the usage of its account with code, message, key and product, at no charge', async () => {
  const { id, keys, answers } = await reject(REJECTED)
  const rows = await refusals(id, REJECTED.length)
  const told = rows.map(({ keyId, status, fault, product, endpoint, charged, calls }) => [
    keyId,
    status,
    fault,
    product,
    endpoint,
    charged,
    calls,
  ])
  assert.deepEqual(
    told.reverse(),
    REJECTED.map(([by, , ...facts]) => [keys[by].keyId, ...facts, 'chat', '0', 1]),
  )
  assert.match(rows.at(-1)?.message ?? '', /^Insufficient credit/)
  assert.ok(!JSON.stringify(rows).includes('secret question'))
  const detail = await g.ask<UsageDetail>('GET', `/usage/${answers[0]?.headers.get('x-request-id')}`)
  assert.deepEqual(
    [
      detail.outcome,
      detail.attemptLog?.fault?.code,
      detail.attemptLog?.fault?.blame,
      detail.catalogVersion,
      detail.route,
    ],
    ['rejected', 40000, 'caller', null, null],
  )
  assert.deepEqual((await g.ask<Page<UsageView>>('GET', `/accounts/${id}/usage?fault=credits_short`)).items.length, 1)
  const overview = await g.ask<Overview>('GET', `/accounts/${id}/overview`)
  assert.deepEqual(overview.statuses, { ok: 0, failed: 0 }, 'money figures know nothing of it')
  assert.equal((await g.ask<Page<UsageView>>('GET', `/accounts/${id}/usage?outcome=settled`)).items.length, 0)
  const csv = await g.call(`/admin/v1/accounts/${id}/usage`, OPERATOR_TOKEN, undefined, {
    headers: { accept: 'text/csv' },
  })
  assert.match(await csv.text(), /,rejected,402,0,0,0,.*credits_short,"Insufficient credit/)
})

test('strangers, free endpoints and calls that reached a vendor are no refusals', async () => {
  const { id, key } = await g.account()
  assert.equal((await read(g.call(CHAT, 'tg_live_nobody', good))).status, 401)
  assert.equal((await read(g.call('/v1/jobs/none', key))).status, 404)
  assert.equal(
    (await read(g.call(CHAT, key, { ...good, messages: [{ role: 'user', content: '[[400]]' }] }))).status,
    400,
  )
  assert.equal((await read(g.call(CHAT, key, { ...good, model: 'none' }))).status, 404)
  assert.deepEqual(pluck(await refusals(id, 1), 'fault'), ['model_unknown'])
})

test('a flood of refusals from one key is counted in a bounded number of rows, and others are served', async () => {
  const noisy = await g.account()
  const quiet = await g.account()
  const FLOOD = 1_500
  const startedMs = performance.now()
  let left = FLOOD
  let flooding = true
  const flood = atOnce(32, async () => {
    while (left-- > 0) assert.equal((await read(g.call(CHAT, noisy.key, { ...good, messages: [] }))).status, 400)
  }).finally(() => {
    flooding = false
  })
  let served = 0
  do {
    assert.equal((await read(g.call(CHAT, quiet.key, good))).status, 200)
    served += 1
  } while (flooding)
  await flood
  assert.ok(served > 1)
  const rows = await refusals(noisy.id, FLOOD)
  assert.equal(callsOf(rows), FLOOD, 'none is lost')
  const minutes = minutesSince(startedMs)
  assert.ok(rows.length >= 101 && rows.length <= minutes * 110, `${rows.length} rows in ${minutes} minutes`)
  assert.equal((await g.ask<Page<UsageView>>('GET', `/accounts/${quiet.id}/usage?outcome=rejected`)).items.length, 0)
})

test('operators see refusals live with account, key and reason, also those at the door; floods are lines with a count', async () => {
  const live = async () => (await g.ask<Page<LiveCallView>>('GET', '/requests/live')).items
  const quiet = await g.account()
  assert.equal((await read(g.call(CHAT, quiet.key, good))).status, 200)
  const BY_KEY = REJECTED.slice(0, 3)
  const { id, keys } = await reject(BY_KEY)
  const seen = await live()
  for (const [by, , ...facts] of BY_KEY) {
    const line = seen.find(({ key }) => key === keys[by].keyId)
    assert.deepEqual(
      [line?.account, line?.status, line?.fault, line?.product, line?.outcome, line?.endpoint, line?.calls],
      [id, ...facts, 'rejected', 'chat', 1],
    )
    await refusals(id, 3)
    assert.equal((await g.ask<UsageDetail>('GET', `/usage/${line?.id}`)).outcome, 'rejected', 'its line leads to it')
  }

  // At the door, and on the path.
  const FLOOD = 600
  let left = FLOOD
  await atOnce(32, async () => {
    while (left-- > 0) await read(g.call(CHAT, left % 2 ? keys.poor.key : keys.bound.key, good))
  })
  const after = await live()
  assert.ok(after.length <= 200)
  const lines = after.filter(({ account }) => account === id)
  assert.ok(lines.length <= 2 * BY_KEY.length, `${lines.length} lines`)
  assert.equal(callsOf(lines), FLOOD + 3, 'none is lost')
  assert.ok(
    after.some(({ account, outcome }) => account === quiet.id && outcome === 'settled'),
    'others are not pushed out',
  )
})

test('a flood without credits costs the database little, is counted, and ends with a grant of any process', async () => {
  const database = await freshDatabase()
  const [one, two] = [await startGateway({ database }), await startGateway({ database })]
  const FLOOD = 2_000
  let sent = 0
  let isOver = false
  let flood: Promise<unknown> | undefined
  try {
    const { id, key } = await one.account({ credits: 0n })
    const small = { ...good, max_tokens: 16 }
    const large = { ...good, max_tokens: 4_000 }
    const short = await read(one.call(CHAT, key, small))
    assert.equal(short.status, 402)
    const credits = short.headers.get('x-tollgate-required')
    const before = await statements(one)
    const startedMs = performance.now()
    // However long the grants take, it lasts until after them.
    flood = atOnce(32, async () => {
      for (; !isOver || sent < FLOOD; sent += 1) assert.equal((await read(one.call(CHAT, key, large))).status, 402)
    })
    await until(() => sent, above(FLOOD / 4))
    for (const giver of [one, two]) {
      const path = `/admin/v1/accounts/${id}/credits`
      assert.equal((await read(giver.call(path, OPERATOR_TOKEN, { amount: credits }))).status, 200)
      const served = await one.call(CHAT, key, small)
      assert.equal(served.status, 200, await served.text())
    }
    isOver = true
    await flood
    const asked = (await statements(one)) - before
    assert.ok(asked < sent / 4, `${asked} statements for ${sent} refusals`)
    await one.gateway.refusals.flush()
    const [noted] = await one.sql<{ calls: bigint; rows: bigint }>(
      'select sum(count)::bigint as calls, count(*) as rows from refusal where account_id = $1',
      [id],
    )
    assert.equal(noted?.calls, BigInt(sent + 1), 'none is lost')
    assert.ok(Number(noted?.rows) <= minutesSince(startedMs) * 102, `${noted?.rows} rows`)
  } finally {
    isOver = true
    await flood
    await one.close()
    await two.close()
    await database.drop()
  }
})

/** The statements of its ledger: those that wait go together. */
async function statements({ url }: TestGateway): Promise<number> {
  const figures = await (await fetch(`${url}/metrics`)).text()
  return Number(/^tollgate_ledger_batch_size_count (.+)$/m.exec(figures)?.[1] ?? 0)
}

test('ten seconds of 5,000 refusals a second from one key are some hundred rows, and none is lost', async () => {
  const { id, keyId } = await g.account()
  const { refusals: recorder } = g.gateway
  const SENT = 50_000
  for (let i = 0; i < SENT; i++)
    recorder.note(new Fault(i % 2 ? 'request_invalid' : 'rate_limited'), {
      requestId: `req_${newId(realWorld)}`,
      account: id,
      key: keyId,
      product: `model-${i % 50}`,
      endpoint: 'chat',
    })
  await recorder.flush()
  const rows = await refusals(id, SENT)
  assert.equal(callsOf(rows), SENT, 'none is lost')
  // A hundred and ten kinds, twice if a minute ended meanwhile.
  assert.ok(rows.length >= 101 && rows.length <= 2 * 111, `${rows.length} rows`)
  assert.equal(recorder.dropped, 0)
})

test('old refusals are forgotten', async () => {
  const { id, key } = await g.account()
  await read(g.call(CHAT, key, { ...good, messages: [] }))
  await refusals(id, 1)
  const { database, refusals: recorder } = g.gateway
  await database.query({ text: `update refusal set id = '00' where account_id = $1` }, [id])
  assert.equal(await recorder.prune(7), 1)
})

test('a process that has ended waits for no refusal that comes too late', async () => {
  const fresh = await freshDatabase()
  const database = fresh.open({ connectionsMax: 1 })
  const running = new Set<object>()
  const world: World = {
    ...realWorld,
    after(delayMs, run) {
      const one = {}
      running.add(one)
      const cancel = realWorld.after(delayMs, () => {
        running.delete(one)
        run()
      })
      return () => {
        running.delete(one)
        cancel()
      }
    },
  }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const late = createRefusals({ database, world, log })
  const call = { requestId: 'req_1', account: 'acc_1', key: 'key_1', product: '', endpoint: 'chat' }
  late.note(new Fault('request_invalid'), call)
  await late.close()
  await database.close()
  await fresh.drop()
  late.note(new Fault('request_invalid'), call)
  await assert.rejects(late.flush())
  assert.equal(running.size, 0)
})
