// Responses in the background with the official openai package, unchanged, against the running gateway.
import OpenAI from 'openai'
import { assert, pluck, test, testGateway, until } from '../../../test/gateway.ts'
import { openAllDoors } from '../../../test/sdk/families.ts'

let key: string
let account: string
const g = testGateway({ catalog: openAllDoors, isShared: true }, async () => {
  ;({ key, id: account } = await g.account())
})

const client = (apiKey = key) => new OpenAI({ apiKey, baseURL: `${g.url}/v1`, maxRetries: 0 })
const start = (over: object = {}, apiKey = key) =>
  client(apiKey).responses.create({ model: 'alpha-5.4', input: 'Say hello.', background: true, ...over } as any)

const ended = (id: string, apiKey = key): Promise<any> =>
  until(
    () => client(apiKey).responses.retrieve(id),
    ({ status }) => status !== 'queued' && status !== 'in_progress',
  )

test('a response in the background is accepted at once, answered later, and charged as any other', async () => {
  const before = await g.balance(account)
  const direct = await client().responses.create({ model: 'alpha-5.4', input: 'Say hello.' })
  const price = before.posted - (await g.balance(account)).posted
  for (const model of ['alpha-5.4', 'beta-sonnet-4-6']) {
    const made: any = await start({ model })
    assert.match(made.id, /^resp_bg/)
    assert.ok(made.status === 'queued' || made.status === 'in_progress')
    assert.equal(made.background, true)
    assert.deepEqual(made.output, [])
    const done = await ended(made.id)
    assert.equal(done.status, 'completed')
    assert.equal(done.id, made.id)
    assert.equal(done.model, model)
    assert.equal(done.background, true)
    assert.ok(done.output_text.length > 0)
    assert.ok(done.usage.output_tokens > 0)
  }
  const rows = await g.calls(account)
  assert.deepEqual(pluck(rows, 'endpoint', 'outcome'), Array(3).fill(['responses', 'settled']))
  assert.equal(rows[1]?.charged, price, 'the price is the same')
  assert.equal(typeof direct.id, 'string')
  assert.deepEqual(await g.problems(), [])
})

test('the next response goes on from one that was made in the background', async () => {
  const first = await ended(((await start({ input: 'My name is Ada.' })) as any).id)
  const next = await client().responses.create({
    model: 'alpha-5.4',
    input: 'What is my name?',
    previous_response_id: first.id,
  })
  assert.equal(next.status, 'completed')
  const later = await ended(((await start({ input: 'And now?', previous_response_id: first.id })) as any).id)
  assert.equal(later.status, 'completed')
  assert.match(JSON.stringify((await client().responses.inputItems.list(first.id)).data), /My name is Ada/)
  await assert.rejects(
    client((await g.account()).key).responses.create({
      model: 'alpha-5.4',
      input: 'Go on.',
      previous_response_id: first.id,
    }),
    { status: 400 },
  )
})

test('what is wrong is said at once, and what goes wrong later is in the response', async () => {
  for (const [over, param] of [
    [{ input: 7 }, 'input'],
    [{ stream: 'yes' }, 'stream'],
    [{ store: false }, 'store'],
    [{ background: 'yes' }, 'background'],
    [{ previous_response_id: 'resp_bg01m7h30sc77t113ajbmzxmjc6g' }, 'previous_response_id'],
  ] as const)
    if (param === 'previous_response_id') {
      // Whose it is is asked when it is begun.
      const done = await ended(((await start(over)) as any).id)
      assert.equal(done.status, 'failed')
      assert.equal(done.error.code, 'previous_response_not_found')
    } else await assert.rejects(start(over), (error: any) => error.status === 400 && error.param === param)
  await assert.rejects(start({ model: 'none' }), { status: 404 })
  const poor = await g.account({ credits: 1n })
  const short = await ended(((await start({}, poor.key)) as any).id, poor.key)
  assert.equal(short.status, 'failed')
  assert.match(short.error.message, /credit/)
})

test('the tokens of a request are counted, free of charge', async () => {
  const before = await g.balance(account)
  const count = await client().responses.inputTokens.count({ model: 'alpha-5.4', input: 'One two three four five.' })
  assert.equal(count.object, 'response.input_tokens')
  assert.ok(count.input_tokens >= 4 && count.input_tokens < 40, String(count.input_tokens))
  await assert.rejects(client().responses.inputTokens.count({ model: 'alpha-5.4', input: 7 as any }), { status: 400 })
  assert.deepEqual(await g.balance(account), before)
})

test('the same Idempotency-Key gives the same response, and is not for another request', async () => {
  const options = { idempotencyKey: 'once', headers: { 'idempotency-key': 'once' } }
  const body = { model: 'alpha-5.4', input: 'Once.', background: true } as const
  const [a, b] = await Promise.all([client().responses.create(body, options), client().responses.create(body, options)])
  assert.equal(a.id, b.id)
  await assert.rejects(client().responses.create({ ...body, input: 'Twice.' }, options), { status: 409 })
  await ended(a.id)
})

test('it can be cancelled and deleted, by its account alone', async () => {
  const made = await g.account()
  const { id }: any = await start({ input: 'A long one. [[stall]]' }, made.key)
  for (const act of ['retrieve', 'cancel', 'delete'] as const)
    await assert.rejects((client() as any).responses[act](id), { status: 404 })
  await until(async () => (await client(made.key).responses.retrieve(id)).status, 'in_progress')
  assert.equal((await client(made.key).responses.cancel(id)).status, 'cancelled')
  assert.equal((await client(made.key).responses.cancel(id)).status, 'cancelled', 'once more changes nothing')
  // The vendor had not begun to answer: nothing is owed, and nothing stays held.
  await until(async () => (await g.balance(made.id)).held, 0n)
  assert.equal((await g.balance(made.id)).posted, 1_000_000_000n)
  await client(made.key).responses.delete(id)
  await assert.rejects(client(made.key).responses.retrieve(id), { status: 404 })
  const plain = await client().responses.create({ model: 'alpha-5.4', input: 'Hello.' })
  await assert.rejects(client().responses.cancel(plain.id), { status: 400 })
})

test('a response whose process died after its settlement is given again, and not paid again', async () => {
  const made = await g.account()
  const { id }: any = await start({ input: 'Once and for all.' }, made.key)
  const first = await ended(id, made.key)
  await g.settled()
  const before = await g.balance(made.id)
  await g.sql(
    `update background set status = 'in_progress', answer = null, open = true, step_at = now() - interval '1 hour' where id = $1`,
    [id],
  )
  assert.deepEqual((await ended(id, made.key)).output, first.output)
  assert.deepEqual(await g.balance(made.id), before)
  assert.equal((await g.calls(made.id)).length, 1)
})

/** The events of a stream, until there have been `most`. */
async function events(stream: AsyncIterable<any>, most = Number.POSITIVE_INFINITY): Promise<any[]> {
  const seen: any[] = []
  for await (const event of stream) {
    seen.push(event)
    if (seen.length >= most) break
  }
  return seen
}
const said = (all: readonly any[]) =>
  all.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join('')
const resumed = (id: string, after?: number, apiKey = key) =>
  client(apiKey).responses.retrieve(id, { stream: true, ...(after === undefined ? {} : { starting_after: after }) })

test('a response in the background is streamed, and whoever left goes on where they were, as often as they like', async () => {
  for (const model of ['alpha-5.4', 'beta-sonnet-4-6']) {
    const made = await g.account()
    const input = 'A story. [[chunks=40]] [[slow=10]]'
    const first = await events((await start({ model, input, stream: true }, made.key)) as any, 6)
    const { id } = first[0].response
    assert.match(id, /^resp_bg/)
    const rest = await events(await resumed(id, first.at(-1).sequence_number, made.key))
    const all = [...first, ...rest]
    assert.deepEqual(
      pluck(all, 'sequence_number'),
      all.map((_, i) => i),
    )
    assert.deepEqual(pluck(all.slice(0, 3), 'type'), ['response.created', 'response.queued', 'response.in_progress'])
    const { type, response } = all.at(-1)
    assert.equal(type, 'response.completed')
    for (const event of all) if (event.response) assert.equal(event.response.id, id)
    const whole = await ended(id, made.key)
    assert.equal(said(all), whole.output_text)
    assert.deepEqual(response.output, whole.output)
    assert.deepEqual(await events(await resumed(id, undefined, made.key)), all, 'again, from the beginning')
    assert.deepEqual(await events(await resumed(id, all.length, made.key)), [], 'there is no more')
    await g.settled()
    assert.deepEqual(
      pluck(await g.calls(made.id), 'outcome'),
      ['settled'],
      'it is paid for once, however often it is read',
    )
  }
})

test('the SDK puts the stream of a response in the background together, new and resumed', async () => {
  const stream = client().responses.stream({ model: 'alpha-5.4', input: 'Say hello.', background: true })
  const final = await stream.finalResponse()
  assert.equal(final.status, 'completed')
  const again = await client().responses.stream({ response_id: final.id, starting_after: 3 }).finalResponse()
  assert.deepEqual(again.output, final.output)
})

test('only what was made with stream in the background can be followed, by its account', async () => {
  const [first] = await events((await start({ stream: true })) as any, 1)
  const { id } = first.response
  await assert.rejects(resumed(id, undefined, (await g.account()).key), { status: 404 })
  const plain: any = await start()
  const stored = await client().responses.create({ model: 'alpha-5.4', input: 'Hello.' })
  for (const one of [plain.id, stored.id])
    await assert.rejects(resumed(one), (error: any) => error.status === 400 && error.param === 'stream')
  for (const [query, param] of [
    ['stream=true&starting_after=x', 'starting_after'],
    ['stream=perhaps', 'stream'],
  ])
    assert.match(
      await (
        await fetch(`${g.url}/v1/responses/${id}?${query}`, { headers: { authorization: `Bearer ${key}` } })
      ).text(),
      new RegExp(`"${param}`),
    )
  await ended(id)
  await g.sql(`update background set created_at = now() - interval '25 hours' where id = $1`, [id])
  await assert.rejects(resumed(id), (error: any) => error.status === 400 && /kept for a day/.test(error.message))
  await client().responses.delete(id)
  assert.equal((await g.sql('select 1 from background_event where id = $1', [id])).length, 0)
})

test('however a streamed response in the background ends, its followers are told, and it is settled or released once', async () => {
  const endings: Array<[input: string, type: string, outcomes: readonly string[]]> = [
    ['Hello.', 'response.completed', ['settled']],
    ['Hello. [[max=1]]', 'response.completed', ['settled']],
    ['Hello. [[400]]', 'response.failed', ['released']],
  ]
  for (const [input, type, outcomes] of endings) {
    const made = await g.account()
    const all = await events((await start({ input, stream: true }, made.key)) as any)
    assert.equal(all.at(-1).type, type, input)
    await g.settled()
    assert.deepEqual(pluck(await g.calls(made.id), 'outcome'), outcomes, input)
    assert.equal((await g.balance(made.id)).held, 0n)
  }
  // Cancelled in the middle: what came until then is owed, and the stream ends.
  const made = await g.account()
  const input = 'A story. [[chunks=400]] [[slow=20]]'
  const stream: any = await start({ input, stream: true }, made.key)
  const seen: any[] = []
  for await (const event of stream) {
    seen.push(event)
    if (event.type === 'response.output_text.delta' && seen.at(-2)?.type !== event.type)
      assert.equal((await client(made.key).responses.cancel(seen[0].response.id)).status, 'cancelled')
  }
  assert.equal(seen.at(-1).type, 'response.failed')
  assert.equal(seen.at(-1).response.status, 'cancelled')
  await g.settled()
  const [row] = await g.calls(made.id)
  assert.equal(row?.outcome, 'settled')
  assert.ok(row.charged > 0n)
})

test('a stream whose process died goes on with its end, and neither its text nor its price is doubled', async () => {
  const made = await g.account()
  const all = await events((await start({ input: 'Once.', stream: true }, made.key)) as any)
  const { id } = all[0].response
  await g.settled()
  const before = await g.balance(made.id)
  await g.sql(
    `update background set status = 'in_progress', answer = null, open = true, step_at = now() - interval '1 hour' where id = $1`,
    [id],
  )
  assert.deepEqual(await events(await resumed(id, undefined, made.key)), all)
  assert.deepEqual(await g.balance(made.id), before)
  assert.deepEqual(await g.problems(), [])
})
