// Vendors that answer otherwise than they were asked: JSON to a request for a stream, a stream to a request for JSON.
// For every pair of doors and every recording.
import { basename } from 'node:path'
import { Fault } from '../src/kernel/fault.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import type { Exchange } from '../src/protocols/protocol.ts'
import { FORMATS, PAIRS } from './formats.ts'
import { assert, test } from './kit.ts'
import { fixture, openPair, type Pair, recordingsOf, replay, sliced, traitsOf } from './text-replay.ts'

type Json = Record<string, unknown>
const JSON_TYPE = 'application/json; charset=utf-8'

const recordings = (back: ClientFormatName) =>
  recordingsOf(back, 'sse').flatMap((name) => (name === 'error.sse' ? [] : [basename(name, '.sse')]))

const open = (pair: Pair) => openPair({ ...pair, request: { tools: FORMATS[pair.front].tools, ...pair.request } })

async function answered(exchange: Exchange, bytes: Buffer, contentType: string) {
  const { body, usage } = await exchange.answer(bytes, { 'content-type': contentType })
  return { body: JSON.parse(Buffer.from(body).toString('utf8')) as Json, usage }
}

/**
 * A stream of messages keeps a place before its text for a proof that a vendor of another format may send at its end;
 * here none came.
 */
function isPlaceOfProof(block: unknown): boolean {
  return (block as { signature?: unknown } | undefined)?.signature === 'tollgate.plain:'
}

/**
 * What recordings of the two kinds may differ in: they were made at different moments, and only one of them is told
 * what is not there.
 */
function comparable(body: Json, name: string): unknown {
  const moment = ['id', 'created', 'created_at', 'completed_at', 'system_fingerprint', 'service_tier', 'object']
  const kept = Object.fromEntries(Object.entries(body).filter(([name]) => !moment.includes(name)))
  const nothing = (value: unknown) => value === null || value === '' || (Array.isArray(value) && value.length === 0)
  const left = name === 'snapshots' ? ['index', 'reasoning_details'] : ['index']
  return JSON.parse(JSON.stringify(kept), (member, value) =>
    left.includes(member) || nothing(value)
      ? undefined
      : Array.isArray(value)
        ? (value as unknown[]).filter((one) => !isPlaceOfProof(one))
        : (value as unknown),
  ) as unknown
}

for (const { front, back } of PAIRS)
  test(`a ${front} caller who wants a stream gets one from a ${back} vendor that cannot stream`, async () => {
    for (const name of recordings(back)) {
      const traits = traitsOf(name)
      const bytes = fixture(back, `${name}.json`)
      const whole = await answered(await open({ front, back, traits, stream: false }), bytes, JSON_TYPE)
      const request = front === 'openai-chat' ? { stream_options: { include_usage: true } } : {}
      const exchange = await open({ front, back, traits, request })
      const streamed = replay(exchange, sliced(bytes, 100), JSON_TYPE)
      assert.ok(streamed.terminal && streamed.fault === undefined, name)
      assert.deepEqual(streamed.usage, whole.usage, name)
      // Read as a client of this format reads it.
      const client = await open({ front, back: front, stream: false })
      const read = await answered(client, Buffer.from(streamed.sent + streamed.last), 'text/event-stream')
      assert.deepEqual(comparable(read.body, name), comparable(whole.body, name), name)
    }
  })

for (const { front, back } of PAIRS)
  test(`a ${front} caller who wants JSON gets it from a ${back} vendor that only streams`, async () => {
    for (const name of recordings(back)) {
      const exchange = await open({ front, back, traits: traitsOf(name), stream: false })
      const whole = await answered(exchange, fixture(back, `${name}.json`), JSON_TYPE)
      const rolled = await answered(exchange, fixture(back, `${name}.sse`), 'text/event-stream; charset=utf-8')
      assert.deepEqual(rolled.usage, whole.usage, name)
      assert.deepEqual(comparable(rolled.body, name), comparable(whole.body, name), name)
    }
  })

test('several choices come whole and streamed alike', async () => {
  const choice = (index: number) => ({
    index,
    message: { role: 'assistant', content: `Answer ${index}` },
    finish_reason: 'stop',
  })
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
  const whole = { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [choice(0), choice(1)], usage }
  const pair = { front: 'openai-chat', back: 'openai-chat', request: { n: 2 } } as const
  const { sent, last } = replay(await openPair(pair), [Buffer.from(JSON.stringify(whole))], JSON_TYPE)
  const client = await openPair({ ...pair, stream: false })
  const { body } = await answered(client, Buffer.from(sent + last), 'text/event-stream')
  assert.deepEqual(body.choices, whole.choices)
})

test('a stream that breaks off, and a fault in either kind of answer, is never taken for an answer', async () => {
  for (const { front, back } of PAIRS) {
    const json = await open({ front, back, stream: false })
    const stream = await open({ front, back })
    const text = fixture(back, 'text.sse')
    for (const share of [0, 0.3, 0.6, 0.8])
      assert.throws(
        () => json.answer(text.subarray(0, Math.floor(text.length * share)), { 'content-type': 'text/event-stream' }),
        (error) => error instanceof Fault && error.kind === 'upstream_garbled',
        `${front} from ${back}: ${share}`,
      )
    assert.throws(
      () => json.answer(fixture(back, 'error.sse'), { 'content-type': 'text/event-stream' }),
      (error) => error instanceof Fault && error.blame === 'vendor',
    )
    for (const broken of [fixture(back, 'error.json'), Buffer.from('{"id":'), Buffer.from('[]'), Buffer.from('{}')]) {
      const { terminal, fault, sent } = replay(stream, [broken], JSON_TYPE)
      assert.ok(!terminal && fault?.startsWith('upstream_'), `${front} from ${back}: ${broken}`)
      assert.equal(sent, '')
    }
  }
})

test('whoever leaves while a whole answer comes has had the prompt worked on, and more than 64 MB are refused', async () => {
  const relay = (await openPair({ front: 'openai-chat', back: 'openai-chat' })).stream!({ 'content-type': JSON_TYPE })
  assert.equal(relay.state.outputTokensSeen, 0)
  relay.push(Buffer.from('{'))
  assert.deepEqual([relay.state.outputTokensSeen, relay.state.usage, relay.state.terminal], [1, undefined, false])
  const megabyte = Buffer.alloc(1024 * 1024, 0x20)
  assert.throws(
    () => {
      for (let i = 0; i < 65; i++) relay.push(megabyte)
    },
    (error) => error instanceof Fault && error.kind === 'upstream_garbled',
  )
})

test('a trait says beforehand what a vendor can do: it is asked for that, and the caller gets what was asked for', async () => {
  for (const { front, back } of PAIRS)
    for (const [streams, wanted] of [
      ['never', true],
      ['always', false],
    ] as const) {
      const { call } = await open({ front, back, stream: wanted, traits: { streams } })
      const body = JSON.parse(String(call.body)) as Json
      const asked = back === 'gemini' ? call.url.includes(':streamGenerate') : (body.stream ?? false)
      assert.equal(asked, !wanted, `${front} to ${back}`)
      assert.equal(call.headers.accept, wanted ? 'application/json' : 'text/event-stream')
      const options = back === 'openai-chat' && !wanted ? { include_usage: true } : undefined
      assert.deepEqual(body.stream_options, options)
    }
})
