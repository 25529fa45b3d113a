// Several models for one call: the next one answers when one fails, and the call is paid for as the one that answered.
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { assert, pluck, test, testGateway } from './gateway.ts'

const GOOD = 'alpha-5.4'
const CHEAP = 'beta-haiku-4-5'

let key: string
let account: string
const g = testGateway({ catalog: addModels }, async () => {
  ;({ key, id: account } = await g.account())
})

/** A model whose vendor is not there, one that costs a hundred times as much, and one that reads little. */
function addModels(document: any): void {
  document.vendors.dead = { ...document.vendors.beta, baseUrl: 'http://127.0.0.1:9' }
  const routes = [{ vendor: 'dead', protocol: 'anthropic-messages', model: CHEAP }]
  document.models['dead-model'] = { ...document.models[CHEAP], routes }
  const [tier] = document.models[CHEAP].pricing.tiers
  const dear = { ...tier, input: '10000', output: '50000' }
  document.models['dear-model'] = { ...document.models[CHEAP], pricing: { unit: 'credits', tiers: [dear] } }
  document.models['short-model'] = { ...document.models[CHEAP], limits: { contextTokens: 20, outputTokensMax: 1000 } }
}

const HELLO = [{ role: 'user' as const, content: 'Say hello in three languages.' }]
const chat = (body: object, init?: RequestInit, with_ = key) =>
  g.call('/v1/chat/completions', with_, { messages: HELLO, max_tokens: 50, ...body }, init)

async function lastUsage(of = account) {
  const { log, ...call } = await g.lastCall(of)
  return { ...call, attempts: (log?.attempts ?? null) as { product?: string; fault: string | null }[] | null }
}

test('the next model answers when one fails, and the call is charged as that one’s, whole and streamed', async () => {
  assert.equal((await chat({ model: GOOD })).status, 200)
  const { charged } = await lastUsage()
  for (const stream of [false, true]) {
    const answer = await chat({ model: 'dead-model', models: [GOOD], stream })
    const text = await answer.text()
    assert.equal(answer.status, 200, text)
    assert.equal(answer.headers.get('x-tollgate-model'), GOOD)
    assert.match(text, /"model":\s*"alpha-5\.4"/)
    const row = await lastUsage()
    assert.deepEqual([row.product, row.outcome, row.charged], [GOOD, 'settled', charged])
    assert.deepEqual(
      row.attempts?.map(({ product, fault }) => [product, fault === null]),
      [
        ['dead-model', false],
        ['dead-model', false],
        [GOOD, true],
      ],
    )
  }
  const sent = JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '{}') as object
  assert.ok(!('models' in sent), 'no vendor is told of the others')
})

test('SDKs name the others in the body or in a header, in every format', async () => {
  const openai = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
  const asked = { model: 'dead-model', messages: HELLO, max_tokens: 50, models: [GOOD] }
  assert.equal((await openai.chat.completions.create(asked)).model, GOOD)
  const options = { headers: { 'x-tollgate-fallback': `short-model, ${CHEAP}` } }
  const anthropic = new Anthropic({ apiKey: key, baseURL: `${g.url}/beta`, maxRetries: 0 })
  const message = await anthropic.messages.create(
    { model: 'dead-model', messages: [{ role: 'user', content: 'A word. '.repeat(60) }], max_tokens: 50 },
    options,
  )
  // What is too long for one is asked of the next at once.
  assert.equal(message.model, CHEAP)
  assert.ok(!(await lastUsage()).attempts?.some(({ product }) => product === 'short-model'))
})

test('the hold covers the dearest; what the dearest needs must be there', async () => {
  const quoteOf = async (body: object) => {
    const answer = await g.call('/v1/quote', key, { messages: HELLO, max_tokens: 50, ...body })
    return ((await answer.json()) as { data: { costAtMost: string } }).data.costAtMost
  }
  const dear = await quoteOf({ model: 'dear-model' })
  assert.equal(await quoteOf({ model: CHEAP, models: ['dear-model'] }), dear)
  assert.notEqual(await quoteOf({ model: CHEAP }), dear)
  const poor = await g.account({ credits: 1_000_000n })
  const refused = await chat({ model: CHEAP, models: ['dear-model'] }, {}, poor.key)
  assert.equal(refused.status, 402)
  assert.equal(refused.headers.get('x-tollgate-required'), dear)
  assert.equal((await chat({ model: CHEAP }, {}, poor.key)).status, 200)
  // Without a limit the answer is capped at what the hold covers at the price of whichever model answers.
  const open = await g.account({ credits: 20_000_000n })
  const answer = await chat({ model: 'dead-model', models: ['dear-model'], max_tokens: undefined }, {}, open.key)
  assert.equal(answer.status, 200, await answer.text())
  const { posted, held } = await g.balance(open.id)
  assert.ok(posted >= 0n && held === 0n)
  assert.equal((await lastUsage(open.id)).product, 'dear-model')
})

test('credits for some products pay only for models that are among them, also as a fallback', async () => {
  const { id, key: caller } = await g.account({ credits: 1n })
  const give = (products: string[]) =>
    g.operator('POST', `/accounts/${id}/credits`, { amount: '5', note: 'some products', products })
  await give(['dead-model'])
  assert.equal((await chat({ model: 'dead-model', models: [GOOD] }, {}, caller)).status, 402)
  assert.equal((await chat({ model: 'dead-model' }, {}, caller)).status, 502, 'its own credits are there')
  await give(['dead-model', GOOD])
  assert.equal((await chat({ model: 'dead-model', models: [GOOD] }, {}, caller)).status, 200)
  const { product, charged } = await lastUsage(id)
  assert.equal(product, GOOD)
  const lots = await g.sql<{ left: bigint }>('select remaining as left from lot where account_id = $1 order by id', [
    id,
  ])
  assert.deepEqual(pluck(lots, 'left'), [5_000_000n, 5_000_000n - charged])
})

test('what the caller did wrong, or a model that is not there, is not tried elsewhere; when all fail nothing is charged', async () => {
  const before = { seen: g.sandbox.seen.requests, balance: await g.balance(account) }
  const { key: narrow } = await g.key(account, { models: [CHEAP] })
  for (const [body, status, with_] of [
    [{ model: GOOD, models: ['no-such-model'] }, 404],
    [{ model: GOOD, models: [] }, 400],
    [{ model: GOOD, models: 'beta-haiku-4-5' }, 400],
    [{ model: GOOD, models: [1] }, 400],
    [{ model: 'a', models: ['b', 'c', 'd', 'e'] }, 400],
    [{ model: GOOD, models: [CHEAP], temperature: 'hot' }, 400],
    [{ model: CHEAP, models: [GOOD] }, 403, narrow],
  ] as const) {
    const answer = await chat(body, {}, with_)
    assert.equal(answer.status, status, `${JSON.stringify(body)}: ${await answer.text()}`)
  }
  const both = await chat({ model: GOOD, models: [CHEAP] }, { headers: { 'x-tollgate-fallback': CHEAP } })
  assert.equal(both.status, 400)
  assert.deepEqual({ seen: g.sandbox.seen.requests, balance: await g.balance(account) }, before)

  const refused = await chat({ model: GOOD, models: [CHEAP], messages: [{ role: 'user', content: '[[400]]' }] })
  assert.equal(refused.status, 400)
  assert.equal(g.sandbox.seen.requests, before.seen + 1)
  const failed = await chat({ models: ['dead-model', CHEAP], messages: [{ role: 'user', content: '[[500]]' }] })
  assert.equal(failed.status, 502, await failed.text())
  await g.settled()
  assert.deepEqual(await g.balance(account), before.balance)
})

test('a call that is sent again with its key gets the same answer of the same model, once paid', async () => {
  const init = { headers: { 'idempotency-key': 'fallback-1' } }
  const ask = async () => (await (await chat({ model: 'dead-model', models: [GOOD] }, init)).json()) as { id: string }
  const first = await ask()
  await g.settled()
  const paid = await g.balance(account)
  assert.equal((await ask()).id, first.id)
  assert.deepEqual(await g.balance(account), paid)
  const named = (others: string) =>
    chat({ model: GOOD }, { headers: { 'idempotency-key': 'fallback-2', 'x-tollgate-fallback': others } })
  assert.equal((await named(CHEAP)).status, 200)
  await g.settled()
  assert.equal((await named('short-model')).status, 409, 'another question with the same key')
})
