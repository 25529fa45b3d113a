// An answer and its stream are the same thing: pieces of the whole, each in the shape of the whole.
import { Fault } from '../../../kernel/fault.ts'
import { encodeJson, type SseEvent } from '../../../upstream/sse.ts'
import { isObject, type Json, objects } from '../../check.ts'
import { vendorFault } from '../../vendor-fault.ts'
import { readData } from '../relay.ts'
import { laterReport } from '../tokens.ts'
import { objectAt } from './member.ts'
import { blockReason } from './reply.ts'

export function unrollGemini(value: Json): string {
  if (objects(value.candidates).length === 0 && blockReason(value) === undefined)
    throw new Fault('upstream_garbled', { internal: { why: 'no candidate' } })
  const candidates = objects(value.candidates).map((candidate) => ({ finishReason: 'STOP', ...candidate }))
  return encodeJson(candidates.length > 0 ? { ...value, candidates } : value)
}

export function rollUpGemini(events: readonly SseEvent[]): Json {
  const whole: Json = {}
  const candidates = new Map<unknown, Json>()
  const partsOf = new Map<unknown, Json[]>()
  for (const event of events) {
    const data = event.data.trim() === '[DONE]' ? undefined : readData(event.data)
    if (!isObject(data)) continue
    if (isObject(data.error)) throw vendorFault(data.error)
    Object.assign(whole, data, { usageMetadata: laterReport(whole.usageMetadata, data.usageMetadata) })
    for (const piece of objects(data.candidates)) {
      const index = piece.index ?? 0
      const before = candidates.get(index) ?? {}
      const content = { role: 'model', ...objectAt(before, 'content'), ...objectAt(piece, 'content') }
      const parts = partsOf.get(index) ?? []
      partsOf.set(index, parts)
      for (const part of objects(objectAt(piece, 'content').parts)) join(parts, part)
      candidates.set(index, { ...before, ...piece, content: { ...content, parts } })
    }
  }
  const finished = [...candidates.values()].every(({ finishReason }) => finishReason !== undefined)
  if ((candidates.size === 0 || !finished) && blockReason(whole) === undefined)
    throw new Fault('upstream_garbled', { internal: { why: 'the stream has no end' } })
  return candidates.size === 0 ? whole : { ...whole, candidates: [...candidates.values()] }
}

/** Pieces of one text become one part; a signature may come with the last of them. In place: a stream has thousands. */
function join(parts: Json[], piece: Json): void {
  if (piece.text === '' && piece.thoughtSignature === undefined) return
  const last = parts.at(-1)
  const isText = (part: Json | undefined) => part !== undefined && typeof part.text === 'string'
  const goesOn =
    isText(last) && isText(piece) && last?.thought === piece.thought && last?.thoughtSignature === undefined
  if (goesOn && last) parts[parts.length - 1] = { ...last, ...piece, text: `${last.text}${piece.text}` }
  else parts.push(piece)
}
