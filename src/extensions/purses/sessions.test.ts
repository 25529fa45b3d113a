import { freshDatabase } from '../../../test/database.ts'
import { assert, isOff, startGateway, test, testGateway, until } from '../../../test/gateway.ts'
import type { Page } from '../../kernel/view.ts'
import { realWorld } from '../../kernel/world.ts'
import { purses } from './extension.ts'
import type { NewSessionView, SessionView } from './views.ts'

let aheadMs = 0
const g = testGateway({ world: { ...realWorld, nowMs: () => Date.now() + aheadMs } })
const BODY = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 50 }
const SITE = 'https://app.example'

async function opened(input: object = {}) {
  const { id, key } = await g.account()
  await g.call('/v1/purses', key, { id: 'ann', credits: '5' })
  await g.call('/v1/purses', key, { id: 'bob', credits: '5' })
  const answer = await g.call('/v1/purses/ann/sessions', key, input)
  const { data } = (await answer.json()) as { data: SessionView & { token: string } }
  return { account: id, key, status: answer.status, ...data }
}

async function call(token: string, { body = BODY, headers = {} }: { body?: object; headers?: object } = {}) {
  const answer = await g.call('/v1/chat/completions', token, body, { headers: headers as Record<string, string> })
  return { status: answer.status, said: await answer.text() }
}

const balanceOf = async (key: string, id: string) =>
  ((await (await g.call(`/v1/purses/${id}`, key)).json()) as { data: { balance: string } }).data.balance

test('a session token pays from its purse, whatever purse the request names, and reads nothing but that', async () => {
  const { key, token } = await opened()
  assert.match(token, /^tgs_/)
  const { status, said } = await call(token, { headers: { 'x-tollgate-purse': 'bob' } })
  assert.equal(status, 200, said)
  await g.settled()
  assert.equal(await balanceOf(key, 'bob'), '5')
  assert.ok(Number(await balanceOf(key, 'ann')) < 5)
  const own = (await (await g.call('/v1/purse', token)).json()) as { data: { id: string } }
  assert.equal(own.data.id, 'ann')
  const quoted = await g.call('/v1/purse/quote', token, BODY)
  const { data } = (await quoted.json()) as { data: { purse: string; costAtMost: string; list: number } }
  assert.deepEqual([quoted.status, data.purse, data.list, Number(data.costAtMost) > 0], [200, 'ann', 0, true])
  for (const path of [
    '/v1/account',
    '/v1/models',
    '/v1/purses',
    '/v1/purses/bob',
    ...(isOff('background') ? [] : ['/v1/files']),
  ])
    assert.ok([401, 403].includes((await g.call(path, token)).status), path)
  assert.equal((await g.call('/v1/purses/bob/sessions', token, {})).status, 401)
  assert.equal((await g.call('/v1/quote', token, BODY)).status, 403)
  assert.deepEqual(await g.problems(), [])
})

test('a session token is bound to models, endpoints, sites and a highest cost', async () => {
  const { token } = await opened({ models: ['alpha-5.5'], endpoints: ['chat'], origins: [SITE] })
  const headers = { origin: SITE }
  assert.equal((await call(token, { body: { ...BODY, model: 'alpha-5.5' }, headers })).status, 200)
  assert.equal((await call(token, { headers })).status, 403)
  assert.equal((await g.call('/v1/responses', token, { model: 'x', input: 'x' }, { headers })).status, 403)
  for (const other of [{}, { origin: 'https://evil.example' }])
    assert.equal((await call(token, { headers: other })).status, 403)
  const { token: cheap } = await opened({ callMax: '0.000001' })
  assert.equal((await call(cheap)).status, 403)
  const { token: server } = await opened()
  assert.equal((await call(server, { headers: { origin: SITE } })).status, 403)
})

test('a session token that has expired, was changed or whose purse is frozen opens nothing', async () => {
  const { key, token } = await opened({ seconds: 60 })
  assert.equal((await call(token)).status, 200)
  assert.equal((await call(`${token.slice(0, -4)}AAAA`)).status, 401)
  assert.equal((await call('tgs_')).status, 401)
  await g.call('/v1/purses/ann', key, { status: 'frozen' }, { method: 'PATCH' })
  assert.equal((await call(token)).status, 403)
  assert.equal((await g.call('/v1/purses/ann/sessions', key, {})).status, 409)
  await g.call('/v1/purses/ann', key, { status: 'open' }, { method: 'PATCH' })
  aheadMs = 61_000
  const { status, said } = await call(token)
  aheadMs = 0
  assert.deepEqual([status, /has expired/.test(said)], [401, true])
  for (const body of [
    { seconds: 59 },
    { models: ['nothing'] },
    { endpoints: ['nothing'] },
    { origins: ['app.example'] },
  ])
    assert.equal((await g.call('/v1/purses/ann/sessions', key, body)).status, 400, JSON.stringify(body))
})

test('the highest cost of a session token is what its purse pays, at the prices of the account', async () => {
  const { account, key, token: free } = await opened()
  const { data: quote } = (await (await g.call('/v1/quote', key, BODY)).json()) as { data: { costAtMost: string } }
  const most = Math.round(Number(quote.costAtMost) * 1e6)
  await g.operator('PUT', `/accounts/${account}/purse-prices`, { markupPercent: '100' })
  await until(async () => {
    const answer = await g.call('/v1/purse/quote', free, BODY)
    return ((await answer.json()) as { data: { list: number } }).data.list === 1
  })
  const bounded = async (millionths: number) => {
    const callMax = (millionths / 1e6).toFixed(6)
    const answer = await g.call('/v1/purses/ann/sessions', key, { callMax })
    return ((await answer.json()) as { data: { token: string } }).data.token
  }
  // The account would pay less than this.
  const refused = await g.call('/v1/chat/completions', await bounded(most + 1), BODY)
  assert.deepEqual([refused.status, refused.headers.get('x-tollgate-limit')], [403, 'callMax'])
  assert.match(await refused.text(), /this session token allows [\d.]+ for one call/)
  const { status, said } = await call(await bounded(2 * most))
  assert.equal(status, 200, said)
  // Without a limit of its own a call gets what the token allows.
  const { max_tokens: _, ...open } = BODY
  await g.settled()
  const before = Number(await balanceOf(key, 'ann'))
  const cut = await call(await bounded(4 * most), { body: open })
  assert.equal(cut.status, 200, cut.said)
  await g.settled()
  const [held] = await g.sql<{ held: bigint }>(
    `select held from purse_movement where account_id = $1 and kind = 'settled' order by moved_at desc limit 1`,
    [account],
  )
  assert.ok(held && held.held <= BigInt(4 * most) && held.held > BigInt(3 * most), String(held?.held))
  const paid = Math.round((before - Number(await balanceOf(key, 'ann'))) * 1e6)
  assert.ok(paid > 0 && paid <= 4 * most, String(paid))
  assert.deepEqual(await g.problems(), [])
})

test('a session token is listed and revoked by itself, also for other processes', async () => {
  await using fresh = await freshDatabase()
  await using one = await startGateway({ database: fresh })
  await using other = await startGateway({ database: fresh })
  const { id: account, key } = await one.account()
  await one.call('/v1/purses', key, { id: 'ann', credits: '5' })
  await one.call('/v1/purses', key, { id: 'bob', credits: '5' })
  const make = async () =>
    ((await (await one.call('/v1/purses/ann/sessions', key, { callMax: '3' })).json()) as { data: NewSessionView }).data
  const [lost, kept] = [await make(), await make()]
  const ask = async (at: typeof one, token: string) => (await at.call('/v1/chat/completions', token, BODY)).status
  for (const at of [one, other]) for (const { token } of [lost, kept]) assert.equal(await ask(at, token), 200)
  const listed = (await (await one.call('/v1/purses/ann/sessions', key)).json()) as { data: Page<SessionView> }
  const { token, ...shown } = lost
  assert.deepEqual(listed.data.items[1], shown)
  assert.deepEqual([shown.callMax, shown.revokedAt, token.startsWith(shown.prefix)], ['3', null, true])
  const path = `/v1/purses/ann/sessions/${lost.id}`
  const remove = (at: string, by = key) => one.call(at, by, undefined, { method: 'DELETE' })
  assert.equal((await remove(`/v1/purses/bob/sessions/${lost.id}`)).status, 404)
  assert.equal((await remove(path, (await one.account()).key)).status, 404)
  assert.equal((await remove(path, kept.token)).status, 401)
  const revoked = (await (await remove(path)).json()) as { data: SessionView }
  assert.ok(revoked.data.revokedAt)
  assert.equal(await ask(one, lost.token), 401)
  await until(async () => (await ask(other, lost.token)) === 401)
  for (const at of [one, other]) assert.equal(await ask(at, kept.token), 200)
  await one.sql(`update purse_session set expires_at = now() - interval '4 days' where account_id = $1`, [account])
  await one.gateway.opened(purses).sessions.prune()
  assert.deepEqual(await one.sql('select 1 from purse_session'), [])
})
