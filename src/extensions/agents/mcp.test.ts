// The tools as agents meet them: which are listed and how large the listing is, what answers and errors say, and what
// becomes of bytes that no client would send.
import { request } from 'node:http'
import { assert, not, pluck, test, testGateway, until } from '../../../test/gateway.ts'
import { connect, ERAS } from '../../../test/mcp/client.ts'

const g = testGateway()

type Result = { isError?: boolean; content: { text: string }[]; structuredContent?: any; _meta?: Record<string, any> }
const textOf = (result: unknown) => (result as Result).content[0]!.text
const metaOf = (result: unknown) => (result as Result)._meta ?? {}

/** A request as it stands on the wire, of the revisions before the newest. */
const raw = (key: string | undefined, body: unknown, path = '/mcp', headers: Record<string, string> = {}) =>
  g.call(path, key, body, {
    method: 'POST',
    headers: { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18', ...headers },
  })
const callOf = (name: string, args: object, id = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
})
/** The messages of a stream of events. */
const messages = async (answer: Response): Promise<any[]> =>
  [...(await answer.text()).matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data!))

for (const era of ERAS)
  test(`the listing is small enough for a model's context, and can be made smaller (${era})`, async () => {
    const { key } = await g.account()
    const list = async (path: string) => {
      const client = await connect(g.url, key, { era, path })
      const { tools } = await client.listTools()
      await client.close()
      return tools
    }
    const whole = await list('/mcp')
    const names = whole.map(({ name }) => name)
    assert.equal(new Set(names).size, names.length)
    for (const { name, description, inputSchema, outputSchema, annotations } of whole) {
      assert.match(name, /^[a-z][a-z0-9_]{2,63}$/)
      assert.ok((description ?? '').length > 40, name)
      assert.match(description ?? '', /credits|free|price|paid/i, `${name} does not say what it costs`)
      assert.equal(inputSchema.type, 'object')
      assert.ok(
        outputSchema && annotations?.readOnlyHint !== undefined && annotations.openWorldHint !== undefined,
        name,
      )
    }
    // Measured with o200k_base: 4.04 characters a token. Four make the bound a little stricter than it sounds.
    const tokens = (tools: unknown[]) => JSON.stringify(tools).length / 4
    assert.ok(tokens(whole) < 12_000, `${tokens(whole)} tokens`)
    const analytics = await list('/mcp/analytics')
    assert.equal(analytics.length, 27)
    assert.ok(tokens(analytics) < 9_000, `${tokens(analytics)} tokens`)
    assert.deepEqual(pluck(await list('/mcp/social'), 'name'), [
      'social_user_by_name',
      'social_user_by_id',
      'social_timeline',
    ])
    assert.deepEqual(pluck(await list('/mcp/media'), 'name'), [
      'generate_image',
      'create_video',
      'get_video',
      'wait_for_video',
    ])
    assert.deepEqual((await list('/mcp?tools=get_balance,website_ranks,nope')).map(({ name }) => name).sort(), [
      'get_balance',
      'website_ranks',
    ])
    const pair = await list('/mcp/discover')
    assert.deepEqual(pluck(pair, 'name'), ['find_tool', 'call_tool'])
    assert.ok(tokens(pair) < 400, `${tokens(pair)} tokens`)
  })

test('two tools find and call the others, and the row names the one that was called', async () => {
  const { key, id } = await g.account()
  const client = await connect(g.url, key, { path: '/mcp/discover' })
  const questions = {
    'which sites send visitors to a website': 'website_incoming_referrals',
    'bounce rate over the last months': 'website_history_bounce_rate',
    'latest tweets of a user': 'social_timeline',
    'make a picture from a prompt': 'generate_image',
    'keywords a website ranks for': 'website_keywords',
    'how much credit is left': 'get_balance',
  }
  for (const [query, expected] of Object.entries(questions)) {
    const found = (await client.callTool({ name: 'find_tool', arguments: { query } })) as Result
    const names = found.structuredContent.tools.map(({ name }: { name: string }) => name)
    assert.ok(names.includes(expected), `${query}: ${names}`)
  }
  const call = (name: string, args: object) =>
    client.callTool({ name: 'call_tool', arguments: { name, arguments: args } })
  const visits = (await call('website_visits', { keys: 'example.com' })) as Result
  assert.equal(metaOf(visits)['tollgate/charge'], '0.5')
  assert.ok(visits.structuredContent.Data['example.com'].TotalVisits > 0)
  assert.match(textOf(await call('nope', {})), /There is no tool "nope"/)
  assert.match(textOf(await call('website_visits', { keys: 'example.com', nope: 1 })), /"nope" is not a parameter/)
  assert.deepEqual(pluck(await g.calls(id), 'endpoint'), ['mcp:website_visits'])
  await client.close()
})

for (const era of ERAS)
  test(`models answer, draw and film, with notices of progress and links to what was made (${era})`, async () => {
    const { key, id } = await g.account()
    const client = await connect(g.url, key, { era })
    const call = async (name: string, args: Record<string, unknown>) =>
      (await client.callTool({ name, arguments: args })) as Result
    const answer = await call('ask_model', { model: 'gamma-v4-pro', prompt: 'Hello', system: 'Be brief.' })
    assert.match(answer.structuredContent.text, /\w/)
    const file = [{ type: 'file', file: { file_id: 'file-1' } }]
    assert.match(
      textOf(await call('ask_model', { model: 'gamma-v4-pro', prompt: 'Hi', system: file })),
      /system.* must be a text/,
    )
    assert.ok(textOf(answer).startsWith(answer.structuredContent.text))
    const image = await call('generate_image', { model: 'alpha-image-2', prompt: 'a gate', quality: 'low' })
    const link = image.content.find((part: any) => part.type === 'resource_link') as any
    assert.equal(link.uri, image.structuredContent.data[0].url)
    assert.equal((await fetch(link.uri)).headers.get('content-type'), 'image/png')
    const job = await call('create_video', { model: 'videogen-2.0', prompt: 'a gate opens' })
    const heard: (string | undefined)[] = []
    const done = (await client.callTool(
      { name: 'wait_for_video', arguments: { job_id: job.structuredContent.jobId } },
      { onprogress: ({ message }) => heard.push(message) },
    )) as Result
    assert.equal(done.structuredContent.status, 'COMPLETED')
    assert.equal(heard.at(-1), 'The job is COMPLETED.')
    const seen = await call('get_video', { job_id: job.structuredContent.jobId })
    assert.equal(seen.structuredContent.outputResult[0].url.length, 1)
    const other = await connect(g.url, (await g.account()).key, { era })
    const others = await other.callTool({ name: 'get_video', arguments: { job_id: job.structuredContent.jobId } })
    assert.match(textOf(others), /another account/)
    assert.deepEqual(pluck(await g.calls(id), 'endpoint'), ['mcp:ask_model', 'mcp:generate_image', 'mcp:create_video'])
    await client.close()
    await other.close()
  })

for (const era of ERAS)
  test(`models and prices can be read, and prompts name tools that there are (${era})`, async () => {
    const { key } = await g.account({ models: ['siteanalytics', 'socialapi', 'gamma-v4-pro'] })
    const client = await connect(g.url, key, { era })
    const { resources } = await client.listResources()
    assert.deepEqual(pluck(resources, 'uri'), ['tollgate://models', 'tollgate://tools'])
    const read = async (uri: string) => ((await client.readResource({ uri })).contents[0] as { text: string }).text
    assert.deepEqual(pluck(JSON.parse(await read('tollgate://models')).data, 'uid'), ['gamma-v4-pro', 'socialapi'])
    const prices = await read('tollgate://tools')
    assert.match(prices, /^- `website_visits`: Visits\. Costs 0\.5 credits a call\.$/m)
    assert.doesNotMatch(prices, /generate_image/)
    await assert.rejects(read('tollgate://nope'))
    const { tools } = await client.listTools()
    const names = tools.map(({ name }) => name)
    const { prompts } = await client.listPrompts()
    assert.ok(prompts.length >= 3)
    for (const { name, arguments: wanted = [] } of prompts) {
      const given = Object.fromEntries(wanted.map((one) => [one.name, 'example.com']))
      const { messages } = await client.getPrompt({ name, arguments: given })
      const { text } = messages[0]!.content as { text: string }
      assert.match(text, /example\.com/)
      for (const [tool] of text.matchAll(/\b(?:website|keyword|social)_\w+/g)) assert.ok(names.includes(tool), tool)
      await assert.rejects(client.getPrompt({ name }), /is required/)
    }
    await client.close()
  })

test('a page of a stranger cannot reach the server by a name of its own', async () => {
  const { key } = await g.account()
  const status = (host: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const headers = { host, authorization: `Bearer ${key}`, 'content-type': 'application/json', accept: '*/*' }
      const asked = request(`${g.url}/mcp`, { method: 'POST', headers }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      asked.on('error', reject)
      asked.end('{}')
    })
  for (const host of ['evil.example.com', 'evil.example.com:8080', 'localhost.evil.example'])
    assert.equal(await status(host), 403, host)
  for (const host of ['localhost', 'localhost:8080', '127.0.0.1', '[::1]:80', '10.0.0.7:80'])
    assert.notEqual(await status(host), 403, host)
})

test('long lists are cut for the reader, whole for programs, and say how to go on', async () => {
  const { key } = await g.account()
  const client = await connect(g.url, key)
  const call = async (name: string, args: Record<string, unknown>) =>
    (await client.callTool({ name, arguments: args })) as Result
  const links = await call('website_backlinks', { Key: 'example.com', PageSize: 40 })
  assert.equal(links.structuredContent.Records.length, 40)
  assert.match(textOf(links), /\| --- \|/)
  assert.match(textOf(links), /25 of 40 rows/)
  assert.deepEqual(metaOf(links)['tollgate/next'], { Page: 2 })
  assert.match(textOf(links), /More: call again with \{"Page":2\}/)
  const tweets = await call('social_timeline', { id: '49278066', max_results: 5 })
  const next = metaOf(tweets)['tollgate/next']
  assert.equal(next.pagination_token, tweets.structuredContent.meta.next_token)
  const more = await call('social_timeline', { id: '49278066', max_results: 5, ...next })
  assert.notDeepEqual(more.structuredContent.data, tweets.structuredContent.data)
  const fields = await call('social_user_by_name', {
    username: 'jack',
    'user.fields': ['created_at', 'public_metrics'],
  })
  assert.ok(fields.structuredContent.data.public_metrics)
  await client.close()
})

test('one request id for the request and its call, and one for each call of a batch', async () => {
  const { key, id } = await g.account()
  const one = await raw(key, callOf('website_ranks', { keys: 'example.com' }))
  const [message] = await messages(one)
  assert.equal(message.result._meta['tollgate/requestId'], one.headers.get('x-request-id'))
  const batch = [1, 2, 3].map((n) => callOf('website_ranks', { keys: `site${n}.example` }, n))
  const answers = await messages(await raw(key, batch, '/mcp', { 'mcp-protocol-version': '2025-03-26' }))
  assert.equal(new Set(answers.map(({ result }) => result._meta['tollgate/requestId'])).size, 3)
  const many = await raw(
    key,
    Array.from({ length: 21 }, (_, n) => callOf('website_ranks', {}, n)),
  )
  assert.equal(many.status, 400)
  assert.equal((await g.calls(id)).length, 4)
})

test('no key, no answer; and what no client would send gets a clear refusal, with nothing held', async () => {
  const { key, id } = await g.account()
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  for (const bad of [undefined, 'tg_live_nope', `tg_live_${'a'.repeat(38)}`]) {
    const answer = await raw(bad, list)
    assert.equal(answer.status, 401)
    assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer/)
  }
  assert.equal((await g.call('/mcp', undefined, list, { headers: { 'x-api-key': key, accept: '*/*' } })).status, 406)
  for (const method of ['GET', 'DELETE'])
    assert.equal((await g.call('/mcp', key, undefined, { method })).status, 405, method)
  const deep = `${'['.repeat(5000)}${']'.repeat(5000)}`
  const wrong: [unknown, number][] = [
    ['', 400],
    ['{', 400],
    ['null', 400],
    ['"text"', 400],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list","id":2}', 400],
    [`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quote","arguments":{"tool":${deep}}}}`, 400],
    [{ jsonrpc: '2.0', id: 1, method: 'nope' }, 200],
    [{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 7 } }, 200],
    [{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} }, 200],
  ]
  for (const [body, status] of wrong) {
    const answer = await raw(key, body)
    const text = await answer.text()
    assert.equal(answer.status, status, `${JSON.stringify(body).slice(0, 80)}: ${text}`)
    assert.match(text, /error/)
    assert.doesNotMatch(text, /node_modules|\bat \w+ \(/)
  }
  const huge = callOf('quote', { tool: 'x'.repeat(17 * 1024 * 1024) })
  assert.equal((await raw(key, huge)).status, 413)
  const surprises: [string, object][] = [
    ['website_visits', { keys: ['example.com'] }],
    ['website_visits', { keys: { a: 1 } }],
    ['website_visits', { keys: 'a\r\nb' }],
    ['website_visits', { __proto__: null, keys: null }],
    ['ask_model', { model: 'alpha-5.4', prompt: 7 }],
    ['ask_model', { model: 'alpha-5.4', prompt: 'x', messages: [] }],
    ['generate_image', { model: 'alpha-image-2', prompt: 'x', stream: true }],
    ['generate_image', { model: 'alpha-image-2', prompt: 'x', image_urls: ['http://127.0.0.1:1/x.png'] }],
    ['create_video', { model: 'videogen-2.0', prompt: 'x', callback_url: 'http://127.0.0.1:1/' }],
    ['wait_for_video', { job_id: 'x' }],
    ['wait_for_video', { job_id: '1', timeout_seconds: 1e9 }],
    ['call_tool', { name: 'website_visits', arguments: [] }],
    ['quote', { tool: 'get_balance' }],
    ['list_models', { type: 7 }],
  ]
  for (const [name, args] of surprises) {
    const [message] = await messages(await raw(key, callOf(name, args)))
    assert.equal(message.result?.isError, true, `${name}: ${JSON.stringify(message)}`)
    assert.notEqual(message.result._meta['tollgate/error'].kind, 'internal', name)
  }
  const [unknown] = await messages(await raw(key, callOf('nope', {})))
  assert.equal(unknown.error.code, -32602)
  await g.settled()
  assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n, held: 0n })
})

test('who leaves in the middle of a call leaves no hold behind, and its vendor is not kept waiting', async () => {
  const { key, id } = await g.account()
  const leave = new AbortController()
  const seen = g.sandbox.seen.requests
  const gone = assert.rejects(
    g
      .call('/mcp', key, callOf('ask_model', { model: 'alpha-5.4', prompt: 'Hello [[stall]]' }), {
        signal: leave.signal,
        headers: { accept: 'application/json, text/event-stream' },
      })
      .then((answer) => answer.text()),
  )
  await until(() => g.sandbox.seen.requests, not(seen))
  assert.notEqual((await g.balance(id)).held, 0n)
  leave.abort()
  await gone
  await g.settled()
  assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n, held: 0n })
})
