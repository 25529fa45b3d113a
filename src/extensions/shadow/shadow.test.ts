// Shadow traffic: a copy of a call goes to another model, on the operator's bill. Its caller notices nothing, whatever
// becomes of the copy.
import { createHash } from 'node:crypto'
import { BY, isOff, needs, startGateway, testGateway, textOf } from '../../../test/gateway.ts'
import { after, assert, atLeast, atOnce, beforeEach, pluck, runs, test, until } from '../../../test/kit.ts'
import { scriptedVendor } from '../../../test/scripted-vendor.ts'
import { checkDocument } from '../../catalog/document.ts'
import type { UnbilledRow } from '../finance/margins/views.ts'

const north = await scriptedVendor('north')
const south = await scriptedVendor('south')
/** Apart from copies that other tests leave behind. */
const tight = await scriptedVendor('tight')
const dead = await scriptedVendor('dead')
dead.close()
after(() => {
  for (const vendor of [north, south, tight]) vendor.close()
})
beforeEach(() => {
  for (const vendor of [north, south, tight]) {
    vendor.script = {}
    vendor.aborted = 0
    vendor.sent.length = 0
  }
})

const price = (input: string, output: string) => ({ unit: 'credits', tiers: [{ input, output }] })
const when = (name: string) => ({ headers: { 'x-shadow': name } })
const RULES = [
  { name: 'all', when: when('all'), shadow: { model: 'next', share: 1 } },
  { name: 'half', when: when('half'), shadow: { model: 'next', share: 0.5 } },
  { name: 'none', when: when('none'), shadow: { model: 'next', share: 0 } },
  { name: 'vendor', when: when('vendor'), shadow: { vendor: 'south', share: 1 } },
  { name: 'dead', when: when('dead'), shadow: { model: 'gone', share: 1 } },
  { name: 'tight', when: when('tight'), shadow: { model: 'tight', share: 1 } },
  { name: 'guarded', when: when('guarded'), shadow: { model: 'guarded', share: 1 } },
]

let whole: any
function catalog(document: any): void {
  for (const [name, { url }] of Object.entries({ north, south, dead }))
    document.vendors[name] = { baseUrl: url, credential: 'HOUSE_KEY', byokFee: { call: '0.01' } }
  const route = (vendor: string, order = 0) => ({
    vendor,
    protocol: 'openai-chat',
    model: `m-${vendor}`,
    order,
    cost: price('1000', '2000'),
  })
  const clientFormats = ['openai-chat', 'openai-responses']
  const base = { ...document.models['alpha-5.4'], family: 'plain', traits: {}, clientFormats }
  const model = { ...base, pricing: price('1000000', '1000000') }
  document.models.plain = { ...model, routes: [route('north'), route('south', 1)] }
  document.models.next = { ...model, routes: [route('south')] }
  document.models.gone = { ...model, routes: [route('dead')] }
  const credentials = [{ name: 'TIGHT_KEY_A' }, { name: 'TIGHT_KEY_B' }]
  document.vendors.tight = { baseUrl: tight.url, concurrencyMax: 4, pendingMax: 1, credentials }
  document.models.tight = { ...model, routes: [route('tight')] }
  document.models.guarded = { ...model, routes: [route('south')] }
  if (!isOff('guardrails')) document.guardrails = GUARDRAILS
  document.routing = { rules: RULES }
  whole = document
}
const GUARDRAILS = {
  mails: { models: ['plain', 'next', 'tight'], redact: { patterns: ['email'] } },
  other: { models: ['guarded'], redact: { patterns: ['iban'] } },
}
// A busy process drops copies; how busy the machine of a test is must not matter.
const env = { TIGHT_KEY_A: 'sk-a-00000000', TIGHT_KEY_B: 'sk-b-00000000', TOLLGATE_OVERLOAD_LAG_MS: '600000' }
const g = testGateway({ catalog, env })

const HELLO = [{ role: 'user', content: 'Say hello.' }]
const ask = (key: string, shadow: string, more: object = {}, path = '/v1/chat/completions') =>
  g.call(
    path,
    key,
    {
      model: 'plain',
      ...(path.endsWith('responses') ? { input: 'Say hello.' } : { messages: HELLO, max_tokens: 50 }),
      ...more,
    },
    { headers: { 'x-shadow': shadow } },
  )

/** What one answer of 10 and 5 tokens costs. */
const ONE = 15_000_000n

const usage = (account: string) => g.calls(account)

async function counted(name: string, labels: object): Promise<number> {
  const all: any[] = await g.gateway.figures()
  const values: any[] = all.find((one) => one.name === name)?.values ?? []
  const found = values.find((one) => Object.entries(labels).every(([label, value]) => one.labels[label] === value))
  return found?.value ?? 0
}
const copies = (outcome: string, product = 'next') => counted('tollgate_shadow_calls_total', { product, outcome })

/** A copy that must not come would be sent before the one of a later call. */
async function noCopy(key: string): Promise<void> {
  const before = await copies('answered')
  await (await ask(key, 'all', { messages: [{ role: 'user', content: 'The last.' }] })).text()
  await until(() => copies('answered'), before + 1)
  assert.deepEqual(pluck(south.sent, 'messages'), [[{ role: 'user', content: 'The last.' }]])
}

async function paid(vendor = 'south'): Promise<UnbilledRow | undefined> {
  for (const one of g.gateway.hourly) await one.flush()
  const { data } = await g.operator<{ items: UnbilledRow[] }>('GET', `/margins/unbilled?vendor=${vendor}`)
  return data.items.find(({ kind, product }) => kind === 'shadow' && product === 'next')
}

for (const stream of [false, true])
  test(
    `a copy arrives once with the same question, and only the call is charged${stream ? ', streamed' : ''}`,
    needs('finance'),
    async () => {
      const { id, key } = await g.account()
      const earlier = await paid()
      const [before, costBefore] = [await copies('answered'), await counted('tollgate_shadow_cost_credits_total', {})]
      const answer = await ask(key, 'all', { stream, temperature: 0.5, store: true })
      assert.match(await answer.text(), /from north/)
      await until(() => copies('answered'), before + 1)
      assert.deepEqual([north.sent.length, south.sent.length], [1, 1])
      const { model, store, ...asked } = south.sent[0]!
      const { model: _, store: stored, ...same } = north.sent[0]!
      assert.deepEqual(asked, same)
      assert.deepEqual([model, store, stored], ['m-south', false, true])
      const [call, ...others] = await usage(id)
      assert.equal(others.length, 0)
      assert.deepEqual([call?.charged, call?.vendor, call?.cost], [ONE, 'north', 20_000n])
      assert.match(call?.log.decided.join(), /The rule "all" copies this call to "next", which is not charged\./)
      assert.equal((await g.balance(id)).held, 0n)
      // 10 tokens at 1000 and 5 at 2000 for a million.
      const cost = (await counted('tollgate_shadow_cost_credits_total', {})) - costBefore
      assert.ok(Math.abs(cost - 0.02) < 1e-9, String(cost))
      const row = await paid()
      const more = (of: (row: UnbilledRow) => number) => (row ? of(row) : 0) - (earlier ? of(earlier) : 0)
      assert.deepEqual(
        [more(({ calls }) => calls), more(({ inputTokens }) => inputTokens), more(({ outputTokens }) => outputTokens)],
        [1, 10, 5],
      )
      assert.ok(Math.abs(more((one) => Number(one.cost)) - 0.02) < 1e-9)
      assert.equal(row?.model, 'm-south')
    },
  )

test('a vendor of the same model can get the copy', async () => {
  const { key } = await g.account()
  assert.match(await (await ask(key, 'vendor')).text(), /from north/)
  await until(() => south.sent.length, 1)
})

const FATES = {
  'gives no headers': { headersAfter: new Promise(() => {}) },
  'gives no token': { tokenAfter: new Promise(() => {}) },
  'answers with an error': { status: 500 },
  'streams without an end': { endless: true },
}
for (const [fate, script] of Object.entries(FATES))
  test(`the caller notices nothing of a copy whose vendor ${fate}`, async () => {
    const { id, key } = await g.account()
    const failed = await copies('failed')
    south.script = script
    assert.match(await (await ask(key, 'all', { stream: true })).text(), /from north[\s\S]*\[DONE\]/)
    const rows = await usage(id)
    assert.deepEqual(pluck(rows, 'charged', 'vendor'), [[ONE, 'north']])
    await until(() => south.sent.length, 1)
    if ('endless' in script) await until(() => south.aborted, 1)
    if ('endless' in script || 'status' in script) await until(() => copies('failed'), failed + 1)
    assert.equal((await g.balance(id)).held, 0n)
  })

test('a dead vendor of copies fails for nobody', async () => {
  const { id, key } = await g.account()
  assert.match(await (await ask(key, 'dead')).text(), /from north/)
  await until(() => copies('failed', 'gone'), 1)
  assert.deepEqual(pluck(await usage(id), 'charged'), [ONE])
})

test('the share is drawn by the id of the request', async () => {
  const { key } = await g.account()
  await (await ask(key, 'none')).text()
  let drawn = 0
  const before = await copies('answered')
  for (let turn = 0; turn < 12; turn++) {
    const answer = await ask(key, 'half')
    await answer.text()
    const id = answer.headers.get('x-request-id') ?? ''
    const hash = createHash('sha256').update(`shadow ${id}`).digest()
    if (hash.readUInt32BE() < 2 ** 31) drawn += 1
    // One after the other, because an account has few at once.
    await until(() => copies('answered'), before + drawn)
  }
  assert.equal(south.sent.length, drawn)
})

test('an account has few copies at once; further ones are dropped, and its calls go on', async () => {
  const { key } = await g.account()
  const gate = Promise.withResolvers<void>()
  south.script = { headersAfter: gate.promise }
  const dropped = await copies('dropped')
  for (let turn = 0; turn < 6; turn++) assert.match(await (await ask(key, 'all')).text(), /from north/)
  await until(() => south.sent.length, 4)
  assert.equal((await copies('dropped')) - dropped, 2)
  const answered = await copies('answered')
  gate.resolve()
  await until(() => copies('answered'), answered + 4)
})

test(
  'a thousand copies at a silent vendor take no room from its callers, open no breaker, and what they cost is counted',
  needs('finance'),
  async () => {
    const accounts = await atOnce(6, () => g.account())
    const keyOf = (turn: number) => accounts[turn % accounts.length]?.key ?? ''
    tight.script = { headersAfter: new Promise(() => {}) }
    const dropped = await copies('dropped', 'tight')
    const CALLS = runs(75, 1_000)
    for (let turn = 0; turn < CALLS; turn += 25)
      await atOnce(25, async (at) => {
        assert.match(await (await ask(keyOf(turn + at), 'tight')).text(), /from north/)
      })
    // Half of its four places.
    await until(() => tight.sent.length, 2)
    assert.equal((await copies('dropped', 'tight')) - dropped, CALLS - 2)
    // Four callers are let in at once: the copies give way.
    const gate = Promise.withResolvers<void>()
    tight.script = { headersAfter: gate.promise }
    const calls = Array.from({ length: 4 }, (_, turn) =>
      g.call('/v1/chat/completions', keyOf(turn), { model: 'tight', messages: HELLO, max_tokens: 50 }),
    )
    await until(() => tight.sent.length === 6 && tight.aborted >= 2)
    gate.resolve()
    for (const call of calls) assert.match(await (await call).text(), /from tight/)
    await until(() => copies('failed', 'tight'), atLeast(2))
    for (const one of g.gateway.hourly) await one.flush()
    const { data } = await g.operator<{ items: UnbilledRow[] }>('GET', '/margins/unbilled?vendor=tight&product=tight')
    // One row for each credential that was used.
    assert.equal(
      data.items.reduce((sum, one) => sum + one.calls, 0),
      2,
    )
    assert.ok(
      data.items.every(({ kind, cost }) => kind === 'shadow' && Number(cost) > 0),
      'the vendor has the prompts of what was broken off',
    )
  },
)

test('copies that fail open no breaker, put no credential aside and count for no account', async () => {
  const { key } = await g.account()
  const before = g.gateway.vendors.health().find(({ name }) => name === 'tight')
  for (const status of [500, 500, 500, 500, 500, 500, 429, 401]) {
    tight.script = { status }
    const failed = await copies('failed', 'tight')
    assert.match(await (await ask(key, 'tight')).text(), /from north/)
    await until(() => copies('failed', 'tight'), failed + 1)
  }
  assert.equal(tight.sent.length, 8, 'each is sent once')
  const after = g.gateway.vendors.health().find(({ name }) => name === 'tight')
  assert.deepEqual(
    [after?.breaker, after?.errors, after?.requests],
    ['closed', before?.errors ?? 0, before?.requests ?? 0],
  )
  for (const name of ['TIGHT_KEY_A', 'TIGHT_KEY_B'])
    assert.equal(g.gateway.vendors.credentials.health('tight', name).why, null)
  tight.script = {}
  const body = { model: 'tight', messages: HELLO, max_tokens: 50 }
  assert.match(await (await g.call('/v1/chat/completions', key, body)).text(), /from tight/)
})

test(
  'what acts, and what goes past the guardrails of the other model, is not copied',
  needs('guardrails'),
  async () => {
    const { key } = await g.account()
    await (await ask(key, 'all', { web_search_options: {} })).text()
    await (await ask(key, 'all', { tools: [{ type: 'mcp', server_url: 'https://mcp.example' }] })).text()
    await (await ask(key, 'guarded')).text()
    await until(() => copies('dropped', 'guarded'), 1)
    await noCopy(key)
  },
)

test('what a test key asks, and what goes by a key of the account, is not copied', async () => {
  const { key } = await g.account()
  const { id, key: owner } = await g.account()
  const made = await g.operator<{ key: string }>('POST', `/accounts/${id}/keys`, { name: 'test', test: true })
  assert.doesNotMatch(await textOf(ask(made.data.key, 'all')), /from north/)
  const own = { vendor: 'north', value: 'sk-own-0000000000000000', fallback: true, origin: new URL(north.url).origin }
  await g.gateway.byokKeys.store(id, own, BY)
  assert.match(await (await ask(owner, 'all')).text(), /from north/)
  await noCopy(key)
})

test('a key that may not use the other model, and a caller who excludes its vendor, are not copied to it', async () => {
  const { key } = await g.account()
  const { key: narrow } = await g.account({ models: ['plain'] })
  assert.match(await (await ask(narrow, 'all')).text(), /from north/)
  assert.match(await (await ask(key, 'all', { provider: { ignore: ['south'] } })).text(), /from north/)
  await noCopy(key)
})

test('a copy has the placeholders of redaction, and is stored nowhere', needs('guardrails'), async () => {
  const { key } = await g.account()
  await textOf(ask(key, 'all', { input: 'Write to ada@example.com.' }, '/v1/responses'))
  await until(() => south.sent.length, 1)
  const sent = JSON.stringify(south.sent[0])
  assert.match(sent, /\[EMAIL_/)
  assert.doesNotMatch(sent, /ada@example|"store":true/)
})

test('a shutdown does not wait for copies', async () => {
  const own = await startGateway({ catalog, env: { ...env, TOLLGATE_DRAIN_SECONDS: '60' } })
  const { key } = await own.account()
  south.script = { tokenAfter: new Promise(() => {}) }
  const body = { model: 'plain', messages: HELLO, stream: true }
  await (await own.call('/v1/chat/completions', key, body, { headers: { 'x-shadow': 'all' } })).text()
  await until(() => south.sent.length, 1)
  await own.settled()
  await own.close()
  await until(() => south.aborted, 1)
})

test('names that stand for nothing are found when the catalog is checked', () => {
  const withRule = (shadow: object) =>
    checkDocument({ ...whole, routing: { rules: [{ name: 'x', shadow: { share: 0.1, ...shadow } }] } })
  const text = (checked: unknown) => JSON.stringify(checked)
  assert.match(text(withRule({ model: 'nobody' })), /there is no text model/)
  assert.match(text(withRule({ vendor: 'nobody' })), /there is no vendor/)
  assert.match(text(withRule({})), /must name a model or a vendor/)
})
