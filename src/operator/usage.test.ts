// Calls as the operator API lists, sums up and exports them.
import { assert, pluck, started, test, words } from '../../test/kit.ts'
import { asOperator, callsOn, makeAccount, startOperatorServer } from '../../test/operator-server.ts'
import type { NewKey } from '../admission/views.ts'
import type { Page } from '../kernel/view.ts'
import { idAtTime, realWorld } from '../kernel/world.ts'
import type { LedgerView, Overview, UsageDetail, UsageView } from '../ledger/views.ts'
import type { FillView, HomeFigures, KeyFigures, UsageLatency, UsageSums } from '../reports/views.ts'

const server = started(startOperatorServer)
const ask = asOperator(server)
const { call } = callsOn(server)
const accountOf = (input: object = {}) => makeAccount(server, input)

test('usage is paged, filtered, explained to the last digit, and downloaded', async () => {
  const id = await accountOf()
  const { data: key } = await ask<NewKey>('POST', `/accounts/${id}/keys`, { name: '=cmd|calc, "x"' })
  const requests = []
  for (let i = 0; i < 5; i++)
    requests.push(await call(id, { input: 1001 + i, cachedInput: 7, output: 3 }, { key: key.id }))
  await call(id, {}, { kind: 'released', status: 502 })
  const first = await ask<Page<UsageView>>('GET', `/accounts/${id}/usage?limit=4`)
  assert.equal(first.data.items.length, 4)
  const second = await ask<Page<UsageView>>('GET', `/accounts/${id}/usage?limit=4&cursor=${first.data.next}`)
  assert.equal(second.data.items.length, 2)
  assert.equal(second.data.next, null)
  assert.deepEqual(first.data.items[1]?.units, { input: 1005, cachedInput: 7, output: 3 })
  const count = async (query: string) =>
    (await ask<Page<UsageView>>('GET', `/accounts/${id}/usage?${query}`)).data.items.length
  assert.equal(await count('outcome=released'), 1)
  assert.equal(await count(`key=${key.id}`), 5)
  assert.equal(await count('product=alpha-5.4'), 6)
  assert.equal(await count('product=other'), 0)
  assert.equal(await count('to=2020-01-01'), 0)
  assert.equal(await count('from=2020-01-01'), 6)
  const detail = await ask<UsageDetail>('GET', `/usage/${requests[0]}`)
  assert.deepEqual(detail.data.lines, [
    { unit: 'input', quantity: 1001, rate: '4', per: 1_000_000, amount: '0.004004' },
    { unit: 'cachedInput', quantity: 7, rate: '1', per: 1_000_000, amount: '0.000007' },
    { unit: 'output', quantity: 3, rate: '16', per: 1_000_000, amount: '0.000048' },
  ])
  assert.equal(detail.data.charged, '0.004059')
  assert.equal((await ask('GET', '/usage/req_none')).status, 404)
  const csv = await ask('GET', `/accounts/${id}/usage`, undefined, { accept: 'text/csv' })
  assert.equal(csv.headers.get('content-type'), 'text/csv; charset=utf-8')
  const lines = csv.text.trimEnd().split('\r\n')
  assert.equal(lines.length, 7)
  assert.match(lines[0]!, /^id,at,product,/)
  const [row] = (await ask<Page<UsageView>>('GET', `/accounts/${id}/usage?limit=1`)).data.items
  assert.deepEqual(lines[0]!.split(',').sort(), Object.keys(row!).sort(), 'a column for every field of a row')
  assert.ok(lines[2]!.includes(`,"'=cmd|calc, ""x""",`), 'a name that a spreadsheet would run is marked as text')
  const ledger = await ask('GET', `/accounts/${id}/ledger`, undefined, { accept: 'text/csv' })
  assert.equal(ledger.text.trimEnd().split('\r\n').length, 7, 'what moved nothing is not in it')
  const zero = await ask<Page<LedgerView>>('GET', `/accounts/${id}/ledger?zero=true`)
  assert.deepEqual(pluck(zero.data.items, 'kind', 'moved', 'balanceAfter'), [['released', '0', null]])
  assert.equal((await ask<Page<LedgerView>>('GET', `/accounts/${id}/ledger?kind=settled`)).data.items.length, 5)
  const overview = await ask<Overview>('GET', `/accounts/${id}/overview?days=7`)
  assert.equal(overview.data.series.length, 7)
  assert.equal(overview.data.series.at(-1)?.requests, 6)
  assert.deepEqual(overview.data.statuses, { ok: 5, failed: 1 })
  assert.equal((await ask<Overview>('GET', `/accounts/${id}/overview?days=2`)).data.series.length, 48)
  assert.equal((await ask('GET', '/accounts/acc_none/overview')).status, 404)
})

test('usage sums up by product, key, status and endpoint, to what the calls were charged', async () => {
  const account = await accountOf({ limits: { spendPerDay: '50', concurrency: 9 } })
  await call(account, { input: 1000, output: 10 })
  await call(account, { input: 2000, output: 10 }, { key: 'key_y', endpoint: 'responses' })
  await call(account, { input: 1, output: 1 }, { key: 'key_y', status: 502 })
  const rows = (await ask<Page<UsageView>>('GET', `/accounts/${account}/usage`)).data.items
  const charged = rows.reduce((sum, row) => sum + Math.round(Number(row.charged) * 1e6), 0)
  const micro = (credits: string) => Math.round(Number(credits) * 1e6)
  const groups = {
    product: ['alpha-5.4'],
    key: ['key_y', 'key_x'],
    status: ['200', '502'],
    endpoint: ['responses', 'chat'],
  }
  for (const [by, names] of Object.entries(groups)) {
    const { data } = await ask<UsageSums>('GET', `/accounts/${account}/usage/sums?by=${by}&per=day`)
    assert.deepEqual([data.totals.requests, data.totals.errors, micro(data.totals.charged)], [3, 1, charged], by)
    assert.deepEqual(data.groups.map(({ group }) => group).sort(), names.sort(), by)
    assert.equal(
      data.series.reduce((sum, row) => sum + micro(row.charged), 0),
      charged,
    )
  }
  const one = await ask<UsageSums>('GET', `/accounts/${account}/usage/sums?by=product&key=key_x`)
  assert.equal(one.data.totals.requests, 1)
  const csv = await ask('GET', `/accounts/${account}/usage/sums?by=key`, undefined, { accept: 'text/csv' })
  assert.match(
    csv.text,
    /^at,group,name,requests,errors,rejected,charged,latencyMsAvg,inputTokens,outputTokens\r\n.*,key_x,,1,0,0,/,
  )
  const latency = await ask<UsageLatency>('GET', `/accounts/${account}/usage/latency?by=endpoint`)
  assert.deepEqual(latency.data.groups.map(({ group }) => group).sort(), ['chat', 'responses'])
  assert.equal((await ask('GET', `/accounts/${account}/usage/sums?by=status&from=2020-01-01`)).status, 400)
  assert.equal((await ask('GET', `/accounts/${account}/usage/sums?by=colour`)).status, 400)

  const fills = (await ask<Page<FillView>>('GET', `/accounts/${account}/limits`)).data.items
  assert.deepEqual(fills.map(({ limit, max, used }) => [limit, max, micro(used)]).sort(), [
    ['concurrency', '9', 0],
    ['spendPerDay', '50', charged],
  ])
  const keys = (await ask<Page<KeyFigures>>('GET', `/accounts/${account}/keys/figures`)).data.items
  const loud = keys.find(({ keyId }) => keyId === 'key_y')
  assert.deepEqual([loud?.requests, loud?.errors, loud?.lastError?.status], [2, 1, 502])
  assert.equal(keys.find(({ keyId }) => keyId === 'key_x')?.lastError, null)

  const home = (await ask<HomeFigures>('GET', '/home?days=7')).data
  const all = (await ask<UsageSums>('GET', '/usage/sums?by=account&zone=Asia/Kathmandu&per=day')).data
  const top = all.groups.find(({ group }) => group === account)
  assert.deepEqual([top?.requests, micro(top?.charged ?? '0')], [3, charged])
  assert.equal(
    all.groups.reduce((sum, one) => sum + micro(one.charged), 0),
    micro(all.totals.charged),
  )
  assert.ok(home.lowBalances.every(({ daysLeft }, at, all) => at === 0 || daysLeft >= all[at - 1]!.daysLeft))
  assert.equal(all.steps.length, 31, 'days without calls are days too')
  const { daysLeft } = (await ask<Overview>('GET', `/accounts/${account}/overview?days=30`)).data
  const low = home.lowBalances.find(({ id }) => id === account)
  if (low) assert.equal(daysLeft, low.daysLeft, 'one figure, wherever it is shown')
  assert.ok(daysLeft !== null && daysLeft > 0)
})

test('what no index finds is looked for in 92 days, and a longer time is rejected; a request id is found in any', async () => {
  const account = await accountOf()
  const recent = await call(account, { input: 1000, output: 10 })
  const before = `${idAtTime(realWorld.nowMs() - 100 * 86_400_000)}${'0'.repeat(16)}`
  await server.sql(
    `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, duration_ms)
        values ($1, $2, 'key_x', 'alpha-5.4', 'chat', 'settled', 200, 1, 1, 1, '[]', 5)`,
    [account, before],
  )
  const list = async (query: string) => {
    const { data, status } = await ask<Page<UsageView>>('GET', query)
    assert.equal(status, 200, query)
    return data.items.map(({ id }) => id)
  }
  const own = `/accounts/${account}/usage`
  const old = `req_${before}`
  assert.deepEqual(await list(own), [recent, old])
  assert.deepEqual(await list(`${own}?from=2020-01-01&sort=duration`), [recent, old])
  const day = new Date(realWorld.nowMs() - 99 * 86_400_000).toISOString().slice(0, 10)
  const narrow = words('q=alpha status=200 status=2xx endpoint=chat product=alpha-5.4 key=key_x outcome=settled')
  for (const filter of [...narrow, 'minMs=1', 'minCharged=0.000001']) {
    assert.deepEqual(await list(`${own}?${filter}`), [recent], filter)
    assert.deepEqual(await list(`${own}?${filter}&to=2999-12-30`), [recent], filter)
    assert.deepEqual(await list(`${own}?${filter}&to=${day}`), [old], filter)
    for (const path of [own, '/usage'])
      for (const accept of ['application/json', 'text/csv']) {
        const { status, error } = await ask('GET', `${path}?${filter}&from=2020-01-01`, undefined, { accept })
        assert.deepEqual([status, error?.message.includes('at most 92 days')], [400, true], `${path} ${filter}`)
      }
  }
  assert.equal((await ask('GET', '/usage?sort=duration&from=2020-01-01')).status, 400)
  for (const path of [own, '/usage'])
    for (const range of ['', '&from=2020-01-01']) assert.deepEqual(await list(`${path}?q=${old}${range}`), [old])
})

test('sums say which range they are of, and tell keys of one name apart', async () => {
  const account = await accountOf()
  const create = async (name: string) => (await ask<NewKey>('POST', `/accounts/${account}/keys`, { name })).data
  const made = [await create('till'), await create('till')]
  const alone = await create('alone')
  for (const { id: key } of [...made, alone]) await call(account, { input: 1000, output: 10 }, { key })
  const path = `/accounts/${account}/usage/sums?by=key&per=day&from=2026-01-01T05:00:00Z&to=2026-12-31T00:00:00Z`
  const { data } = await ask<UsageSums>('GET', path)
  assert.deepEqual([data.from, data.to], ['2026-01-01T05:00:00.000Z', '2026-12-31T00:00:00.000Z'])
  assert.deepEqual([data.steps[0], data.steps.at(-1)], ['2026-01-01T00:00:00.000Z', '2026-12-30T00:00:00.000Z'])
  const names = data.groups.map(({ name }) => name).sort()
  assert.deepEqual(names, ['alone', ...made.map(({ last4 }) => `till (…${last4})`)].sort())
})
