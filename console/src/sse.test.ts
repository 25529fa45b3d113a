import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSse } from './sse.ts'

const TEXT = ': ping\n\ndata: {"a":"é"}\n\nevent: done\r\ndata: one\r\ndata: two\r\n\r\ndata: [DONE]\n\n'

test('a stream reads the same wherever the network cuts it', async () => {
  const bytes = new TextEncoder().encode(TEXT)
  for (let size = 1; size <= bytes.length; size++) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let from = 0; from < bytes.length; from += size) controller.enqueue(bytes.slice(from, from + size))
        controller.close()
      },
    })
    const events = []
    for await (const event of readSse(body)) events.push(event)
    assert.deepEqual(events, [
      { event: 'message', data: '{"a":"é"}' },
      { event: 'done', data: 'one\ntwo' },
      { event: 'message', data: '[DONE]' },
    ])
  }
})
