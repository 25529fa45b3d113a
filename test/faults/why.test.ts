// Why a call failed or took another way: what its page says of every attempt, and that a plain success says nothing.
import type { Page } from '../../src/kernel/view.ts'
import type { AttemptLog, UsageDetail, UsageView } from '../../src/ledger/views.ts'
import { OPERATOR_TOKEN, type TestGateway, textOf } from '../gateway.ts'
import { afterEach, assert, beforeEach, started, test, until } from '../kit.ts'
import {
  CHAT_PATH,
  chatBody,
  chunk,
  STREAM_HEADERS,
  startFaultGateway,
  startVendor,
  usage,
  wholeAnswer,
} from './chat-vendor.ts'
import { post } from './raw-client.ts'

const SECRET = 'sk-canary-first-0001'
const first = started(startVendor)
const second = started(startVendor)
const g = started(() =>
  startFaultGateway({
    vendors: { first: { baseUrl: first.url, credential: 'FIRST_KEY' }, second: { baseUrl: second.url } },
    env: { FIRST_KEY: SECRET },
  }),
)
beforeEach(() => {
  second.answer = ({ response }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('from the second', usage(10, 20)))
})
afterEach(() => g.settled())

async function detailOf(requestId: string | null, on: TestGateway = g): Promise<UsageDetail> {
  const text = await textOf(on.call(`/admin/v1/usage/${requestId}`, OPERATOR_TOKEN))
  return JSON.parse(text).data
}

/** A call from the first byte to the row that tells of it. */
async function told(body = chatBody('hello'), on: TestGateway = g) {
  const { key } = await on.account()
  const reply = await on.call(CHAT_PATH, key, body)
  const text = await reply.text()
  await on.settled()
  return { status: reply.status, text, detail: await detailOf(reply.headers.get('x-request-id'), on) }
}

const inShort = ({ attempts }: AttemptLog) =>
  attempts.map((one) => [one.vendor, one.route, one.status, one.fault, one.phase, one.cause, one.retried, one.stopped])

test('a plain success has no attempt log, and says which route answered and when its first byte came', async () => {
  first.answer = ({ response }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('hello', usage(1, 1)))
  const { detail } = await told()
  assert.deepEqual([detail.attemptLog, detail.fault, detail.route], [null, null, 1])
  assert.ok(detail.firstByteMs !== null && detail.firstByteMs >= 1)
})

test('what failed says with which parameters it was asked, and nothing of what was said', async () => {
  first.answer = ({ response }) => response.writeHead(400).end('{"error":{"message":"no"}}')
  const { detail } = await told(
    chatBody('my secret question', {
      temperature: 0.25,
      max_tokens: 77,
      reasoning_effort: 'low',
      user: 'mara',
      seed: 7,
    }),
  )
  assert.deepEqual(detail.attemptLog?.parameters, {
    max_tokens: 77,
    temperature: 0.25,
    seed: 7,
    reasoning_effort: 'low',
    messages: 1,
  })
  // Who it was for is a label; what was said is nowhere.
  assert.deepEqual(detail.labels, { user: 'mara' })
  assert.ok(!/secret question/.test(JSON.stringify(detail)) && !/mara/.test(JSON.stringify(detail.attemptLog)))
})

test('a call that took another way tells of the attempt before, in the vendor’s words without our key', async () => {
  first.answer = ({ response }) =>
    response.writeHead(529).end(`{"error":{"type":"overloaded_error","message":"too busy for ${SECRET}"}}`)
  const { status, detail } = await told()
  assert.equal(status, 200)
  const { attemptLog } = detail
  assert.ok(attemptLog)
  assert.deepEqual(inShort(attemptLog), [
    ['first', 1, 529, 'upstream_unavailable', null, null, true, null],
    ['second', 2, 200, null, null, null, false, null],
  ])
  assert.equal(attemptLog.fault, null)
  assert.equal(attemptLog.attempts[0]?.vendorError, 'overloaded_error: too busy for [key]')
  assert.ok(attemptLog.heldMs !== null && attemptLog.attempts[1]!.startMs >= attemptLog.attempts[0]!.startMs)
})

test('a failure tells of each attempt, its cause and deadline, and what the caller was told', async () => {
  first.answer = ({ response }) => response.socket?.resetAndDestroy()
  second.answer = ({ response }) => response.writeHead(500).end()
  const reset = await told()
  assert.equal(reset.status, 502)
  assert.deepEqual(inShort(reset.detail.attemptLog!), [
    ['first', 1, null, 'upstream_failed', 'first-byte', 'ECONNRESET', true, null],
    ['second', 2, 500, 'upstream_failed', null, null, false, 'exhausted'],
  ])
  const { fault } = reset.detail.attemptLog!
  assert.deepEqual([fault?.name, fault?.code, fault?.blame], ['upstream_failed', 50000, 'vendor'])
  assert.ok(reset.text.includes(fault!.message))
  assert.deepEqual([reset.detail.route, reset.detail.firstByteMs, reset.detail.fault], [null, null, 'upstream_failed'])

  first.answer = () => {}
  await using hasty = await startFaultGateway({
    vendors: { first: { baseUrl: first.url, timeouts: { firstByteMs: 300 } } },
  })
  const slow = await told(chatBody('hello'), hasty)
  assert.equal(slow.status, 504)
  const [attempt] = slow.detail.attemptLog!.attempts
  assert.deepEqual([attempt?.phase, attempt?.deadlineMs, attempt?.stopped], ['first-byte', 300, 'timeout'])

  first.answer = ({ response }) => response.writeHead(400).end('{"error":{"message":"temperature is too high"}}')
  const refused = await told()
  assert.deepEqual(inShort(refused.detail.attemptLog!), [
    ['first', 1, 400, 'upstream_invalid', null, null, false, 'rejected'],
  ])
  assert.match(refused.detail.attemptLog!.fault!.message, /temperature is too high/)
})

test('an answer that breaks off is one attempt that failed, with the status that it had', async () => {
  first.answer = ({ response }) => {
    response.writeHead(200, STREAM_HEADERS)
    response.write(chunk('once '), () => response.socket?.resetAndDestroy())
  }
  assert.deepEqual(inShort((await told(chatBody('hello', { stream: true }))).detail.attemptLog!), [
    ['first', 1, 200, 'upstream_failed', 'body', 'ECONNRESET', false, 'interrupted'],
  ])
})

test('a caller who leaves before the first byte leaves behind for whom it waited', async () => {
  let asked = 0
  first.answer = () => {
    asked += 1
  }
  const { id, key } = await g.account()
  const call = post(g.url, { key, body: chatBody('hello') })
  await until(() => asked, 1)
  call.leave()
  await until(() => g.gateway.monitor.running, 0)
  await g.settled()
  const listed = await g.call(`/admin/v1/accounts/${id}/usage`, OPERATOR_TOKEN)
  const { data } = (await listed.json()) as { data: Page<UsageView> }
  const row = data.items[0]!
  assert.deepEqual([row.status, row.fault, row.firstByteMs, row.route], [499, null, null, null])
  const { attemptLog } = await detailOf(row.id)
  assert.deepEqual([attemptLog?.fault, attemptLog?.attempts[0]?.stopped], [null, 'client_closed'])
})
