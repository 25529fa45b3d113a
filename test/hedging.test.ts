// The first token: a vendor that gives none in time is left for the next, or a second one is called too, once. The
// caller pays for one answer.

import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { MarginPage, UnbilledRow } from '../src/extensions/finance/margins/views.ts'
import { realWorld } from '../src/kernel/world.ts'
import { after, assert, beforeEach, not, OPERATOR_TOKEN, pluck, test, testGateway, textOf, until } from './gateway.ts'
import { type ScriptedVendor, scriptedVendor } from './scripted-vendor.ts'

const north = await scriptedVendor('north')
const south = await scriptedVendor('south')
const both = { north, south }
after(() => {
  for (const vendor of Object.values(both)) vendor.close()
})
beforeEach(() => {
  for (const vendor of Object.values(both)) {
    vendor.script = {}
    vendor.aborted = 0
    vendor.sent.length = 0
  }
})

/** Long enough for a vendor that answers at once, on a busy machine. */
const FIRST_TOKEN_MS = 100
const price = (input: string, output: string) => ({ unit: 'credits', tiers: [{ input, output }] })

const DRAIN_MS = 98_765
/** The ends of reading on after a caller has left, which come when a test says so. */
const drains = new Set<() => void>()
let drainsBegun = 0

const g = testGateway({
  world: {
    ...realWorld,
    after(delayMs, run) {
      if (delayMs !== DRAIN_MS) return realWorld.after(delayMs, run)
      drains.add(run)
      drainsBegun += 1
      return () => drains.delete(run)
    },
  },
  catalog(document) {
    for (const [name, { url }] of Object.entries(both)) {
      document.vendors[name] = { baseUrl: url }
      document.vendors[`${name}-drained`] = { baseUrl: url, onAbort: 'drain' }
    }
    const routes = Object.keys(both).map((vendor, order) => ({
      vendor,
      protocol: 'openai-chat',
      model: 'm',
      order,
      cost: price('1000', '1000'),
    }))
    const base = {
      ...document.models['alpha-5.4'],
      family: 'plain',
      traits: {},
      clientFormats: ['openai-chat', 'anthropic-messages'],
    }
    const model = { ...base, pricing: price('1000000', '1000000'), routes }
    document.models.plain = model
    // The others may take as long as a busy machine needs.
    const soon = (some: object[]) =>
      some.map((route, at) => (at === 0 ? { ...route, firstTokenMs: FIRST_TOKEN_MS } : route))
    document.models.bounded = { ...model, routes: soon(routes) }
    document.models.hedged = { ...model, routing: { hedgeMs: 50 } }
    document.models.patient = { ...model, routing: { hedgeMs: 60_000 } }
    document.vendors['north-cut'] = { ...document.vendors.north, onAbort: 'cancel' }
    document.vendors['south-cut'] = { ...document.vendors.south, onAbort: 'cancel' }
    const cut = routes.map((route) => ({ ...route, vendor: `${route.vendor}-cut` }))
    document.models['cut-hedged'] = { ...model, routes: cut, routing: { hedgeMs: 50 } }
    const drained = { ...model, routes: routes.map((route) => ({ ...route, vendor: `${route.vendor}-drained` })) }
    document.models['drained-bounded'] = { ...drained, routing: { firstTokenMs: 60_000 } }
    for (const name of Object.keys(both))
      document.vendors[`${name}-brief`] = {
        ...document.vendors[`${name}-drained`]!,
        timeouts: { drainMs: DRAIN_MS, idleMs: 600_000 },
      }
    const brief = { ...model, routes: routes.map((route) => ({ ...route, vendor: `${route.vendor}-brief` })) }
    document.models.brief = brief
    document.models['brief-bounded'] = { ...brief, routing: { firstTokenMs: 600_000 } }
    document.models['brief-hedged'] = { ...brief, routing: { hedgeMs: 50 } }
    const judging = document.models['alpha-moderation-1']?.routes[0]
    const costs = { cost: { unit: 'credits', tiers: [{ call: '0.25' }] } }
    document.models.judge = { ...document.models['alpha-moderation-1'], routes: [{ ...judging, ...costs }] }
    document.models.judged = model
    document.guardrails = { nice: { models: ['judged'], moderate: { model: 'judge' } } }
    document.models['drained-soon'] = { ...drained, routes: soon(drained.routes) }
    document.models['drained-hedged'] = { ...drained, routing: { hedgeMs: 50 } }
  },
})

const BODY = { messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 50, stream: true }
const ask = (key: string, model: string, init?: RequestInit, more: object = {}) =>
  g.call('/v1/chat/completions', key, { model, ...BODY, ...more }, init)

/** What one answer of 10 and 5 tokens costs. */
const ONE = 15_000_000n

test('a stream without a token in time goes to the next vendor before anything was sent, and is charged once', async () => {
  const { id, key } = await g.account()
  for (const script of [{ tokenAfter: new Promise(() => {}) }, { headersAfter: new Promise(() => {}) }]) {
    north.script = script
    assert.match(await textOf(ask(key, 'bounded')), /from south/)
  }
  await until(() => north.aborted, north.sent.length)
  const rows = await g.calls(id)
  assert.deepEqual(
    rows.map(({ charged, vendor, log }) => [charged, vendor, log?.attempts[0]?.phase, log?.attempts[0]?.deadlineMs]),
    [
      [ONE, 'south', 'first-token', FIRST_TOKEN_MS],
      [ONE, 'south', 'first-token', FIRST_TOKEN_MS],
    ],
  )
  for (const { log } of rows) assert.ok(Number(log?.attempts[0]?.cost) > 0, 'the operator sees what it cost')
  // What is not a stream has no first token.
  north.script = {}
  const whole = await ask(key, 'bounded', {}, { stream: false })
  assert.match(await whole.text(), /from north/)
})

test('a vendor in time is the only one that is called', async () => {
  const { id, key } = await g.account()
  assert.match(await (await ask(key, 'patient')).text(), /from north/)
  assert.equal(south.sent.length, 0)
  assert.deepEqual(pluck(await g.calls(id), 'charged', 'log'), [[ONE, null]])
})

for (const faster of ['south', 'north'] as const)
  test(`the first token wins when ${faster} has it; the other is broken off, once, and the caller pays for one`, async () => {
    const slower: ScriptedVendor = both[faster === 'south' ? 'north' : 'south']
    const gate = Promise.withResolvers<void>()
    north.script = { tokenAfter: gate.promise }
    south.script = faster === 'south' ? {} : { tokenAfter: new Promise(() => {}) }
    const { id, key } = await g.account()
    const asked = ask(key, 'hedged')
    await until(() => south.sent.length, 1)
    if (faster === 'north') gate.resolve()
    const answer = await asked
    assert.equal(answer.headers.get('x-tollgate-route'), faster === 'south' ? '2' : '1')
    const text = await answer.text()
    assert.match(text, new RegExp(`from ${faster}`))
    assert.doesNotMatch(text, new RegExp(`from ${slower === north ? 'north' : 'south'}`))
    await until(() => slower.aborted, 1)
    gate.resolve()
    assert.deepEqual([north.sent.length, south.sent.length], [1, 1])
    const [row, ...others] = await g.calls(id)
    assert.equal(others.length, 0)
    assert.deepEqual([row?.charged, row?.vendor], [ONE, faster])
    const lost = row?.log?.attempts.filter(({ stopped }: any) => stopped === 'hedge_lost')
    assert.deepEqual(pluck(lost, 'vendor'), [faster === 'south' ? 'north' : 'south'])
    assert.ok(Number(lost?.[0]?.cost) > 0, 'the operator sees what it cost')
    assert.match(row?.log?.decided?.join() ?? '', /No token came within 50 ms.*Route [12] answered first/)
    assert.equal((await g.balance(id)).held, 0n)
  })

test('when the first fails after the second was called, the second answers; when both fail, nothing is charged', async () => {
  const { id, key } = await g.account()
  const gate = Promise.withResolvers<void>()
  north.script = { status: 500, headersAfter: gate.promise }
  south.script = { tokenAfter: gate.promise }
  const asked = ask(key, 'hedged')
  await until(() => south.sent.length, 1)
  gate.resolve()
  assert.match(await (await asked).text(), /from south/)
  const again = Promise.withResolvers<void>()
  north.script = { status: 500, headersAfter: again.promise }
  south.script = { status: 500, headersAfter: again.promise }
  const failing = ask(key, 'hedged')
  await until(() => south.sent.length, 2)
  again.resolve()
  assert.equal((await failing).status, 502)
  assert.deepEqual(pluck(await g.calls(id), 'charged'), [ONE, 0n])
})

test('a caller who leaves ends both where vendors bill no further, and nothing stays held', async () => {
  const { id, key } = await g.account()
  north.script = { tokenAfter: new Promise(() => {}) }
  south.script = { tokenAfter: new Promise(() => {}) }
  const leaving = new AbortController()
  const asked = ask(key, 'cut-hedged', { signal: leaving.signal })
  await until(() => south.sent.length, 1)
  leaving.abort()
  await assert.rejects(asked)
  await until(() => north.aborted === 1 && south.aborted === 1)
  assert.deepEqual(pluck(await g.calls(id), 'charged'), [0n])
})

test('a stream that is converted to another format is hedged too, and comes whole', async () => {
  const { id, key } = await g.account()
  north.script = { tokenAfter: new Promise(() => {}) }
  const answer = await g.call('/v1/messages', key, { model: 'hedged', ...BODY })
  assert.match(await answer.text(), /message_start[\s\S]*from south[\s\S]*message_stop/)
  assert.deepEqual(pluck(await g.calls(id), 'charged'), [ONE])
})

/** The gateway's connections, and what it had read of each before the test. */
const sockets = new Map<Socket, number>()
subscribe('net.client.socket', (message) => {
  sockets.set((message as { socket: Socket }).socket, 0) // As Node documents it.
})
beforeEach(() => {
  for (const socket of sockets.keys()) sockets.set(socket, socket.bytesRead)
})
/** Whether the gateway has read the head of the vendor's answer. */
const isAnswered = ({ url }: ScriptedVendor) =>
  [...sockets].some(([socket, before]) => String(socket.remotePort) === new URL(url).port && socket.bytesRead > before)

const connections = () =>
  new Promise<number>((resolve) => g.gateway.app.server.getConnections((_, open) => resolve(open)))

for (const model of ['drained-bounded', 'drained-hedged'])
  test(`${model}: who leaves before the first token pays where the vendor bills the whole answer anyway`, async () => {
    const { id, key } = await g.account()
    const gate = Promise.withResolvers<void>()
    north.script = { tokenAfter: gate.promise }
    south.script = { tokenAfter: new Promise(() => {}) }
    const leaving = new AbortController()
    const asked = ask(key, model, { signal: leaving.signal })
    const called = model === 'drained-hedged' ? [north, south] : [north]
    await until(() => called.every(isAnswered))
    const open = await connections()
    leaving.abort()
    await assert.rejects(asked)
    await until(
      () => connections(),
      (seen) => seen < open,
    )
    assert.deepEqual([north.aborted, south.aborted], [0, 0])
    gate.resolve()
    assert.deepEqual(pluck(await g.calls(id), 'charged', 'vendor'), [[ONE, 'north-drained']])
    if (model === 'drained-hedged') await until(() => south.aborted, 1)
    assert.equal((await g.balance(id)).held, 0n)
  })

/** What vendors took for calls that no caller pays: how many, and what they cost. */
async function unbilled() {
  for (const counted of g.gateway.hourly) await counted.flush()
  const { data } = await g.operator<{ items: UnbilledRow[] }>('GET', '/margins/unbilled?from=2026-01-01')
  return (kind: UnbilledRow['kind'], vendor: string) => {
    const rows = data.items.filter((one) => one.kind === kind && one.vendor === vendor)
    const sum = (of: (row: UnbilledRow) => number) => rows.reduce((all, row) => all + of(row), 0)
    return [sum(({ calls }) => calls), sum(({ cost }) => Number(cost))] as const
  }
}

for (const model of ['brief-bounded', 'brief-hedged', 'brief'])
  test(`${model}: a vendor that gives no token is let go some time after its caller has left, on the operator's bill`, async () => {
    const { id, key } = await g.account()
    for (const vendor of Object.values(both)) vendor.script = { tokenAfter: new Promise(() => {}) }
    const before = await unbilled()
    const leaving = new AbortController()
    const asked = ask(key, model, { signal: leaving.signal }).then((answer) => answer.text())
    const called = model === 'brief-hedged' ? [north, south] : [north]
    await until(() => called.every(isAnswered))
    leaving.abort()
    await assert.rejects(asked)
    await until(() => drains.size, called.length)
    for (const end of drains) end()
    await until(() => called.every(({ aborted }) => aborted === 1))
    assert.deepEqual(pluck(await g.calls(id), 'charged'), [0n])
    assert.equal(south.sent.length, called.length - 1, 'nobody else is asked')
    assert.deepEqual([(await g.balance(id)).held, drains.size], [0n, 0])
    const now = await unbilled()
    for (const [name, vendor] of Object.entries(both)) {
      const [earlier, later] = [before('client_closed', `${name}-brief`), now('client_closed', `${name}-brief`)]
      const found = [later[0] - earlier[0], later[1] > earlier[1]]
      assert.deepEqual(found, called.includes(vendor) ? [1, true] : [0, false], name)
    }
  })

test('a vendor that is drained is read for one time only, also if its first token comes meanwhile', async () => {
  const { id, key } = await g.account()
  const gate = Promise.withResolvers<void>()
  north.script = { tokenAfter: gate.promise, endless: true }
  const relayed = async () =>
    /tollgate_stage_seconds_count\{stage="vendor"\} (\d+)/.exec(
      await (await g.call('/metrics', OPERATOR_TOKEN)).text(),
    )?.[1]
  const before = await relayed()
  drainsBegun = 0
  const leaving = new AbortController()
  const asked = ask(key, 'brief-bounded', { signal: leaving.signal })
  await until(() => isAnswered(north))
  leaving.abort()
  await assert.rejects(asked)
  await until(() => drains.size, 1)
  gate.resolve()
  await until(() => relayed(), not(before))
  for (const end of drains) end()
  await until(() => north.aborted, 1)
  const [row] = await g.calls(id)
  assert.ok(row && row.charged > 0n)
  assert.deepEqual([drainsBegun, drains.size], [1, 0])
})

test('a vendor that is drained is broken off too when it gives no token in time or loses the hedge', async () => {
  const { id, key } = await g.account()
  north.script = { tokenAfter: new Promise(() => {}) }
  for (const model of ['drained-soon', 'drained-hedged'])
    assert.match(await (await ask(key, model)).text(), /from south/)
  await until(() => north.aborted, north.sent.length)
  const rows = await g.calls(id)
  assert.deepEqual(
    rows.map(({ charged, log }) => [charged, log?.attempts[0]?.phase, log?.attempts[0]?.stopped]),
    [
      [ONE, 'first-token', null],
      [ONE, null, 'hedge_lost'],
    ],
  )
  for (const { log } of rows) assert.ok(Number(log?.attempts[0]?.cost) > 0)
})

test('a stream that breaks after it said what it used is charged once; its repetition hears the same and calls nobody', async () => {
  const { id, key } = await g.account()
  north.script = { breaks: true }
  const init = { headers: { 'idempotency-key': 'broken once' } }
  assert.match(await (await ask(key, 'plain', init)).text(), /from north[\s\S]*error/)
  const again = await ask(key, 'plain', init)
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [502, 'true'])
  assert.match(await again.text(), /"error"/)
  assert.equal(north.sent.length, 1)
  assert.deepEqual(pluck(await g.calls(id), 'charged'), [ONE])
})

test('what broken-off calls cost is listed by the day, vendor and model, and margins count it', async () => {
  const before = await unbilled()
  north.script = { tokenAfter: new Promise(() => {}) }
  const { id, key } = await g.account()
  for (const model of ['bounded', 'hedged']) assert.match(await (await ask(key, model)).text(), /from south/)
  const rows = await g.calls(id)
  const costs = rows.map(({ log }) => Number(log?.attempts[0]?.cost))
  const now = await unbilled()
  for (const [at, kind] of (['first_token_timeout', 'hedge_lost'] as const).entries()) {
    const [calls, cost] = [
      now(kind, 'north')[0] - before(kind, 'north')[0],
      now(kind, 'north')[1] - before(kind, 'north')[1],
    ]
    assert.equal(calls, 1, kind)
    assert.ok(Math.abs(cost - (costs[at] ?? 0)) < 1e-9 && cost > 0, `${kind}: as the attempt log has it`)
  }
  const month = new Date().toISOString().slice(0, 7)
  for (const by of ['product', 'vendor', 'month', 'account', 'label:user']) {
    const { data } = await g.operator<MarginPage>('GET', `/margins?by=${by}&from=${month}`)
    const { charged, chargedWithKnownCost, cost, margin, unbilled } = data.totals
    const [usage] = await g.sql<{ cost: bigint }>('select sum(cost)::bigint as cost from usage')
    assert.ok(Number(unbilled) > 0, by)
    assert.equal(Math.round(Number(cost) * 1e6), Number(usage?.cost) + Math.round(Number(unbilled) * 1e6), by)
    assert.ok(
      Math.abs(Number(margin) - (Number(chargedWithKnownCost) - Number(cost))) < 1e-6 && Number(charged) > 0,
      by,
    )
    if (by === 'account') assert.equal(data.items.find(({ group }) => group === '')?.cost, unbilled)
  }
  const mine = await g.operator<MarginPage>('GET', `/margins?by=vendor&from=${month}&account=${id}`)
  assert.equal(mine.data.totals.unbilled, '0', 'a customer has none')
})

test('what a moderation model takes for a check is listed too, whether the call is made or blocked', async () => {
  const before = await unbilled()
  const { id, key } = await g.account()
  assert.equal((await ask(key, 'judged')).status, 200)
  const messages = [{ role: 'user', content: 'Some violence.' }]
  assert.match(
    await (await ask(key, 'judged', {}, { messages })).text(),
    /The guardrail \\"nice\\" blocked this request/,
  )
  const now = await unbilled()
  const [earlier, later] = [before('guardrail', 'alpha'), now('guardrail', 'alpha')]
  assert.deepEqual([later[0] - earlier[0], later[1] - earlier[1]], [2, 0.5])
  assert.deepEqual(pluck(await g.calls(id), 'charged'), [ONE, 0n])
})
