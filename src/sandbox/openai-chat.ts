// The chat completions API, as its several vendors speak it. chat-stream.ts writes the streamed form.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { checkChat } from './chat-rules.ts'
import { streamChat } from './chat-stream.ts'
import { composeReply } from './compose.ts'
import { type FamilyName, familyOf } from './family.ts'
import { isRecord, type Json, list, number, parseJson, record, string } from './json.ts'
import { misbehave, sendWhole } from './misbehave.ts'
import { openaiError, Refusal } from './refusal.ts'
import type { Room, RoomContext } from './room.ts'
import { dice, hash } from './seed.ts'
import { lastUserTurn, type TextAsk, type TextReply, type TextTurn, type ToolChoice, triggerTexts } from './text.ts'
import { readTriggers, type Triggers } from './trigger.ts'
import { chatUsage } from './usage.ts'

export const chatRoom: Room = {
  name: 'openai-chat',
  match: (method, path) => method === 'POST' && /^\/openai(\/v1)?\/chat\/completions$/.test(path),
  serve,
}

/** All that is the same in every piece of one answer. */
export interface ChatAnswer {
  readonly head: { readonly id: string; readonly created: number; readonly model: string }
  readonly family: FamilyName
  readonly body: Json
  readonly reply: TextReply
  readonly triggers: Triggers
  /** How many choices. */
  readonly n: number
}

async function serve(_req: IncomingMessage, res: ServerResponse, ctx: RoomContext): Promise<void> {
  const parsed = parseJson((await ctx.body()).toString('utf8'))
  if (!isRecord(parsed)) return ctx.json(400, openaiError(400, 'We could not parse the JSON body of your request.'))
  const body = parsed
  const ask = readChat(body)
  const family = familyOf(ask.model)
  ctx.call.model = ask.model
  ctx.call.stream = body.stream === true
  const triggers = readTriggers({
    texts: triggerTexts(ask),
    headers: ctx.call.headers,
    query: ctx.query,
    memory: ctx.memory,
  })
  if (await misbehave(res, ctx, triggers, openaiError)) return
  try {
    checkChat(body, family, ask.model)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return ctx.json(error.status, openaiError(error.status, error.message, error.param, error.code))
  }

  const reply = composeReply(ask, triggers, ctx.memory)
  const own = dice(hash(JSON.stringify([ask.model, lastUserTurn(ask.turns)?.text, ctx.call.number])))
  const answer: ChatAnswer = {
    head: { id: `chatcmpl-${own.hex(24)}`, created: Math.floor(ctx.world.nowMs() / 1000), model: ask.model },
    family,
    body,
    reply,
    triggers,
    n: number(body.n) ?? 1,
  }
  if (body.stream === true) return streamChat(res, ctx, answer)
  await sendWhole(res, ctx, triggers, wholeAnswer(answer))
}

/** Reads the request into neutral words. */
export function readChat(body: Json): TextAsk {
  const model = string(body.model)
  const family = familyOf(model)
  const names = new Map<string, string>()
  const turns = list(body.messages).map((given): TextTurn => {
    const message = record(given)
    for (const call of list(message.tool_calls)) {
      names.set(string(record(call).id), string(record(record(call).function).name))
    }
    const role = string(message.role)
    const toolName = names.get(string(message.tool_call_id))
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
    tools: list(body.tools).map((tool) => {
      const { name, description, parameters } = record(record(tool).function)
      return { name: string(name), description: string(description), schema: record(parameters) }
    }),
    toolChoice: readChoice(body.tool_choice),
    parallelTools: body.parallel_tool_calls !== false,
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

export function readParts(content: unknown): { text: string; images: number } {
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

export const CHAT_FINISH = { stop: 'stop', 'stop-sequence': 'stop', length: 'length', tool: 'tool_calls' } as const

function wholeAnswer(answer: ChatAnswer): Json {
  const { head, reply, triggers, n } = answer
  const big = triggers.number('big')
  const text = big === undefined ? reply.text : 'Simulated. '.repeat(Math.ceil(big / 11)).slice(0, big)
  const usage = chatUsage(reply.usage, triggers, n)
  return {
    ...head,
    object: 'chat.completion',
    choices: Array.from({ length: n }, (_, index) => ({
      index,
      message: wholeMessage(answer, text),
      logprobs: null,
      finish_reason: triggers.has('empty') ? null : CHAT_FINISH[reply.finish],
    })),
    ...(usage === undefined ? {} : { usage }),
    service_tier: 'default',
    system_fingerprint: 'fp_tollgate_sandbox',
  }
}

function wholeMessage({ family, body, reply }: ChatAnswer, text: string): Json {
  const { reasoning, calls } = reply
  const content = calls.length > 0 ? null : text
  const message: Record<string, unknown> = { role: 'assistant', content, refusal: null, annotations: [] }
  if (calls.length > 0) {
    message.tool_calls = calls.map((call, i) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
      ...(family === 'delta' && i === 0 ? { extra_content: signature(call.id) } : {}),
    }))
  }
  if (reasoning === '') return message
  if (family === 'gamma' || family === 'epsilon') message.reasoning_content = reasoning
  if (family !== 'zeta') return message
  if (body.reasoning_split === true) {
    return {
      ...message,
      reasoning_content: reasoning,
      reasoning_details: [{ type: 'reasoning.text', text: reasoning }],
    }
  }
  return { ...message, content: `<think>\n${reasoning}\n</think>\n\n${content ?? ''}` }
}

/** Delta's models want this back with the call, or they refuse the next turn. */
export function signature(id: string): Json {
  return { google: { thought_signature: Buffer.from(`simulated signature of ${id}`).toString('base64') } }
}
