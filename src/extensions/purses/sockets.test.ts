// Calls of purses over sockets and by tools of agents: each names its purse as an HTTP call does, by the header of the
// handshake or by a session token.

import { afterEach, assert, jsonOf, needs, pluck, test, testGateway } from '../../../test/gateway.ts'
import { openSocket, type TestSocket } from '../../../test/socket-client.ts'
import type { NewSessionView, PurseMovement } from './views.ts'

const g = testGateway()
const REALTIME = '/v1/realtime?model=alpha-realtime-1'
const ANN = { 'x-tollgate-purse': 'ann' }
const SECRETS = '/v1/realtime/client_secrets'
const SESSION = { session: { type: 'realtime', model: 'alpha-realtime-1' } }
const SITE = 'https://app.example'
const sockets: TestSocket[] = []
afterEach(() => {
  for (const { ws } of sockets.splice(0)) ws.terminate()
})

async function opened(session: object = {}) {
  const { id, key } = await g.account({ credits: 1_000_000_000n })
  for (const purse of ['ann', 'bob']) await jsonOf(g.call('/v1/purses', key, { id: purse, credits: '100' }))
  const made = await jsonOf<{ data: NewSessionView }>(g.call('/v1/purses/ann/sessions', key, session))
  return { account: id, key, token: made.data.token, session: made.data.id }
}

async function spoken(options: Parameters<typeof openSocket>[1]) {
  const socket = await openSocket(g.url + REALTIME, options)
  sockets.push(socket)
  await socket.next('session.created')
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello.' }] }
  socket.send({ type: 'conversation.item.create', item })
  socket.send({ type: 'response.create', response: { output_modalities: ['text'] } })
  const done = await socket.next('response.done', 'error')
  assert.equal(done.type, 'response.done', JSON.stringify(done))
  return socket
}

async function written(options: Parameters<typeof openSocket>[1]) {
  const socket = await openSocket(`${g.url}/v1/responses`, options)
  sockets.push(socket)
  return answered(socket)
}

async function answered(socket: TestSocket, model = 'alpha-5.4') {
  socket.send({ type: 'response.create', model, input: 'Say hello.', store: false })
  const got = await socket.next('response.completed', 'error')
  assert.equal(got.type, 'response.completed', JSON.stringify(got))
  return socket
}

async function tooled(key: string, headers = {}) {
  const params = { name: 'ask_model', arguments: { model: 'alpha-5.4', prompt: 'Hello' } }
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
  const accept = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' }
  const answer = await g.call('/mcp', key, body, { headers: { ...accept, ...headers } })
  return { status: answer.status, text: await answer.text() }
}

/** What each purse paid for, and that the account paid for nothing else. */
async function paidBy(account: string, key: string) {
  await g.settled()
  const of = async (purse: string) => {
    const { data } = await jsonOf<{ data: { items: PurseMovement[] } }>(g.call(`/v1/purses/${purse}/movements`, key))
    return data.items.filter(({ kind }) => kind === 'settled').length
  }
  assert.deepEqual(await g.problems(), [])
  return { ann: await of('ann'), bob: await of('bob'), all: pluck(await g.calls(account), 'id').length }
}

test(
  'a conversation over a socket and a tool of agents are paid by the purse that the handshake or the request names',
  needs('agents', 'sockets'),
  async () => {
    const { account, key } = await opened()
    await spoken({ key, headers: ANN })
    assert.deepEqual(await paidBy(account, key), { ann: 1, bob: 0, all: 1 })
    await written({ key, headers: ANN })
    assert.deepEqual(await paidBy(account, key), { ann: 2, bob: 0, all: 2 })
    const { value } = await jsonOf<{ value: string }>(g.call(SECRETS, key, SESSION, { headers: ANN }))
    // Whoever has the client secret chooses no other purse.
    await spoken({ key: value, headers: { 'x-tollgate-purse': 'bob' } })
    assert.deepEqual(await paidBy(account, key), { ann: 3, bob: 0, all: 3 })
    const tool = await tooled(key, ANN)
    assert.equal(tool.status, 200, tool.text)
    assert.deepEqual(await paidBy(account, key), { ann: 4, bob: 0, all: 4 }, tool.text)
  },
)

test('a session token pays from its purse over sockets, and makes no client secrets', needs('sockets'), async () => {
  const { account, key, token, session } = await opened()
  await spoken({ key: token, headers: { 'x-tollgate-purse': 'bob' } })
  await written({ key: token })
  assert.deepEqual(await paidBy(account, key), { ann: 2, bob: 0, all: 2 })
  assert.equal((await g.call(SECRETS, token, SESSION)).status, 403)
  const open = await written({ key: token })
  await jsonOf(g.call(`/v1/purses/ann/sessions/${session}`, key, undefined, { method: 'DELETE' }))
  await assert.rejects(spoken({ key: token }))
  // Also on a socket that was open before.
  await assert.rejects(answered(open), /key_unknown|revoked/)
  assert.deepEqual(await paidBy(account, key), { ann: 3, bob: 0, all: 3 })
})

test(
  'a session token for one model, one site and a highest cost is that over sockets too',
  needs('sockets'),
  async () => {
    const other = await opened({ models: ['alpha-5.4'] })
    await assert.rejects(spoken({ key: other.token }))
    await assert.rejects(answered(await written({ key: other.token }), 'beta-sonnet-5'), /beta-sonnet-5/)
    assert.deepEqual(await paidBy(other.account, other.key), { ann: 1, bob: 0, all: 1 })
    const chat = await opened({ endpoints: ['chat'] })
    await assert.rejects(spoken({ key: chat.token }), /may not use the endpoint realtime/)
    const sited = await opened({ origins: [SITE] })
    await assert.rejects(spoken({ key: sited.token, headers: { origin: 'https://evil.example' } }))
    const cheap = await opened({ callMax: '0.000001' })
    await assert.rejects(spoken({ key: cheap.token }), /this session token allows 0\.000001 for one call/)
    assert.deepEqual(await paidBy(cheap.account, cheap.key), { ann: 0, bob: 0, all: 0 })
  },
)
