// A chat completion and its stream are the same answer: the stream of a vendor that sent it whole, and the whole of one that
// can only stream.
import type { TextTraits } from '../../../catalog/traits.ts'
import { Fault } from '../../../kernel/fault.ts'
import { encodeJson, type SseEvent } from '../../../upstream/sse.ts'
import { isObject, type Json, objects, text } from '../../check.ts'
import { vendorFault } from '../../vendor-fault.ts'
import { readData } from '../relay.ts'
import { laterReport } from '../tokens.ts'
import { ChunkMender } from './mend.ts'

/** Of a delta these are pieces of one text; anything else is said once. */
const PIECES = ['content', 'reasoning_content', 'reasoning', 'refusal']

interface Choice extends Json {
  readonly message: Json
}

export function unrollChat(value: Json): string {
  const { choices, usage, object: _, ...head } = value
  if (!Array.isArray(choices)) throw new Fault('upstream_garbled', { internal: { why: 'no choices' } })
  const chunk = (members: Json) => encodeJson({ ...head, object: 'chat.completion.chunk', ...members })
  let out = ''
  for (const { message, finish_reason: finish = 'stop', ...choice } of objects(choices)) {
    const delta: Json = isObject(message) ? { ...message } : {}
    if (Array.isArray(delta.tool_calls))
      delta.tool_calls = objects(delta.tool_calls).map((call, index) => ({ index, ...call }))
    out += chunk({ choices: [{ index: 0, ...choice, delta, finish_reason: null }] })
    out += chunk({ choices: [{ index: choice.index ?? 0, delta: {}, finish_reason: finish }] })
  }
  if (isObject(usage)) out += chunk({ choices: [], usage })
  return `${out}data: [DONE]\n\n`
}

export function rollUpChat(events: readonly SseEvent[], { quirks }: TextTraits): Json {
  const mender = quirks.length > 0 ? new ChunkMender(quirks) : undefined
  const choices = new Map<unknown, Choice>()
  const whole: Json = {}
  let done = false
  for (const event of events) {
    done ||= event.data.trim() === '[DONE]'
    const data = done ? undefined : readData(event.data)
    if (!isObject(data)) continue
    if (data.error !== undefined && data.error !== null) throw vendorFault(data.error)
    mender?.mend(data)
    for (const [name, member] of Object.entries(data))
      if (name === 'usage') whole.usage = laterReport(whole.usage, member)
      else if (name !== 'choices' && member !== null) whole[name] = member
    for (const piece of objects(data.choices)) addChoice(choices, piece)
  }
  const finished = choices.size > 0 && [...choices.values()].every(({ finish_reason: finish }) => finish !== null)
  if (!done && !finished) throw new Fault('upstream_garbled', { internal: { why: 'the stream has no end' } })
  const byIndex = [...choices.values()].sort((a, b) => Number(a.index) - Number(b.index))
  // A call without a single piece of input has no input; readers want to parse it all the same.
  for (const { message } of byIndex)
    for (const { function: called } of objects(message.tool_calls))
      if (isObject(called)) called.arguments = text(called.arguments) || '{}'
  return { ...whole, object: 'chat.completion', choices: byIndex }
}

function addChoice(choices: Map<unknown, Choice>, { delta, logprobs, ...piece }: Json): void {
  const index = piece.index ?? 0
  const choice: Choice = choices.get(index) ?? {
    index,
    message: { role: 'assistant', content: null },
    finish_reason: null,
  }
  choices.set(index, choice)
  for (const [name, member] of Object.entries(piece)) if (member !== null) choice[name] = member
  if (isObject(delta)) addDelta(choice.message, delta)
  if (isObject(logprobs)) addLogprobs(choice, logprobs)
}

function addDelta(message: Json, delta: Json): void {
  for (const [name, member] of Object.entries(delta)) {
    if (member === null || member === undefined) continue
    if (name === 'tool_calls') message.tool_calls = withCalls(objects(message.tool_calls), objects(member))
    else if (name === 'function_call' && isObject(member))
      message.function_call = withPieces(message.function_call, member)
    else if (PIECES.includes(name)) message[name] = (text(message[name]) ?? '') + (text(member) ?? '')
    else if (Array.isArray(member)) addEntries(message, name, member)
    else message[name] = member
  }
}

/** Where a vendor gives no index, an id that was not there before begins a call, and everything else goes on with the last. */
function withCalls(calls: readonly Json[], pieces: readonly Json[]): Json[] {
  const all = [...calls]
  for (const { index, ...piece } of pieces) {
    const known = all.findIndex((call) => piece.id !== undefined && call.id === piece.id)
    const last = piece.id === undefined || piece.id === '' ? Math.max(0, all.length - 1) : all.length
    const at = typeof index === 'number' ? index : known < 0 ? last : known
    const { function: called, custom, ...rest } = piece
    const before = all[Math.min(at, all.length)] ?? {}
    all[Math.min(at, all.length)] = {
      ...before,
      ...rest,
      ...(isObject(called) ? { function: withPieces(before.function, called) } : {}),
      ...(isObject(custom) ? { custom: withPieces(before.custom, custom) } : {}),
    }
  }
  return all
}

/** Names come once, arguments in pieces. */
function withPieces(before: unknown, piece: Json): Json {
  const whole: Json = isObject(before) ? { ...before } : {}
  for (const [name, member] of Object.entries(piece))
    if (name === 'name') whole.name ??= member
    else whole[name] = (text(whole[name]) ?? '') + (text(member) ?? '')
  return whole
}

function addLogprobs(choice: Choice, more: Json): void {
  const whole: Json = isObject(choice.logprobs) ? choice.logprobs : {}
  choice.logprobs = whole
  for (const [name, member] of Object.entries(more)) if (Array.isArray(member)) addEntries(whole, name, member)
}

/** In place: a copy for every piece would take the square of their number. */
function addEntries(holder: Json, name: string, more: readonly unknown[]): void {
  const entries: unknown[] = Array.isArray(holder[name]) ? holder[name] : []
  holder[name] = entries
  for (const entry of more) entries.push(entry)
}
