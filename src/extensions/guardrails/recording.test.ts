import { assert, test } from '../../../test/kit.ts'
import { CallRecording } from './recordings.ts'

test('a call that waits takes room for its address and itself, not only for its bytes, and gives all of it back', () => {
  const room = { left: 100_000 }
  const rule = { days: 1, maxBytes: 1_000 }
  const call = { requestId: 'req_1', account: 'a', key: 'k', rule, method: 'GET', path: `/v1/x?q=${'x'.repeat(8_000)}` }
  const recordings: CallRecording[] = []
  while (room.left > 0 && recordings.length < 1_000) recordings.push(new CallRecording(call, room, () => {}))
  assert.ok(recordings.length <= 12, `${recordings.length} of 8,000 characters each wait in a room of 100,000 bytes`)
  for (const recording of recordings) recording.free()
  assert.equal(room.left, 100_000)
})
