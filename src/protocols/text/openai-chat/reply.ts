// A whole chat completion: read into neutral words, and written from them.
import type { TextTraits } from '../../../catalog/traits.ts'
import { Fault } from '../../../kernel/fault.ts'
import { given, isObject, type Json, objects, text } from '../../check.ts'
import {
  type AnswerFacts,
  answerId,
  type CallPart,
  type Finish,
  type OutputPart,
  type Proof,
  type Reply,
  textOf,
} from '../dialogue.ts'
import { readChatUsage, type TokenCounts, writeChatUsage } from '../tokens.ts'
import { readThoughts } from './read-request.ts'

const FINISHES: Readonly<Record<string, Finish>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'calls',
  function_call: 'calls',
  content_filter: 'filter',
}

/** A reason we do not know is read by what came: calls, or an ordinary end. */
export function readFinish(reason: unknown, called: boolean): Finish {
  const known = FINISHES[String(reason)] ?? 'stop'
  // Some vendors say "stop" although they called tools.
  return known === 'stop' && called ? 'calls' : known
}

const NAMES: Readonly<Record<Finish, string>> = {
  stop: 'stop',
  length: 'length',
  calls: 'tool_calls',
  filter: 'content_filter',
}

export function finishName(finish: Finish, request: Json): string {
  return finish === 'calls' && isLegacy(request) ? 'function_call' : NAMES[finish]
}

export function readChatReply(value: Json, traits?: TextTraits): Reply {
  const choice = objects(value.choices)[0]
  if (!choice || !isObject(choice.message))
    throw new Fault('upstream_garbled', { internal: { why: 'no choice with a message' } })
  const { message } = choice
  const parts: OutputPart[] = readThoughts(message)
  const content =
    typeof message.content === 'string'
      ? message.content
      : objects(message.content)
          .map((part) => text(part.text) ?? '')
          .join('')
  if (content !== '') parts.push({ kind: 'text', text: content })
  if (typeof message.refusal === 'string' && message.refusal !== '')
    parts.push({ kind: 'refusal', text: message.refusal })
  const calls = objects(message.tool_calls).map(readReplyCall)
  if (calls.length === 0 && isObject(message.function_call))
    calls.push(readReplyCall({ id: 'call_function_1', function: message.function_call }))
  parts.push(...calls)
  const finish = readFinish(choice.finish_reason, calls.length > 0)
  return { parts, finish, tokens: readChatUsage(value.usage, traits) }
}

function readReplyCall(call: Json, i = 0): CallPart {
  const custom = isObject(call.custom) ? call.custom : undefined
  const called = custom ?? (isObject(call.function) ? call.function : {})
  return given({
    kind: 'call' as const,
    id: text(call.id) ?? `call_${i}`,
    name: text(called.name) ?? '',
    input: text(custom ? custom.input : called.arguments) ?? '',
    custom: custom ? true : undefined,
    extra: call.extra_content,
  }) as CallPart
}

export function writeChatReply(reply: Reply, facts: AnswerFacts): Json {
  const { parts } = reply
  const content = textOf(parts, 'text')
  const refusal = textOf(parts, 'refusal')
  const calls = parts.filter((part) => part.kind === 'call')
  const message: Json = {
    role: 'assistant',
    content: content === '' && (calls.length > 0 || refusal !== '') ? null : content,
    refusal: refusal === '' ? null : refusal,
  }
  const thought = textOf(parts, 'thought')
  if (thought !== '') message.reasoning_content = thought
  const details = parts.flatMap((part) => (part.kind === 'thought' ? writeDetails(part.text, part.proof) : []))
  if (details.length > 0) message.reasoning_details = details
  if (calls.length > 0 && isLegacy(facts.request))
    message.function_call = { name: calls[0]!.name, arguments: calls[0]!.input }
  else if (calls.length > 0) message.tool_calls = calls.map(writeCall)
  return {
    id: answerId('chatcmpl-', facts),
    object: 'chat.completion',
    created: facts.createdSeconds,
    model: facts.uid,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishName(reply.finish, facts.request) }],
    ...(reply.tokens ? { usage: writeUsage(reply.tokens) } : {}),
  }
}

function writeCall(call: CallPart): Json {
  if (call.custom) return { id: call.id, type: 'custom', custom: { name: call.name, input: call.input } }
  return given({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.input || '{}' },
    extra_content: call.extra,
  })
}

/** What a caller sends back unread in the next turn, so that the vendor knows its own thought again. */
export function writeDetails(thought: string, proof: Proof): Json[] {
  if (proof.redacted !== undefined) return [{ type: 'redacted_thinking', data: proof.redacted }]
  if (proof.encrypted !== undefined)
    return [{ type: 'reasoning.encrypted', id: proof.encrypted.id, data: proof.encrypted.data }]
  if (proof.google !== undefined) return [{ type: 'thought_signature', data: proof.google }]
  return proof.signature === undefined ? [] : [{ type: 'thinking', text: thought, signature: proof.signature }]
}

/** Many tools also look for the cache counts at the top level. */
export function writeUsage(tokens: TokenCounts): Json {
  return {
    ...writeChatUsage(tokens),
    cache_read_input_tokens: tokens.cached,
    cache_creation_input_tokens: tokens.cacheWrite,
  }
}

/** The caller speaks the deprecated pair `functions` and `function_call`. */
export function isLegacy(request: Json): boolean {
  return Array.isArray(request.functions) && !Array.isArray(request.tools)
}
