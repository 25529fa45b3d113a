// The streamed form of a Messages answer.
import type { ServerResponse } from 'node:http'
import { record } from './json.ts'
import { sign } from './messages-rules.ts'
import { longLived, messageHead, STOP_REASONS, toolUseId } from './messages-shape.ts'
import { messagesError } from './refusal.ts'
import type { RoomContext } from './room.ts'
import { EventStream } from './stream.ts'
import type { TextAnswer } from './text-room.ts'
import { streamPieces } from './tokens.ts'
import { messagesUsage } from './usage.ts'

const ARGUMENT_CHARS = 12

export async function streamMessages(res: ServerResponse, ctx: RoomContext, answer: TextAnswer): Promise<void> {
  const { reply, triggers } = answer
  const out = new EventStream(res, ctx, triggers, { 'request-id': `req_${answer.id}` })
  const usage = messagesUsage(reply.usage, answer, longLived(answer))
  const errorAfter = triggers.number('error-in-stream')

  const start = { ...messageHead(answer), content: [], stop_reason: null, stop_sequence: null }
  const early = usage === undefined ? {} : { usage: { ...usage, output_tokens: triggers.has('zero-usage') ? 0 : 1 } }
  await out.event('message_start', { type: 'message_start', message: { ...start, ...early } })
  if (triggers.has('huge-line')) {
    await out.write('event: content_block_delta\ndata: {"type":"')
    await out.fill(triggers.number('huge-line') ?? 64_000_000, (text) => text)
  }
  if (triggers.has('empty')) return out.end()

  let index = 0
  for (const { block, deltas } of blocks(answer)) {
    await out.event('content_block_start', { type: 'content_block_start', index, content_block: block })
    if (index === 0) await out.event('ping', { type: 'ping' })
    for (const delta of deltas) {
      if (errorAfter !== undefined && ctx.call.chunks >= errorAfter) {
        await out.event('error', messagesError(529, 'Overloaded (simulated).'))
        return out.end()
      }
      await out.event('content_block_delta', { type: 'content_block_delta', index, delta })
      if (out.over) return
    }
    if (block.type === 'text') {
      const at = index
      await out.fill(triggers.number('big') ?? 0, (text) => deltaFrame(at, text))
    }
    await out.event('content_block_stop', { type: 'content_block_stop', index })
    index++
  }
  if (triggers.has('no-finish')) return out.end()
  await out.event('message_delta', {
    type: 'message_delta',
    delta: { stop_reason: STOP_REASONS[reply.finish], stop_sequence: reply.stopSequence ?? null },
    // Cumulative: it replaces what message_start said.
    ...(usage === undefined ? {} : { usage: { output_tokens: usage.output_tokens } }),
  })
  if (!triggers.has('no-done')) await out.event('message_stop', { type: 'message_stop' })
  out.end()
}

function deltaFrame(index: number, text: string): string {
  const data = { type: 'content_block_delta', index, delta: { type: 'text_delta', text } }
  return `event: content_block_delta\ndata: ${JSON.stringify(data)}\n\n`
}

interface StreamedBlock {
  readonly block: { readonly type: string; readonly [field: string]: unknown }
  readonly deltas: Iterable<unknown>
}

function* blocks({ reply, body }: TextAnswer): Generator<StreamedBlock> {
  const { reasoning, pieces, calls } = reply
  if (reasoning !== '') {
    const shown = record(body.thinking).display === 'omitted' ? [] : streamPieces(reasoning)
    const deltas = [
      ...shown.map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature: sign(reasoning) },
    ]
    yield { block: { type: 'thinking', thinking: '', signature: '' }, deltas }
  }
  if (pieces.length > 0) {
    const deltas = pieces.map((text) => ({ type: 'text_delta', text }))
    yield { block: { type: 'text', text: '' }, deltas }
  }
  for (const call of calls) {
    const block = { type: 'tool_use', id: toolUseId(call.id), name: call.name, input: {} }
    const deltas = [{ type: 'input_json_delta', partial_json: '' }]
    // A call without arguments sends no fragment at all: its input stays as it started.
    if (call.arguments !== '{}') {
      for (let at = 0; at < call.arguments.length; at += ARGUMENT_CHARS) {
        deltas.push({ type: 'input_json_delta', partial_json: call.arguments.slice(at, at + ARGUMENT_CHARS) })
      }
    }
    yield { block, deltas }
  }
}
