// A whole Responses object: read into neutral words, and written from them.
import { Fault } from '../../../kernel/fault.ts'
import { given, isObject, type Json, objects, text } from '../../check.ts'
import { vendorFault } from '../../vendor-fault.ts'
import { packExtra, packProof } from '../carry.ts'
import {
  type AnswerFacts,
  answerId,
  type CallPart,
  type Finish,
  type OutputPart,
  type Reply,
  type ThoughtPart,
} from '../dialogue.ts'
import { readResponsesUsage, type TokenCounts, writeResponsesUsage } from '../tokens.ts'
import { echoed } from './members.ts'
import { Namespaces } from './namespaces.ts'

export function readResponsesReply(value: Json): Reply {
  if (value.status === 'failed') throw vendorFault(value.error ?? { message: 'failed' })
  if (!Array.isArray(value.output)) throw new Fault('upstream_garbled', { internal: { why: 'no output' } })
  const parts = objects(value.output).flatMap(readItem)
  return {
    parts,
    finish: readFinish(
      value,
      parts.some((part) => part.kind === 'call'),
    ),
    tokens: readResponsesUsage(value.usage),
  }
}

/** An incomplete answer says why; otherwise calls make the difference. */
export function readFinish(response: Json, called: boolean): Finish {
  const details = isObject(response.incomplete_details) ? response.incomplete_details : {}
  if (called) return 'calls'
  if (response.status === 'incomplete') return details.reason === 'content_filter' ? 'filter' : 'length'
  return 'stop'
}

export function readItem(item: Json): OutputPart[] {
  switch (item.type) {
    case 'message':
      return objects(item.content).map(
        (part): OutputPart =>
          part.type === 'refusal'
            ? { kind: 'refusal', text: text(part.refusal) ?? '' }
            : { kind: 'text', text: text(part.text) ?? '' },
      )
    case 'reasoning':
      return readThought(item)
    case 'function_call':
      return [{ kind: 'call', id: callId(item), name: text(item.name) ?? '', input: text(item.arguments) ?? '' }]
    case 'custom_tool_call':
      return [
        { kind: 'call', id: callId(item), name: text(item.name) ?? '', input: text(item.input) ?? '', custom: true },
      ]
  }
  return [] // What a hosted tool did is the vendor's affair; its effect is in the text.
}

/** Calls are answered by their call id; the item's own id is another thing. */
export function callId(item: Json): string {
  return text(item.call_id) ?? text(item.id) ?? ''
}

function readThought(item: Json): ThoughtPart[] {
  const said = [...objects(item.summary), ...objects(item.content)].map((part) => text(part.text) ?? '').join('\n\n')
  const data = text(item.encrypted_content) || undefined
  const proof = data === undefined ? {} : { encrypted: { id: text(item.id) ?? '', data } }
  return said === '' && data === undefined ? [] : [{ kind: 'thought', text: said, proof }]
}

export function writeResponsesReply(reply: Reply, facts: AnswerFacts): Json {
  const output: Json[] = []
  const nextId = (prefix: string) => itemId(prefix, output.length, facts)
  const namespaces = new Namespaces(facts.request.tools)
  let content: Json[] | undefined
  for (const part of reply.parts) {
    if (part.kind === 'text' || part.kind === 'refusal') {
      if (!content) {
        content = []
        output.push(messageItem(nextId('msg_'), content, 'completed'))
      }
      content.push(part.kind === 'text' ? textPart(part.text) : { type: 'refusal', refusal: part.text })
      continue
    }
    content = undefined
    if (part.kind === 'thought') output.push(thoughtItem(nextId('rs_'), part.text, packProof(part.proof)))
    else {
      if (part.extra !== undefined) output.push(thoughtItem(nextId('rs_'), '', packExtra(part.id, part.extra)))
      const call = { ...part, ...namespaces.grouped(part.name) }
      output.push(callItem(nextId(part.custom ? 'ctc_' : 'fc_'), call, part.input, 'completed'))
    }
  }
  return responseObject(facts, { output, finish: reply.finish, tokens: reply.tokens })
}

export function itemId(prefix: string, index: number, facts: AnswerFacts): string {
  return `${answerId(prefix, facts)}_${index}`
}

export function messageItem(id: string, content: readonly Json[], status: string): Json {
  return { type: 'message', id, role: 'assistant', status, content }
}

export function textPart(said: string): Json {
  return { type: 'output_text', text: said, annotations: [], logprobs: [] }
}

export function thoughtItem(id: string, thought: string, encrypted: string | undefined): Json {
  const summary = thought === '' ? [] : [{ type: 'summary_text', text: thought }]
  return given({ type: 'reasoning', id, summary, encrypted_content: encrypted })
}

/** With the names that the caller gave the tool. */
export function callItem(
  id: string,
  call: Pick<CallPart, 'id' | 'custom'> & { readonly name: string; readonly namespace?: string },
  input: string,
  status: string,
): Json {
  const { name, namespace } = call
  const head = given({ id, call_id: call.id, name, namespace })
  if (call.custom) return { type: 'custom_tool_call', ...head, input, status }
  return { type: 'function_call', ...head, arguments: input, status }
}

interface ResponseEnd {
  readonly output: readonly Json[]
  readonly finish: Finish
  readonly tokens: TokenCounts | undefined
}

/** The object of lifecycle events and of whole answers; without an end it is in progress. */
export function responseObject(facts: AnswerFacts, end?: ResponseEnd): Json {
  const { request } = facts
  const reasoning = isObject(request.reasoning) ? request.reasoning : {}
  const cut = end?.finish === 'length' ? 'max_output_tokens' : end?.finish === 'filter' ? 'content_filter' : undefined
  const done = end !== undefined && cut === undefined
  return {
    id: answerId('resp_', facts),
    object: 'response',
    created_at: facts.createdSeconds,
    ...echoed(request),
    completed_at: done ? facts.nowSeconds() : null,
    status: end ? (cut ? 'incomplete' : 'completed') : 'in_progress',
    background: false,
    error: null,
    incomplete_details: cut ? { reason: cut } : null,
    model: facts.uid,
    output: end?.output ?? [],
    previous_response_id: null,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    // Nothing is kept at a vendor that speaks another format.
    store: false,
    text: { format: { type: 'text' }, ...(isObject(request.text) ? given(request.text) : {}) },
    truncation: 'disabled',
    usage: end?.tokens ? writeResponsesUsage(end.tokens) : null,
    user: request.user ?? null,
  }
}
