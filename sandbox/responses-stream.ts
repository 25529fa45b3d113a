// The streamed form of a Responses answer: the full sequence of events, numbered from zero.
import type { ServerResponse } from 'node:http'
import type { Json } from './json.ts'
import { callItem, messageItem, reasoningItem, responseObject, summaryText, textPart } from './responses-shape.ts'
import type { RoomContext } from './room.ts'
import { EventStream } from './stream.ts'
import type { TextAnswer } from './text-room.ts'
import { streamPieces } from './tokens.ts'

const ARGUMENT_CHARS = 12

export async function streamResponses(res: ServerResponse, ctx: RoomContext, answer: TextAnswer): Promise<void> {
  const { reply, triggers } = answer
  const out = new EventStream(res, ctx, triggers)
  let sequence = 0
  const send = (type: string, fields: Json) => out.event(type, { type, ...fields, sequence_number: sequence++ })
  const errorAfter = triggers.number('error-in-stream') ?? Number.POSITIVE_INFINITY
  const failAfter = triggers.number('failed-in-stream') ?? Number.POSITIVE_INFINITY

  await send('response.created', { response: responseObject(answer, 'started') })
  await send('response.in_progress', { response: responseObject(answer, 'started') })
  if (triggers.has('huge-line')) {
    await out.write('event: response.output_text.delta\ndata: {"type":"')
    await out.fill(triggers.number('huge-line') ?? 64_000_000, (text) => text)
  }
  if (triggers.has('empty')) return out.end()

  for (const [type, fields] of outputEvents(answer)) {
    if (ctx.call.chunks >= errorAfter) {
      await send('error', { code: 'server_error', message: 'The server had an error (simulated).', param: null })
      return out.end()
    }
    if (ctx.call.chunks >= failAfter) {
      await send('response.failed', { response: responseObject(answer, 'failed') })
      return out.end()
    }
    const big = triggers.number('big')
    if (big !== undefined && type === 'response.output_text.done') {
      await out.fill(big, (text) => deltaFrame(answer, text, sequence++))
    }
    await send(type, fields)
    if (out.over) return
  }
  if (triggers.has('no-finish')) return out.end()
  const end = reply.finish === 'length' ? 'response.incomplete' : 'response.completed'
  if (!triggers.has('no-done')) await send(end, { response: responseObject(answer, 'whole') })
  out.end()
}

function deltaFrame(answer: TextAnswer, text: string, sequence: number): string {
  const type = 'response.output_text.delta'
  const data = {
    type,
    item_id: `msg_${answer.id}`,
    output_index: 0,
    content_index: 0,
    delta: text,
    logprobs: [],
    sequence_number: sequence,
  }
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
}

const CUSTOM_DELTA = 'response.custom_tool_call_input.delta'

type NamedEvent = readonly [type: string, fields: Json]

function* outputEvents(answer: TextAnswer): Generator<NamedEvent> {
  const { reply } = answer
  let output_index = 0
  if (reply.reasoning !== '') yield* reasoningEvents(answer, output_index++)
  if (reply.pieces.length > 0 || reply.calls.length === 0) yield* textEvents(answer, output_index++)
  for (const call of reply.calls) {
    const item = callItem(call, call.arguments, 'completed')
    const item_id = item.id
    yield ['response.output_item.added', { output_index, item: callItem(call, '', 'in_progress') }]
    for (let at = 0; at < call.arguments.length; at += ARGUMENT_CHARS) {
      const delta = call.arguments.slice(at, at + ARGUMENT_CHARS)
      yield [call.custom ? CUSTOM_DELTA : 'response.function_call_arguments.delta', { item_id, output_index, delta }]
    }
    if (call.custom) yield ['response.custom_tool_call_input.done', { item_id, output_index, input: call.arguments }]
    else
      yield [
        'response.function_call_arguments.done',
        { item_id, output_index, name: call.name, arguments: call.arguments },
      ]
    yield ['response.output_item.done', { output_index, item }]
    output_index++
  }
}

function* reasoningEvents(answer: TextAnswer, output_index: number): Generator<NamedEvent> {
  const text = summaryText(answer)
  const item_id = `rs_${answer.id}`
  const at = { item_id, output_index, summary_index: 0 }
  yield ['response.output_item.added', { output_index, item: reasoningItem(answer, '') }]
  if (text !== '') {
    yield ['response.reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } }]
    for (const delta of streamPieces(text)) yield ['response.reasoning_summary_text.delta', { ...at, delta }]
    yield ['response.reasoning_summary_text.done', { ...at, text }]
    yield ['response.reasoning_summary_part.done', { ...at, part: { type: 'summary_text', text } }]
  }
  yield ['response.output_item.done', { output_index, item: reasoningItem(answer, text) }]
}

function* textEvents(answer: TextAnswer, output_index: number): Generator<NamedEvent> {
  const { text, pieces, finish } = answer.reply
  const at = { item_id: `msg_${answer.id}`, output_index, content_index: 0 }
  const status = finish === 'length' ? 'incomplete' : 'completed'
  yield ['response.output_item.added', { output_index, item: messageItem(answer, undefined, 'in_progress') }]
  yield ['response.content_part.added', { ...at, part: textPart('') }]
  for (const delta of pieces) yield ['response.output_text.delta', { ...at, delta, logprobs: [] }]
  yield ['response.output_text.done', { ...at, text, logprobs: [] }]
  yield ['response.content_part.done', { ...at, part: textPart(text) }]
  yield ['response.output_item.done', { output_index, item: messageItem(answer, text, status) }]
}
