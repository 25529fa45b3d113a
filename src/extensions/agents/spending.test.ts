// Spending by agents: what a call may cost, who is asked, what a limit says, and calls that are repeated.
import { assert, atLeast, BY, OPERATOR_TOKEN, test, testGateway, until } from '../../../test/gateway.ts'
import { connect } from '../../../test/mcp/client.ts'

const g = testGateway()

type Result = { isError?: boolean; content: { text: string }[]; structuredContent?: any; _meta?: Record<string, any> }
const textOf = (result: unknown) => (result as Result).content[0]!.text
const metaOf = (result: unknown) => (result as Result)._meta ?? {}

test('a call that may cost more than max_cost, or more than there is, costs nothing and says what to do', async () => {
  const { key, id } = await g.account({ credits: 400_000n })
  const client = await connect(g.url, key)
  const call = async (args: Record<string, unknown>, name = 'website_visits') =>
    (await client.callTool({ name, arguments: { keys: 'example.com', ...args } })) as Result
  assert.match(textOf(await call({ max_cost: 0.2 })), /up to 0\.5 credits.*max_cost of 0\.2/)
  assert.match(textOf(await call({ max_cost: 'much' })), /"max_cost" must be an amount/)
  const short = await call({})
  assert.equal(short.isError, true)
  assert.match(textOf(short), /needs 0\.5 credits, 0\.4 are available.*Nothing was charged/)
  assert.equal(metaOf(await call({ max_cost: '0.3' }, 'website_ranks'))['tollgate/charge'], '0.3')
  const quote = (await client.callTool({
    name: 'quote',
    arguments: { tool: 'website_ranks', arguments: { keys: 'example.com' } },
  })) as Result
  assert.equal(quote.structuredContent.costAtMost, '0.3')
  assert.equal(quote.structuredContent.affordable, false)
  const asked = { tool: 'ask_model', arguments: { model: 'alpha-5.4', prompt: 'Hello', max_tokens: 10 } }
  const ask = (await client.callTool({ name: 'quote', arguments: asked })) as Result
  assert.equal(ask.structuredContent.endpoint, 'chat')
  await g.settled()
  assert.equal((await g.balance(id)).posted, 100_000n)
  await client.close()
})

test('what each agent spent is summed by its session or its name, and its calls are found by it', async () => {
  const { key, id } = await g.account()
  const visits = { name: 'website_visits', arguments: { keys: 'example.com' } }
  for (const name of ['lighthouse', 'lighthouse', 'beacon']) {
    const client = await connect(g.url, key, { name })
    await client.callTool(visits)
    await client.close()
  }
  const video = await connect(g.url, key, { name: 'filmer' })
  await video.callTool({ name: 'create_video', arguments: { model: 'videogen-2.0', prompt: 'a gate' } })
  await video.close()
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: visits }
  const headers = { accept: 'application/json, text/event-stream', 'mcp-session-id': 'session-7' }
  const legacy = await g.call('/mcp', key, body, { headers })
  assert.equal(legacy.status, 200, await legacy.text())
  await g.settled()
  const sums = async () =>
    ((await (await g.call(`/admin/v1/accounts/${id}/usage-by-client`, OPERATOR_TOKEN)).json()) as any).data.items
  await until(async () => (await sums()).length, atLeast(4))
  const all = Object.fromEntries((await sums()).map((one: any) => [one.client, [one.requests, Number(one.charged)]]))
  assert.deepEqual(Object.keys(all).sort(), ['beacon', 'filmer', 'lighthouse', 'session-7'])
  assert.deepEqual(all.lighthouse, [2, 1])
  assert.ok(all.filmer[1] > 0)
  const rows = (await (await g.call(`/admin/v1/accounts/${id}/usage?client=lighthouse`, OPERATOR_TOKEN)).json()) as any
  assert.equal(rows.data.items.length, 2)
  assert.ok(rows.data.items.every((row: any) => row.client === 'lighthouse'))
})

test('a limit says when to come back, and is the same limit for tools and endpoints', async () => {
  const account = await g.account()
  await g.gateway.accounts.change(account.id, { limits: { requestsPerMinute: 2 } }, BY)
  const client = await connect(g.url, account.key)
  const visits = { name: 'website_visits', arguments: { keys: 'example.com' } }
  assert.equal((await g.call('/v1/siteanalytics/websites/visits?keys=example.com', account.key)).status, 200)
  assert.equal(((await client.callTool(visits)) as Result).isError, undefined)
  const limited = await client.callTool(visits)
  assert.match(textOf(limited), /2 requests per minute\. Try again in \d+ s\. Nothing was charged/)
  const { kind, retryAfterSeconds } = metaOf(limited)['tollgate/error']
  assert.equal(kind, 'rate_limited')
  assert.ok(retryAfterSeconds >= 1 && retryAfterSeconds <= 61)
  await client.close()
})

test('an idempotency key makes a call safe to repeat: one charge, the same answer, by any tool', async () => {
  const { key, id } = await g.account()
  const client = await connect(g.url, key)
  const keyed = (name: string, args: Record<string, unknown>, idempotencyKey: unknown) =>
    client.callTool({ name, arguments: args, _meta: { 'tollgate/idempotencyKey': idempotencyKey } }) as Promise<Result>
  for (const [name, args] of [
    ['website_visits', { keys: 'example.com' }],
    ['ask_model', { model: 'alpha-5.4', prompt: 'Hello' }],
    ['create_video', { model: 'videogen-2.0', prompt: 'a gate' }],
  ] as const) {
    const first = await keyed(name, args, `key of ${name}`)
    const before = await g.balance(id)
    const second = await keyed(name, args, `key of ${name}`)
    assert.deepEqual(second.structuredContent, first.structuredContent)
    assert.equal(metaOf(second)['tollgate/charge'], '0')
    if (name !== 'create_video') assert.deepEqual(await g.balance(id), before)
  }
  const other = await keyed('website_visits', { keys: 'other.example' }, 'key of website_visits')
  assert.match(textOf(other), /different request/)
  assert.match(textOf(await keyed('website_visits', { keys: 'example.com' }, 7)), /must be a text/)
  assert.equal((await g.sql('select id from job where account_id = $1', [id])).length, 1)
  await client.close()
})

test('above the price that the user set a client asks first, and where it cannot ask the call is refused', async () => {
  const { key, id } = await g.account()
  const path = '/mcp?confirm_above=0.3'
  const visits = { name: 'website_visits', arguments: { keys: 'example.com' } }
  let asked: string[] = []
  const answering = async (agree: boolean) => {
    asked = []
    return connect(g.url, key, {
      path,
      elicit(message) {
        asked.push(message)
        return { action: 'accept', content: { agree } }
      },
    })
  }
  const willing = await answering(true)
  assert.equal(metaOf(await willing.callTool(visits))['tollgate/charge'], '0.5')
  assert.deepEqual(asked, ['This call may cost up to 0.5 credits. Make it?'])
  assert.equal(((await willing.callTool({ ...visits, name: 'website_ranks' })) as Result).isError, undefined)
  assert.equal(asked.length, 1)
  const unwilling = await answering(false)
  assert.match(textOf(await unwilling.callTool(visits)), /did not agree/)
  const silent = await connect(g.url, key, { path })
  assert.match(textOf(await silent.callTool(visits)), /cannot ask/)
  // What a call says for itself the model may have written.
  const named = await silent.callTool({ ...visits, arguments: { keys: 'example.com', max_cost: 0.5 } })
  assert.match(textOf(named), /cannot ask/)
  const nonsense = await connect(g.url, key, { path: '/mcp?confirm_above=much' })
  assert.match(textOf(await nonsense.callTool(visits)), /"confirm_above" in the address must be an amount/)
  await g.settled()
  assert.equal((await g.balance(id)).posted, 1_000_000_000n - 800_000n)
  await Promise.all([willing, unwilling, silent, nonsense].map((client) => client.close()))
})
