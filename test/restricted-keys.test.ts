// Applications that share an account by restricted keys: none sees or touches what another one made with what it may not use.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI, { toFile } from 'openai'
import { isDataEndpoint } from '../src/catalog/endpoint.ts'
import { ENDPOINTS } from '../src/catalog/index.ts'
import { testGateway } from './gateway.ts'
import { connect } from './mcp/client.ts'

interface Made {
  readonly id: string
  readonly key: string
}

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
  const file = await upload(key)
  const order = { endpoint: '/v1/chat/completions', completion_window: '24h' } as const
  const batch = await openai.batches.create({ ...order, input_file_id: file.id })
  const job = await g.call('/v1/video/seedance', key, { model: 'videogen-2.0', prompt: 'a lighthouse' })
  const { data } = (await job.json()) as { data: { jobId: string } }
  const stored = await openai.responses.create({ model: 'alpha-5.4', input: 'A secret.', store: true })
  const later = await openai.responses.create({ model: 'alpha-5.4', input: 'A secret.', background: true })
  const conversation = await openai.conversations.create({ metadata: { model: 'alpha-5.4' } })
  return {
    files: [file.id],
    batches: [batch.id],
    jobs: [data.jobId],
    responses: [stored.id, later.id],
    conversations: [conversation.id],
  }
}

/** Endpoints of what is kept for a caller: whatever has an id in its address that is no model's and no vendor's data. */
const kept = ENDPOINTS.filter(
  (spec) => spec.path.includes('{id}') && !isDataEndpoint(spec) && !spec.id.startsWith('models'),
)

for (const models of [['siteanalytics'], ['beta-haiku-4-5', 'alpha-image-2'], []])
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
    for (const list of ['/v1/files', '/v1/batches', '/v1/jobs']) {
      const { data } = (await (await g.call(list, key)).json()) as { data: unknown[] }
      if (data.length > 0) wrong.push(`${list}: ${JSON.stringify(data)}`)
    }
    assert.deepEqual(wrong, [])
    const order = { endpoint: '/v1/chat/completions', completion_window: '24h', input_file_id: ids.files![0] }
    assert.equal((await g.call('/v1/batches', key, order)).status, 400, 'a foreign file is nobody’s input')
    // Nothing was changed by all that.
    for (const one of ['files', 'batches', 'jobs', 'responses', 'conversations'])
      for (const id of ids[one]!) assert.equal((await g.call(`/v1/${one}/${id}`, made.key)).status, 200, one)
  })

test('a key goes on from no response or conversation that was made with a model it may not use', async () => {
  const { key } = await g.key(made.id, { models: ['alpha-5.5'] })
  const [response] = ids.responses!
  const [conversation] = ids.conversations!
  g.sandbox.seen.clear()
  for (const over of [{ previous_response_id: response }, { conversation }]) {
    const body = { model: 'alpha-5.5', input: 'What did I say?', ...over }
    const answer = await g.call('/v1/responses', key, body)
    assert.ok(!answer.ok, JSON.stringify(over))
    assert.match(await answer.text(), /not found/i)
    assert.equal(g.sandbox.seen.requests, 0)
    const both = await g.key(made.id, { models: ['alpha-5.4', 'alpha-5.5'] })
    assert.equal((await g.call('/v1/responses', both.key, body)).status, 200, 'one that may use both goes on')
    g.sandbox.seen.clear()
  }
})

test('a restricted key sees what it may use and what it made', async () => {
  const video = await g.key(made.id, { models: ['videogen-2.0'] })
  assert.equal((await g.call(`/v1/jobs/${ids.jobs![0]}`, video.key)).status, 200)
  const { data } = (await (await g.call('/v1/jobs', video.key)).json()) as { data: { id: string }[] }
  assert.deepEqual(
    data.map(({ id }) => id),
    ids.jobs,
  )
  const file = await upload(video.key)
  assert.deepEqual(
    (await client(video.key).files.list()).data.map(({ id }) => id),
    [file.id],
  )
  const order = { endpoint: '/v1/chat/completions', completion_window: '24h', input_file_id: file.id } as const
  const batch = await client(video.key).batches.create(order)
  assert.deepEqual(
    (await client(video.key).batches.list()).data.map(({ id }) => id),
    [batch.id],
  )
  assert.ok((await client(made.key).files.list()).data.length >= 2, 'a key without a restriction sees all')
  assert.equal((await client(video.key).files.delete((await upload(video.key)).id)).deleted, true)
})

test('no tool answers that is not offered to the key, however it is called', async () => {
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
  assert.equal(g.sandbox.seen.requests, 0)
})
