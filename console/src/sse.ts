// Reads server-sent events from a fetch body. Comments (keep-alives, the charge) are skipped.

interface SseEvent {
  event: string
  data: string
}

export async function* readSse(body: ReadableStream<Uint8Array>): AsyncGenerator<SseEvent> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let pending = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      pending = (pending + decoder.decode(value, { stream: !done })).replaceAll('\r\n', '\n')
      const blocks = pending.split('\n\n')
      pending = done ? '' : (blocks.pop() ?? '')
      for (const block of blocks) {
        const event = parseBlock(block)
        if (event) yield event
      }
      if (done) return
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

function parseBlock(block: string): SseEvent | undefined {
  let event = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
    else if (line.startsWith('event:')) event = line.slice(6).trim()
  }
  return data.length ? { event, data: data.join('\n') } : undefined
}
