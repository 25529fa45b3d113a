// The streamed form of a chat completion, with each vendor's habits.
import type { ServerResponse } from 'node:http'
import { familyOf } from './family.ts'
import { type Json, list, number, record } from './json.ts'
import { faultMessage } from './misbehave.ts'
import { openaiError } from './refusal.ts'
import type { RoomContext } from './room.ts'
import { EventStream } from './stream.ts'
import type { TextCall } from './text.ts'
import type { TextAnswer } from './text-room.ts'
import { streamPieces } from './tokens.ts'
import { chatUsage } from './usage.ts'

const CHAT_FINISH = { stop: 'stop', 'stop-sequence': 'stop', length: 'length', tool: 'tool_calls' } as const

/** The tools of the first years, which older programs still send. */
export const hasFunctions = (body: Json) => list(body.functions).length > 0

export const chatFinish = ({ body, reply }: TextAnswer) =>
  reply.finish === 'tool' && hasFunctions(body) ? 'function_call' : CHAT_FINISH[reply.finish]

/** Vendors send a tool's arguments in fragments that do not respect JSON. */
const ARGUMENT_CHARS = 12

export async function streamChat(res: ServerResponse, ctx: RoomContext, answer: TextAnswer): Promise<void> {
  const { body, reply, triggers } = answer
  const { model } = answer.ask
  const family = familyOf(model)
  const n = number(body.n) ?? 1
  const out = new EventStream(res, ctx, triggers)
  const wantsUsage = record(body.stream_options).include_usage === true
  const usage = chatUsage(reply.usage, triggers, n)
  // These two report usage with the finish, and do so unasked.
  const usageWithFinish = family === 'gamma' || family === 'zeta'
  const errorAfter = triggers.number('error-in-stream')
  const head = { id: `chatcmpl-${answer.id}`, object: 'chat.completion.chunk', created: answer.createdSeconds, model }
  const frame = JSON.stringify(head).slice(0, -1)
  const send = (index: number, delta: unknown, finish: string | null = null, extra = '') =>
    out.write(
      `data: ${frame},"choices":[{"index":${index},"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":${JSON.stringify(finish)}}]${extra}${wantsUsage && extra === '' ? ',"usage":null' : ''}}\n\n`,
    )

  if (triggers.has('huge-line')) {
    await out.write('data: {"id":"')
    await out.fill(triggers.number('huge-line') ?? 64_000_000, (text) => text)
  }
  for (let index = 0; index < n && !out.over; index++) {
    await send(index, { role: 'assistant', content: '', refusal: null })
    for (const delta of deltas(answer)) {
      if (errorAfter !== undefined && ctx.call.chunks >= errorAfter) {
        await out.data(openaiError(500, faultMessage(500)))
        return out.end()
      }
      await send(index, delta)
      if (out.over) return
    }
    const big = triggers.number('big')
    if (big !== undefined) {
      await out.fill(
        big,
        (text) =>
          `data: ${frame},"choices":[{"index":${index},"delta":{"content":"${text}"},"finish_reason":null}]}\n\n`,
      )
    }
    if (triggers.has('empty') || triggers.has('no-finish')) continue
    const extra = usageWithFinish && usage !== undefined && index === n - 1 ? `,"usage":${JSON.stringify(usage)}` : ''
    await send(index, {}, chatFinish(answer), extra)
  }
  if (wantsUsage && usage !== undefined && !usageWithFinish && !triggers.has('empty')) {
    await out.write(`data: ${frame},"choices":[],"usage":${JSON.stringify(usage)}}\n\n`)
  }
  if (!triggers.has('empty') && !triggers.has('no-finish') && !triggers.has('no-done'))
    await out.write('data: [DONE]\n\n')
  out.end()
}

function* deltas({ ask, body, reply }: TextAnswer): Generator<unknown> {
  const family = familyOf(ask.model)
  const { reasoning, pieces, calls } = reply
  if (reasoning !== '') {
    if (family === 'gamma' || family === 'epsilon') {
      for (const piece of streamPieces(reasoning)) yield { content: null, reasoning_content: piece }
    } else if (family === 'zeta' && body.reasoning_split === true) {
      // Each piece repeats all that came before: a snapshot, not a delta.
      let soFar = ''
      for (const piece of streamPieces(reasoning)) {
        soFar += piece
        yield { reasoning_details: [{ type: 'reasoning.text', id: 'reasoning-text-1', index: 0, text: soFar }] }
      }
    } else if (family === 'zeta') {
      // The tags are cut across pieces, because nothing promises that they are not.
      for (const piece of ['<th', 'ink>\n', ...streamPieces(reasoning), '\n</thi', 'nk>\n', '\n'])
        yield { content: piece }
    }
  }
  for (const piece of pieces) yield { content: piece }
  for (const [index, call] of calls.entries()) {
    const { id } = call
    if (hasFunctions(body)) {
      yield { function_call: { name: call.name, arguments: '' } }
      for (let at = 0; at < call.arguments.length; at += ARGUMENT_CHARS)
        yield { function_call: { arguments: call.arguments.slice(at, at + ARGUMENT_CHARS) } }
      continue
    }
    if (family === 'delta') {
      // One whole call a piece, without an index.
      const extra = index === 0 ? { extra_content: signature(id) } : {}
      yield { tool_calls: [{ id, ...calledAs(call, call.arguments), ...extra }] }
      continue
    }
    yield { tool_calls: [{ index, id, ...calledAs(call, '') }] }
    for (let at = 0; at < call.arguments.length; at += ARGUMENT_CHARS) {
      const piece = call.arguments.slice(at, at + ARGUMENT_CHARS)
      yield {
        tool_calls: [{ index, ...(call.custom ? { custom: { input: piece } } : { function: { arguments: piece } }) }],
      }
    }
  }
}

/** A function takes JSON, a custom tool any text. */
export function calledAs({ name, custom }: TextCall, said: string): Json {
  return custom
    ? { type: 'custom', custom: { name, input: said } }
    : { type: 'function', function: { name, arguments: said } }
}

/** Delta's models want this back with the call, or they refuse the next turn. */
export function signature(id: string): Json {
  return { google: { thought_signature: Buffer.from(`simulated signature of ${id}`).toString('base64') } }
}
