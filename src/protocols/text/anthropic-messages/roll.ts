// A message and its stream are the same answer: the stream of a vendor that sent it whole, and the whole of one that can only
// stream.
import { Fault } from '../../../kernel/fault.ts'
import { encodeJson, type SseEvent } from '../../../upstream/sse.ts'
import { isObject, type Json, objects, text } from '../../check.ts'
import { vendorFault } from '../../vendor-fault.ts'
import { inputObject } from '../dialogue.ts'
import { readData } from '../relay.ts'
import { mergedReports } from '../tokens.ts'

export function unrollMessage(value: Json): string {
  if (!Array.isArray(value.content)) throw new Fault('upstream_garbled', { internal: { why: 'no content' } })
  const { content, stop_reason: reason = 'end_turn', stop_sequence: sequence = null, usage, ...rest } = value
  const message = { ...rest, content: [], stop_reason: null, stop_sequence: null, ...(usage ? { usage } : {}) }
  return (
    event('message_start', { message }) +
    objects(content).map(unrollBlock).join('') +
    event('message_delta', {
      delta: { stop_reason: reason, stop_sequence: sequence },
      ...(usage ? { usage } : {}),
    }) +
    event('message_stop', {})
  )
}

/** Blocks of an unknown kind come whole with their start, as the format's own results of tools do. */
function unrollBlock(block: Json, index: number): string {
  const [empty, deltas] = piecesOf(block)
  return (
    event('content_block_start', { index, content_block: empty }) +
    deltas.map((delta) => event('content_block_delta', { index, delta })).join('') +
    event('content_block_stop', { index })
  )
}

function piecesOf(block: Json): [empty: Json, deltas: Json[]] {
  switch (block.type) {
    case 'text':
      return [{ ...block, text: '' }, [{ type: 'text_delta', text: block.text ?? '' }]]
    case 'thinking':
      return [
        { ...block, thinking: '', signature: '' },
        [
          { type: 'thinking_delta', thinking: block.thinking ?? '' },
          { type: 'signature_delta', signature: block.signature ?? '' },
        ],
      ]
    case 'tool_use':
    case 'server_tool_use':
      return [{ ...block, input: {} }, [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input ?? {}) }]]
  }
  return [block, []]
}

export function rollUpMessage(events: readonly SseEvent[]): Json {
  let whole: Json = {}
  let done = false
  const blocks = new Map<number, Json>()
  const inputs = new Map<number, string>()
  for (const event of events) {
    const data = readData(event.data)
    if (!isObject(data) || done) continue
    const type = text(data.type) ?? event.event
    const index = Number(data.index)
    if (type === 'error') throw vendorFault(data.error ?? data)
    if (type === 'message_start' && isObject(data.message)) whole = { ...data.message }
    if (type === 'content_block_start' && isObject(data.content_block)) blocks.set(index, { ...data.content_block })
    const block = blocks.get(index)
    if (type === 'content_block_delta' && block && isObject(data.delta)) {
      if (data.delta.type === 'input_json_delta')
        inputs.set(index, (inputs.get(index) ?? '') + (text(data.delta.partial_json) ?? ''))
      else addDelta(block, data.delta)
    }
    if (type === 'message_delta') {
      if (isObject(data.delta)) whole = { ...whole, ...data.delta }
      whole.usage = mergedReports(isObject(whole.usage) ? whole.usage : {}, data.usage)
    }
    done = type === 'message_stop'
  }
  if (!done) throw new Fault('upstream_garbled', { internal: { why: 'the stream has no end' } })
  for (const [index, input] of inputs) if (input !== '') blocks.get(index)!.input = inputObject(input) // Its block is there.
  return { ...whole, content: [...blocks].sort(([a], [b]) => a - b).map(([, block]) => block) }
}

function addDelta(block: Json, delta: Json): void {
  for (const name of ['text', 'thinking', 'signature'])
    if (typeof delta[name] === 'string') block[name] = (text(block[name]) ?? '') + delta[name]
  if (delta.citation !== undefined) block.citations = [...objects(block.citations), delta.citation]
}

function event(type: string, members: Json): string {
  return encodeJson({ type, ...members }, type)
}
