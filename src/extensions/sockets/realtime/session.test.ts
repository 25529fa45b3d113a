import { assert, test } from '../../../../test/kit.ts'
import { readJson } from '../../../kernel/json.ts'
import { RealtimeSession } from './session.ts'

const SECOND = 'A'.repeat(64_000) // Of PCM in base64.

function sessionWith(seconds: number) {
  const session = new RealtimeSession('m')
  const tell = (event: object) => session.told(readJson(Buffer.from(JSON.stringify(event))))
  const hear = (type: string, members: object = {}) => session.heard({ type, ...members }, '')
  const append = (count: number) => {
    for (let i = 0; i < count; i++) tell({ type: 'input_audio_buffer.append', audio: SECOND })
  }
  append(seconds)
  return { tell, hear, append, reads: () => session.response({}, 1_000_000).reads.inputAudio ?? 0 }
}
const usage = { input_token_details: { audio_tokens: 10 }, output_token_details: {} }

test('all sound that was sent counts until the vendor says what became of it', () => {
  const { hear, reads, append } = sessionWith(600)
  hear('input_audio_buffer.speech_started')
  assert.equal(reads(), 6_000, 'a vendor that does not say where it began')
  hear('input_audio_buffer.speech_started', { audio_start_ms: 60_000 })
  assert.equal(reads(), 5_400, 'silence before it is thrown away')
  hear('input_audio_buffer.speech_stopped', { audio_end_ms: 70_000 })
  hear('input_audio_buffer.committed')
  assert.equal(reads(), 5_400, 'what follows waits for its own turn')
  hear('response.done', { response: { usage } })
  assert.equal(reads(), 5_310)
  append(1)
  hear('input_audio_buffer.committed')
  hear('response.done', { response: { usage } })
  assert.equal(reads(), 10 + 5_310, 'what was committed while the response ran')
})

test('sound that was thrown away by the caller does not count, and what was sent since does', () => {
  const { tell, hear, reads, append } = sessionWith(10)
  tell({ type: 'input_audio_buffer.clear' })
  append(5)
  hear('input_audio_buffer.cleared')
  assert.equal(reads(), 50)
})

const format = (type: string, direction: 'input' | 'output' = 'input') => ({
  type: 'session.update',
  session: { audio: { [direction]: { format: { type } } } },
})

test('sound counts by the format of its time, and by the denser one while that is not known', () => {
  const { tell, hear, reads, append } = sessionWith(0)
  const is = (type: string) => hear('session.updated', { session: format(type).session })
  is('audio/pcm')
  append(1)
  tell(format('audio/pcmu'))
  append(1)
  assert.equal(reads(), 120, 'the vendor may read all of it as telephone sound')
  is('audio/pcmu')
  append(1)
  assert.equal(reads(), 180)
  hear('session.updated', { session: {} })
  append(1)
  assert.equal(reads(), 240, 'it says nothing of the format')
  tell(format('audio/pcm'))
  append(1)
  assert.equal(reads(), 300, 'the vendor may not agree')
  is('audio/pcm')
  append(1)
  assert.equal(reads(), 310)
  hear('input_audio_buffer.committed')
  assert.equal(reads(), 310)
  tell(format('audio/mp3'))
  append(1)
  assert.equal(reads(), 320, 'what is in the conversation stays as it was')
})

test('spoken sound is counted by the denser of the formats of the session and of the response itself', () => {
  const session = new RealtimeSession('m')
  const spoken = (asked: object) => session.response({ ...asked }, 1_000).bytesSpoken
  assert.equal(spoken({}), 2_400)
  assert.equal(spoken(format('audio/pcmu', 'output').session), 400)
  assert.equal(spoken({ output_audio_format: 'g711_ulaw' }), 400)
  session.told(readJson(Buffer.from(JSON.stringify(format('audio/pcma', 'output')))))
  assert.equal(spoken({}), 400)
  assert.equal(spoken(format('audio/pcm', 'output').session), 400, 'the vendor may not heed it')
})
