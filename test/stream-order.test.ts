// What a vendor streams arrives as it was sent: in order, whole, once. For every pair of formats, whatever the sizes of
// the events, the cuts of the network, the bursts and pauses of the vendor and the pace of the reader. F66.

import { createHash, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import type { ContentView } from '../src/admission/views.ts'
import type { CatalogInput } from '../src/catalog/document.ts'
import { guardrails as extension } from '../src/extensions/guardrails/extension.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import { SseDecoder } from '../src/upstream/sse.ts'
import { addScripted, FORMATS, formatOf, PAIRS, requestTo } from './formats.ts'
import { assert, listen, started, test, testGateway } from './gateway.ts'
import { Chance } from './simulate/virtual-world.ts'
import { SPEECH } from './sound.ts'

/** What a scripted vendor sends: the texts of its events, and whether they are a tool's arguments. */
interface Script {
  readonly texts: readonly string[]
  readonly tool: boolean
  /** Cut into pieces of these bytes, in turns; none: each event is a piece. */
  readonly cuts: readonly number[]
  /** So many pieces are written at once, and a turn of the loop passes before the next. */
  readonly burst: number
}

const SOUND = new Chance(7).bytes(2 * 1024 * 1024)
/** Of which each run tries others; what fails is tried again by `TOLLGATE_TEST_SEED`. */
const FROM = Number(process.env.TOLLGATE_TEST_SEED ?? randomInt(2 ** 31))

const scripts = new Map<number, Script>()

/**
 * Answers as its script says, each piece as a chunk of its own and many of them in one write: so they come from a
 * vendor that wrote them one by one while the network was busy. It waits for its reader as a careful server does.
 */
async function play(
  { socket }: IncomingMessage,
  type: string,
  events: readonly Buffer[],
  script: Pick<Script, 'cuts' | 'burst'>,
) {
  socket.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n`)
  const pieces = script.cuts.length === 0 ? events : cut(Buffer.concat(events), script.cuts)
  for (let at = 0; at < pieces.length; at += script.burst) {
    const frames = pieces
      .slice(at, at + script.burst)
      .flatMap((piece) => [`${piece.length.toString(16)}\r\n`, piece, '\r\n'])
    if (!socket.write(Buffer.concat(frames.map((frame) => Buffer.from(frame))))) await once(socket, 'drain')
    await new Promise((resolve) => setImmediate(resolve))
  }
  socket.end('0\r\n\r\n')
}

function cut(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += pieces.at(-1)!.length)
    pieces.push(bytes.subarray(at, at + lengths[pieces.length % lengths.length]!))
  return pieces
}

const vendor = started(() =>
  listen(async (incoming) => {
    const path = (incoming.url ?? '').split('?')[0]!
    const spoken = { cuts: [1, 40_000, 700, 16_383, 16_384, 90_000], burst: 7 }
    if (path.endsWith('/speech')) return play(incoming, 'audio/mpeg', [SOUND], spoken)
    const script = scripts.get(Number(/script:(\d+)/.exec(await text(incoming))?.[1]))!
    const events = FORMATS[formatOf(path)].stream(script.texts, script.tool).map((event) => Buffer.from(event))
    return play(incoming, 'text/event-stream', events, script)
  }),
)
const g = testGateway(() => ({
  catalog(document: CatalogInput) {
    addScripted(document, vendor.url)
    const spoken = [{ vendor: 'scripted', protocol: 'openai-speech' as const }]
    document.models.spoken = { ...document.models[SPEECH]!, routes: spoken }
  },
}))

/** How a caller reads: after so many pieces it stops until the loop has turned so many times. */
type Pace = { readonly every: number; readonly turns: number }

const EAGER: Pace = { every: Number.POSITIVE_INFINITY, turns: 0 }

async function read(answer: IncomingMessage, { every, turns }: Pace): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of answer) {
    parts.push(part as Buffer)
    if (parts.length % every === 0)
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  return Buffer.concat(parts)
}

interface Asked {
  readonly path: string
  readonly key: string
  readonly body: object
  readonly pace?: Pace
  readonly agent?: Agent
}

async function post({ path, key, body, pace = EAGER, agent }: Asked): Promise<{ bytes: Buffer; requestId: string }> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const sent = httpRequest(g.url + path, { method: 'POST', headers, ...(agent ? { agent } : {}) })
  sent.end(JSON.stringify(body))
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const bytes = await read(answer, pace)
  assert.equal(answer.statusCode, 200, bytes.toString())
  return { bytes, requestId: String(answer.headers['x-request-id']) }
}

interface Streamed {
  readonly front: ClientFormatName
  readonly back: ClientFormatName
  readonly key: string
  readonly script: Script
  readonly pace?: Pace
  readonly agent?: Agent
}

const asked = ({ front, back, script }: Streamed) => {
  const number = scripts.size + 1
  scripts.set(number, script)
  const { body, tools } = FORMATS[front]
  const asked = { ...body(`script:${number}`, 4_000), ...(script.tool ? { tools } : {}) }
  return requestTo(front, `from-${back}`, asked, true)
}

/** Reads as a client of the format does, and says where the texts first differ from what the vendor sent. */
function check(bytes: Buffer, { front, back, script }: Streamed, why: string): void {
  let got = ''
  const events = new SseDecoder().push(bytes)
  for (const { data } of events) if (data !== '[DONE]') got += FORMATS[front].heard(JSON.parse(data))
  const wanted = script.tool ? JSON.stringify(JSON.parse(script.texts.join(''))) : script.texts.join('')
  const where = `${front} from ${back}, ${why}`
  if (got !== wanted) {
    let at = 0
    while (got[at] === wanted[at]) at++
    const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 30), at + 50))
    assert.fail(`${where}: at ${at} of ${wanted.length} came ${around(got)}, sent was ${around(wanted)}`)
  }
  assert.match(events.at(-1)!.data, FORMATS[front].end, where)
}

async function stream(streamed: Streamed, why: string): Promise<void> {
  const { key, pace = EAGER, agent } = streamed
  check((await post({ ...asked(streamed), key, pace, ...(agent ? { agent } : {}) })).bytes, streamed, why)
}

/** Numbered, so that any two that change places are seen; with characters of one to four bytes. */
const numbered = (count: number, size: (i: number) => number) =>
  Array.from({ length: count }, (_, i) => `[${i}é你😀]`.padEnd(size(i), 'abcdefgh'))

/** 40 KB of arguments, cut into pieces of any length. */
const args = (chance: Chance) => {
  const text = JSON.stringify({ list: Array.from({ length: 3_000 }, (_, i) => `row ${i}`) })
  const pieces: string[] = []
  for (let at = 0; at < text.length; at += pieces.at(-1)!.length)
    pieces.push(text.slice(at, at + 1 + chance.below(chance.is(0.1) ? 20_000 : 200)))
  return pieces
}

for (const { front, back } of PAIRS)
  test(`${front} from ${back}: bursts, large events among small ones and a tool's arguments arrive as they were sent`, async () => {
    const { key } = await g.account()
    const run = (script: Script, why: string) => stream({ front, back, key, script }, why)
    const whole = { tool: false, cuts: [], burst: 10_000 }
    for (const count of [100, 150, 3_000])
      await run({ ...whole, texts: numbered(count, () => 12) }, `a burst of ${count}`)
    const mixed = numbered(24, (i) => (i % 3 === 1 ? 17_000 + i * 8_300 : 12))
    await run({ ...whole, texts: mixed }, 'large events among small ones, in one burst')
    await run({ ...whole, texts: mixed, cuts: [70_000, 300, 16_500], burst: 3 }, 'large events among small ones, cut')
    await run({ ...whole, tool: true, texts: args(new Chance(1)), cuts: [30_000, 90, 17_000], burst: 4 }, 'arguments')
  })

const anyScript = fc.record({
  texts: fc
    .array(
      fc.record({
        count: fc.integer({ min: 1, max: 60 }),
        size: fc.oneof(fc.integer({ min: 8, max: 400 }), fc.integer({ min: 16_000, max: 60_000 })),
      }),
      { minLength: 1, maxLength: 6 },
    )
    .map((runs) => {
      const sizes = runs.flatMap(({ count, size }) =>
        Array.from({ length: size > 400 ? Math.ceil(count / 20) : count }, () => size),
      )
      return numbered(sizes.length, (i) => sizes[i]!)
    }),
  tool: fc.constant(false),
  cuts: fc
    .array(fc.oneof(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 10_000, max: 100_000 })), { maxLength: 6 })
    .map((cuts) => (cuts.every((cut) => cut < 50) ? [...cuts, 20_000] : cuts)),
  burst: fc.integer({ min: 1, max: 40 }),
})
const anyPace = fc.record({ every: fc.integer({ min: 1, max: 5 }), turns: fc.integer({ min: 0, max: 30 }) })

test('any sizes, bursts, cuts and pauses, for any pair of formats and any reader, arrive as they were sent', async (t) => {
  t.diagnostic(`seed ${FROM}`)
  const { key } = await g.account()
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...PAIRS), anyScript, anyPace, async (pair, script, pace) => {
      await stream({ ...pair, key, script, pace }, `seed ${FROM}`)
    }),
    { numRuns: 64, seed: FROM, endOnFailure: true },
  )
})

test('32 streams of all pairs at once, half of them with readers that pause, arrive as they were sent', async () => {
  const { key } = await g.account()
  const chance = new Chance(FROM)
  await Promise.all(
    [...PAIRS, ...PAIRS].map((pair, i) => {
      const texts = numbered(120, () => (chance.is(0.1) ? 17_000 + chance.below(20_000) : 10 + chance.below(200)))
      const script = {
        texts,
        tool: false,
        cuts: [1 + chance.below(60_000), 1 + chance.below(9_000), 20_000],
        burst: 1 + chance.below(9),
      }
      return stream({ ...pair, key, script, pace: i % 2 ? EAGER : { every: 2, turns: 20 } }, `seed ${FROM}`)
    }),
  )
})

test('several streams in turn on one connection arrive as they were sent, each as its own answer', async () => {
  const { key } = await g.account()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const script = {
    texts: numbered(200, (i) => (i % 40 === 7 ? 30_000 : 20)),
    tool: false,
    cuts: [50_000, 900],
    burst: 5,
  }
  try {
    await Promise.all(PAIRS.map((pair) => stream({ ...pair, key, script, agent }, 'kept alive')))
  } finally {
    agent.destroy()
  }
})

test('streams that were asked for on one connection without waiting come one after the other, whole', async () => {
  const { key } = await g.account()
  const script = {
    texts: numbered(150, (i) => (i % 50 === 9 ? 40_000 : 20)),
    tool: false,
    cuts: [50_000, 900],
    burst: 5,
  }
  const streams = PAIRS.slice(0, 6).map((pair) => ({ ...pair, key, script }))
  const socket = connect(Number(new URL(g.url).port), '127.0.0.1')
  socket.write(
    streams
      .map((streamed, i) => {
        const { path, body } = asked(streamed)
        const text = JSON.stringify(body)
        const last = i === streams.length - 1 ? 'connection: close\r\n' : ''
        return `POST ${path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${last}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
      })
      .join(''),
  )
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part as Buffer)
  let rest: Buffer = Buffer.concat(parts)
  for (const streamed of streams) {
    const { body, after } = unchunked(rest)
    check(body, streamed, 'pipelined')
    rest = after
  }
  assert.equal(rest.length, 0)
})

/** The first of the answers, by the length that stands before each chunk. */
function unchunked(bytes: Buffer): { body: Buffer; after: Buffer } {
  assert.match(bytes.subarray(0, 12).toString(), /^HTTP\/1\.1 200/)
  const chunks: Buffer[] = []
  let at = bytes.indexOf('\r\n\r\n') + 4
  for (;;) {
    const start = bytes.indexOf('\r\n', at) + 2
    const length = Number.parseInt(bytes.subarray(at, start - 2).toString(), 16)
    assert.ok(length >= 0, 'where a length should stand')
    chunks.push(bytes.subarray(start, start + length))
    at = start + length + 2
    if (length === 0) return { body: Buffer.concat(chunks), after: bytes.subarray(at) }
  }
}

test('2 MB of speech arrive byte for byte, for readers of every pace, and for several at once', async () => {
  const { key } = await g.account()
  const digest = (bytes: Buffer) => `${bytes.length} ${createHash('sha256').update(bytes).digest('hex')}`
  const body = { model: 'spoken', input: 'Hello', voice: 'a' }
  const paces = [EAGER, { every: 1, turns: 3 }, { every: 7, turns: 50 }, EAGER]
  const heard = await Promise.all(paces.map((pace) => post({ path: '/v1/audio/speech', key, body, pace })))
  assert.deepEqual(
    heard.map(({ bytes }) => digest(bytes)),
    paces.map(() => digest(SOUND)),
  )
})

test('a stream that is recorded arrives as it was sent, and is kept so', async () => {
  const { id, key } = await g.account()
  assert.equal((await g.operator('PUT', `/accounts/${id}/content`, { days: 1 })).status, 200)
  const script = { texts: numbered(100, (i) => (i === 50 ? 20_000 : 20)), tool: false, cuts: [], burst: 1_000 }
  for (const pair of PAIRS) {
    const streamed = { ...pair, key, script }
    const { bytes, requestId } = await post({ ...asked(streamed), key })
    check(bytes, streamed, 'recorded')
    await g.gateway.opened(extension).contents.flush()
    const { data } = await g.operator<ContentView>('GET', `/usage/${requestId}/content`)
    const kept = data.answer?.body ?? ''
    assert.ok(kept.includes('[49é你😀]'))
    // Long runs of letters are left out of what is kept, from the large event on.
    assert.ok(bytes.toString().startsWith(kept.slice(0, kept.indexOf('[50'))))
  }
})
