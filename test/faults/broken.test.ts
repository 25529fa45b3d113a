// F7, F8, F9, F10: vendors' answers that are cut, sliced, no text at all, or without end.
import { randomBytes } from 'node:crypto'
import { afterEach, assert, runs, started, test, until } from '../kit.ts'
import {
  chatBody,
  chunk,
  DONE,
  event,
  STREAM_HEADERS,
  startFaultGateway,
  startVendor,
  usage,
  usageChunk,
  wholeStream,
} from './chat-vendor.ts'
import { count, each, post } from './raw-client.ts'

const vendor = started(startVendor)
// Hundreds of broken answers in a row are the point here, and the breaker counts only connections that never answer.
const g = started(() => startFaultGateway({ vendors: { mock: { baseUrl: vendor.url } } }))
afterEach(() => g.settled())

/** The data of every event. */
function dataOf(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6))
}

function textOf(stream: string): string {
  return dataOf(stream)
    .filter((data) => data !== '[DONE]')
    .map(
      (data) =>
        (JSON.parse(data) as { choices?: Array<{ delta?: { content?: string } }> }).choices?.[0]?.delta?.content ?? '',
    )
    .join('')
}

const isError = (data: string) => data.startsWith('{"error"')

test('a stream that is cut at any byte never looks complete, and costs only what the vendor had reported', async () => {
  const words = Array.from({ length: 7 }, (_, i) => `wörd${i} `)
  const whole = Buffer.from(wholeStream(words, 11, 22))
  assert.ok(whole.length > 1_500 && whole.length < 2_500)
  const reportedFrom = whole.indexOf('data: [DONE]')
  vendor.answer = async ({ response, prompt }) => {
    const [bytes, how] = prompt.split(' ')
    response.writeHead(200, STREAM_HEADERS)
    const part = whole.subarray(0, Number(bytes))
    if (how === 'end') response.end(part)
    else response.write(part, () => response.socket?.resetAndDestroy())
    await Promise.resolve()
  }
  const { key } = await g.account()
  const endings = new Map<string, { bytes: number; complete: boolean }>()
  const cuts = [...count(whole.length)].filter((bytes) => bytes % runs(3, 1) === 0)
  await each(cuts, 20, async (bytes) => {
    const how = bytes % 2 === 0 ? 'end' : 'reset'
    const call = post(g.url, { key, body: chatBody(`${bytes} ${how}`, { stream: true }) })
    const answer = await call.response
    const text = await call.text()
    const data = dataOf(text)
    const complete = answer.statusCode === 200 && !data.some(isError)
    endings.set(String(answer.headers['x-request-id']).slice('req_'.length), { bytes, complete })
    if (answer.statusCode !== 200) {
      assert.equal(answer.statusCode, 502, `${bytes}: ${text}`)
      assert.equal((JSON.parse(text) as { code: number }).code, 50000)
    } else if (!complete) assert.equal(data.at(-2), data.find(isError), 'the error is the last word')
    else {
      assert.equal(textOf(text), words.join(''), `${bytes} of ${whole.length} bytes look complete`)
      assert.match(text, /"finish_reason":"stop"/)
    }
  })
  await g.settled()
  const rows = await g.sql<{ id: string; charged: bigint }>('select id, charged from usage')
  for (const { id, charged } of rows) {
    const { bytes, complete } = endings.get(id)!
    // A reset may overtake the bytes before it, so what was reported may or may not have arrived.
    if (complete) assert.ok(charged > 0n, `${bytes} bytes were free`)
    else assert.ok(charged === 0n || (charged === 55n && bytes >= reportedFrom), `${bytes} bytes cost ${charged}`)
  }
  assert.equal(rows.length, cuts.length)
})

test('Chinese and emoji arrive whole, wherever the stream is sliced', async () => {
  const words = ['漢字かな', '🎉👩‍👩‍👧', 'ñandú ', '🇩🇪', 'ﷺ']
  const whole = Buffer.from(wholeStream(words, 3, 5))
  vendor.answer = async ({ response, prompt }) => {
    response.writeHead(200, STREAM_HEADERS)
    const at = Number(prompt)
    const pieces =
      prompt === 'each' ? [...whole].map((byte) => Buffer.from([byte])) : [whole.subarray(0, at), whole.subarray(at)]
    for (const piece of pieces) {
      if (piece.length > 0) response.write(piece)
      await new Promise((resolve) => setImmediate(resolve))
    }
    response.end()
  }
  const { key } = await g.account()
  const read = async (prompt: string) => {
    const call = post(g.url, { key, body: chatBody(prompt, { stream: true }) })
    return (await call.text()).replace(/^: tollgate.*\n/m, '')
  }
  const expected = await read('0')
  assert.equal(textOf(expected), words.join(''))
  await each([...[...count(whole.length)].filter((at) => at % runs(4, 1) === 0), 'each'], 20, async (at) => {
    const text = await read(String(at))
    assert.equal(text, expected, `sliced at ${at}`)
    assert.ok(!text.includes('\ufffd'))
  })
})

test('bytes that are neither text nor JSON do no harm', async () => {
  const frames = 100
  vendor.answer = async ({ response }) => {
    response.writeHead(200, STREAM_HEADERS)
    for (let i = 0; i < frames; i++) {
      const noise = randomBytes(40)
      const kind = i % 4
      if (kind === 0) response.write(Buffer.concat([Buffer.from('data: '), noise, Buffer.from('\n\n')]))
      else if (kind === 1)
        response.write(
          Buffer.concat([
            Buffer.from(chunk('#').split('#')[0]!),
            noise.map((b) => b | 0x80),
            Buffer.from('"},"finish_reason":null}]}\n\n'),
          ]),
        )
      else if (kind === 2) response.write(noise)
      else response.write(Buffer.concat([Buffer.from('event: '), noise, Buffer.from('\n')]))
    }
    response.end(chunk('', 'stop') + usageChunk(usage(1, 1)) + DONE)
  }
  const { id, key } = await g.account()
  await each(count(runs(100, 1_000)), 10, async () => {
    const call = post(g.url, { key, body: chatBody('noise', { stream: true }) })
    assert.ok([200, 502].includes((await call.response).statusCode ?? 0))
    await call.text()
  })
  await g.settled()
  assert.ok((await g.balance(id)).posted <= 1_000_000_000n)
  assert.equal((await g.call('/healthz', undefined)).status, 200)
})

test('an event of 64 MB and an answer of 200 MB are cut at their caps, and the memory stays bounded', async () => {
  const piece = Buffer.alloc(1_000_000, 0x61)
  for (const { stream, bytes, cap } of [
    { stream: true, bytes: 64_000_000, cap: 8_000_000 },
    { stream: false, bytes: 200_000_000, cap: 64_000_000 },
  ]) {
    let written = 0
    vendor.answer = async ({ response, closed }) => {
      let gone = false
      void closed.then(() => {
        gone = true
      })
      response.writeHead(200, stream ? STREAM_HEADERS : { 'content-type': 'application/json' })
      response.write(stream ? 'data: {"choices":[{"delta":{"content":"' : '{"choices":[{"message":{"content":"')
      while (written < bytes && !gone) {
        written += piece.length
        if (!response.write(piece))
          await Promise.race([new Promise((resolve) => response.once('drain', resolve)), closed])
      }
      if (!gone) response.end()
    }
    const { id, key } = await g.account()
    globalThis.gc?.()
    const before = process.memoryUsage().rss
    const call = post(g.url, { key, body: chatBody('large', { stream }) })
    assert.equal((await call.response).statusCode, 502)
    assert.equal((JSON.parse(await call.text()) as { code: number }).code, 50000)
    const rise = process.memoryUsage().rss - before
    assert.ok(written < cap * 1.3 + 8_000_000, `${written} bytes were taken from the vendor`)
    // Twice the cap for the gateway; this process is also the vendor and the caller.
    assert.ok(rise < cap * 2 + 64_000_000, `${rise} bytes`)
    await g.settled()
    assert.equal((await g.balance(id)).posted, 1_000_000_000n)
  }
})

test('an error that a vendor reports inside its stream reaches the caller as one, without a charge', async () => {
  let isLetGo = false
  vendor.answer = ({ response, closed }) => {
    void closed.then(() => {
      isLetGo = true
    })
    response.writeHead(200, STREAM_HEADERS)
    const error = { message: 'overloaded at https://vendor.internal/v1', type: 'overloaded_error' }
    // It would go on.
    response.write(chunk('some ') + event({ error }))
  }
  const { id, key } = await g.account()
  const text = await post(g.url, { key, body: chatBody('hello', { stream: true }) }).text()
  const { error } = JSON.parse(dataOf(text).find(isError) ?? '{}') as { error?: { code: string } }
  assert.equal(error?.code, 'overloaded')
  assert.doesNotMatch(text, /vendor\.internal|"finish_reason":"stop"/)
  await until(() => isLetGo)
  await g.settled()
  assert.equal((await g.balance(id)).posted, 1_000_000_000n)
})

test('an answer ends with its last event, although its vendor keeps the connection', async () => {
  vendor.answer = ({ response }) => response.writeHead(200, STREAM_HEADERS).write(wholeStream(['all ', 'of it'], 3, 5))
  const { id, key } = await g.account()
  const text = await post(g.url, { key, body: chatBody('hello', { stream: true }) }).text()
  assert.deepEqual([textOf(text), dataOf(text).some(isError), dataOf(text).at(-1)], ['all of it', false, '[DONE]'])
  await g.settled()
  assert.equal((await g.balance(id)).posted, 1_000_000_000n - 13n)
})
