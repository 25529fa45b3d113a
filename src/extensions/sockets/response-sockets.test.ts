// Responses over WebSockets: the official openai package unchanged, and what a client may do wrong.
import { PassThrough } from 'node:stream'
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { assert, atOnce, none, pluck, startGateway, test, testGateway, until } from '../../../test/gateway.ts'
import { openAllDoors } from '../../../test/sdk/families.ts'
import { openSocket } from '../../../test/socket-client.ts'
import { realWorld } from '../../kernel/world.ts'
import { createSockets } from './caller-sockets.ts'
import { responseSocket } from './response-socket.ts'

const g = testGateway({ catalog: openAllDoors })
const at = '/v1/responses'
const open = (key: string) => openSocket(g.url + at, { key })
const create = (over: object = {}) => ({ type: 'response.create', model: 'alpha-5.4', input: 'Say hello.', ...over })
const END = ['response.completed', 'response.incomplete', 'response.failed', 'error'] as const

test('the openai SDK makes responses over one socket, each charged as over HTTP', async () => {
  const { id, key } = await g.account()
  const client = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
  const before = await g.balance(id)
  const direct = await client.responses.create({ model: 'alpha-5.4', input: 'Say hello.', store: false })
  await g.settled()
  const price = before.posted - (await g.balance(id)).posted
  const socket = new ResponsesWS(client as any)
  const said: any[] = []
  socket.on('error', (error) => said.push(error))
  for (let turn = 0; turn < 2; turn++) {
    socket.send({ type: 'response.create', model: 'alpha-5.4', input: 'Say hello.', store: false })
    const done: any = await new Promise((resolve) => socket.once('response.completed', resolve))
    assert.equal(done.response.status, 'completed')
    assert.equal(done.response.model, 'alpha-5.4')
    assert.deepEqual(done.response.usage, direct.usage)
  }
  socket.close()
  assert.deepEqual(said, [])
  const rows = await g.calls(id)
  assert.deepEqual(pluck(rows, 'endpoint', 'outcome', 'charged'), Array(3).fill(['responses', 'settled', price]))
})

test('a request that continues one of the socket need send only what is new, whatever the vendor stores', async () => {
  const { id, key } = await g.account()
  for (const model of ['alpha-5.4', 'beta-sonnet-4-6', 'gamma-3-pro'].filter((uid) =>
    g.gateway.catalog.current.document.models[uid]?.clientFormats.includes('openai-responses'),
  )) {
    const socket = await open(key)
    // Codex warms up first: nothing is generated, nothing is charged.
    socket.send(create({ model, input: [{ role: 'user', content: 'My name is Ada.' }], store: false, generate: false }))
    const warm = (await socket.next(...END)).response
    assert.equal(warm.usage.total_tokens, 0)
    socket.send(create({ model, previous_response_id: warm.id, input: [], store: false }))
    const first = (await socket.next(...END)).response
    assert.equal(first.status, 'completed')
    const said = { role: 'user', content: 'And what is two plus two?' }
    socket.send(create({ model, previous_response_id: first.id, input: [said], store: false }))
    const second = (await socket.next(...END)).response
    assert.equal(second.status, 'completed')
    assert.ok(second.usage.input_tokens > first.usage.input_tokens, 'the vendor got the whole conversation')
    const asked = JSON.stringify(g.sandbox.seen.calls.at(-1)?.body)
    assert.match(asked, /My name is Ada.*two plus two/)
    assert.doesNotMatch(asked, /previous_response_id|stream_id|"generate"/)
    socket.ws.close()
  }
  const other = await open(key)
  other.send(create({ previous_response_id: 'resp_of_another_socket', store: false }))
  const { status, error } = await other.next('error')
  assert.deepEqual([status, error.code], [400, 'previous_response_not_found'])
  other.ws.close()
  assert.ok((await g.calls(id)).length >= 4)
})

test('streams run beside each other, and each in the order sent', async () => {
  const { key } = await g.account()
  const socket = await open(key)
  for (const stream_id of ['a', 'b', 'a']) socket.send(create({ stream_id, store: false }))
  const ends = [await socket.next(...END), await socket.next(...END), await socket.next(...END)]
  assert.deepEqual(ends.map((one) => one.stream_id).sort(), ['a', 'a', 'b'])
  assert.ok(socket.events.every((one) => one.stream_id === 'a' || one.stream_id === 'b'))
  const ids = socket.events.filter((one) => one.type === 'response.created' && one.stream_id === 'a')
  const dones = socket.events.filter((one) => one.type === 'response.completed' && one.stream_id === 'a')
  assert.deepEqual(
    ids.map((one) => one.response.id),
    dones.map((one) => one.response.id),
  )
  assert.ok(socket.events.indexOf(dones[0]) < socket.events.indexOf(ids[1]))
  for (let i = 0; i < 12; i++) socket.send(create({ store: false }))
  assert.equal((await socket.next('error')).status, 429)
  socket.ws.close()
})

test('what is wrong with a frame is an error event with its status, and nothing is charged', async () => {
  const { id, key } = await g.account()
  const socket = await open(key)
  const wrong: [frame: string | object, status: number, words: RegExp][] = [
    ['{', 400, /JSON/],
    ['[]', 400, /object/],
    [{}, 400, /"type" is missing/],
    [{ type: 'response.steer', input: 'x' }, 400, /response\.steer/],
    [create({ model: 'no-such' }), 404, /no-such/],
    [create({ background: true }), 400, /background/],
    [create({ stream_id: 5 }), 400, /stream_id/],
    [create({ input: 5 }), 400, /input/],
    [create({ generate: false, model: 'no-such' }), 404, /no-such/],
  ]
  for (const [frame, status, words] of wrong) {
    socket.send(frame)
    const event = await socket.next('error')
    assert.equal(event.status, status, JSON.stringify(event))
    assert.match(event.error.message, words)
    assert.match(event.request_id, /^req_/)
  }
  // It is still of use.
  socket.send(create({ store: false }))
  assert.equal((await socket.next(...END)).type, 'response.completed')
  socket.ws.send(Buffer.from('{}'), { binary: true })
  assert.equal((await socket.closed()).code, 1003)
  const large = await open(key)
  large.send(create({ input: 'x'.repeat(17_000_000) }))
  assert.equal((await large.closed()).code, 1009)
  assert.deepEqual((await g.calls(id)).filter(({ charged }) => charged > 0n).length, 1)
})

test('a caller that sends wrong frames and reads nothing is held back, and its socket ends', async () => {
  const { key } = await g.account()
  for (const path of [at, '/v1/realtime?model=alpha-realtime-1']) {
    const socket = await openSocket(g.url + path, { key })
    socket.ws.pause()
    for (let i = 0; i < 500; i++) socket.send('{')
    socket.ws.resume()
    assert.equal((await socket.closed()).code, 1008)
    assert.equal(socket.events.filter(({ type }) => type === 'error').length, 50)
  }
  const unread = new Promise<void>(() => undefined)
  const socket = { signal: new AbortController().signal, isLeaving: false, sendError: () => unread }
  const call = () => ({ id: 'req_1' })
  const request: any = { headers: {}, principal: { accountId: 'a' } }
  const session: any = { socket, call, request, refused: () => undefined }
  const listener = responseSocket({ remembered: { open: () => undefined } } as any)(request).listen(session)
  assert.equal(listener.frame(Buffer.from('{'), { release: () => undefined } as any), unread)
})

test('a handshake is refused as HTTP with the reason, and a path without sockets says so', async () => {
  const { key } = await g.account()
  await assert.rejects(open('tg_live_unknown'), /^Error: 401 /)
  await assert.rejects(openSocket(g.url + at), /^Error: 401 .*No API key/)
  await assert.rejects(openSocket(`${g.url}/v1/chat/completions`, { key }), /^Error: 426 .*not offered/)
  const plain = await g.call(at, key)
  assert.equal(plain.status, 426)
  assert.equal(plain.headers.get('upgrade'), 'websocket')
})

test('an account without credits gets 402 for each response, and holds nothing', async () => {
  const { id, key } = await g.account({ credits: 1n })
  const socket = await open(key)
  socket.send(create({ store: false }))
  const { status, error, headers } = await socket.next('error')
  assert.equal(status, 402)
  assert.match(error.message, /Insufficient credit/)
  assert.ok(headers['x-tollgate-required'])
  socket.ws.close()
  assert.deepEqual(await g.balance(id), { posted: 1n, held: 0n })
})

test('a key that is revoked ends with its socket', async () => {
  const { key, keyId } = await g.account()
  const socket = await open(key)
  socket.send(create({ store: false }))
  await socket.next('response.completed')
  await g.operator('DELETE', `/keys/${keyId}`)
  assert.equal((await socket.closed()).code, 1008)
  await until(async () => (await g.call('/v1/models', key)).status, 401)
})

test('a client that leaves in mid-response is charged for what was delivered, and nothing stays held', async () => {
  const { id, key } = await g.account()
  const socket = await open(key)
  socket.send(create({ input: '[[slow=20]] Write an essay about toll gates.', store: false }))
  await socket.next('response.output_text.delta')
  socket.ws.terminate()
  const [row, ...more] = await g.calls(id)
  assert.equal(row?.status, 499)
  assert.ok(row.charged > 0n)
  assert.deepEqual(more, [])
  assert.equal((await g.balance(id)).held, 0n)
})

test('however many responses run at once on sockets, an account spends no more than it has', async () => {
  const { id, key } = await g.account({ credits: 3_000_000n })
  const sockets = await atOnce(10, () => open(key))
  for (const socket of sockets)
    for (const stream_id of ['a', 'b', 'c']) socket.send(create({ stream_id, store: false, input: 'Write an essay.' }))
  const ends = await Promise.all(
    sockets.map(async (socket) => [await socket.next(...END), await socket.next(...END), await socket.next(...END)]),
  )
  const failed = ends.flat().filter(({ type, status }) => type === 'error' && status !== 402 && status !== 503)
  assert.deepEqual(failed, [])
  for (const socket of sockets) socket.ws.close()
  await g.settled()
  const rows = await g.calls(id)
  const charged = rows.reduce((sum, row) => sum + row.charged, 0n)
  const { posted, held } = await g.balance(id)
  assert.equal(posted + charged, 3_000_000n)
  assert.ok(posted >= 0n)
  assert.equal(held, 0n)
  none(rows, ({ loss }) => loss !== 0n)
})

test('a shutdown lets a running response end, and tells the sockets that the gateway goes', async () => {
  const own = await startGateway({ catalog: openAllDoors })
  const { key } = await own.account()
  const [idle, busy] = [await openSocket(own.url + at, { key }), await openSocket(own.url + at, { key })]
  busy.send(create({ input: '[[slow=5]] Say hello.', store: false }))
  await busy.next('response.created')
  const closing = own.close()
  assert.equal((await idle.closed()).code, 1001)
  busy.send(create({ stream_id: 'late', store: false }))
  assert.equal((await busy.next('error', 'response.completed')).status, 503)
  assert.equal((await busy.next(...END)).type, 'response.completed')
  assert.equal((await busy.closed()).code, 1001)
  await closing
})

test('where no sockets are taken, a handshake hears 426', async () => {
  const none = createSockets({ world: realWorld, budget: { open: () => assert.fail() }, socketsMax: 0 })
  const asked: any = { account: 'a', link: new PassThrough() }
  await assert.rejects(
    none.accept(asked, () => assert.fail()),
    { status: 426 },
  )
})

test('an account may have as many sockets as it leaves free for others', async () => {
  const own = await startGateway({ env: { TOLLGATE_SOCKETS_MAX: '5' } })
  const [one, other] = [await own.account(), await own.account()]
  const sockets = [await openSocket(own.url + at, one), await openSocket(own.url + at, one)]
  await assert.rejects(openSocket(own.url + at, one), /^Error: 429 .*Too many WebSockets/)
  sockets.push(await openSocket(own.url + at, other))
  sockets[0]?.ws.close()
  await sockets[0]?.closed()
  sockets.push(await openSocket(own.url + at, one))
  await own.close()
  for (const socket of sockets.slice(1)) assert.equal((await socket.closed()).code, 1001)
})
