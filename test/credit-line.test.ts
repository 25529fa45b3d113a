// F78: many parallel calls on a small balance. They wait for credits that running calls hold, and a call without an
// output limit holds about as much as calls of its key write.
import { setTimeout as later } from 'node:timers/promises'
import { freshDatabase } from './database.ts'
import { MODEL, startVendor, usage, wholeAnswer } from './faults/chat-vendor.ts'
import { assert, atOnce, before, started, startGateway, type TestGateway, test, until } from './gateway.ts'

const CREDIT = 1_000_000n
const COUNTED = `${MODEL}-counted`
const PROMPT_TOKENS = 10
const MESSAGE = 'Tell me something about the weather.'
/** Ordinary chat: answers of 60 to 600 tokens. */
const ORDINARY = [150, 240, 90, 420, 180, 60, 300, 600, 120, 210]

let writes: () => number
/** How long the vendor takes. */
let tookMs = 0
let gate: Promise<void> | undefined
/** Calls with this limit do not wait at the gate. */
const UNGATED_TOKENS = 7

const vendor = started(startVendor)
before(async () => {
  vendor.answer = async ({ body, response }) => {
    const { max_tokens: cap = 0 } = JSON.parse(body) as { max_tokens?: number }
    const would = writes()
    if (tookMs > 0) await later(tookMs)
    if (cap !== UNGATED_TOKENS) await gate
    const tokens = Math.min(would, cap)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      wholeAnswer('word', usage(PROMPT_TOKENS, tokens)).replace('"stop"', tokens < would ? '"length"' : '"stop"'),
    )
  }
})
const database = started(freshDatabase)
const env = { TOLLGATE_CREDIT_WAIT_SECONDS: '600' }
const g = started(() => startGateway({ database, env, catalog: withModel }))
const processes = [g, started(() => startGateway({ database, env }))]

function withModel(document: any): void {
  document.vendors.mock = { baseUrl: vendor.url }
  document.models[MODEL] = {
    name: 'Writer',
    type: 'text',
    family: 'fault',
    clientFormats: ['openai-chat'],
    limits: { contextTokens: 1_050_000, outputTokensMax: 128_000 },
    pricing: { unit: 'credits', tiers: [{ input: '250', output: '1500' }] },
    routes: [{ vendor: 'mock', protocol: 'openai-chat', model: 'writer' }],
  }
  document.models[COUNTED] = { ...document.models[MODEL], traits: { tokenizer: 'o200k' } }
}

const BODY = { model: MODEL, messages: [{ role: 'user', content: MESSAGE }] }
const costOf = (tokens: number) => BigInt(PROMPT_TOKENS) * 250n + BigInt(tokens) * 1_500n

async function chat(process: TestGateway, key: string, body: object = BODY) {
  const response = await process.call('/v1/chat-completions', key, body)
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}

async function rowsOf(account: string) {
  for (const one of processes) await one.settled()
  return g.calls(account)
}

const inTurn = () => {
  let at = 0
  return () => ORDINARY[at++ % ORDINARY.length]!
}

for (const over of [1, 2])
  test(`ten parallel calls on a balance of 20 times the cost of one are all served, 20 times, over ${over} processes`, async () => {
    tookMs = 20
    writes = () => 150
    let account = await g.account({ credits: 20n * costOf(150) })
    for (let round = 0; round < 20; round++) {
      // Every second round the key is new, and nothing is known of it.
      if (round % 2 === 0) account = await g.account({ credits: 20n * costOf(150) })
      else await g.operator('POST', `/accounts/${account.id}/credits`, { amount: '2.3', note: 'again' })
      const answers = await atOnce(10, (at) => chat(processes[at % over]!, account.key))
      assert.deepEqual(
        answers.map(({ status, body }) => (status === 200 ? 200 : body)),
        Array(10).fill(200),
      )
      for (const { charged, held, loss } of await rowsOf(account.id)) assert.ok(charged <= held && loss === 0n)
    }
    tookMs = 0
  })

test('ordinary chat holds at most 8 times what it is charged, at the median, on any balance, and no answer is cut', async () => {
  for (const times of [50n, 1_000n, 1_000_000n]) {
    writes = inTurn()
    const account = await g.account({ credits: times * costOf(150) })
    for (let call = 0; call < 50; call++) {
      const { body } = await chat(g, account.key)
      assert.equal(body.choices?.[0].finish_reason, 'stop', JSON.stringify(body))
      // The balance stays what it was.
      await g.gateway.ledger.grant({
        account: account.id,
        amount: BigInt(body.usage.completion_tokens) * 1_500n + 2_500n,
        note: '',
        actor: 'test',
      })
    }
    const ratios = (await rowsOf(account.id))
      .map(({ held, charged }) => Number(held) / Number(charged))
      .sort((a, b) => a - b)
    const median = ratios[ratios.length / 2]!
    assert.ok(median <= 8, `${median}, on a balance of ${times} calls`)
  }
})

test('an answer that its key never wrote before may be cut once; then calls hold what the balance allows', async () => {
  writes = () => 100
  const account = await g.account({ credits: 1_000n * CREDIT })
  for (let call = 0; call < 10; call++) await chat(g, account.key)
  writes = () => 20_000
  const reasons = []
  for (let call = 0; call < 2; call++) reasons.push((await chat(g, account.key)).body.choices[0].finish_reason)
  assert.deepEqual(reasons, ['length', 'stop'])
})

test('429 says what is held by how many calls, and 402 is for accounts that cannot pay', async () => {
  const short = await startGateway({ env: { TOLLGATE_CREDIT_WAIT_SECONDS: '0.01' }, catalog: withModel })
  const { promise, resolve } = Promise.withResolvers<void>()
  try {
    writes = () => 100
    gate = promise
    const account = await short.account({ credits: 2n * CREDIT })
    const body = { ...BODY, max_tokens: 1_000 }
    const before = vendor.calls.length
    const running = chat(short, account.key, body)
    await until(() => vendor.calls.length > before)
    const { status, headers, body: told } = await chat(short, account.key, body)
    assert.deepEqual([status, told.code, headers.get('retry-after')], [429, 40001, '1'])
    assert.match(
      told.message,
      /needs 1\.5\d* credits, 0\.4\d* are available, and 1\.5\d* are held by 1 call in progress/,
    )
    const poor = await chat(short, account.key, { ...body, max_tokens: 2_000 })
    assert.deepEqual([poor.status, poor.body.code], [402, 40000])
    resolve()
    assert.equal((await running).status, 200)
  } finally {
    resolve()
    gate = undefined
    await short.close()
  }
})

test('a call whose text is counted because its bytes do not fit waits in line as well', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  writes = () => 100
  const account = await g.account({ credits: 2n * CREDIT })
  const before = vendor.calls.length
  const body = { ...BODY, model: COUNTED, max_tokens: 1_000 }
  const running = chat(g, account.key, body)
  await until(() => vendor.calls.length > before)
  const waiting = chat(g, account.key, body)
  await until(() => g.gateway.monitor.running === 2)
  resolve()
  gate = undefined
  assert.deepEqual([(await running).status, (await waiting).status], [200, 200])
  for (const { charged, held } of await rowsOf(account.id)) assert.ok(charged <= held)
})

test('a caller who leaves the line holds nothing, and its vendor is never called', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  writes = () => 100
  const account = await g.account({ credits: 2n * CREDIT })
  const before = vendor.calls.length
  const running = chat(g, account.key, { ...BODY, max_tokens: 1_000 })
  await until(() => vendor.calls.length > before)
  const leaving = new AbortController()
  const waiting = fetch(`${g.url}/v1/chat-completions`, {
    method: 'POST',
    signal: leaving.signal,
    body: JSON.stringify({ ...BODY, max_tokens: 1_000 }),
    headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' },
  })
  await until(() => g.gateway.monitor.running === 2)
  leaving.abort()
  await assert.rejects(waiting)
  await until(() => g.gateway.monitor.running === 1)
  resolve()
  gate = undefined
  assert.equal((await running).status, 200)
  assert.equal((await rowsOf(account.id)).length, 1)
  assert.equal((await g.balance(account.id)).held, 0n)
})

test('a full line of one account is not felt by another: each of its calls is served', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  writes = () => UNGATED_TOKENS
  const crowded = await g.account({ credits: 2n * CREDIT })
  const other = await g.account({ credits: 1_000n * CREDIT })
  const running = chat(g, crowded.key, { ...BODY, max_tokens: 1_000 })
  await until(() => g.gateway.monitor.running, 1)
  const ended: number[] = []
  const crowd = Array.from({ length: 300 }, () =>
    chat(g, crowded.key, { ...BODY, max_tokens: 1_000 }).then(({ status }) => ended.push(status)),
  )
  // The rest of them waits in the line.
  await until(() => ended.length, 300 - 256)
  for (let wave = 0; wave < 4; wave++) {
    const calls = Array.from({ length: 100 }, () => chat(g, other.key, { ...BODY, max_tokens: UNGATED_TOKENS }))
    const answers = await Promise.all(calls)
    assert.deepEqual(
      answers.filter(({ status }) => status !== 200).map(({ body }) => body),
      [],
    )
  }
  assert.equal(ended.length, 300 - 256)
  resolve()
  gate = undefined
  assert.equal((await running).status, 200)
  await Promise.all(crowd)
  assert.deepEqual(new Set(ended), new Set([200, 402, 429]))
  assert.equal((await g.balance(crowded.id)).held, 0n)
})
