// Callers who wait for what others hold: a cached response that is still on its way, and room for large bodies.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { realWorld } from '../src/kernel/world.ts'
import { assert, beforeEach, listen, started, test, testGateway, until } from './gateway.ts'

/** For how long somebody waits for room among large bodies, and for another's answer. */
const PATIENCE_MS = 10_000
/** Where nobody may give up, however busy the machine is; and where all shall. */
const ENDLESS_MS = 600_000
const IMPATIENCE_MS = 100
let patienceMs = ENDLESS_MS
const PATH = '/v1/siteanalytics/websites/ranks?keys='

/** Requests that the vendor has not answered yet. */
const open: ServerResponse[] = []
const vendor = started(() =>
  listen((_request, response) => void open.push(response.setHeader('content-type', 'application/json'))),
)
const g = testGateway(() => ({
  env: { TOLLGATE_BYTES_IN_FLIGHT_MAX: '6000000' },
  world: { ...realWorld, after: (ms, run) => realWorld.after(ms === PATIENCE_MS ? patienceMs : ms, run) },
  catalog(document) {
    document.vendors.analytics.baseUrl = vendor.url
    document.endpoints['siteanalytics/websites/ranks'].cache = { ttlSeconds: 60 }
  },
}))
let account: { id: string; key: string }
beforeEach(async () => {
  account = await g.account()
})

const outcomes = async () =>
  (
    await g.sql<{ outcome: string; status: number }>(
      'select outcome, status from usage where account_id = $1 order by at, id',
      [account.id],
    )
  ).map(({ outcome, status }) => `${outcome} ${status}`)

/** Calls the same endpoint as often, the first of them a moment before the others, and gives what ends each of them. */
async function callTogether(site: string, times: number) {
  const controls = Array.from({ length: times }, () => new AbortController())
  // By its own socket, and not by how many there are: fetch opens another for each that it cuts.
  const sockets = new Map<string, Socket>()
  const arrived = ({ headers, socket }: IncomingMessage) => sockets.set(String(headers['x-caller']), socket)
  g.gateway.app.server.on('request', arrived)
  const ask = ({ signal }: AbortController, index: number) =>
    g.call(PATH + site, account.key, undefined, { signal, headers: { 'x-caller': String(index) } })
  const first = ask(controls[0]!, 0)
  await until(() => open.length, 1)
  const calls = [first, ...controls.slice(1).map((control, index) => ask(control, index + 1))]
  await until(() => g.gateway.monitor.running, times)
  g.gateway.app.server.off('request', arrived)
  return calls.map((call, index) => ({
    call,
    async leave() {
      controls[index]!.abort()
      await assert.rejects(call)
      await until(() => sockets.get(String(index))?.destroyed, true)
    },
  }))
}

test('who leaves while waiting for the answer to another’s call asks for nothing and pays nothing', async () => {
  const [first, second] = await callTogether('left.example', 2)
  await second!.leave()
  open.pop()!.end('{"Data":{}}')
  assert.equal((await first!.call).headers.get('x-cache'), 'miss')
  await until(() => g.gateway.monitor.running, 0)
  await g.settled()
  assert.deepEqual(await outcomes(), ['settled 200'])
  assert.equal(open.length, 0, 'the vendor was asked once')
})

test('when the first call comes to nothing, the next of those who wait asks, and the rest wait for that one', async () => {
  const [first, ...others] = await callTogether('failed.example', 3)
  await first!.leave()
  open.shift() // The next may have asked already.
  await until(() => open.length, 1)
  open.pop()!.end('{"Data":{}}')
  const answers = await Promise.all(others.map(({ call }) => call))
  assert.deepEqual(answers.map(({ headers }) => headers.get('x-cache')).sort(), ['hit', 'miss'])
  await g.settled()
  assert.deepEqual(await outcomes(), ['released 499', 'settled 200', 'settled 200'])
  assert.equal(open.length, 0)
})

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk'
const quote = (more: object = {}) =>
  g.call('/v1/quote?endpoint=images', account.key, { model: 'alpha-image-2', prompt: 'a gate', ...more })
const withPicture = (chars: number) => ({ image_urls: [`data:image/png;base64,${PNG}${'A'.repeat(chars)}`] })
const upload = (bytes: number) => {
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob(['x'.repeat(bytes)]), 'lines.jsonl')
  return fetch(`${g.url}/v1/files`, { method: 'POST', headers: { authorization: `Bearer ${account.key}` }, body: form })
}

/** Another account's body, of which more has come than there is room for, and the rest does not come. */
async function occupied(head: string, more: string): Promise<Socket> {
  const { key } = await g.account()
  const socket = connect(Number(new URL(g.url).port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`POST ${head}\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: 8000000\r\n\r\n`)
  await new Promise((resolve) => socket.write(more, resolve))
  return socket
}

test('a large quote or file is refused when there is no room among large bodies, a small quote never is, and none leaves room taken', async () => {
  patienceMs = IMPATIENCE_MS
  const begun = `{"model":"alpha-image-2","prompt":"x","image_urls":["data:image/png;base64,${PNG}${'A'.repeat(6_400_000)}`
  const socket = await occupied('/alpha/v1/images/generations HTTP/1.1\r\ncontent-type: application/json', begun)
  await until(async () => (await quote(withPicture(200_000))).status, 503)
  const refused = await quote(withPicture(200_000))
  assert.match(await refused.text(), /large requests/)
  assert.equal((await upload(200_000)).status, 503, 'a file is counted by the same budget')
  assert.equal((await quote()).status, 200, 'what is read for everybody is not worth counting')
  assert.equal((await upload(1_000)).status, 200)
  patienceMs = ENDLESS_MS
  socket.destroy()
  await until(async () => (await quote(withPicture(200_000))).status, 200)
  for (let times = 0; times < 8; times++) assert.equal((await quote(withPicture(900_000))).status, 200)
  for (let times = 0; times < 8; times++) assert.equal((await upload(900_000)).status, 200)
})

test('a quote of one picture that takes more than half of the room is answered', async () => {
  assert.equal((await quote(withPicture(3_500_000))).status, 200)
})

test('what of a file is stored keeps nobody else from the room, though the rest does not come', async () => {
  const part = `--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${'x'.repeat(6_400_000)}`
  const socket = await occupied('/v1/files HTTP/1.1\r\ncontent-type: multipart/form-data; boundary=x', part)
  assert.equal((await quote(withPicture(900_000))).status, 200)
  socket.destroy()
})
