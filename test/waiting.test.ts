// Callers who wait for what others hold: a kept answer that is still on its way, and room for large bodies.
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { promisify } from 'node:util'
import { realWorld } from '../src/kernel/world.ts'
import { until } from './faults/raw-client.ts'
import { startGateway, type TestGateway } from './gateway.ts'

/** The budget's patience; the test of it need not have as much. */
const PATIENCE_MS = 10_000
const PATH = '/v1/siteanalytics/websites/ranks?keys='

/** Requests that the vendor has not answered yet. */
const open: ServerResponse[] = []
const vendor = createServer(
  (_request, response) => void open.push(response.setHeader('content-type', 'application/json')),
)
let g: TestGateway
let account: { id: string; key: string }
before(async () => {
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
  g = await startGateway({
    env: { TOLLGATE_BYTES_IN_FLIGHT_MAX: '6000000' },
    world: { ...realWorld, after: (ms, run) => realWorld.after(ms === PATIENCE_MS ? 100 : ms, run) },
    catalog(document) {
      document.vendors.analytics.baseUrl = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`
      document.endpoints['siteanalytics/websites/ranks'].cache = { ttlSeconds: 60 }
    },
  })
})
after(async () => {
  await g.close()
  vendor.close()
})
beforeEach(async () => {
  account = await g.account()
})

const outcomes = async () =>
  (
    await g.gateway.database.query<{ outcome: string; status: number }>(
      { text: 'select outcome, status from usage where account_id = $1 order by at, id' },
      [account.id],
    )
  ).map(({ outcome, status }) => `${outcome} ${status}`)

const connections = () => promisify(g.gateway.app.server.getConnections.bind(g.gateway.app.server))()

/** Calls the same endpoint as often, the first of them a moment before the others, and gives what ends each of them. */
async function callTogether(site: string, times: number) {
  const controls = Array.from({ length: times }, () => new AbortController())
  const ask = ({ signal }: AbortController) => g.call(PATH + site, account.key, undefined, { signal })
  const first = ask(controls[0]!)
  await until(() => open.length === 1)
  const calls = [first, ...controls.slice(1).map(ask)]
  await until(() => g.gateway.monitor.running === times)
  return calls.map((call, index) => ({
    call,
    async leave() {
      const before = await connections()
      controls[index]!.abort()
      await assert.rejects(call)
      await until(async () => (await connections()) < before)
    },
  }))
}

test('who leaves while waiting for the answer to another’s call asks for nothing and pays nothing', async () => {
  const [first, second] = await callTogether('left.example', 2)
  await second!.leave()
  open.pop()!.end('{"Data":{}}')
  assert.equal((await first!.call).headers.get('x-cache'), 'miss')
  await until(() => g.gateway.monitor.running === 0)
  await g.settled()
  assert.deepEqual(await outcomes(), ['settled 200'])
  assert.equal(open.length, 0, 'the vendor was asked once')
})

test('when the first call comes to nothing, the next of those who wait asks, and the rest wait for that one', async () => {
  const [first, ...others] = await callTogether('failed.example', 3)
  await first!.leave()
  open.pop()
  await until(() => open.length === 1)
  open.pop()!.end('{"Data":{}}')
  const answers = await Promise.all(others.map(({ call }) => call))
  assert.deepEqual(answers.map(({ headers }) => headers.get('x-cache')).sort(), ['hit', 'miss'])
  await g.settled()
  assert.deepEqual(await outcomes(), ['released 499', 'settled 200', 'settled 200'])
  assert.equal(open.length, 0)
})

test('a quote of an image leaves none of the room for large bodies taken', async () => {
  const quote = (more: object = {}) =>
    g.call('/v1/quote?endpoint=images', account.key, { model: 'alpha-image-2', prompt: 'a gate', ...more })
  const large = { image_urls: [`data:image/png;base64,${'A'.repeat(900_000)}`] }
  for (let times = 0; times < 8; times++) assert.equal((await quote(large)).status, 400, 'that is no picture')
  assert.equal((await quote()).status, 200)
})
