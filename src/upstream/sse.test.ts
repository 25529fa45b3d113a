import fc from 'fast-check'
import { assert, test } from '../../test/kit.ts'
import { Fault } from '../kernel/fault.ts'
import { EVENT_BYTES_MAX, encodeComment, encodeEvent, SseBlocks, SseDecoder, type SseEvent } from './sse.ts'

function decode(pieces: Iterable<Buffer>): SseEvent[] {
  const decoder = new SseDecoder()
  const events: SseEvent[] = []
  for (const piece of pieces) events.push(...decoder.push(piece))
  const last = decoder.end()
  return last ? [...events, last] : events
}

function* sliced(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const event = (data: string, name?: string, id?: string): SseEvent => ({ event: name, data, id })

test('events are read with LF, CR LF and CR, with comments, names, ids and several data lines', () => {
  const lines = [
    ': hello',
    'event: first',
    'data: {"a":1}',
    '',
    'data:one',
    'data: two',
    'id: 7',
    'retry: 3',
    '',
    ': ping',
    '',
    'data',
    '',
    'data: 你好 👋🏽',
    '',
    '',
  ]
  const expected = [event('{"a":1}', 'first'), event('one\ntwo', undefined, '7'), event(''), event('你好 👋🏽')]
  for (const end of ['\n', '\r\n', '\r'])
    assert.deepEqual(decode([Buffer.from(lines.join(end))]), expected, JSON.stringify(end))
  const marked = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('data: x\n\n')])
  assert.deepEqual(decode([marked]), [event('x')])
})

test('a stream cut at any byte, or sent byte by byte, gives the same events', () => {
  const bytes = Buffer.from(
    '\n\n: c\r\nevent: größe\r\ndata: 你好\r\n\r\n\r\ndata: 👩‍👩‍👧\r\rdata: a\ndata: b\n\n\n\ndata: last',
  )
  const whole = decode([bytes])
  assert.equal(whole.length, 4)
  for (let at = 0; at <= bytes.length; at++)
    assert.deepEqual(decode([bytes.subarray(0, at), bytes.subarray(at)]), whole)
  for (const size of [1, 2, 3, 5]) assert.deepEqual(decode(sliced(bytes, size)), whole)
})

test('what is carried over from one chunk to the next is neither lost nor said twice', () => {
  const bytes = Buffer.from('data: {"i":1}\n\ndata: {"i":2}\n\ndata: {"i":3}\n\n')
  const blocks = new SseBlocks()
  const pushed = [bytes.subarray(0, 20), bytes.subarray(20, 35), bytes.subarray(35), bytes.subarray(0, 15)].map(
    (chunk) => blocks.push(chunk),
  )
  // The second is as long as its chunk, and yet not the same.
  assert.deepEqual(
    pushed,
    [1, 2, 3, 1].map((i) => `data: {"i":${i}}\n\n`),
  )
})

test('any bytes are read without a crash, the same for any slicing', () => {
  const soup = fc.array(
    fc.oneof(
      fc.constantFrom('data: ', 'event: x', '\n', '\r', '\n\n', ':', '{"a":"é"}'),
      fc.string({ unit: 'binary' }),
    ),
    { maxLength: 10 },
  )
  fc.assert(
    fc.property(soup, fc.uint8Array({ maxLength: 20 }), fc.integer({ min: 1, max: 7 }), (parts, noise, size) => {
      const bytes = Buffer.concat([Buffer.from(parts.join('')), noise, Buffer.from('\n\ndata: end\n\n')])
      assert.deepEqual(decode(sliced(bytes, size)), decode([bytes]))
    }),
    { numRuns: 500 },
  )
})

test('an event of more than 8 MB is refused while it comes, and little is kept', () => {
  const decoder = new SseDecoder()
  const piece = Buffer.alloc(65_536, 0x61)
  let pushed = 0
  assert.throws(
    () => {
      for (; pushed < 64 * 1024 * 1024; pushed += piece.length) decoder.push(piece)
    },
    (error) => error instanceof Fault && error.kind === 'upstream_garbled',
  )
  assert.ok(pushed <= EVENT_BYTES_MAX)
})

test('what is encoded is decoded, and nothing in it can break the frame', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
      (data, name) => {
        const bytes = Buffer.from(encodeEvent(data, name))
        const [read, ...more] = decode([bytes])
        assert.deepEqual(more, [])
        assert.equal(read?.data, Buffer.from(data.replace(/\r\n?/g, '\n')).toString('utf8'))
      },
    ),
    { numRuns: 2_000 },
  )
  assert.equal(encodeComment('charge 1\nevent: x'), ': charge 1 event: x\n')
  assert.equal(encodeComment(': charge 1\n'), ': charge 1\n')
  assert.equal(encodeComment(''), '')
})
