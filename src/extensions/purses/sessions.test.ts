import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testGateway } from '../../../test/gateway.ts'
import { realWorld } from '../../kernel/world.ts'

let aheadMs = 0
const g = testGateway({ world: { ...realWorld, nowMs: () => Date.now() + aheadMs } })
const BODY = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 50 }
const SITE = 'https://app.example'

async function opened(input: object = {}) {
  const { id, key } = await g.account()
  await g.call('/v1/purses', key, { id: 'ann', credits: '5' })
  await g.call('/v1/purses', key, { id: 'bob', credits: '5' })
  const answer = await g.call('/v1/purses/ann/sessions', key, input)
  const { data } = (await answer.json()) as { data: { token: string; expiresAt: string } }
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
  for (const path of ['/v1/account', '/v1/models', '/v1/purses', '/v1/purses/bob', '/v1/files'])
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
  assert.equal((await g.call('/v1/embeddings', token, { model: 'x', input: 'x' }, { headers })).status, 403)
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
