// Applications that share an account by restricted keys: none sees or touches what another one made with what it may
// not use.
import OpenAI, { toFile } from 'openai'
import { type EndpointSpec, exampleBody, isDataEndpoint } from '../src/catalog/endpoint.ts'
import { accessNameOf } from '../src/catalog/endpoint-access.ts'
import { assert, OFFERED, offers, pluck, test, testGateway, until, WITH_EXTENSIONS, whereOffered } from './gateway.ts'
import { connect } from './mcp/client.ts'
import { openSocket } from './socket-client.ts'

type Made = { readonly id: string; readonly key: string }

let made: Made
/** What the application without a restriction made, by the first part of an endpoint's id. */
let ids: Record<string, string[]>
const g = testGateway({}, async () => {
  made = await g.account()
  ids = await makeAll(made.key)
})
const client = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${g.url}/v1`, maxRetries: 0 })
const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: { model: 'alpha-5.4', messages: [] } }
const upload = async (key: string) =>
  client(key).files.create({ file: await toFile(Buffer.from(JSON.stringify(line)), 'a.jsonl'), purpose: 'batch' })

async function makeAll(key: string): Promise<Record<string, string[]>> {
  const openai = client(key)
  const job = await g.call('/v1/video/seedance', key, { model: 'videogen-2.0', prompt: 'a lighthouse' })
  const { data } = (await job.json()) as { data: { jobId: string } }
  // A test below counts what reaches vendors, and this one asks for it again and again.
  await until(async () => (await g.call(`/v1/jobs/${data.jobId}`, key)).text(), /"status":"(?:COMPLETED|FAILED)"/)
  const stored = await openai.responses.create({ model: 'alpha-5.4', input: 'A secret.', store: true })
  const { later = [], ...added } = WITH_EXTENSIONS.skip ? {} : await makeInBackground(key)
  return { ...added, jobs: [data.jobId], videos: [`video_${data.jobId}`], responses: [stored.id, ...later] }
}

async function makeInBackground(key: string): Promise<Record<string, string[]>> {
  const openai = client(key)
  const file = await upload(key)
  const order = { endpoint: '/v1/chat/completions', completion_window: '24h' } as const
  const batch = await openai.batches.create({ ...order, input_file_id: file.id })
  const later = await openai.responses.create({ model: 'alpha-5.4', input: 'A secret.', background: true })
  const params = { model: 'beta-haiku-4-5', max_tokens: 10, messages: [{ role: 'user', content: 'A secret.' }] }
  const conversation = await openai.conversations.create({ metadata: { model: 'alpha-5.4' } })
  const messages = await g.call('/v1/messages/batches', key, { requests: [{ custom_id: 'a', params }] })
  return {
    messages: [((await messages.json()) as { id: string }).id],
    files: [file.id],
    batches: [batch.id],
    later: [later.id],
    conversations: [conversation.id],
  }
}

/**
 * Endpoints of what is kept for a caller: whatever has an id in its address that is no model's and no vendor's data.
 */
const kept = OFFERED.filter(
  (spec) => spec.path.includes('{id}') && !isDataEndpoint(spec) && !spec.id.startsWith('models'),
)

for (const models of [['siteanalytics'], ['beta-haiku-4-5', 'alpha-image-2'], [], ['alpha-5.4', 'videogen-2.0']])
  test(`a key restricted to [${models}] finds nothing that another application made, at any address`, async () => {
    const { key } = await g.key(made.id, { models })
    const wrong: string[] = []
    for (const { id: name, method, path, aliases } of kept) {
      const all = ids[name.split('/')[0] ?? '']
      assert.ok(all, `${name}: this test has to make one first`)
      for (const address of [path, ...aliases])
        for (const id of all) {
          const url = address.replace('{id}', id).replace('{item}', 'msg_1')
          const body = method === 'POST' ? { metadata: {}, items: [] } : undefined
          const answer = await g.call(url, key, body, { method })
          const told = await answer.text()
          // Of a job that is not there the contract says so with its own status.
          if (answer.ok || !/not found|no .*with this id|does not exist|unknown|There is no/i.test(told))
            wrong.push(`${method} ${url}: ${answer.status} ${told}`)
        }
    }
    const lists = OFFERED.filter(({ id }) => /^(?:files|batches|messages\/batches|jobs)$/.test(id))
    for (const { path: list } of lists) {
      const { data } = (await (await g.call(list, key)).json()) as { data: unknown[] }
      if (data.length > 0) wrong.push(`${list}: ${JSON.stringify(data)}`)
    }
    assert.deepEqual(wrong, [])
    for (const input_file_id of ids.files ?? []) {
      const order = { endpoint: '/v1/chat/completions', completion_window: '24h', input_file_id }
      assert.equal((await g.call('/v1/batches', key, order)).status, 400, 'a foreign file is nobody’s input')
    }
    // Nothing was changed by all that.
    const read = WITH_EXTENSIONS.skip ? ['jobs'] : ['files', 'batches', 'jobs', 'responses', 'conversations']
    for (const one of read)
      for (const id of ids[one] ?? []) assert.equal((await g.call(`/v1/${one}/${id}`, made.key)).status, 200, one)
  })

test('a restricted key goes on from no response or conversation that another key made', async () => {
  const [response] = ids.responses!
  const goingOn = [
    { previous_response_id: response },
    ...(ids.conversations ?? []).map((conversation) => ({ conversation })),
  ]
  const input = 'What did I say?'
  g.sandbox.seen.clear()
  for (const models of [['alpha-5.5'], ['alpha-5.4', 'alpha-5.5']]) {
    const { key } = await g.key(made.id, { models })
    const refused = async (path: string, over: object) => {
      const answer = await g.call(path, key, { model: models[0], input, ...over })
      assert.ok(!answer.ok, JSON.stringify(over))
      assert.match(await answer.text(), /not found/i)
    }
    for (const over of goingOn) await refused('/v1/responses', over)
    await refused('/v1/responses/compact', { previous_response_id: response })
    if (WITH_EXTENSIONS.skip) continue
    const socket = await openSocket(`${g.url}/v1/responses`, { key })
    socket.send({ type: 'response.create', model: models[0], input, previous_response_id: response })
    assert.match(JSON.stringify(await socket.next('error')), /not found/i)
    socket.ws.close()
  }
  assert.equal(g.sandbox.seen.requests, 0)
  for (const over of goingOn)
    assert.equal((await g.call('/v1/responses', made.key, { model: 'alpha-5.4', input, ...over })).status, 200)
})

test('a restricted key sees what it made', async () => {
  const video = await g.key(made.id, { models: ['videogen-2.0'] })
  const job = await g.call('/v1/video/seedance', video.key, { model: 'videogen-2.0', prompt: 'a lighthouse' })
  const { jobId } = ((await job.json()) as { data: { jobId: string } }).data
  assert.equal((await g.call(`/v1/jobs/${jobId}`, video.key)).status, 200)
  const { data } = (await (await g.call('/v1/jobs', video.key)).json()) as { data: { id: string }[] }
  assert.deepEqual(pluck(data, 'id'), [jobId])
  // The next test counts what reaches vendors.
  await until(async () => (await g.call(`/v1/jobs/${jobId}`, video.key)).text(), /"status":"(?:COMPLETED|FAILED)"/)
})

test('a restricted key sees the files and batches that it made', WITH_EXTENSIONS, async () => {
  const video = await g.key(made.id, { models: ['videogen-2.0'] })
  const file = await upload(video.key)
  assert.deepEqual(pluck((await client(video.key).files.list()).data, 'id'), [file.id])
  const order = { endpoint: '/v1/chat/completions', completion_window: '24h', input_file_id: file.id } as const
  const batch = await client(video.key).batches.create(order)
  assert.deepEqual(pluck((await client(video.key).batches.list()).data, 'id'), [batch.id])
  assert.ok((await client(made.key).files.list()).data.length >= 2, 'a key without a restriction sees all')
  assert.equal((await client(video.key).files.delete((await upload(video.key)).id)).deleted, true)
  // The next test counts what reaches vendors.
  await until(async () => (await client(video.key).batches.retrieve(batch.id)).status, /completed|failed/)
})

test('no tool answers that is not offered to the key, however it is called', WITH_EXTENSIONS, async () => {
  const all = await connect(g.url, made.key, { path: '/mcp' })
  const { tools } = await all.listTools()
  await all.close()
  const { key } = await g.key(made.id, { models: ['siteanalytics'] })
  const own = await connect(g.url, key)
  const offered = new Set((await own.listTools()).tools.map(({ name }) => name))
  const hidden = tools.map(({ name }) => name).filter((name) => !offered.has(name))
  assert.ok(hidden.includes('get_video') && hidden.includes('ask_model'))
  const args = { job_id: ids.jobs![0], model: 'alpha-5.4', prompt: 'Hi.', id: '1', username: 'a' }
  const wrong: string[] = []
  g.sandbox.seen.clear()
  for (const name of hidden) {
    const direct = await own.callTool({ name, arguments: args }).catch((error: Error) => ({ isError: error.message }))
    // What is paid answers in the words of its endpoint.
    if (!direct.isError) wrong.push(`${name}: ${JSON.stringify(direct)}`)
    for (const [via, given] of [
      ['call_tool', { name, arguments: args }],
      ['quote', { tool: name, arguments: args }],
    ] as const) {
      const answer = await own.callTool({ name: via, arguments: given })
      if (answer.isError !== true) wrong.push(`${via} ${name}: ${JSON.stringify(answer)}`)
    }
  }
  await own.close()
  assert.deepEqual(wrong, [])
  assert.deepEqual(
    g.sandbox.seen.calls.map(({ method, url }) => `${method} ${url}`),
    [],
  )
})

// Keys that may use certain endpoints only.

const exampleOf = (spec: EndpointSpec) => (spec.method === 'POST' ? exampleBody(spec) : undefined)
const keyFor = async (endpoints: string[], also: object = {}) => {
  const { data } = await g.operator<{ id: string; key: string }>('POST', `/accounts/${made.id}/keys`, {
    name: 'one endpoint',
    endpoints,
    ...also,
  })
  return data
}

test(
  'a key for one endpoint is refused at every address of every other one, before anything is read or paid',
  whereOffered('moderations'),
  async () => {
    const { key } = await keyFor(['moderations'])
    const before = await g.balance(made.id)
    g.sandbox.seen.clear()
    const wrong: string[] = []
    for (const spec of OFFERED)
      for (const path of [spec.path, ...spec.aliases]) {
        const url = path.replaceAll(/\{\w+\}/g, '1')
        const answer = await g.call(url, key, exampleOf(spec), { method: spec.method })
        const told = await answer.text()
        const name = accessNameOf(spec)
        const isRefused = answer.status === 403 && told.includes(`This key may not use the endpoint ${name}.`)
        if (isRefused === (name === undefined || name === 'moderations'))
          wrong.push(`${spec.method} ${url}: ${answer.status} ${told.slice(0, 200)}`)
      }
    assert.deepEqual(wrong, [])
    // The one paid call was that of its own endpoint, at each of its paths.
    const paid = OFFERED.find(({ id }) => id === 'moderations')!
    assert.equal(g.sandbox.seen.requests, 1 + paid.aliases.length)
    assert.equal((await g.balance(made.id)).held, before.held)
  },
)

test('a key for two models and one endpoint lists those models, and quotes by that endpoint', async () => {
  const { key } = await keyFor(['chat'], { models: ['alpha-5.4', 'alpha-image-2'] })
  const { data } = (await (await g.call('/v1/models', key)).json()) as { data: { id: string }[] }
  assert.deepEqual(pluck(data, 'id'), ['alpha-5.4'], 'no endpoint of this key makes pictures')
  assert.equal((await g.call('/v1/models/alpha-image-2', key)).status, 404)
  const messages = (await (await g.call('/beta/v1/models', key)).json()) as { data: unknown[] }
  assert.deepEqual(messages.data, [])
  if (!WITH_EXTENSIONS.skip) assert.deepEqual(await (await g.call('/gemini/v1beta/models', key)).json(), { models: [] })
  const account = (await (await g.call('/v1/account', key)).json()) as { data: { key: object } }
  assert.partialDeepStrictEqual(account.data.key, { models: ['alpha-5.4', 'alpha-image-2'], endpoints: ['chat'] })
  const quoted = (await (
    await g.call('/v1/quote', key, { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hi.' }] })
  ).json()) as { data: { endpoint: string } }
  assert.equal(quoted.data.endpoint, 'chat')
  const other = await g.call('/v1/quote?endpoint=responses', key, { model: 'alpha-5.4', input: 'Hi.' })
  assert.equal(other.status, 403)
})

test(
  'tools, batches and the background know the endpoints of a key, and so does the key that replaces it',
  WITH_EXTENSIONS,
  async () => {
    const { id, key } = await keyFor(['batches', 'responses'])
    const own = await connect(g.url, key)
    const offered = (await own.listTools()).tools.map(({ name }) => name)
    assert.ok(offered.includes('get_balance'))
    assert.ok(!offered.includes('ask_model') && !offered.includes('get_video') && !offered.includes('website_visits'))
    g.sandbox.seen.clear()
    for (const [name, args] of [
      ['ask_model', { model: 'alpha-5.4', prompt: 'Hi.' }],
      ['website_visits', { keys: 'example.com' }],
    ] as const) {
      const answer = await own.callTool({ name, arguments: args })
      assert.equal(answer.isError, true)
      assert.match(JSON.stringify(answer.content), /may not use the endpoint/)
    }
    await own.close()
    // Of what has no endpoint of its own, it sees what it made.
    assert.deepEqual((await client(key).files.list()).data, [])
    const file = await upload(key)
    const order = { completion_window: '24h', input_file_id: file.id }
    const refused = await g.call('/v1/batches', key, { ...order, endpoint: '/v1/chat/completions' })
    assert.equal(refused.status, 403)
    assert.equal(g.sandbox.seen.requests, 0)
    const rotated = await g.operator<{ endpoints: string[] }>('POST', `/keys/${id}/rotate`, {})
    assert.deepEqual(rotated.data.endpoints, ['batches', 'responses'])
  },
)

test('work that waits is done only while its key may use the endpoint', WITH_EXTENSIONS, async () => {
  const { id, key } = await keyFor(['responses'])
  g.sandbox.seen.clear()
  // Whoever does the work looks the key up, and waits here until it has another endpoint.
  const order = () =>
    g.gateway.database.transaction(async (tx) => {
      assert.equal((await g.call('/v1/models', key)).status, 200, 'from here on the process knows the key')
      await tx.query({ text: 'lock table api_key in access exclusive mode' })
      const accepted = await client(key).responses.create({ model: 'alpha-5.4', input: 'Hi.', background: true })
      await tx.query({ text: `update api_key set endpoints = '{chat}' where id = $1` }, [id])
      return accepted
    })
  // The process may have to look the key up again just then, for which it waits in vain: that is a 503, and nothing was
  // ordered.
  const later = await until(() =>
    order().catch((error: { status?: number }) => {
      if (error.status !== 503) throw error
      return undefined
    }),
  )
  const ended = await until(async () => {
    const found = await client(made.key).responses.retrieve(later.id)
    return found.status !== 'queued' && found.status !== 'in_progress' && found
  })
  assert.equal(ended.status, 'failed')
  assert.match(ended.error?.message ?? '', /may not use the endpoint responses/)
  assert.equal(g.sandbox.seen.requests, 0)
})

test('an endpoint that there is not is refused with the name that was meant', async () => {
  const ask = (endpoints: unknown) =>
    g.operator<{ message: string }>('POST', `/accounts/${made.id}/keys`, { name: 'a', endpoints })
  for (const [asked, meant] of [
    ['chatt', 'chat'],
    ['/v1/chat/completions', 'chat'],
    ...(WITH_EXTENSIONS.skip ? [] : [['/gemini/v1beta/models/{model}:generateContent', 'gemini']]),
    ...(offers('embeddings') ? [['embedding', 'embeddings']] : []),
  ]) {
    const { status, data } = await ask([asked])
    assert.equal(status, 400)
    assert.match(data.message, new RegExp(`Did you mean "${meant}"\\?.*responses`))
  }
  assert.equal((await ask([])).status, 400)
  const { data } = await g.operator<{ endpoints: null }>('POST', `/accounts/${made.id}/keys`, { name: 'free' })
  assert.equal(data.endpoints, null)
})

// The last of them: its vendor is asked about the job for a while, and the tests before count what is asked.
test('a key for one endpoint reads no job that another key ordered there', async () => {
  const { key } = await keyFor(['video'])
  assert.equal((await g.call(`/v1/jobs/${ids.jobs![0]}`, key)).status, 404)
  const listed = async () => (await (await g.call('/v1/jobs', key)).json()) as { data: { id: string }[] }
  assert.deepEqual((await listed()).data, [])
  const ordered = await g.call('/v1/video/seedance', key, { model: 'videogen-2.0', prompt: 'a harbour' })
  const { data } = (await ordered.json()) as { data: { jobId: string } }
  assert.equal((await g.call(`/v1/jobs/${data.jobId}`, key)).status, 200)
  assert.deepEqual(pluck((await listed()).data, 'id'), [data.jobId])
})

test('a key that is bound to addresses is refused from every other, also when it is known already', async () => {
  for (const [ranges, status] of [
    [['10.0.0.0/8', '2001:db8::/32'], 403],
    [['127.0.0.0/8', '::1'], 200],
  ] as const) {
    const { key, keyId } = await g.key(made.id)
    await g.sql('update api_key set ip_ranges = $2 where id = $1', [keyId, [...ranges]])
    for (const turn of [1, 2, 3]) {
      const answer = await g.call('/v1/models', key)
      assert.equal(answer.status, status, `${ranges}, call ${turn}`)
      assert.equal(/may not be used from your address/.test(await answer.text()), status === 403)
    }
  }
})

test('a key is refused from the moment at which it ends', async () => {
  for (const [end, status] of [
    ['1 hour', 200],
    ['-1 second', 401],
  ] as const) {
    const { key, keyId } = await g.key(made.id)
    const statement = { text: 'update api_key set expires_at = now() + $2::interval where id = $1' }
    await g.gateway.database.query(statement, [keyId, end])
    assert.equal((await g.call('/v1/models', key)).status, status)
  }
})

test('the first use of a key is written by the next look at new ones, and later uses with those of all', async () => {
  const { id, key } = await g.account()
  const { apiKeys, database } = g.gateway
  const usedAt = async () => {
    const { data } = await g.operator<{ items: { lastUsedAt: string | null }[] }>('GET', `/accounts/${id}/keys`)
    return data.items[0]?.lastUsedAt
  }
  const use = async () => assert.equal((await g.call('/v1/models', key)).status, 200)
  await use()
  await apiKeys.flushLastUsed({ onlyFirst: true })
  assert.match(String(await usedAt()), /^\d{4}-/)
  await database.query({ text: 'update api_key set last_used_at = null where account_id = $1' }, [id])
  assert.equal(await usedAt(), null)
  await use()
  await apiKeys.flushLastUsed()
  assert.match(String(await usedAt()), /^\d{4}-/)
})
