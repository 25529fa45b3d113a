// The Messages API: whole answers, and the counting of tokens. messages-stream.ts writes the streamed form.
import { createHash } from 'node:crypto'
import { CACHED_TOKENS_MIN, inputTokens } from './compose.ts'
import { isRecord, type Json, list, number, parseJson, record, string } from './json.ts'
import type { Memory } from './memory.ts'
import { checkMessages, sign, thinks } from './messages-rules.ts'
import { longLived, messageHead, STOP_REASONS, toolUseId } from './messages-shape.ts'
import { streamMessages } from './messages-stream.ts'
import { Threads } from './messages-threads.ts'
import { misbehave } from './misbehave.ts'
import { messagesError } from './refusal.ts'
import type { Room, RoomContext } from './room.ts'
import type { TextAsk, TextTurn, ToolChoice } from './text.ts'
import { triggerTexts } from './text.ts'
import { type TextAnswer, textRoom, wholeText } from './text-room.ts'
import { countTokens } from './tokens.ts'
import { readTriggers } from './trigger.ts'
import { messagesUsage } from './usage.ts'

/** A room of its own for each sandbox, because it remembers threads. */
export function openMessagesRoom(): Room {
  const threads = new Threads()
  return textRoom({
    name: 'anthropic-messages',
    path: /^\/anthropic(\/v1)?\/messages$/,
    error: messagesError,
    resume: (body, ctx) => threads.resume(body, ctx.call.headers),
    read: (body, ctx) => ({ ...readMessages(body), cache: readCache(body, ctx.memory) }),
    check: (body, _ask, ctx) => checkMessages(body, ctx.call.headers, false),
    whole(answer) {
      const message = wholeMessage(answer)
      threads.keep(answer.body, message)
      return message
    },
    stream(res, ctx, answer) {
      threads.keep(answer.body, wholeMessage(answer))
      return streamMessages(res, ctx, answer)
    },
  })
}

export const countTokensRoom: Room = {
  name: 'anthropic-count-tokens',
  match: (method, path) => method === 'POST' && /^\/anthropic(\/v1)?\/messages\/count_tokens$/.test(path),
  async serve(_req, res, ctx) {
    const body = parseJson((await ctx.body()).toString('utf8'))
    if (!isRecord(body)) return ctx.json(400, messagesError(400, 'The body is not JSON.'))
    const ask = readMessages(body)
    ctx.call.model = ask.model
    if (await misbehave(res, ctx, triggersOf(ask, ctx), messagesError)) return
    try {
      checkMessages(body, ctx.call.headers, true)
    } catch (error) {
      return ctx.refuse(error, messagesError)
    }
    ctx.json(200, { input_tokens: inputTokens(ask).input })
  },
}

function triggersOf(ask: TextAsk, ctx: RoomContext) {
  return readTriggers({ texts: triggerTexts(ask), headers: ctx.call.headers, query: ctx.query, memory: ctx.memory })
}

function readMessages(body: Json): TextAsk {
  const model = string(body.model)
  const names = new Map<string, string>()
  const turns: TextTurn[] = []
  const system = typeof body.system === 'string' ? body.system : blocksText(list(body.system).map(record))
  if (system !== '') turns.push({ role: 'system', text: system, images: 0 })
  for (const given of list(body.messages)) {
    const { role, content } = record(given)
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : list(content).map(record)
    for (const block of blocks) {
      if (block.type === 'tool_use') names.set(string(block.id), string(block.name))
      if (block.type === 'tool_result') turns.push(toolTurn(block, names))
    }
    const text = blocksText(blocks)
    const images = blocks.filter((block) => block.type === 'image' || block.type === 'document').length
    // A turn that only carries tool results is not a new question.
    if (role === 'user' && text === '' && images === 0) continue
    turns.push({ role: role === 'assistant' || role === 'system' ? role : 'user', text, images })
  }
  const { format } = record(body.output_config)
  return {
    model,
    turns,
    tools: list(body.tools).map((given) => {
      const { name, description, input_schema } = record(given)
      return { name: string(name), description: string(description), schema: record(input_schema) }
    }),
    toolChoice: readChoice(body.tool_choice),
    parallelTools: record(body.tool_choice).disable_parallel_tool_use !== true,
    format:
      record(format).type === 'json_schema'
        ? record(record(format).schema)
        : // As a model does that is told so.
          /\bJSON object and nothing else\b/.test(system)
          ? 'json'
          : undefined,
    outputTokensMax: number(body.max_tokens),
    stop: list(body.stop_sequences).map(string),
    reasons: thinks(body, model),
    seed: undefined,
  }
}

function toolTurn(block: Json, names: ReadonlyMap<string, string>): TextTurn {
  const text = typeof block.content === 'string' ? block.content : blocksText(list(block.content).map(record))
  const toolName = names.get(string(block.tool_use_id))
  return { role: 'tool', text, images: 0, ...(toolName === undefined ? {} : { toolName }) }
}

function blocksText(blocks: readonly Json[]): string {
  return blocks
    .filter((block) => block.type === 'text')
    .map((block) => string(block.text))
    .join('\n')
}

function readChoice(choice: unknown): ToolChoice {
  const { type, name } = record(choice)
  if (type === 'any') return 'required'
  if (type === 'tool') return { name: string(name) }
  return type === 'none' ? 'none' : 'auto'
}

/** Callers mark with cache_control where a cached beginning ends: known ones are read, the rest is written. */
function readCache(body: Json, memory: Memory): { cached: number; cacheWrite: number } {
  const running = createHash('sha1').update(string(body.model))
  let tokens = 0
  let cached = 0
  let marked = 0
  for (const block of [
    ...list(body.tools),
    ...parts(body.system),
    ...list(body.messages).flatMap((m) => parts(record(m).content)),
  ]) {
    const { cache_control, ...own } = record(block)
    const text = JSON.stringify(own)
    running.update(text)
    tokens += countTokens(typeof own.text === 'string' ? own.text : text)
    if (!isRecord(cache_control) || tokens < CACHED_TOKENS_MIN) continue
    marked = tokens
    if (!memory.firstTime(`marked ${running.copy().digest('base64')}`)) cached = tokens
  }
  return { cached, cacheWrite: marked - cached }
}

function parts(content: unknown): readonly unknown[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)
}

function wholeMessage(answer: TextAnswer): Json {
  const { reply, body, triggers } = answer
  const content: Json[] = []
  if (reply.reasoning !== '') {
    const omitted = record(body.thinking).display === 'omitted'
    content.push({ type: 'thinking', thinking: omitted ? '' : reply.reasoning, signature: sign(reply.reasoning) })
  }
  const text = wholeText(answer)
  if (text !== '') content.push({ type: 'text', text })
  for (const call of reply.calls)
    content.push({ type: 'tool_use', id: toolUseId(call.id), name: call.name, input: JSON.parse(call.arguments) })
  const usage = messagesUsage(reply.usage, answer, longLived(answer))
  return {
    ...messageHead(answer),
    content,
    stop_reason: triggers.has('empty') ? null : STOP_REASONS[reply.finish],
    stop_sequence: reply.stopSequence ?? null,
    ...(usage === undefined ? {} : { usage }),
  }
}
