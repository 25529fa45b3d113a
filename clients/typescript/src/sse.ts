// Server-sent events, from bytes that may be cut anywhere.
export interface ServerEvent {
  readonly event: string
  readonly data: string
  readonly id: string
}

const EVENT_CHARS_MAX = 32_000_000

export async function* readEvents(body: ReadableStream<Uint8Array> | null): AsyncGenerator<ServerEvent> {
  if (!body) return
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let pending = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      pending += decoder.decode(value, { stream: !done })
      const blocks = pending.split(/\r?\n\r?\n/)
      // The last one may not be whole yet.
      pending = done ? '' : (blocks.pop() ?? '')
      if (pending.length > EVENT_CHARS_MAX) throw new Error('An event is too long.')
      for (const block of blocks) {
        const event = parse(block)
        if (event) yield event
      }
      if (done) return
    }
  } finally {
    // Whoever leaves early tells the other side.
    await reader.cancel().catch(() => undefined)
  }
}

function parse(block: string): ServerEvent | undefined {
  const fields: Record<string, string> = {}
  for (const line of block.split(/\r?\n/)) {
    const [, name, value = ''] = /^(\w+)(?:: ?(.*))?$/.exec(line) ?? []
    if (name === 'data' && fields.data !== undefined) fields.data += `\n${value}`
    else if (name) fields[name] = value
  }
  const { event = 'message', data, id = '' } = fields
  return data === undefined ? undefined : { event, data, id }
}

/** The JSON of each event, up to [DONE]. */
export async function* readJsonEvents<T>(body: ReadableStream<Uint8Array> | null): AsyncGenerator<T> {
  for await (const { data } of readEvents(body)) {
    if (data === '[DONE]') return
    yield JSON.parse(data) as T
  }
}
