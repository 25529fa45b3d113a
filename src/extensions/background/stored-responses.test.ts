// Responses as the open specification has them, and what callers may do with those that a vendor keeps.
import { json } from 'node:stream/consumers'
import OpenAI from 'openai'
import { assert, listen, startGateway, test, testGateway } from '../../../test/gateway.ts'
import { openAllDoors } from '../../../test/sdk/families.ts'
import { findObjectOwner, pruneVendorObjects, recordVendorObjects } from '../../admission/vendor-objects.ts'
import { Fault } from '../../kernel/fault.ts'
import { BYOK } from '../../ledger/operation.ts'

let key: string
let account: string
const g = testGateway({ catalog: openAllDoors }, async () => {
  ;({ key, id: account } = await g.account())
})

const client = (apiKey = key) => new OpenAI({ apiKey, baseURL: `${g.url}/v1`, maxRetries: 0 })

/** What the open specification requires of a response object, and of which type. */
const REQUIRED: Record<string, (value: unknown) => boolean> = {
  ...Object.fromEntries(['id', 'status', 'model', 'truncation', 'service_tier'].map((name) => [name, isString])),
  ...Object.fromEntries(
    ['created_at', 'top_p', 'temperature', 'presence_penalty', 'frequency_penalty', 'top_logprobs'].map((name) => [
      name,
      (value: unknown) => typeof value === 'number',
    ]),
  ),
  ...Object.fromEntries(
    ['completed_at', 'max_output_tokens', 'max_tool_calls'].map((name) => [
      name,
      (value: unknown) => value === null || Number.isInteger(value),
    ]),
  ),
  ...Object.fromEntries(
    ['previous_response_id', 'safety_identifier', 'prompt_cache_key'].map((name) => [
      name,
      (value: unknown) => value === null || isString(value),
    ]),
  ),
  ...Object.fromEntries(
    ['incomplete_details', 'instructions', 'error', 'reasoning', 'usage', 'tool_choice', 'text', 'metadata'].map(
      (name) => [name, (value: unknown) => value !== undefined],
    ),
  ),
  ...Object.fromEntries(
    ['parallel_tool_calls', 'store', 'background'].map((name) => [
      name,
      (value: unknown) => typeof value === 'boolean',
    ]),
  ),
  output: Array.isArray,
  tools: (value) =>
    Array.isArray(value) &&
    value.every((tool) => ['description', 'parameters', 'strict'].every((name) => name in tool)),
}
function isString(value: unknown): boolean {
  return typeof value === 'string'
}

function complete(response: any, why: string): void {
  for (const [name, holds] of Object.entries(REQUIRED))
    assert.ok(holds(response[name]), `${why}: ${name} is ${JSON.stringify(response[name])}`)
  if (response.status !== 'completed') assert.equal(response.completed_at, null, `${why}: completed_at`)
}

const tools = [{ type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } }]
const ask = (over: object) => ({ model: 'alpha-5.4', input: 'Say hello.', tools, ...over })

/** The response objects in a stream's events, by the event's type. */
async function lifecycle(path: string, body: object, from = g, apiKey = key): Promise<Array<[string, any]>> {
  const text = await (await from.call(path, apiKey, { ...body, stream: true })).text()
  const events = text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
  return events.flatMap((event) => (event.response ? [[event.type, event.response]] : []))
}

test('a response object has every member that the open specification requires, whole and streamed, passed and converted', async () => {
  for (const model of ['alpha-5.4', 'beta-sonnet-4-6', 'gamma-v4-pro']) {
    const given = ask({ model, safety_identifier: 'u1', prompt_cache_key: 'c1' })
    const whole: any = await (await g.call('/v1/responses', key, given)).json()
    complete(whole, model)
    assert.ok(whole.completed_at >= whole.created_at)
    assert.equal(whole.safety_identifier, 'u1')
    assert.equal(whole.prompt_cache_key, 'c1')
    const seen = await lifecycle('/v1/responses', given)
    assert.deepEqual(
      seen.map(([type]) => type),
      ['response.created', 'response.in_progress', 'response.completed'],
    )
    for (const [type, response] of seen) complete(response, `${model} ${type}`)
    const broken = await lifecycle('/v1/responses', ask({ model, input: 'A story. [[cut=5]] [[chunks=20]]' }))
    assert.equal(broken.at(-1)?.[0], 'response.failed')
    complete(broken.at(-1)?.[1], `${model} failed`)
  }
})

test('what a vendor says of its response stays as it is, and only members that SDKs need are added', async () => {
  const response = {
    id: 'resp_1',
    object: 'response',
    created_at: 1789000000,
    status: 'completed',
    model: 'vendor-model',
    temperature: 0.3,
    tools: [{ type: 'function', name: 'f', description: 'Größe' }],
    output: [
      {
        type: 'message',
        id: 'm',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Grüße', annotations: [] }],
      },
    ],
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  }
  await using vendor = await listen(async (request, answer) => {
    const { stream } = (await json(request)) as { stream?: boolean }
    if (!stream) return answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(response))
    const event = (type: string, data: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, response: data, sequence_number: 0 })}\n\n`
    answer.writeHead(200, { 'content-type': 'text/event-stream' })
    return answer.end(
      event('response.created', { ...response, status: 'in_progress' }) + event('response.completed', response),
    )
  })
  await using own = await startGateway({
    catalog(document) {
      document.vendors.alpha = { baseUrl: vendor.url }
    },
  })
  const { key: byok } = await own.account()
  const whole: any = await (await own.call('/v1/responses', byok, ask({}))).json()
  const streamed = await lifecycle('/v1/responses', ask({}), own, byok)
  assert.equal(streamed.length, 2)
  for (const [why, got] of [['whole', whole], ...streamed] as const) {
    assert.deepEqual([got.parallel_tool_calls, got.tool_choice, 'top_p' in got], [true, 'auto', false], why)
    assert.equal(got.temperature, 0.3)
    assert.equal(got.model, 'alpha-5.4')
    assert.equal(got.output[0].content[0].text, 'Grüße')
    assert.deepEqual(got.tools, response.tools)
  }
})

test('a stored response can be retrieved, listed and deleted with the SDK, free of charge, under the public name of its model', async () => {
  const made = await client().responses.create({ model: 'alpha-5.4', input: 'Remember the number 42.' })
  assert.equal((made as any).store, true)
  const { posted } = await g.balance(account)
  const again = await client().responses.retrieve(made.id)
  assert.deepEqual({ ...again, output_text: '' }, { ...made, output_text: '' })
  const items = await client().responses.inputItems.list(made.id, { order: 'asc', limit: 5 })
  assert.match(JSON.stringify(items.data), /Remember the number 42/)
  await client().responses.delete(made.id)
  await assert.rejects(client().responses.retrieve(made.id), { status: 404 })
  await assert.rejects(client().responses.delete(made.id), { status: 404 })
  await g.settled()
  assert.equal((await g.balance(account)).posted, posted)
})

test('a streamed response is stored too, and the next one goes on from it', async () => {
  const stream = client().responses.stream({ model: 'alpha-5.4', input: 'My name is Ada.' })
  const first = await stream.finalResponse()
  assert.equal((await client().responses.retrieve(first.id)).id, first.id)
  const next = await client().responses.create({
    model: 'alpha-5.4',
    input: 'What is my name?',
    previous_response_id: first.id,
  })
  assert.equal(next.previous_response_id, first.id)
})

test('another account can neither read, delete nor continue what is stored', async () => {
  const made = await client().responses.create({ model: 'alpha-5.4', input: 'A secret.' })
  const other = client((await g.account()).key)
  await assert.rejects(other.responses.retrieve(made.id), { status: 404 })
  await assert.rejects(other.responses.inputItems.list(made.id), { status: 404 })
  await assert.rejects(other.responses.delete(made.id), { status: 404 })
  g.sandbox.seen.clear()
  await assert.rejects(
    other.responses.create({ model: 'alpha-5.4', input: 'Go on.', previous_response_id: made.id }),
    (error: InstanceType<typeof OpenAI.APIError>) => {
      assert.equal(error.status, 400)
      assert.equal(error.param, 'previous_response_id')
      assert.equal(error.code, 'previous_response_not_found')
      assert.match(error.message, /not found/)
      return true
    },
  )
  assert.equal(g.sandbox.seen.requests, 0)
  assert.equal((await client().responses.retrieve(made.id)).id, made.id)
  const restricted = client((await g.key(account, { models: ['beta-opus-5'] })).key)
  await assert.rejects(restricted.responses.retrieve(made.id), { status: 404 })
})

test('another account cannot continue a thread: its SDK is told to send the conversation anew', async () => {
  const threads = { headers: { 'anthropic-beta': 'message-threads-2026-08-12' } }
  const body = { model: 'beta-sonnet-4-6', max_tokens: 500, messages: [{ role: 'user', content: 'A secret.' }] }
  const first: any = await (
    await g.call('/beta/v1/messages', key, { ...body, stream: false, thread: { type: 'create' } }, threads)
  ).json()
  const next = { ...body, thread: { type: 'continue', previous_message_id: first.id } }
  const foreign = await g.call('/beta/v1/messages', (await g.account()).key, next, threads)
  assert.equal(foreign.status, 404)
  assert.equal(((await foreign.json()) as any).error.details.error_code, 'thread_not_found')
  assert.equal((await g.call('/beta/v1/messages', key, next, threads)).status, 200)
})

test('whoever says store: false is taken at their word: nothing is remembered', async () => {
  const made = await client().responses.create({ model: 'alpha-5.4', input: 'Forget me.', store: false })
  assert.equal((made as any).store, false)
  await assert.rejects(client().responses.retrieve(made.id), { status: 404 })
  assert.equal((await g.sql('select 1 from vendor_object where id = $1', [made.id])).length, 0)
  const converted = await client().responses.create({ model: 'beta-sonnet-4-6', input: 'Hello.' })
  assert.equal((converted as any).store, false)
  await assert.rejects(client().responses.retrieve(converted.id), { status: 404 })
})

test('what was remembered is forgotten after thirty days', async () => {
  const { database } = g.gateway
  const [old, young] = await Promise.all(
    ['Old.', 'Young.'].map((input) => client().responses.create({ model: 'alpha-5.4', input })),
  )
  await database.query({ text: `update vendor_object set created_at = now() - interval '31 days' where id = $1` }, [
    old!.id,
  ])
  await pruneVendorObjects(database)
  await assert.rejects(client().responses.retrieve(old!.id), { status: 404 })
  assert.equal((await client().responses.retrieve(young!.id)).id, young!.id)
})

test('where the catalog keeps nothing at vendors, the vendor is told so and the answer says so', async () => {
  await using own = await startGateway({
    catalog(document) {
      document.models['alpha-5.4'].traits = { ...document.models['alpha-5.4'].traits, vendorState: false }
    },
  })
  const { key: byok } = await own.account()
  const made: any = await (await own.call('/v1/responses', byok, ask({ store: true }))).json()
  assert.equal((made as any).store, false)
  assert.equal(JSON.parse(own.sandbox.seen.calls.at(-1)?.body ?? '{}').store, false)
})

test('a conversation goes on at the vendor that keeps it, whatever the order of the routes', async () => {
  await using own = await startGateway({
    catalog(document) {
      document.vendors.other = { ...document.vendors.alpha }
      document.models['alpha-5.4'].routes = [
        { vendor: 'alpha', protocol: 'openai-responses', weight: 1 },
        { vendor: 'other', protocol: 'openai-responses', weight: 1 },
      ]
    },
  })
  const { key: byok } = await own.account()
  const post = async (over: object) => {
    const answer = await own.call('/v1/responses', byok, { model: 'alpha-5.4', input: 'Hello.', ...over })
    return { id: ((await answer.json()) as any).id, route: answer.headers.get('x-tollgate-route') }
  }
  for (let i = 0; i < 10; i++) {
    const first = await post({})
    assert.equal((await post({ previous_response_id: first.id })).route, first.route)
  }
})

test('what an own key would look up goes by no other, and what it made is not looked for by the gateway’s', async () => {
  const { id: owner } = await g.account()
  const { database } = g.gateway
  const kept = { vendor: 'alpha', product: 'alpha-5.4' }
  const principal = { accountId: owner, keyId: 'key', models: null, endpoints: null }
  await recordVendorObjects(database, principal, ['resp_house'], kept)
  await recordVendorObjects(database, principal, ['resp_own'], { ...kept, credential: BYOK })
  const routes = g.gateway.catalog.current.document.models['alpha-5.4']!.routes
  const find = (ids: string[], own?: { fallback: boolean }) => {
    const continues = ids.map((id) => ({ id, unknown: new Fault('not_found', { message: id }) }))
    const keeper = findObjectOwner({ continues, clientFormat: 'openai-responses', principal, routes, own }, database)
    return keeper.then(
      (found) => found?.credential ?? (found ? 'house' : 'nobody'),
      (error: Fault) => `${error.kind}: ${error.message}`,
    )
  }
  const strict = { fallback: false }
  assert.equal(await find(['resp_house']), 'house')
  assert.equal(await find(['resp_own'], strict), BYOK)
  assert.equal(await find(['file_mine'], strict), 'nobody')
  assert.equal(await find(['resp_own', 'file_mine'], strict), BYOK)
  assert.equal(await find(['resp_house', 'file_other'], strict), 'not_found: file_other')
  assert.equal(await find(['file_other', 'resp_house'], strict), 'not_found: file_other')
  assert.equal(await find(['resp_own']), 'not_found: resp_own')
  assert.equal(await find(['file_other'], { fallback: true }), 'not_found: file_other')
})

test('a type that is the name of something else is an unknown type, and nobody’s mistake but the caller’s', async () => {
  for (const type of ['constructor', 'toString', '__proto__x']) {
    const answer = await g.call('/v1/responses', key, { model: 'alpha-5.4', input: [{ type }] })
    assert.ok(answer.status < 500, `${type}: ${await answer.text()}`)
  }
})
