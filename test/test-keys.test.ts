// Test keys: an integration is tried against production without spending. The catalog of this file leads nowhere.
import { createHmac } from 'node:crypto'
import OpenAI from 'openai'
import type { NewKey } from '../src/admission/views.ts'
import { openMcp } from '../src/extensions/agents/mcp/open.ts'
import { after, assert, BY, pluck, started, test, testGateway } from './gateway.ts'
import { startReceiver } from './job-engine.ts'
import { connect } from './mcp/client.ts'
import { verified } from './operator-server.ts'

const NOBODY = 'http://127.0.0.1:9'
const CACHED = 'siteanalytics/websites/visits'

const receiver = started(startReceiver)
const g = testGateway(() => ({
  env: { TOLLGATE_OUTBOUND_ALLOW: receiver.host, ALPHA_API_KEY: 'a real secret' },
  catalog(document) {
    for (const vendor of Object.values<any>(document.vendors))
      Object.assign(vendor, { baseUrl: NOBODY, headers: { 'x-real': 'yes' }, auth: { header: 'x-own-key' } })
    document.endpoints[CACHED].cache = { ttlSeconds: 60 }
  },
}))
after(async () => {
  assert.deepEqual((await verified(g)).problems, [], 'the ledger adds up')
})

async function testKey(account: string, input: object = {}): Promise<NewKey> {
  return (await g.operator<NewKey>('POST', `/accounts/${account}/keys`, { name: 'ci', test: true, ...input })).data
}

const sdk = (key: string) => new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
const hello = { model: 'alpha-5.4', messages: [{ role: 'user' as const, content: 'Hello' }], max_completion_tokens: 20 }

test('a test key is answered whatever the catalog says, and the account pays nothing', async () => {
  const { id, key } = await g.account({ credits: 5_000_000n })
  const made = await testKey(id)
  assert.match(made.key, /^tg_test_[0-9A-Za-z]{38}$/)
  assert.equal(made.test, true)
  assert.ok(made.key.startsWith(made.prefix))
  await assert.rejects(sdk(key).chat.completions.create(hello), { status: 502 })
  const { data, response } = await sdk(made.key).chat.completions.create(hello).withResponse()
  assert.ok(data.choices[0]?.message.content)
  const charge = Number(response.headers.get('x-tollgate-charge'))
  assert.ok(charge > 0, 'priced as in earnest')
  const stream = await sdk(made.key).chat.completions.create({ ...hello, stream: true })
  let chunks = 0
  for await (const _ of stream) chunks += 1
  assert.ok(chunks > 1)
  const picture = await sdk(made.key).images.generate({ model: 'alpha-image-2', prompt: 'a gate' })
  assert.ok(picture.data?.[0]?.url ?? picture.data?.[0]?.b64_json)
  const stored = await sdk(made.key).responses.create({ model: 'alpha-5.4', input: 'Remember 7.' })
  const next = { model: 'alpha-5.4', input: 'Which?', previous_response_id: stored.id }
  assert.ok((await sdk(made.key).responses.create(next)).output_text)
  assert.equal((await sdk(made.key).responses.retrieve(stored.id)).id, stored.id)
  await assert.rejects(sdk(key).responses.retrieve(stored.id), { status: 404 })
  await g.settled()
  assert.deepEqual(await g.balance(id), { posted: 5_000_000n, held: 0n })
  const seen = g.sandbox.seen.calls.filter(({ headers }) => headers['x-real'] || headers['x-own-key'])
  assert.equal(seen.length, 0, 'nothing of the real vendor goes along')
})

test('its rows stand apart: usage, ledger, jobs and overview show them when asked, money figures never', async () => {
  const { id, key } = await g.account()
  const made = await testKey(id)
  await sdk(made.key).chat.completions.create(hello)
  await g.settled()
  type Rows = { items: { keyId: string; charged: string }[] }
  assert.deepEqual((await g.ask<Rows>('GET', `/accounts/${id}/usage`)).items, [])
  const { items } = await g.ask<Rows>('GET', `/accounts/${id}/usage?test=true`)
  assert.deepEqual(pluck(items, 'keyId'), [made.id])
  const spent = async (test: string) =>
    (
      await g.operator<{ series: { charged: string }[]; balance: string }>(
        'GET',
        `/accounts/${id}/overview?days=1${test}`,
      )
    ).data
  const sum = (series: { charged: string }[]) => series.reduce((all, { charged }) => all + Number(charged), 0)
  assert.equal(sum((await spent('')).series), 0)
  assert.equal(sum((await spent('&test=true')).series), Number(items[0]!.charged))
  const kinds = async (query: string) =>
    (await g.ask<{ items: { kind: string }[] }>('GET', `/accounts/${id}/ledger${query}`)).items.map((row) => row.kind)
  assert.deepEqual(await kinds(''), ['grant'])
  assert.deepEqual(await kinds('?test=true'), ['settled', 'grant'])
  assert.equal((await g.operator('GET', `/accounts/${id}/usage?test=perhaps`)).status, 400)
  const accounts = (await g.ask<{ items: { id: string }[] }>('GET', '/accounts?limit=200')).items
  assert.ok(accounts.some((one) => one.id === id))
  assert.ok(!accounts.some((one) => one.id.endsWith('_test')))
  const keys = (await g.ask<{ items: NewKey[] }>('GET', `/accounts/${id}/keys`)).items
  assert.deepEqual(keys.map((one) => one.test).sort(), [false, true])
  const own = async (with_: string) => ((await (await g.call('/v1/account', with_)).json()) as any).data
  assert.equal((await own(key)).test, false)
  assert.equal((await own(made.key)).test, true)
})

test('an empty test balance is a 402, and a refill ends it', async () => {
  const { id } = await g.account()
  const made = await testKey(id)
  assert.equal((await g.operator('PUT', `/accounts/${id}/test-balance`, { available: '0' })).status, 200)
  await assert.rejects(sdk(made.key).chat.completions.create(hello), { status: 402 })
  const refilled = await g.operator<{ available: string }>('PUT', `/accounts/${id}/test-balance`, {})
  assert.equal(refilled.data.available, '1000')
  assert.ok(await sdk(made.key).chat.completions.create(hello))
  for (const available of ['-1', '1000001', 'much'])
    assert.equal((await g.operator('PUT', `/accounts/${id}/test-balance`, { available })).status, 400, available)
  assert.equal((await g.balance(id)).posted, 1_000_000_000n)
})

test('limits hold: of the key, and those of its account, which count test calls by themselves', async () => {
  const { id } = await g.account()
  const limited = await testKey(id, { limits: { requestsPerMinute: 1 } })
  await sdk(limited.key).chat.completions.create(hello)
  await assert.rejects(sdk(limited.key).chat.completions.create(hello), { status: 429 })
  const restricted = await testKey(id, { models: ['siteanalytics'] })
  await assert.rejects(sdk(restricted.key).chat.completions.create(hello), { status: 403 })
  const open = await testKey(id)
  await sdk(open.key).chat.completions.create(hello)
  await g.gateway.accounts.change(id, { limits: { requestsPerMinute: 0 } }, BY)
  await assert.rejects(sdk(open.key).chat.completions.create(hello), { status: 429 }, 'who is stopped stops there too')
  await g.gateway.accounts.change(id, { limits: null }, BY)
  assert.equal((await g.call('/v1/account', open.key)).status, 200)
  const limitsOf = async (account: string) =>
    (await g.sql<{ limits: object }>(`select limits_of($1, 'account') as limits`, [account]))[0]?.limits
  assert.deepEqual(await limitsOf(`${id}_test`), { requestsPerMinute: 600, concurrency: 20 }, 'nothing is unbounded')
  assert.deepEqual(await limitsOf(id), {})
  await g.gateway.accounts.change(id, { limits: { concurrency: 50 } }, BY)
  assert.deepEqual(await limitsOf(`${id}_test`), { requestsPerMinute: 600, concurrency: 50 })
  const { id: fresh } = await g.account()
  await testKey(fresh)
  assert.deepEqual(await limitsOf(`${fresh}_test`), { requestsPerMinute: 600, concurrency: 20 })
  assert.equal((await g.operator('DELETE', `/keys/${open.id}`)).status, 200)
  await assert.rejects(sdk(open.key).chat.completions.create(hello), { status: 401 })
})

test('test calls use up none of the system’s limits', async () => {
  const { id } = await g.account()
  const made = await testKey(id)
  await g.gateway.accounts.changeSystemLimits({ requestsPerMinute: 1, spendPerDay: '1' }, BY)
  try {
    for (let i = 0; i < 3; i++) await sdk(made.key).chat.completions.create(hello)
    await g.settled()
    assert.deepEqual((await verified(g)).problems, [])
  } finally {
    await g.gateway.accounts.changeSystemLimits({ requestsPerMinute: null, spendPerDay: null }, BY)
  }
})

test('faults come by their triggers, and close no real vendor to others', async () => {
  const { id } = await g.account()
  const made = await testKey(id)
  for (const [trigger, status] of [
    ['[[400]]', 400],
    ['[[429]]', 429],
    ['[[500]]', 502],
  ] as const) {
    const ask = { ...hello, messages: [{ role: 'user' as const, content: trigger }] }
    await assert.rejects(sdk(made.key).chat.completions.create(ask), ({ status: got }: { status: number }) => {
      assert.ok(got === status || got >= 500 === status >= 500, `${trigger}: ${got}`)
      return true
    })
  }
  const names = g.gateway.vendors.health().map(({ name }) => name)
  assert.ok(names.includes('test:alpha/openai'), names.join())
})

test('what a simulated vendor said is never kept for those who pay', async () => {
  const { id, key } = await g.account()
  const made = await testKey(id)
  const path = `/v1/${CACHED}?keys=example.com`
  const first = await g.call(path, made.key)
  assert.equal(first.headers.get('x-cache'), 'miss', await first.text())
  assert.equal((await g.call(path, made.key)).headers.get('x-cache'), 'hit')
  assert.notEqual((await g.call(path, key)).status, 200)
})

test('a video’s webhook arrives, signed with the test secret, and says that it is not live', async () => {
  const { id } = await g.account()
  const made = await testKey(id)
  const body = { model: 'videogen-2.0', prompt: 'a gate opens', callback_url: receiver.url }
  const created = (await (await g.call('/v1/video/seedance', made.key, body)).json()) as { data: { jobId: string } }
  const { headers, body: told } = await receiver.about(created.data.jobId)
  const message = JSON.parse(told)
  assert.equal(message.type, 'job.completed')
  assert.equal(message.livemode, false)
  const secretOf = async (query: string) =>
    (await g.ask<{ secret: string }>('GET', `/accounts/${id}/webhook-secret${query}`)).secret
  const secret = await secretOf('?test=true')
  assert.notEqual(secret, await secretOf(''))
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${told}`
  const hmac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
  assert.equal(headers['webhook-signature'], `v1,${hmac.update(signed).digest('base64')}`)
  const jobs = async (query: string) =>
    (await g.ask<{ items: unknown[] }>('GET', `/accounts/${id}/jobs${query}`)).items.length
  assert.deepEqual([await jobs(''), await jobs('?test=true')], [0, 1])
})

test('agents may use a test key too', async () => {
  const { id } = await g.account()
  const made = await testKey(id)
  const client = await connect(g.url, made.key)
  const result = await client.callTool({ name: 'website_ranks', arguments: { keys: 'example.com' } })
  assert.equal(result.isError, undefined)
  const balance = await client.callTool({ name: 'get_balance', arguments: {} })
  assert.equal((balance.structuredContent as { test: boolean }).test, true)
  await client.close()
})

test('what agents speak is loaded anew when loading it failed', async () => {
  let tries = 0
  const open = openMcp({} as never, async () => {
    tries += 1
    if (tries === 1) throw new Error('no memory')
    return async () => new Response('loaded')
  })
  await assert.rejects(open({} as never), /no memory/)
  assert.equal(await (await open({} as never)).text(), 'loaded')
  await open({} as never)
  assert.equal(tries, 2)
})
