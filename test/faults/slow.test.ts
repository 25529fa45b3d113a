// F12: callers who do not read. Their streams hold the vendor back instead of filling the memory, and end.
import { afterEach, assert, pause, runs, started, test, until } from '../kit.ts'
import {
  chatBody,
  chunk,
  DONE,
  fastWorld,
  STREAM_HEADERS,
  startFaultGateway,
  startVendor,
  usage,
  usageChunk,
} from './chat-vendor.ts'
import { count, post, type RawCall } from './raw-client.ts'

const STREAM_BYTES = 20_000_000
/** What a socket's buffers on both sides of the gateway may hold; the kernel grows them to several megabytes. */
const BUFFERED_BYTES_MAX = 14_000_000
const vendor = started(startVendor)
const timeouts = { connectMs: 3_000_000, firstByteMs: 3_000_000, idleMs: 3_000_000, totalMs: 3_600_000 }
const g = started(() =>
  startFaultGateway({ vendors: { mock: { baseUrl: vendor.url, timeouts, onAbort: 'cancel' } }, world: fastWorld }),
)
afterEach(() => g.settled())

/** A stream that nobody reads yet. In this hurried world the ledger is too slow at times, and says so. */
async function begin(key: string, prompt: string): Promise<RawCall> {
  const call = post(g.url, { key, body: chatBody(prompt, { stream: true }), read: false })
  return (await call.response).statusCode === 200 ? call : begin(key, prompt)
}

test('callers who do not read pause their vendors, cost no memory, and are cut after 30 s without progress', async () => {
  const written: number[] = []
  const frame = chunk('x'.repeat(16_000))
  vendor.answer = async ({ response, prompt, closed }) => {
    const index = Number(prompt)
    written[index] = 0
    let gone = false
    void closed.then(() => {
      gone = true
    })
    response.writeHead(200, STREAM_HEADERS)
    while (written[index]! < STREAM_BYTES && !gone) {
      written[index]! += frame.length
      if (!response.write(frame))
        await Promise.race([new Promise((resolve) => response.once('drain', resolve)), closed])
    }
    if (!gone) response.end(chunk('', 'stop') + usageChunk(usage(1, 1)) + DONE)
  }
  const clients = runs(20, 200)
  const { id, key } = await g.account()
  const before = process.memoryUsage().rss
  const calls = await Promise.all([...count(clients)].map((index) => begin(key, String(index))))
  let peak = 0
  await until(() => {
    peak = Math.max(peak, process.memoryUsage().rss - before)
    return g.gateway.monitor.running === 0
  })
  for (const [index, bytes] of written.entries())
    assert.ok(bytes < BUFFERED_BYTES_MAX, `vendor ${index} could send ${bytes} bytes to a caller who reads nothing`)
  assert.ok(peak < 300_000_000, `the memory grew by ${peak} bytes`)
  const rows = (await g.calls(id)).filter(({ held }) => held > 0n)
  assert.ok(rows.length >= clients)
  // What left the vendor was delivered as far as anyone can know.
  for (const { status, charged } of rows) assert.ok((status === 499 && charged > 0n) || status === 503)
  for (const call of calls) call.leave()
})

test('a caller who reads slowly gets everything', async () => {
  const words = Array.from({ length: 400 }, (_, i) => `${i}:${'y'.repeat(4_000)} `)
  vendor.answer = ({ response }) => {
    response.writeHead(200, STREAM_HEADERS)
    response.end(words.map((word) => chunk(word)).join('') + chunk('', 'stop') + usageChunk(usage(1, 400)) + DONE)
  }
  const { id, key } = await g.account()
  const answer = await (await begin(key, 'slow')).response
  let text = ''
  let pauses = 0
  for await (const piece of answer) {
    text += piece
    if (++pauses % 4 === 0) await pause(1, 'a reader that is slow')
  }
  for (const [i] of words.entries()) assert.ok(text.includes(`"${i}:y`), `word ${i} is missing`)
  assert.ok(text.endsWith(DONE))
  await g.settled()
  assert.equal((await g.balance(id)).posted, 1_000_000_000n - 801n)
})
