// The chat completions API, as its several vendors speak it. chat-stream.ts writes the streamed form.
import { checkChat } from './chat-rules.ts'
import { calledAs, chatFinish, hasFunctions, signature, streamChat } from './chat-stream.ts'
import { type FamilyName, familyOf } from './family.ts'
import { isRecord, type Json, list, number, record, string } from './json.ts'
import { openaiError } from './refusal.ts'
import type { TextAsk, TextTurn, ToolChoice } from './text.ts'
import { type TextAnswer, textRoom, wholeText } from './text-room.ts'
import { chatUsage, tierOf } from './usage.ts'

export const chatRoom = textRoom({
  name: 'openai-chat',
  path: /^\/openai(\/v1)?\/chat\/completions$/,
  error: openaiError,
  read: readChat,
  check: (body, ask) => checkChat(body, familyOf(ask.model), ask.model),
  whole: wholeChat,
  stream: streamChat,
})

/** Reads the request into neutral words. */
function readChat(body: Json): TextAsk {
  const model = string(body.model)
  const family = familyOf(model)
  const names = new Map<string, string>()
  const turns = list(body.messages).map((given): TextTurn => {
    const message = record(given)
    for (const call of list(message.tool_calls)) {
      const { id, function: named, custom } = record(call)
      names.set(string(id), string(record(named ?? custom).name))
    }
    const role = string(message.role)
    const toolName = role === 'function' ? string(message.name) : names.get(string(message.tool_call_id))
    return {
      role: role === 'developer' ? 'system' : role === 'function' ? 'tool' : (role as TextTurn['role']),
      ...readParts(message.content),
      ...(toolName === undefined ? {} : { toolName }),
    }
  })
  const format = record(body.response_format)
  return {
    model,
    turns,
    tools: [...list(body.tools), ...list(body.functions)].map((tool) => {
      const { type, function: called, custom } = record(tool)
      const { name, description, parameters } = record(type === 'custom' ? custom : (called ?? tool))
      const own = { name: string(name), description: string(description), schema: record(parameters) }
      return type === 'custom' ? { ...own, custom: true } : own
    }),
    toolChoice: readChoice(
      isRecord(body.function_call) ? { function: body.function_call } : (body.tool_choice ?? body.function_call),
    ),
    parallelTools: body.parallel_tool_calls !== false && !hasFunctions(body),
    format:
      format.type === 'json_schema'
        ? record(record(format.json_schema).schema)
        : format.type === 'json_object'
          ? 'json'
          : undefined,
    outputTokensMax: number(body.max_completion_tokens) ?? number(body.max_tokens),
    stop: typeof body.stop === 'string' ? [body.stop] : list(body.stop).map(string),
    reasons: reasons(body, family),
    seed: number(body.seed),
  }
}

function reasons(body: Json, family: FamilyName): boolean {
  if (family === 'gamma' || family === 'zeta') return record(body.thinking).type !== 'disabled'
  if (family === 'plain') return body.reasoning_effort !== undefined && body.reasoning_effort !== 'none'
  return body.reasoning_effort !== 'none'
}

function readParts(content: unknown): { text: string; images: number } {
  if (typeof content === 'string') return { text: content, images: 0 }
  const texts: string[] = []
  let images = 0
  for (const given of list(content)) {
    const part = record(given)
    if (typeof part.text === 'string') texts.push(part.text)
    else if (/image|video|file/.test(string(part.type))) images++
  }
  return { text: texts.join('\n'), images }
}

function readChoice(choice: unknown): ToolChoice {
  if (choice === 'none' || choice === 'required') return choice
  const { function: named, allowed_tools: allowed } = record(choice)
  if (isRecord(named)) return { name: string(named.name) }
  return record(allowed).mode === 'required' ? 'required' : 'auto'
}

function wholeChat(answer: TextAnswer): Json {
  const { body, reply, triggers } = answer
  const choices = number(body.n) ?? 1
  const usage = chatUsage(reply.usage, triggers, choices)
  return {
    id: `chatcmpl-${answer.id}`,
    object: 'chat.completion',
    created: answer.createdSeconds,
    model: answer.ask.model,
    choices: Array.from({ length: choices }, (_, index) => ({
      index,
      message: wholeMessage(answer),
      logprobs: null,
      finish_reason: triggers.has('empty') ? null : chatFinish(answer),
    })),
    ...(usage === undefined ? {} : { usage }),
    service_tier: tierOf(body, 'default'),
    system_fingerprint: 'fp_tollgate_sandbox',
  }
}

function wholeMessage(answer: TextAnswer): Json {
  const { reasoning, calls } = answer.reply
  const family = familyOf(answer.ask.model)
  const content = calls.length > 0 ? null : wholeText(answer)
  const message: Record<string, unknown> = { role: 'assistant', content, refusal: null, annotations: [] }
  const [only] = calls
  if (only && hasFunctions(answer.body)) {
    message.function_call = { name: only.name, arguments: only.arguments }
  } else if (only) {
    message.tool_calls = calls.map((call, i) => ({
      id: call.id,
      ...calledAs(call, call.arguments),
      ...(family === 'delta' && i === 0 ? { extra_content: signature(call.id) } : {}),
    }))
  }
  if (reasoning === '') return message
  if (family === 'gamma' || family === 'epsilon') message.reasoning_content = reasoning
  if (family !== 'zeta') return message
  if (answer.body.reasoning_split === true) {
    return {
      ...message,
      reasoning_content: reasoning,
      reasoning_details: [{ type: 'reasoning.text', text: reasoning }],
    }
  }
  return { ...message, content: `<think>\n${reasoning}\n</think>\n\n${content ?? ''}` }
}
