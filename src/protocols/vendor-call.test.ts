import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HttpCall } from '../upstream/call.ts'
import type { Target } from './protocol.ts'
import { vendorCall } from './vendor-call.ts'

const target: Target = {
  protocol: 'openai-chat',
  baseUrl: 'https://vendor.example/v1',
  secret: 'k&y',
  headers: { 'x-region': 'north' },
  model: 'm',
}
const call: HttpCall = { method: 'POST', url: 'https://vendor.example/v1/x', headers: { accept: 'application/json' } }

test('a vendor gets its credential where it looks for it, and its extra headers', () => {
  const sent = (over: Partial<Target>, from = call) => vendorCall(from, { ...target, ...over })
  const headers = { accept: 'application/json', 'x-region': 'north' }
  assert.deepEqual(sent({}).headers, { authorization: 'Bearer k&y', ...headers })
  assert.deepEqual(sent({ protocol: 'anthropic-messages' }).headers, { 'x-api-key': 'k&y', ...headers })
  const asBearer = sent({ protocol: 'anthropic-messages', auth: 'bearer' })
  assert.deepEqual(asBearer.headers, { authorization: 'Bearer k&y', ...headers })
  assert.deepEqual(sent({ auth: { header: 'api-key' } }).headers, { 'api-key': 'k&y', ...headers })
  assert.deepEqual(sent({ auth: { query: 'key' } }), { ...call, url: `${call.url}?key=k%26y`, headers })
  assert.equal(sent({ auth: { query: 'key' } }, { ...call, url: `${call.url}?a=1` }).url, `${call.url}?a=1&key=k%26y`)
  assert.deepEqual(sent({ secret: undefined }).headers, headers)
})

test('of calls to one target each keeps its own address and headers, and its body', () => {
  const send = (over: Partial<HttpCall>) => vendorCall({ ...call, ...over }, target)
  const first = send({ body: 'a' })
  const second = send({ body: 'b' })
  assert.deepEqual([first.headers, first.body, second.body], [second.headers, 'a', 'b'])
  assert.throws(() => send({ url: `${call.url}/%2e%2e/other` }), /not a valid id/)
  assert.equal(send({ headers: { accept: 'text/event-stream' } }).headers.accept, 'text/event-stream')
  assert.equal(send({}).url, call.url)
  assert.equal(vendorCall(call, { ...target, secret: 'other' }).headers.authorization, 'Bearer other')
})
