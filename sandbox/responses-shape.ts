// The response object of the Responses API, at its beginning and at its end.
import { type Json, list, record } from './json.ts'
import type { TextCall } from './text.ts'
import { type TextAnswer, wholeText } from './text-room.ts'
import { responsesUsage, tierOf } from './usage.ts'

/** `started` has no output yet, `failed` never gets any. */
type ResponseStage = 'started' | 'whole' | 'failed'

export function responseObject(answer: TextAnswer, stage: ResponseStage): Json {
  const { body, reply, triggers } = answer
  const cutShort = stage === 'whole' && reply.finish === 'length'
  const usage = stage === 'whole' ? responsesUsage(reply.usage, triggers) : undefined
  const empty = triggers.has('empty')
  return {
    id: `resp_${answer.id}`,
    object: 'response',
    created_at: answer.createdSeconds,
    status:
      stage === 'started' || empty
        ? 'in_progress'
        : stage === 'failed'
          ? 'failed'
          : cutShort
            ? 'incomplete'
            : 'completed',
    completed_at: stage === 'whole' && !cutShort ? answer.createdSeconds : null,
    background: false,
    ...(body.conversation ? { conversation: { id: record(body.conversation).id ?? body.conversation } } : {}),
    error:
      stage === 'failed'
        ? { code: 'server_error', message: 'The model failed while it was answering (simulated).' }
        : null,
    incomplete_details: cutShort ? { reason: 'max_output_tokens' } : null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    frequency_penalty: body.frequency_penalty ?? 0,
    max_tool_calls: body.max_tool_calls ?? null,
    metadata: body.metadata ?? {},
    model: answer.ask.model,
    output: stage === 'whole' && !empty ? outputItems(answer) : [],
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    presence_penalty: body.presence_penalty ?? 0,
    previous_response_id: body.previous_response_id ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { effort: record(body.reasoning).effort ?? 'medium', summary: record(body.reasoning).summary ?? null },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: tierOf(body, 'default'),
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: { format: record(body.text).format ?? { type: 'text' }, verbosity: record(body.text).verbosity ?? 'medium' },
    tool_choice: body.tool_choice ?? 'auto',
    // This format makes schemas strict unless told otherwise.
    tools: list(body.tools)
      .map(record)
      .map((tool) =>
        tool.type === 'function' ? { description: null, parameters: null, strict: true, ...tool } : tool,
      ),
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    user: body.user ?? null,
    usage: usage ?? null,
  }
}

/** Uses of tools that run here, by the trigger that asks for them. */
const HOSTED = [
  ['searches', 'web_search_call'],
  ['file-searches', 'file_search_call'],
  ['code-runs', 'code_interpreter_call'],
  ['pictures', 'image_generation_call'],
] as const

function outputItems(answer: TextAnswer): Json[] {
  const { reply, triggers } = answer
  const items: Json[] = []
  for (const [name, type] of HOSTED)
    for (let use = 0; use < (triggers.number(name) ?? 0); use++)
      items.push({ id: `${type}_${use}`, type, status: 'completed' })
  if (reply.reasoning !== '') items.push(reasoningItem(answer, summaryText(answer)))
  const text = wholeText(answer)
  if (text !== '' || reply.calls.length === 0)
    items.push(messageItem(answer, text, reply.finish === 'length' ? 'incomplete' : 'completed'))
  for (const call of reply.calls) items.push(callItem(call, call.arguments, 'completed'))
  return items
}

/** Thoughts are shown only as a summary, and only on request. */
export function summaryText({ body, reply }: TextAnswer): string {
  return record(body.reasoning).summary ? reply.reasoning : ''
}

export function reasoningItem(answer: TextAnswer, summary: string): Json {
  const encrypted = list(answer.body.include).includes('reasoning.encrypted_content')
  return {
    id: `rs_${answer.id}`,
    type: 'reasoning',
    summary: summary === '' ? [] : [{ type: 'summary_text', text: summary }],
    ...(encrypted ? { encrypted_content: Buffer.from(`simulated ${answer.reply.reasoning}`).toString('base64') } : {}),
  }
}

export function messageItem(answer: TextAnswer, text: string | undefined, status: string): Json {
  return {
    id: `msg_${answer.id}`,
    type: 'message',
    status,
    role: 'assistant',
    content: text === undefined ? [] : [textPart(text)],
  }
}

export function textPart(text: string): Json {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

export function callItem(call: TextCall, args: string, status: string): Json {
  const { id: call_id, name, namespace } = call
  if (call.custom)
    return { id: call_id.replace(/^call_/, 'ctc_'), type: 'custom_tool_call', status, call_id, name, input: args }
  return {
    id: call_id.replace(/^call_/, 'fc_'),
    type: 'function_call',
    status,
    call_id,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    arguments: args,
  }
}
