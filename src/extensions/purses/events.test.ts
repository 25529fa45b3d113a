import { assert, test, testGateway, until } from '../../../test/gateway.ts'
import { purses } from './extension.ts'

const g = testGateway()
const BODY = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 50 }

type Told = { readonly id: string; readonly event: string; readonly subject: string }

const told = (account: string) =>
  g.sql<Told>(`select id, event, subject from delivery where account_id = $1 order by id`, [account])

test('an account is told once of each purse that was topped up, low, empty or charged, and of nothing before it asked', async () => {
  const { id: account, key } = await g.account()
  const { events } = g.gateway.opened(purses)
  const send = (path: string, body: object) => g.call(path, key, body)
  await send('/v1/purses', { id: 'ann', credits: '1', low: '1000' })
  await g.operator('PUT', `/accounts/${account}/purse-events`, { url: 'https://127.0.0.1:1/hook', settled: true })
  await send('/v1/purses/ann/grants', { credits: '1', kind: 'topup', reference: 'order-1' })
  const spent = await g.call('/v1/chat/completions', key, BODY, { headers: { 'x-tollgate-purse': 'ann' } })
  assert.equal(spent.status, 200, await spent.text())
  await g.settled()
  await send('/v1/purses', { id: 'low', credits: '5', low: '4' })
  await send('/v1/purses/low/grants', { credits: '-2' })
  await send('/v1/purses', { id: 'poor' })
  for (let times = 0; times < 2; times++)
    assert.equal(
      (await g.call('/v1/chat/completions', key, BODY, { headers: { 'x-tollgate-purse': 'poor' } })).status,
      402,
    )
  await Promise.all([events.tell(), events.tell()])
  const all = await until(async () => {
    await events.tell()
    const rows = await told(account)
    return rows.length >= 5 ? rows : undefined
  })
  assert.deepEqual(all.map(({ event, subject }) => `${event} ${subject}`).toSorted(), [
    'purse.empty poor',
    'purse.low low',
    'purse.settled ann',
    'purse.topped_up ann',
    'purse.topped_up low',
  ])
  await g.operator('PUT', `/accounts/${account}/purse-events`, { url: null })
  await send('/v1/purses/ann/grants', { credits: '1' })
  await events.tell()
  assert.equal((await told(account)).length, 5)
  const shown = await g.operator<{ items: Told[] }>('GET', `/accounts/${account}/deliveries?limit=50`)
  assert.deepEqual([shown.status, shown.data.items.length], [200, 5])
  assert.deepEqual(await g.problems(), [])
})

test('an address that is none, and an account that is none, are refused', async () => {
  const { id } = await g.account()
  const put = (account: string, body: object) => g.operator('PUT', `/accounts/${account}/purse-events`, body)
  assert.equal((await put(id, { url: 'ftp://somewhere' })).status, 400)
  assert.equal((await put('nobody', { url: 'https://somewhere.example' })).status, 404)
  assert.equal((await g.operator('PUT', '/accounts/nobody/purse-prices', {})).status, 404)
  assert.equal((await g.operator('POST', '/accounts/nobody/purses', { id: 'ann' })).status, 404)
})
