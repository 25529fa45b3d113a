import { assert, atOnce, pluck, test, testGateway } from '../../../test/gateway.ts'
import type { PurseMargins, PurseMovement, PurseStatement, PurseView } from './views.ts'

const g = testGateway({ isShared: true })
const BODY = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 50 }

async function api<T>(method: string, path: string, key: string, body?: unknown, headers = {}) {
  const answer = await g.call(path, key, body, { method, headers })
  const { data, error } = (await answer.json()) as { data: T; error?: { message: string } }
  return { status: answer.status, data, message: error?.message ?? '' }
}

/** A call in the name of a purse: its status, its charge in millionths of a credit, and what it is told. */
async function call(key: string, purse: string, body: object = BODY, headers = {}) {
  const answer = await g.call('/v1/chat/completions', key, body, { headers: { 'x-tollgate-purse': purse, ...headers } })
  const said = await answer.text()
  return { status: answer.status, charge: micro(answer.headers.get('x-tollgate-charge') ?? '0'), said, answer }
}

const micro = (credits: string) => BigInt(Math.round(Number(credits) * 1e6))
const purseOf = async (key: string, id: string) => (await api<PurseView>('GET', `/v1/purses/${id}`, key)).data
const create = (key: string, body: object) => api<PurseView>('POST', '/v1/purses', key, body)

async function settledBalance(account: string): Promise<bigint> {
  await g.settled()
  return (await g.balance(account)).posted
}

test('a call of a customer is charged to its purse and to its account', async () => {
  const { id: account, key } = await g.account({ credits: 10_000_000n })
  const made = await create(key, { id: 'cust-1', name: 'Ann', credits: '5' })
  assert.deepEqual([made.status, made.data.balance, made.data.held], [200, '5', '0'])
  const { status, charge, said, answer } = await call(key, 'cust-1')
  assert.equal(status, 200, said)
  assert.ok(charge > 0n)
  assert.equal(await settledBalance(account), 10_000_000n - charge)
  const purse = await purseOf(key, 'cust-1')
  assert.deepEqual([micro(purse.balance), purse.held], [5_000_000n - charge, '0'])
  const { data } = await api<{ items: PurseMovement[] }>('GET', '/v1/purses/cust-1/movements', key)
  assert.deepEqual(pluck(data.items, 'kind'), ['settled', 'grant'])
  assert.equal(data.items[0]?.requestId, answer.headers.get('x-request-id'))
  assert.deepEqual(await g.problems(), [])
})

test('a call without a purse is as it was, and has none', async () => {
  const { key } = await g.account()
  await create(key, { id: 'ann', credits: '5' })
  const answer = await g.call('/v1/chat/completions', key, BODY)
  assert.equal(answer.status, 200, await answer.text())
  assert.equal((await purseOf(key, 'ann')).balance, '5')
})

test('the same customer has one purse, however often and at once it is created, and is given its first credits once', async () => {
  const { key } = await g.account()
  const all = await atOnce(8, () => create(key, { id: 'ann', credits: '3' }))
  assert.deepEqual(new Set(all.map(({ status }) => status)), new Set([200]))
  assert.equal((await purseOf(key, 'ann')).balance, '3')
})

test('a purse that cannot pay refuses the call and nothing is lost, also where the account could', async () => {
  const { id: account, key } = await g.account({ credits: 100_000_000n })
  await create(key, { id: 'poor', credits: '0.000001' })
  const { status, said, answer } = await call(key, 'poor')
  assert.equal(status, 402, said)
  assert.match(said, /The purse \\"poor\\" has too little: this call needs [\d.]+ credits, 0\.000001 are available/)
  assert.equal(answer.headers.get('x-tollgate-available'), '0.000001')
  assert.equal(await settledBalance(account), 100_000_000n)
  assert.equal((await purseOf(key, 'poor')).balance, '0.000001')
})

test('an account that cannot pay refuses the call, also where the purse could', async () => {
  const { key } = await g.account({ credits: 1n })
  await create(key, { id: 'rich', credits: '100' })
  assert.equal((await call(key, 'rich')).status, 402)
  const purse = await purseOf(key, 'rich')
  assert.deepEqual([purse.balance, purse.held], ['100', '0'])
})

test('a call without an output limit gets what the purse has', async () => {
  const { key } = await g.account({ credits: 1_000_000_000n })
  await create(key, { id: 'ann', credits: '0.5' })
  const { max_tokens: _, ...open } = BODY
  const { status, said } = await call(key, 'ann', open)
  assert.equal(status, 200, said)
  await g.settled()
  assert.ok(micro((await purseOf(key, 'ann')).balance) >= 0n)
  assert.deepEqual(await g.problems(), [])
})

test('a purse that is unknown, of another account, frozen or closed is refused with words of its own', async () => {
  const { key } = await g.account()
  const other = await g.account()
  await create(other.key, { id: 'theirs', credits: '5' })
  await create(key, { id: 'ann', credits: '5' })
  const unknown = await call(key, 'theirs')
  assert.deepEqual([unknown.status, /There is no purse/.test(unknown.said)], [404, true])
  assert.equal((await api('GET', '/v1/purses/theirs', key)).status, 404)
  await api('PATCH', '/v1/purses/ann', key, { status: 'frozen', note: 'chargeback' })
  const frozen = await call(key, 'ann')
  assert.deepEqual([frozen.status, /is frozen/.test(frozen.said)], [403, true])
  await api('PATCH', '/v1/purses/ann', key, { status: 'open' })
  assert.equal((await call(key, 'ann')).status, 200)
  await g.settled()
  const closed = await api<PurseView>('PATCH', '/v1/purses/ann', key, { status: 'closed' })
  assert.deepEqual([closed.data.status, closed.data.balance], ['closed', '0'])
  assert.equal((await call(key, 'ann')).status, 403)
  assert.equal((await api('PATCH', '/v1/purses/ann', key, { status: 'open' })).status, 409)
  assert.equal((await api('POST', '/v1/purses/ann/grants', key, { credits: '1' })).status, 409)
  assert.equal((await call(key, 'no such/name')).status, 400)
  assert.deepEqual(await g.problems(), [])
})

test('more than is free is not taken back, and a grant with a reference is made once', async () => {
  const { key } = await g.account()
  await create(key, { id: 'ann', credits: '5' })
  const grants = '/v1/purses/ann/grants'
  const above = await api('POST', grants, key, { credits: '-5.000001' })
  assert.deepEqual([above.status, /Only 5 credits can be taken back/.test(above.message)], [409, true])
  const paid = { credits: '2', kind: 'topup', reference: 'order-7' }
  const all = await atOnce(5, () => api<PurseView>('POST', grants, key, paid))
  assert.deepEqual(new Set(all.map(({ data }) => data.balance)), new Set(['7']))
  assert.equal((await api('POST', grants, key, { ...paid, credits: '3' })).status, 409)
  const byKey = { 'idempotency-key': 'again' }
  await api('POST', grants, key, { credits: '-1' }, byKey)
  assert.equal((await api<PurseView>('POST', grants, key, { credits: '-1' }, byKey)).data.balance, '6')
  for (const body of [{ credits: '0' }, { credits: 'x' }, {}, { credits: '1', other: 1 }])
    assert.equal((await api('POST', grants, key, body)).status, 400, JSON.stringify(body))
  for (const body of [{ id: 'a b' }, { id: '' }, {}, { id: 'x'.repeat(65) }, { id: 'ok', credits: '-1' }])
    assert.equal((await create(key, body)).status, 400, JSON.stringify(body))
  assert.deepEqual(await g.problems(), [])
})

test('a key that is restricted does not manage purses', async () => {
  const { id, key } = await g.account()
  const { key: restricted } = await g.key(id, { models: ['alpha-5.4'] })
  await create(key, { id: 'ann', credits: '5' })
  assert.equal((await api('GET', '/v1/purses', restricted)).status, 403)
  assert.equal((await api('GET', '/v1/purses', 'tg_live_nothing')).status, 401)
  assert.equal((await call(restricted, 'ann')).status, 200)
})

test('many calls at once spend a purse to nothing and never below', async () => {
  const { key } = await g.account({ credits: 1_000_000_000n })
  await create(key, { id: 'ann', credits: '0.3' })
  const all = await atOnce(20, () => call(key, 'ann'))
  const statuses = new Set(all.map(({ status }) => status))
  assert.ok(
    [...statuses].every((status) => status === 200 || status === 429 || status === 402),
    [...statuses].join(),
  )
  await g.settled()
  const spent = all.reduce((sum, { status, charge }) => (status === 200 ? sum + charge : sum), 0n)
  assert.equal(micro((await purseOf(key, 'ann')).balance), 300_000n - spent)
  assert.deepEqual(await g.problems(), [])
})

test('customers pay the markup, models their own prices, and the statement and the margins say so to the millionth', async () => {
  const { id: account, key } = await g.account({ credits: 1_000_000_000n })
  await create(key, { id: 'ann', name: 'Ann', credits: '50' })
  const set = await g.operator<{ version: number }>('PUT', `/accounts/${account}/purse-prices`, {
    markupPercent: '12.5',
    models: [
      {
        model: 'alpha-5.5',
        prices: [
          { upTo: 10, input: '1', output: '1' },
          { input: '1000', output: '6000' },
        ],
      },
    ],
  })
  assert.deepEqual([set.status, set.data.version], [200, 1])
  // Prices of a moment ago may still be known.
  await g.gateway.opened
  const plain = await call(key, 'ann')
  assert.equal(plain.status, 200, plain.said)
  const own = await call(key, 'ann', { ...BODY, model: 'alpha-5.5' })
  assert.equal(own.status, 200, own.said)
  assert.equal(await settledBalance(account), 1_000_000_000n - plain.charge - own.charge)
  const { prompt_tokens: read, completion_tokens: wrote } = (JSON.parse(own.said) as { usage: Record<string, number> })
    .usage as { prompt_tokens: number; completion_tokens: number }
  const marked = (plain.charge * 1_125_000n + 999_999n) / 1_000_000n
  const rated = read > 10 ? BigInt(read * 1_000 + wrote * 6_000) : BigInt(read + wrote)
  const purse = await purseOf(key, 'ann')
  assert.equal(micro(purse.balance), 50_000_000n - marked - rated)
  const statement = (await api<PurseStatement>('GET', '/v1/purses/ann/statement', key)).data
  assert.deepEqual(statement.lines.map(({ product, list, calls }) => [product, list, calls]).toSorted(), [
    ['alpha-5.4', 1, 1],
    ['alpha-5.5', 1, 1],
  ])
  assert.equal(micro(statement.spent), marked + rated)
  assert.deepEqual([statement.opening, statement.granted, statement.closing], ['0', '50', purse.balance])
  const { data } = await g.operator<PurseMargins>('GET', `/accounts/${account}/purse-margins`)
  assert.deepEqual(
    [data.calls, micro(data.sold), micro(data.paid), micro(data.margin)],
    [2, marked + rated, plain.charge + own.charge, marked + rated - plain.charge - own.charge],
  )
  assert.deepEqual(pluck(data.purses, 'purse', 'name'), [['ann', 'Ann']])
  assert.deepEqual(await g.problems(), [])
})

test('price lists that would sell for nothing or that nobody can read are refused with the reason', async () => {
  const { id } = await g.account()
  const put = (body: object) => g.operator<{ message: string }>('PUT', `/accounts/${id}/purse-prices`, body)
  for (const [body, said] of [
    [{ markupPercent: '-101' }, /percentage/],
    [{ markupPercent: '1.00001' }, /decimals/],
    [{ models: [{ model: 'nothing', prices: [{ input: '1' }] }] }, /there is no model "nothing"/],
    [{ models: [{ model: 'alpha-5.4' }] }, /must name "markupPercent" or "prices"/],
    [{ models: [{ model: 'alpha-5.4', prices: [{ upTo: 10, input: '1' }] }] }, /the last one must have no "upTo"/],
    [{ models: [{ model: 'alpha-5.4', prices: [{ image: '1' }] }] }, /are not counted by "image" here/],
    [{ models: [{ model: 'alpha-5.4', prices: [{ input: '-1' }] }] }, /decimal amount/],
  ] as const) {
    const { status, data } = await put(body)
    assert.deepEqual([status, said.test(data.message)], [400, true], `${JSON.stringify(body)}: ${data.message}`)
  }
})

test('purses are listed with a search and as a table', async () => {
  const { id: account, key } = await g.account()
  for (const [id, name] of [
    ['a1', 'Ann'],
    ['a2', 'Bob_x'],
    ['b1', 'ann-marie'],
  ] as const)
    await create(key, { id, name })
  const list = async (query: string) =>
    (await g.operator<{ items: PurseView[]; next: string | null }>('GET', `/accounts/${account}/purses?${query}`)).data
  assert.deepEqual(pluck((await list('search=ANN')).items, 'id'), ['a1', 'b1'])
  assert.deepEqual(pluck((await list('search=_')).items, 'id'), ['a2'])
  assert.deepEqual([(await list('limit=2')).next, (await list('limit=2&cursor=a2')).items[0]?.id], ['a2', 'b1'])
  const csv = await g.call('/v1/purses', key, undefined, { headers: { accept: 'text/csv' } })
  assert.match(await csv.text(), /^id,name,status,balance.*\r\na1,Ann,open,0/)
})

test('a customer that paid enough in a month gets the discount for that from the next call on, also of many calls at once', async () => {
  const { id: account, key } = await g.account({ credits: 100_000_000n })
  await create(key, { id: 'ann', credits: '50' })
  const first = await call(key, 'ann')
  const from = (first.charge * 5n) / 2n
  const put = (volume: object[]) => g.operator('PUT', `/accounts/${account}/purse-prices`, { markupPercent: 0, volume })
  for (const wrong of [
    [{ from: '0', discountPercent: '5' }],
    [{ from: '1', discountPercent: '-5' }],
    [{ from: '1', discountPercent: '101' }],
    [
      { from: '2', discountPercent: '5' },
      { from: '2', discountPercent: '6' },
    ],
  ])
    assert.equal((await put(wrong)).status, 400)
  const tiers = [
    { from: String(Number(from) / 1e6), discountPercent: '10' },
    { from: String(Number(from * 2n) / 1e6), discountPercent: '50' },
  ]
  assert.equal((await put(tiers)).status, 200)
  await atOnce(10, async () => assert.equal((await call(key, 'ann')).status, 200))
  await g.settled()
  const rows = await g.sql<{ amount: bigint; charged: bigint }>(
    `select amount, charged from purse_movement where account_id = $1 and kind = 'settled' order by moved_at`,
    [account],
  )
  let volume = 0n
  const percents = rows.map(({ amount, charged }) => {
    const percent = volume >= from * 2n ? 50n : volume >= from ? 90n : 100n
    volume += amount
    assert.equal(amount, (charged * percent + 99n) / 100n)
    return percent
  })
  assert.deepEqual(new Set(percents), new Set([100n, 90n, 50n]))
  assert.deepEqual(await g.problems(), [])
  // Another month begins without it.
  const paid = await g.sql(
    `select purse_volume(p, now()) as now, purse_volume(p, now() + interval '1 month') as next from purse p where account_id = $1`,
    [account],
  )
  assert.deepEqual(paid, [{ now: volume, next: 0n }])
})
