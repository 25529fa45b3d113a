// Conversations and compaction with the official openai package, unchanged, against the running gateway.
import OpenAI from 'openai'
import { assert, not, test, testGateway, until } from '../../../test/gateway.ts'
import { openAllDoors } from '../../../test/sdk/families.ts'

let key: string
let account: string
const g = testGateway({ catalog: openAllDoors }, async () => {
  ;({ key, id: account } = await g.account())
})
const client = (apiKey = key) => new OpenAI({ apiKey, baseURL: `${g.url}/v1`, maxRetries: 0 })
const message = (content: string) => ({ type: 'message', role: 'user', content }) as const

test('a conversation is made, read, changed, filled, listed and deleted with the SDK, free of charge', async () => {
  const before = await g.balance(account)
  const made = await client().conversations.create({
    items: [message('My name is Ada.')],
    metadata: { topic: 'names' },
  })
  assert.match(made.id, /^conv_/)
  assert.deepEqual((await client().conversations.retrieve(made.id)).metadata, { topic: 'names' })
  assert.deepEqual((await client().conversations.update(made.id, { metadata: { topic: 'b' } })).metadata, {
    topic: 'b',
  })
  const added = await client().conversations.items.create(made.id, { items: [message('One.'), message('Two.')] })
  assert.equal(added.data.length, 2)
  const seen: string[] = []
  for await (const item of client().conversations.items.list(made.id, { order: 'asc', limit: 2 }))
    seen.push(JSON.stringify((item as any).content))
  assert.deepEqual(seen, ['"My name is Ada."', '"One."', '"Two."'])
  const at = { conversation_id: made.id }
  const [one] = added.data
  assert.equal((await client().conversations.items.retrieve(one!.id!, at)).id, one!.id)
  assert.equal((await client().conversations.items.delete(one!.id!, at)).id, made.id)
  await assert.rejects(client().conversations.items.retrieve(one!.id!, at), { status: 404 })
  assert.equal((await client().conversations.retrieve(made.id)).id, made.id, 'an item that is gone takes nothing along')
  assert.equal((await client().conversations.delete(made.id)).deleted, true)
  await assert.rejects(client().conversations.retrieve(made.id), { status: 404 })
  await g.settled()
  assert.deepEqual(await g.balance(account), before)
})

test('responses go on in a conversation, whole, streamed and in the background, and are in it afterwards', async () => {
  const { id } = await client().conversations.create({ items: [message('My name is Ada.')] })
  const first = await client().responses.create({ model: 'alpha-5.4', input: 'Hello.', conversation: id })
  assert.equal((first as any).conversation.id, id)
  const stream = client().responses.stream({ model: 'alpha-5.5', input: 'And again.', conversation: { id } })
  await stream.finalResponse()
  const later = await client().responses.create({
    model: 'alpha-5.4',
    input: 'Later.',
    conversation: id,
    background: true,
  })
  await until(async () => (await client().responses.retrieve(later.id)).status, 'completed')
  const said: string[] = []
  for await (const item of client().conversations.items.list(id, { order: 'asc' })) said.push(JSON.stringify(item))
  for (const words of ['My name is Ada.', 'Hello.', 'And again.', 'Later.'])
    assert.ok(
      said.some((item) => item.includes(words)),
      words,
    )
  const [item] = (await client().conversations.items.list(id)).data
  const referring = [{ type: 'item_reference', id: item!.id! }, message('Go on.')] as OpenAI.Responses.ResponseInput
  assert.equal((await client().responses.create({ model: 'alpha-5.4', input: referring })).status, 'completed')
})

test('to another account a conversation is not there, whatever it is asked for, and no vendor hears of it', async () => {
  const { id } = await client().conversations.create()
  const added = await client().conversations.items.create(id, { items: [message('A secret.')] })
  const item = added.data[0]!.id!
  const other = client((await g.account()).key)
  const at = { conversation_id: id }
  g.sandbox.seen.clear()
  for (const act of [
    () => other.conversations.retrieve(id),
    () => other.conversations.update(id, { metadata: {} }),
    () => other.conversations.delete(id),
    () => other.conversations.items.list(id),
    () => other.conversations.items.create(id, { items: [message('x')] }),
    () => other.conversations.items.retrieve(item, at),
    () => other.conversations.items.delete(item, at),
    () => other.responses.create({ model: 'alpha-5.4', input: 'Go on.', conversation: id }),
    () => other.conversations.create({ items: [{ type: 'item_reference', id: item } as any] }),
  ])
    await assert.rejects(act(), (error: any) => {
      assert.equal(error.status, 404)
      assert.match(error.message, /not found/i)
      return true
    })
  assert.equal(g.sandbox.seen.requests, 0)
  assert.equal((await client().conversations.retrieve(id)).id, id)
})

test('what is wrong is said by its field, and where no vendor keeps conversations nobody is asked', async () => {
  for (const [body, param] of [
    [{ items: 7 }, 'items'],
    [{ items: ['x'] }, 'items[0]'],
    [{ items: Array.from({ length: 21 }, () => message('x')) }, 'items'],
    [{ metadata: 'x' }, 'metadata'],
    [{ model: 7 }, 'model'],
    [{ model: 'beta-sonnet-4-6' }, 'model'],
  ] as const)
    await assert.rejects(client().conversations.create(body as any), (error: any) => {
      assert.deepEqual([error.status, error.param], [400, param])
      return true
    })
  const { id } = await client().conversations.create({ model: 'alpha-5.5' } as any)
  assert.equal(JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '{}').model, undefined, 'the model is not sent on')
  await assert.rejects(client().conversations.update(id, {} as any), { status: 400 })
  await assert.rejects(client().conversations.items.create(id, {} as any), { status: 400 })
  const ask = { model: 'alpha-5.4', input: 'Hello.', conversation: id }
  await assert.rejects(client().responses.create({ ...ask, previous_response_id: 'resp_1' }), { status: 400 })
  await assert.rejects(client().responses.create({ ...ask, conversation: 7 as any }), { status: 400 })
  await assert.rejects(client().responses.create({ ...ask, model: 'beta-sonnet-4-6' }), { status: 400 })
  const restricted = client((await g.key(account, { models: ['beta-opus-5'] })).key)
  await assert.rejects(restricted.conversations.create(), { status: 404 })
})

test('a conversation is compacted for the price of its tokens, and the next response goes on from what came back', async () => {
  const before = await g.balance(account)
  const input = [message('A long story.'), { role: 'assistant', content: 'Indeed.' }, message('And then?')] as const
  const made = await client().responses.compact({ model: 'alpha-5.4', input: [...input] })
  assert.equal(made.object, 'response.compaction')
  assert.equal(made.output.at(-1)?.type, 'compaction')
  assert.ok(made.usage.input_tokens > 0 && made.usage.output_tokens > 0)
  const row = await g.lastCall(account)
  const paid = before.posted - (await g.balance(account)).posted
  assert.deepEqual([row.endpoint, row.outcome, row.charged], ['responses/compact', 'settled', paid])
  assert.ok(paid > 0n && row.held >= paid)
  assert.ok(JSON.stringify(row.lines).includes(`["output",${made.usage.output_tokens}`), JSON.stringify(row.lines))
  const next = [...made.output, message('Go on.')] as OpenAI.Responses.ResponseInput
  assert.equal((await client().responses.create({ model: 'alpha-5.4', input: next })).status, 'completed')
  const stored = await client().responses.create({ model: 'alpha-5.4', input: 'Remember me.' })
  const bare = await client().responses.compact({ model: 'alpha-5.4', previous_response_id: stored.id })
  assert.equal(bare.object, 'response.compaction')
  assert.deepEqual(await g.problems(), [])
})

test('what cannot be compacted is refused, with nothing held', async () => {
  const stored = await client().responses.create({ model: 'alpha-5.4', input: 'Mine.' })
  const other = await g.account()
  g.sandbox.seen.clear()
  const cases: Array<[body: object, status: number, param: string]> = [
    [{}, 400, 'input'],
    [{ input: 7 }, 400, 'input'],
    [{ input: 'x', stream: true }, 400, 'stream'],
    [{ input: 'x', max_output_tokens: 5 }, 400, 'max_output_tokens'],
    [{ input: 'x', model: 'beta-sonnet-4-6' }, 400, 'model'],
    [{ input: 'x', background: true }, 400, 'background'],
    [{ previous_response_id: stored.id }, 400, 'previous_response_id'],
    [{ input: [{ type: 'item_reference', id: stored.output[0]!.id }] }, 404, 'input[0]'],
    [{ input: 'x', tools: [{ type: 'code_interpreter' }] }, 400, 'tools'],
  ]
  for (const [over, status, param] of cases)
    await assert.rejects(client(other.key).responses.compact({ model: 'alpha-5.4', ...over } as any), (error: any) => {
      assert.deepEqual([error.status, error.param], [status, param], error.message)
      return true
    })
  assert.equal(g.sandbox.seen.requests, 0)
  assert.deepEqual(await g.balance(other.id), { posted: 1_000_000_000n, held: 0n })
})

test('however a compaction ends, it is settled or released once: what was not delivered and not reported costs nothing', async () => {
  const made = await g.account()
  const compact = (input: string, signal?: AbortSignal) =>
    client(made.key).responses.compact({ model: 'alpha-5.4', input }, signal ? { signal } : {})
  for (const fault of ['[[500]]', '[[hang-up]]', '[[garbage]]', '[[cut]]', '[[truncate=9]]', '[[429]]'])
    await assert.rejects(compact(`A story. ${fault}`), fault)
  await g.settled()
  assert.deepEqual(await g.balance(made.id), { posted: 1_000_000_000n, held: 0n })
  // Whoever leaves before the vendor answers owes nothing.
  const gone = new AbortController()
  const heard = g.sandbox.seen.requests
  const leaving = compact('A story. [[stall]]', gone.signal)
  await until(() => g.sandbox.seen.requests, not(heard))
  gone.abort()
  await assert.rejects(leaving)
  await g.settled()
  assert.equal((await g.balance(made.id)).posted, 1_000_000_000n)
  // A vendor that reports nothing is paid by an estimate, never above the hold.
  await compact('A story. [[no-usage]]')
  const row = await g.lastCall(made.id)
  assert.ok(row.estimated && row.charged > 0n && row.charged <= row.held)
})
