// A whole message: read into neutral words, and written from them.
import { Fault } from '../../../kernel/fault.ts'
import { given, type Json, objects, text } from '../../check.ts'
import { packExtra, packProof } from '../carry.ts'
import {
  type AnswerFacts,
  answerId,
  type Finish,
  inputObject,
  type OutputPart,
  type Proof,
  type Reply,
} from '../dialogue.ts'
import { readMessagesUsage, type TokenCounts, writeMessagesUsage } from '../tokens.ts'

const FINISHES: Readonly<Record<string, Finish>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'calls',
  refusal: 'filter',
}

export function readStopReason(reason: unknown, called: boolean): Finish {
  return FINISHES[String(reason)] ?? (called ? 'calls' : 'stop')
}

export function stopReason(finish: Finish, stopSequence: string | undefined, refused: boolean): string {
  if (refused || finish === 'filter') return 'refusal'
  if (finish === 'calls') return 'tool_use'
  if (finish === 'length') return 'max_tokens'
  return stopSequence === undefined ? 'end_turn' : 'stop_sequence'
}

export function readMessagesReply(value: Json): Reply {
  if (!Array.isArray(value.content)) throw new Fault('upstream_garbled', { internal: { why: 'no content' } })
  const parts = objects(value.content).flatMap(readBlock)
  const stop = text(value.stop_sequence)
  return {
    parts,
    finish: readStopReason(
      value.stop_reason,
      parts.some((part) => part.kind === 'call'),
    ),
    ...(stop === undefined ? {} : { stopSequence: stop }),
    tokens: readMessagesUsage(value.usage),
  }
}

function readBlock(block: Json): OutputPart[] {
  switch (block.type) {
    case 'text':
      return [{ kind: 'text', text: text(block.text) ?? '' }]
    case 'thinking':
      return [
        {
          kind: 'thought',
          text: text(block.thinking) ?? '',
          proof: given({ signature: text(block.signature) }) as Proof,
        },
      ]
    case 'redacted_thinking':
      return [{ kind: 'thought', text: '', proof: { redacted: text(block.data) ?? '' } }]
    case 'tool_use':
      return [
        {
          kind: 'call',
          id: text(block.id) ?? '',
          name: text(block.name) ?? '',
          input: JSON.stringify(block.input ?? {}),
        },
      ]
  }
  return [] // What the vendor's own tools did is in the text.
}

export function writeMessagesReply(reply: Reply, facts: AnswerFacts): Json {
  const refused = reply.parts.some((part) => part.kind === 'refusal')
  return {
    ...messageHead(facts, reply.tokens),
    content: proofsFirst(reply.parts).flatMap(writePart),
    stop_reason: stopReason(reply.finish, reply.stopSequence, refused),
    stop_sequence: reply.stopSequence ?? null,
  }
}

/** The proof of a text stands before it: clients look for the text in the last block. */
function proofsFirst(parts: readonly OutputPart[]): OutputPart[] {
  const out: OutputPart[] = []
  for (const part of parts) {
    const isText = ({ kind }: OutputPart) => kind === 'text' || kind === 'refusal'
    const at = part.kind === 'thought' && part.text === '' ? out.findLastIndex((one) => !isText(one)) + 1 : out.length
    const before = out[at - 1]
    if (
      at < out.length &&
      part.kind === 'thought' &&
      before?.kind === 'thought' &&
      Object.keys(before.proof).length === 0
    )
      out[at - 1] = { ...before, proof: part.proof }
    else out.splice(at, 0, part)
  }
  return out
}

function writePart(part: OutputPart): Json[] {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text, citations: null }]
    case 'thought':
      return [thoughtBlock(part.text, packProof(part.proof))]
    case 'call':
      return [
        ...(part.extra === undefined ? [] : [{ type: 'redacted_thinking', data: packExtra(part.id, part.extra) }]),
        { type: 'tool_use', id: part.id, name: part.name, input: inputObject(part.input) },
      ]
  }
}

function thoughtBlock(thought: string, packed: string): Json {
  return thought === ''
    ? { type: 'redacted_thinking', data: packed }
    : { type: 'thinking', thinking: thought, signature: packed }
}

/** The message without its content. Before the vendor has counted, the prompt is an estimate. */
export function messageHead(facts: AnswerFacts, tokens: TokenCounts | undefined): Json {
  const usage = writeMessagesUsage(
    tokens ?? { prompt: facts.inputTokens, cached: 0, cacheWrite: 0, output: 1, reasoning: undefined },
  )
  return {
    id: answerId('msg_', facts),
    type: 'message',
    role: 'assistant',
    model: facts.uid,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  }
}
