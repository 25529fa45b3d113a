// One figure for all processes: two gateways share a database, and operators see both, whichever they ask.
import type { Page } from '../src/kernel/view.ts'
import type { LivePage, VendorView } from '../src/operator/views.ts'
import type { HomeFigures, UsageSums } from '../src/reports/views.ts'
import type { VendorHistory } from '../src/routing/views.ts'
import { freshDatabase } from './database.ts'
import { above, assert, started, startGateway, type TestGateway, test, until } from './gateway.ts'

type Sold = { models: Record<string, { routes: { cost?: unknown }[]; pricing: { tiers: Record<string, string>[] } }> }

const database = started(freshDatabase)
const one = started(() =>
  startGateway({
    database,
    catalog(document: Sold) {
      const { routes } = document.models['alpha-5.4'] ?? { routes: [] }
      // Sold for less than it costs.
      if (routes[0]) routes[0].cost = { unit: 'credits', tiers: [{ input: '100000', output: '100000' }] }
    },
  }),
)
const other = started(() => startGateway({ database }))

const chat = (g: TestGateway, key: string, content: string, more: object = {}) =>
  g.call('/v1/chat-completions', key, { model: 'alpha-5.4', messages: [{ role: 'user', content }], ...more })

test('live calls, vendors, their history and the margin are those of all processes', async () => {
  const { id, key } = await one.account()
  for (let i = 0; i < 3; i++) assert.equal((await chat(one, key, 'Hello!')).status, 200)
  for (let i = 0; i < 2; i++) assert.equal((await chat(other, key, 'Hello!')).status, 200)
  assert.equal((await chat(other, key, 'Hello [[500]]')).status, 502)
  assert.equal((await chat(other, key, 'Hello!', { model: 'no-such-model' })).status, 404)
  const leaving = new AbortController()
  const body = { model: 'alpha-5.4', messages: [{ role: 'user', content: '[[stall]]' }] }
  const slow = other.call('/v1/chat-completions', key, body, { signal: leaving.signal }).catch(() => undefined)
  await until(() => other.gateway.monitor.running, above(0))
  try {
    const live = await one.ask<LivePage>('GET', '/requests/live')
    const mine = live.items.filter(({ account }) => account === id)
    assert.deepEqual(live.processes, { answering: 2, silent: 0 })
    assert.equal(live.running, 1)
    assert.equal(mine.filter(({ outcome }) => outcome === 'settled').length, 5)
    assert.deepEqual(
      mine
        .map(({ at }) => at)
        .toSorted()
        .toReversed(),
      mine.map(({ at }) => at),
      'newest first',
    )
    const failed = mine.find(({ outcome }) => outcome === 'failed')
    assert.match(failed?.fault ?? '', /^upstream_/)
    assert.ok(mine.every(({ outcome, fault }) => outcome !== 'rejected' || !fault?.startsWith('upstream_')))
  } finally {
    leaving.abort()
    await slow
  }
  for (const g of [one, other]) {
    const { items } = await g.ask<Page<VendorView>>('GET', '/vendors')
    const alpha = items.find(({ name }) => name === 'alpha')
    assert.ok((alpha?.requests ?? 0) >= 7, JSON.stringify(alpha))
    assert.ok((alpha?.recent.errors ?? 0) >= 1)
    assert.ok(alpha?.latencyMsP50 !== null && alpha?.lastError !== null)
  }
  await one.settled()
  for (const { gateway } of [one, other]) for (const counted of gateway.hourly) await counted.flush()
  const { items: histories } = await other.ask<Page<VendorHistory>>('GET', '/vendors/history')
  const history = histories.find(({ vendor }) => vendor === 'alpha')
  assert.equal(history?.hours.length, 1, 'one hour, unless the test ran over the end of it')
  assert.ok((history.hours[0]?.requests ?? 0) >= 7)
  assert.ok((history.hours[0]?.errors ?? 0) >= 1)
  assert.ok(history.hours[0]?.latencyMsP50 !== null)
  assert.deepEqual(
    history.models.map(({ product, errors }) => [product, errors > 0]),
    [['alpha-5.4', true]],
  )
  const home = await one.ask<HomeFigures>('GET', '/home?days=1')
  const [route] = home.unprofitableRoutes
  assert.deepEqual([route?.product, route?.route], ['alpha-5.4', 1])
  assert.ok(Number(route?.cost) > Number(route?.charged))
  assert.equal(home.margin.cost, route?.cost)
  const sums = await one.ask<UsageSums>('GET', '/usage/sums')
  assert.equal(home.margin.charged, sums.totals.charged, 'as the hourly sums have it')
  assert.match(home.belowCostNotes[0] ?? '', /^alpha-5\.4, route 1 \(alpha, /)
})

test('what test accounts do is in no history of vendors and no margin', async () => {
  const { rows } = await readBoth()
  const { id } = await one.account()
  const made = await one.gateway.keys.create(
    id,
    { name: 'test', test: true },
    { actor: 't', ip: null, requestId: null },
  )
  assert.equal((await chat(one, made.key, 'Hello!')).status, 200)
  await one.settled()
  for (const counted of one.gateway.hourly) await counted.flush()
  assert.deepEqual((await readBoth()).rows, rows)
})

async function readBoth() {
  const { margin } = await one.ask<HomeFigures>('GET', '/home?days=1')
  return { rows: [await one.ask<Page<VendorHistory>>('GET', '/vendors/history'), margin] }
}

test('a process that has left is not waited for', async () => {
  const third = await startGateway({ database })
  await third.gateway.ledger.sweep()
  assert.equal((await one.ask<LivePage>('GET', '/requests/live')).processes.answering, 3)
  await third.close()
  assert.equal((await one.ask<LivePage>('GET', '/requests/live')).processes.silent, 0)
})
