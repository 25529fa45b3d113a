import { assert, test } from '../../test/kit.ts'
import { EventStreamDecoder } from './sse.ts'

/** Made with the codec of the AWS SDK (@smithy/eventstream-codec 4.5.2). */
const CHUNK = Buffer.from(
  '0000007b0000004b0a2e96af0b3a6576656e742d747970650700056368756e6b0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b226279746573223a2265794a306558426c496a6f6963476c755a794a39227da01f56c4',
  'hex',
)
const EMPTY = Buffer.from('000000100000000005c248eb7d98c8ff', 'hex')
const EXCEPTION = Buffer.from(
  '0000007b00000055f021abcc0f3a657863657074696f6e2d747970650700137468726f74746c696e67457863657074696f6e0161000162040000000701630800000000000000000d3a6d6573736167652d74797065070009657863657074696f6e7b226d657373616765223a22546f6f206d616e79227dcaee16da',
  'hex',
)
const ALL = Buffer.concat([CHUNK, EMPTY, EXCEPTION])

const read = (pieces: readonly Buffer[]) => {
  const decoder = new EventStreamDecoder()
  const messages = pieces.flatMap((piece) => decoder.push(piece))
  decoder.end()
  return messages.map(({ headers, payload }) => [{ ...headers }, payload.toString()])
}

test('messages are read as the AWS SDK writes them, wherever the stream is cut', () => {
  const whole = read([ALL])
  assert.deepEqual(whole, [
    [
      { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' },
      '{"bytes":"eyJ0eXBlIjoicGluZyJ9"}',
    ],
    [{}, ''],
    [{ ':exception-type': 'throttlingException', ':message-type': 'exception' }, '{"message":"Too many"}'],
  ])
  for (let at = 1; at < ALL.length; at++) assert.deepEqual(read([ALL.subarray(0, at), ALL.subarray(at)]), whole)
  assert.deepEqual(read([...ALL].map((byte) => Buffer.from([byte]))), whole)
})

test('a message with any byte changed, cut off or of an impossible size is refused', () => {
  for (let at = 0; at < CHUNK.length; at++) {
    const wrong = Buffer.from(CHUNK)
    wrong[at] = (wrong[at] ?? 0) ^ 1
    assert.throws(() => read([wrong]), /vendor/i)
  }
  assert.throws(() => read([CHUNK.subarray(0, -1)]))
})
