// What the network and the vendors do to streams: slices at any byte, cuts at any byte, noise, endless lines, nonsense
// counts. For every pair of doors.
import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { Variation } from '../sandbox/variation.ts'
import type { TextTraitsGiven } from '../src/catalog/traits.ts'
import { Fault } from '../src/kernel/fault.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import { CLIENT_FORMATS, FORMATS, PAIRS } from './formats.ts'
import { assert, runs, test } from './kit.ts'
import { Chance } from './simulate/virtual-world.ts'
import { fixture, openPair, randomlyCut, recordingsOf, replay, sliced, traitsOf, UID } from './text-replay.ts'

/** Of which each run tries others; what fails is tried again by `TOLLGATE_TEST_SEED`. */
const FROM = Number(process.env.TOLLGATE_TEST_SEED ?? randomInt(2 ** 31))
/** The long tests try every byte. */
const STRIDE = runs(9, 1)
/** Those that are tried at each of their bytes. */
const RECORDINGS: Record<ClientFormatName, readonly string[]> = {
  'openai-chat': ['text.sse', 'reasoning.sse', 'think-tags.sse'],
  'openai-responses': ['length.sse'],
  'anthropic-messages': ['text.sse', 'reasoning.sse'],
  gemini: ['reasoning.sse'],
}

for (const { front, back } of PAIRS)
  test(`${front} from ${back}: a stream cut at any byte, or sent byte by byte, or with other line ends, reads the same`, async () => {
    for (const name of RECORDINGS[back]) {
      const bytes = fixture(back, name)
      const exchange = await openPair({ front, back, traits: traitsOf(name) })
      const whole = replay(exchange, [bytes])
      assert.ok(whole.terminal && !whole.sent.includes('\ufffd'))
      for (let at = 1 + (FROM % STRIDE); at < bytes.length; at += STRIDE) {
        const cut = replay(exchange, [bytes.subarray(0, at), bytes.subarray(at)])
        if (cut.sent !== whole.sent || cut.last !== whole.last) assert.deepEqual(cut, whole, `cut at ${at}`)
      }
      for (const size of [1, 2, 3, 7, 1000])
        assert.deepEqual(replay(exchange, sliced(bytes, size)), whole, `slices of ${size}`)
      for (const end of ['\r\n', '\r']) {
        const changed = Buffer.from(bytes.toString('utf8').replaceAll('\n', end))
        assert.deepEqual(replay(exchange, [changed]), whole)
        assert.deepEqual(replay(exchange, sliced(changed, 1)), whole)
      }
    }
  })

/**
 * Every recording with every line end; also as a vendor sends it that calls the model by its public name: only then do
 * events pass untouched.
 */
function forms(back: ClientFormatName): ReadonlyArray<readonly [Buffer, TextTraitsGiven]> {
  return recordingsOf(back, 'sse').flatMap((name) => {
    const text = fixture(back, name).toString('utf8')
    const named = text.replaceAll(/"model":"[^"]*"/g, `"model":"${UID}"`)
    const written = [text, named, named.replaceAll('\n', '\r\n'), named.replaceAll('\n', '\r')]
    return written.map((form) => [Buffer.from(form), traitsOf(name)] as const)
  })
}

/** Google's format has two streams: events, and the elements of an array. */
const REQUESTS: Partial<Record<ClientFormatName, readonly object[]>> = { gemini: [{}, { alt: 'json' }] }

for (const { front, back } of PAIRS)
  test(`${front} from ${back}: a stream reads the same however the network cuts it`, async (t) => {
    t.diagnostic(`seeds from ${FROM}`)
    const opened = (REQUESTS[front] ?? [{}]).flatMap((request) =>
      forms(back).map(async ([bytes, traits]) => {
        const exchange = await openPair({ front, back, traits, request: { tools: FORMATS[front].tools, ...request } })
        return { bytes, exchange, whole: replay(exchange, [bytes]) }
      }),
    )
    const recordings = await Promise.all(opened)
    for (let seed = FROM; seed < FROM + runs(100, 10_000); seed++) {
      const { bytes, exchange, whole } = recordings[seed % recordings.length]!
      const pieces = randomlyCut(bytes, new Chance(seed))
      const cut = replay(exchange, pieces)
      if (cut.sent !== whole.sent || cut.last !== whole.last || cut.tokensSeen !== whole.tokensSeen)
        assert.deepEqual(cut, whole, `seed ${seed}: pieces of ${pieces.map((piece) => piece.length)} bytes`)
    }
  })

/** The data of every event; members that a vendor has added of its own are left out. */
function dataIn(stream: string): unknown[] {
  return [...stream.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) =>
    JSON.parse(data!, (name, member) => (name.startsWith('x_') ? undefined : member)),
  )
}

for (const { front, back } of PAIRS)
  test(`${front} from ${back}: a stream says the same in any order of members, white space and with unknown members`, async (t) => {
    t.diagnostic(`seeds from ${FROM}`)
    let seed = FROM
    for (const name of recordingsOf(back, 'sse').filter((name) => !name.startsWith('error'))) {
      const frames = fixture(back, name)
        .toString('utf8')
        .split(/(?<=\n\n)/)
      const request = { tools: FORMATS[front].tools }
      const exchange = await openPair({ front, back, traits: traitsOf(name), request })
      const whole = replay(exchange, [Buffer.from(frames.join(''))])
      for (const end = seed + runs(5, 200); seed < end; seed++) {
        const variation = new Variation(seed)
        const pieces = frames.flatMap((frame) => variation.pieces(Buffer.from(variation.frame(frame))))
        const varied = replay(exchange, pieces)
        assert.deepEqual(dataIn(varied.sent), dataIn(whole.sent), `${name}, seed ${seed}`)
        assert.deepEqual(dataIn(varied.last), dataIn(whole.last), `${name}, seed ${seed}`)
        assert.deepEqual(varied.usage, whole.usage, `${name}, seed ${seed}`)
        assert.equal(varied.terminal, true)
      }
    }
  })

/** The first byte after which the answer is complete, so that an end of the stream there is honest. */
function completeFrom(back: ClientFormatName, text: string): number {
  const marks = {
    'openai-chat': '"finish_reason":"',
    'openai-responses': 'event: response.incomplete',
    'anthropic-messages': 'event: message_stop',
  }
  // The only format without a last event: it is whole when the piece with the reason is.
  if (back === 'gemini') return Buffer.byteLength(text.trimEnd())
  const at = text.lastIndexOf(marks[back])
  return Buffer.byteLength(text.slice(0, text.indexOf('\n\n', at)))
}

for (const { front, back } of PAIRS)
  test(`${front} from ${back}: a stream that breaks off at any byte never looks like a whole one`, async () => {
    for (const name of RECORDINGS[back].slice(0, 2)) {
      const bytes = fixture(back, name)
      const exchange = await openPair({ front, back, traits: traitsOf(name) })
      const complete = completeFrom(back, bytes.toString('utf8'))
      for (let at = FROM % STRIDE; at < bytes.length; at += STRIDE) {
        const { terminal, sent, last } = replay(exchange, [bytes.subarray(0, at)])
        assert.equal(terminal, at >= complete, `cut at ${at} of ${complete}`)
        if (terminal) continue
        assert.ok(!/\[DONE\]|message_stop|response\.completed|response\.incomplete/.test(sent), `cut at ${at}`)
        assert.ok(!/"(finish_reason|stop_reason)":"/.test(sent) || back === 'anthropic-messages', `cut at ${at}`)
        assert.match(last, /"error"|response\.failed/)
      }
    }
  })

for (const { front, back } of PAIRS)
  test(`${front} from ${back}: noise in a stream is passed, refused or replaced, but never crashes`, async () => {
    const bytes = fixture(back, RECORDINGS[back][0]!)
    const exchange = await openPair({ front, back })
    const noise = fc.tuple(fc.nat({ max: bytes.length }), fc.uint8Array({ minLength: 1, maxLength: 8 }), fc.boolean())
    fc.assert(
      fc.property(noise, ([at, dirt, replaces]) => {
        const rest = bytes.subarray(replaces ? Math.min(at + dirt.length, bytes.length) : at)
        replay(exchange, [bytes.subarray(0, at), Buffer.from(dirt), rest])
      }),
      { numRuns: runs(40, 1_200) },
    )
  })

for (const { front, back } of PAIRS)
  test(`${front} from ${back}: a line of 64 MB is refused after 8 MB`, async () => {
    const relay = (await openPair({ front, back })).stream!({})
    const piece = Buffer.alloc(1024 * 1024, 0x61)
    relay.push(Buffer.from('data: {"id":"'))
    let pushed = 0
    assert.throws(
      () => {
        for (; pushed < 64; pushed++) relay.push(piece)
      },
      (error) => error instanceof Fault && error.kind === 'upstream_garbled',
    )
    assert.ok(pushed <= 8)
  })

test('between equal formats a chunk of whole events is passed on as the very same bytes', async () => {
  for (const protocol of CLIENT_FORMATS) {
    const relay = (await openPair({ front: protocol, back: protocol })).stream!({})
    const text = fixture(protocol, 'text.sse')
      .toString('utf8')
      .replaceAll(/vendor-(alpha-54-0305|beta-opus-5|delta-flash-001)/g, UID)
    for (const event of text.split(/(?<=\n\n)/)) {
      const out = relay.push(Buffer.from(event))
      const chunk = Buffer.from(event).toString('latin1')
      // The recorded response object is an older one, whose members are completed.
      if (out !== undefined && !/^event: response\.(?:created|in_progress)\n/.test(event)) assert.equal(out, chunk)
    }
    relay.end()
    assert.ok(relay.state.terminal)
  }
})

test('the usage chunk reaches only the callers who asked for it, once, wherever the vendor put it', async () => {
  for (const name of ['text.sse', 'reasoning.sse'])
    for (const asked of [true, false]) {
      const request = { stream_options: { include_usage: asked } }
      const { sent, last } = replay(await openPair({ front: 'openai-chat', back: 'openai-chat', request }), [
        fixture('openai-chat', name),
      ])
      assert.equal((sent + last).match(/"usage":\{/g)?.length ?? 0, asked ? 1 : 0)
      assert.equal(sent.includes('"choices":[]'), false)
      assert.ok(last.endsWith('data: [DONE]\n\n'))
    }
})

test('a streamed answer is metered as the whole one is, cache and reasoning included', async () => {
  for (const { front, back } of PAIRS)
    for (const name of ['text', 'tools', 'reasoning', 'refusal', 'length']) {
      const whole = await (await openPair({ front, back, stream: false })).answer(fixture(back, `${name}.json`), {})
      const { usage } = replay(await openPair({ front, back }), [fixture(back, `${name}.sse`)])
      assert.ok(usage)
      assert.deepEqual(usage, whole.usage, `${front} from ${back}: ${name}`)
    }
})

test('a finish without [DONE] and a clean end is a whole answer; [DONE] is not needed', async () => {
  const text = fixture('openai-chat', 'text.sse').toString('utf8').replace('data: [DONE]\n\n', '')
  for (const front of CLIENT_FORMATS) {
    const whole = replay(await openPair({ front, back: 'openai-chat' }), [fixture('openai-chat', 'text.sse')])
    assert.deepEqual(replay(await openPair({ front, back: 'openai-chat' }), [Buffer.from(text)]), whole)
  }
})

test('with several choices, a stream is whole only when each has finished', async () => {
  const chunk = (index: number, finish: string | null) =>
    `data: {"id":"x","model":"m","choices":[{"index":${index},"delta":{"content":"a"},"finish_reason":${JSON.stringify(finish)}}]}\n\n`
  const exchange = await openPair({ front: 'openai-chat', back: 'openai-chat', request: { n: 2 } })
  assert.equal(replay(exchange, [Buffer.from(chunk(0, null) + chunk(1, null) + chunk(0, 'stop'))]).terminal, false)
  assert.equal(replay(exchange, [Buffer.from(chunk(0, null) + chunk(0, 'stop') + chunk(1, 'stop'))]).terminal, true)
})

test('an error inside a stream is a fault, says nothing of the vendor, and nothing after it is passed on', async () => {
  for (const { front, back } of PAIRS) {
    const bytes = Buffer.concat([fixture(back, 'error.sse'), fixture(back, 'text.sse')])
    const { sent, last, fault, terminal } = replay(await openPair({ front, back }), [bytes])
    assert.ok(fault?.startsWith('upstream_'), `${front} from ${back}`)
    assert.equal(terminal, false)
    assert.ok(!/openai|org-AbCd|Grüße/i.test(sent.replaceAll('openai-', '') + last), last)
  }
})

test('nonsense counts never become negative, overlapping or unsafe usage', async () => {
  const nonsense = fc.oneof(
    fc.constantFrom(-1, 1e18, Number.POSITIVE_INFINITY, '5', null, 0.5, {}, [], true),
    fc.integer({ min: 0, max: 5000 }),
    fc.constant(undefined),
  )
  const counts = fc.record({ a: nonsense, b: nonsense, c: nonsense, d: nonsense, e: nonsense })
  const bodies: Record<ClientFormatName, (c: Record<string, unknown>) => object> = {
    'openai-chat': ({ a, b, c, d, e }) => ({
      choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: a,
        completion_tokens: b,
        prompt_tokens_details: { cached_tokens: c, cache_write_tokens: d },
        completion_tokens_details: { reasoning_tokens: e },
      },
    }),
    'openai-responses': ({ a, b, c, d, e }) => ({
      status: 'completed',
      output: [],
      usage: {
        input_tokens: a,
        output_tokens: b,
        input_tokens_details: { cached_tokens: c, cache_write_tokens: d },
        output_tokens_details: { reasoning_tokens: e },
      },
    }),
    gemini: ({ a, b, c, e }) => ({
      candidates: [{ content: { parts: [] }, finishReason: 'STOP' }],
      usageMetadata: {
        promptTokenCount: a,
        candidatesTokenCount: b,
        cachedContentTokenCount: c,
        thoughtsTokenCount: typeof e === 'number' ? undefined : e,
      },
    }),
    'anthropic-messages': ({ a, b, c, d, e }) => ({
      content: [],
      stop_reason: 'end_turn',
      usage: {
        input_tokens: a,
        output_tokens: b,
        cache_read_input_tokens: c,
        cache_creation_input_tokens: d,
        output_tokens_details: { thinking_tokens: e },
      },
    }),
  }
  for (const { front, back } of PAIRS) {
    const exchange = await openPair({ front, back, stream: false })
    fc.assert(
      fc.property(counts, (given) => {
        const { usage } = exchange.answer(Buffer.from(JSON.stringify(bodies[back](given))), {}) as {
          usage: Record<string, number> | undefined
        }
        if (!usage) return
        for (const count of Object.values(usage))
          assert.ok(Number.isSafeInteger(count) && count >= 0, JSON.stringify(usage))
        const prompt = (usage.input ?? 0) + (usage.cachedInput ?? 0) + (usage.cacheWrite ?? 0)
        if (back !== 'anthropic-messages') assert.equal(prompt, given.a)
        // Google's format leaves zeros out. More reasoning than output was not counted within it.
        const { b = 0, e } = given as { b?: number; e?: unknown }
        const beside = back !== 'gemini' && back !== 'anthropic-messages' && Number.isSafeInteger(e) ? Number(e) : 0
        assert.equal(usage.output, beside > b ? b + beside : b)
      }),
      { numRuns: runs(40, 1_200) },
    )
  }
  const zero = {
    choices: [{ index: 0, message: { content: '' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 0, completion_tokens: 0 },
  }
  const exchange = await openPair({ front: 'openai-chat', back: 'openai-chat', stream: false })
  assert.deepEqual((await exchange.answer(Buffer.from(JSON.stringify(zero)), {})).usage, { input: 0, output: 0 })
})

test('a vendor that escapes every character beyond ASCII is read as one that does not', async () => {
  const escaped = (bytes: Buffer) =>
    Buffer.from(
      bytes
        .toString('utf8')
        .replaceAll(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`),
    )
  const plain = (text: string) =>
    text.replaceAll(/\\u([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  for (const { front, back } of PAIRS)
    for (const name of RECORDINGS[back]) {
      const exchange = await openPair({ front, back, traits: traitsOf(name) })
      const usual = replay(exchange, [fixture(back, name)])
      const other = replay(exchange, [escaped(fixture(back, name))])
      assert.deepEqual(
        [plain(other.sent), plain(other.last)],
        [usual.sent, usual.last],
        `${front} from ${back} ${name}`,
      )
      const json = name.replace('.sse', '.json')
      const whole = await openPair({ front, back, traits: traitsOf(name), stream: false })
      const body = async (bytes: Buffer) => JSON.parse(String((await whole.answer(bytes, {})).body)) as unknown
      assert.deepEqual(await body(escaped(fixture(back, json))), await body(fixture(back, json)))
    }
})

test('a vendor that puts spaces into its JSON, or spreads it over lines, is read as one that does not', async () => {
  const rewritten = (bytes: Buffer, write: (value: unknown) => string) =>
    Buffer.from(bytes.toString('utf8').replaceAll(/^data: (\{.*\})$/gm, (_, json: string) => write(JSON.parse(json))))
  const forms = [
    (value: unknown) => `data: ${JSON.stringify(value, undefined, 1).replaceAll(/\n\s*/g, ' ')}`,
    (value: unknown) => `id: 7\n: note\ndata: ${JSON.stringify(value, undefined, 1).replaceAll('\n', '\ndata: ')}`,
  ]
  const parsed = (text: string) =>
    text.split('\n').map((line) => (line.startsWith('data: {') ? (JSON.parse(line.slice(6)) as unknown) : line))
  for (const { front, back } of PAIRS)
    for (const name of RECORDINGS[back])
      for (const form of forms) {
        const exchange = await openPair({ front, back, traits: traitsOf(name) })
        const usual = replay(exchange, [fixture(back, name)])
        const other = replay(exchange, [rewritten(fixture(back, name), form)])
        assert.deepEqual(
          parsed(other.sent + other.last),
          parsed(usual.sent + usual.last),
          `${front} from ${back} ${name}`,
        )
        assert.deepEqual(other.usage, usual.usage)
      }
})
