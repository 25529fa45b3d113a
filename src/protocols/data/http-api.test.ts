import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSandbox } from '../../../sandbox/server.ts'
import { started } from '../../../test/started.ts'
import { ANALYTICS } from '../../catalog/analytics.ts'
import { Fault } from '../../kernel/fault.ts'
import { realWorld } from '../../kernel/world.ts'
import type { Exchange, Target } from '../protocol.ts'
import { readDataRequest } from './http-api.ts'

const NOW_MS = Date.UTC(2026, 10, 15, 12)
const OPEN = { requestId: 'req_test', createdSeconds: NOW_MS / 1000, signal: new AbortController().signal }

const sandbox = started(() => startSandbox({ world: { ...realWorld, nowMs: () => NOW_MS } }))

const target = (): Target => ({
  protocol: 'site-analytics',
  baseUrl: `${sandbox.url}/analytics`,
  secret: 's3cret',
  headers: {},
  model: 'any',
})

const rulesOf = (perRow: boolean) => ({ nowMs: NOW_MS, priced: new Set(perRow ? (['row'] as const) : []) })

async function ask(path: string, raw: string, perRow = false): Promise<Exchange> {
  const spec = ANALYTICS.find(({ vendorPath }) => vendorPath === path)
  assert.ok(spec)
  return readDataRequest(spec, { query: raw }, rulesOf(perRow)).open(target(), OPEN)
}

async function send(exchange: Exchange) {
  const response = await fetch(exchange.call.url, { headers: exchange.call.headers })
  const headers = Object.fromEntries(response.headers)
  return { status: response.status, headers, body: Buffer.from(await response.arrayBuffer()) }
}

const garbled = (error: unknown) => error instanceof Fault && error.kind === 'upstream_garbled' && error.status === 502

test('a good answer passes byte for byte, read or unread, and counts as one call', async () => {
  const exchange = await ask('websites/similar-sites/suggestions', 'key=example.com')
  const { status, headers, body } = await send(exchange)
  assert.equal(status, 200)
  const answer = await exchange.answer(body, headers)
  assert.equal(answer.body, body)
  assert.deepEqual(answer.usage, { call: 1 })
  assert.deepEqual(exchange.pass?.(headers), { contentType: 'application/json', usage: { call: 1 } })
})

test('an answer that is not JSON, is compressed or is empty is the vendor at fault', async () => {
  const page = await ask('websites/visits', 'keys=fault-html.example')
  const { headers, body } = await send(page)
  assert.throws(() => page.answer(body, headers), garbled)
  assert.throws(() => page.pass?.(headers), garbled)
  const nothing = await ask('websites/visits', 'keys=fault-empty.example')
  const empty = await send(nothing)
  assert.throws(() => nothing.answer(empty.body, empty.headers), garbled)
  const json = { 'content-type': 'application/json' }
  assert.throws(() => page.pass?.({ ...json, 'content-encoding': 'gzip' }), garbled)
  assert.throws(() => page.pass?.({}), garbled)
  for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'text/json'])
    assert.equal(page.pass?.({ 'content-type': type }).contentType, type)
  for (const type of ['application/problem+json', 'application/json; note=x'])
    assert.equal(page.pass?.({ 'content-type': type }).contentType, 'application/json')
  for (const type of ['application/jsonp', 'text/plain', 'application/javascript', 'json'])
    assert.throws(() => page.pass?.({ 'content-type': type }), garbled)
})

test('rows are held for and counted only when they have a price', async () => {
  const spec = ANALYTICS.find(({ vendorPath }) => vendorPath === 'websites/backlinks')
  assert.ok(spec)
  const worst = (raw: string) => readDataRequest(spec, { query: raw }, rulesOf(true)).worst
  assert.deepEqual(worst('Key=example.com'), { call: 1, row: 100 })
  assert.deepEqual(worst('Key=example.com&PageSize=7'), { call: 1, row: 7 })
  assert.deepEqual(readDataRequest(spec, { query: 'Key=example.com' }, rulesOf(false)).worst, { call: 1 })

  const counted = [
    ['websites/backlinks', 'Key=example.com&PageSize=7', 7],
    ['websites/keywords', 'keys=example.com&pageSize=9', 9],
    ['websites/geography', 'keys=example.com', 5],
    ['websites/similar-sites/suggestions', 'key=example.com&limit=3', 3],
    ['keywords/suggestions', 'keyword=tea&rowsPerPage=4', 4],
    ['websites/visits', 'keys=example.com', 1],
  ] as const
  for (const [path, raw, rows] of counted) {
    const exchange = await ask(path, raw, true)
    assert.equal(exchange.pass, undefined, 'rows cannot be counted unread')
    const { headers, body } = await send(exchange)
    assert.deepEqual((await exchange.answer(body, headers)).usage, { call: 1, row: rows }, path)
  }
  const broken = await ask('websites/visits', 'keys=example.com', true)
  assert.throws(() => broken.answer(Buffer.from('{"Data":'), { 'content-type': 'application/json' }), garbled)
})

test('a refusal about dates keeps its words, and a page for people has none', async () => {
  const exchange = await ask('websites/visits', 'keys=example.com&from=2019-01-01&to=2019-01-31')
  const { status, body } = await send(exchange)
  assert.equal(status, 400)
  const said = exchange.vendorError?.(body)?.message
  assert.equal(said, 'The requested dates are outside the allowed interval 2023-10-01 to 2026-11-14.')
  const words = (text: string) => exchange.vendorError?.(Buffer.from(text))?.message
  assert.equal(words('<html>no</html>'), undefined)
  assert.equal(words(''), undefined)
  assert.equal(words('{}'), undefined)
  assert.equal(words('{"error":{"message":"bad\\r\\ndates"}}'), 'bad  dates')
})

test('the vendor that fails on demand fails in just that way', async () => {
  const status = async (name: string) => (await send(await ask('websites/visits', `keys=fault-${name}.example`))).status
  for (const code of [400, 401, 403, 429, 500, 502, 503]) assert.equal(await status(String(code)), code)
  assert.equal((await send(await ask('websites/visits', 'keys=fault-429.example'))).headers['retry-after'], '2')
  await assert.rejects(status('cut'))
  await assert.rejects(status('hangup'))
})
