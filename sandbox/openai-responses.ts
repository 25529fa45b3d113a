// The Responses API. responses-stream.ts writes the streamed form.
import type { IncomingMessage } from 'node:http'
import { CONVERSATION, Conversations, pageOf } from './conversations.ts'
import { familyOf } from './family.ts'
import { type Json, list, number, record, string } from './json.ts'
import { openaiError, Refusal } from './refusal.ts'
import { checkResponses } from './responses-rules.ts'
import { responseObject } from './responses-shape.ts'
import { streamResponses } from './responses-stream.ts'
import type { Room, RoomContext } from './room.ts'
import type { TextAsk, TextTool, TextTurn, ToolChoice } from './text.ts'
import { type TextAnswer, textRoom, wholeText } from './text-room.ts'
import { responsesUsage } from './usage.ts'

/** What `store` keeps; the oldest are forgotten. */
const KEPT_MAX = 500
const KEPT_CHARS_MAX = 100_000

interface Kept {
  readonly turns: readonly TextTurn[]
  readonly response: Json
  readonly items: readonly Json[]
}

/** A room of its own for each sandbox, because it remembers conversations. */
export function openResponsesRoom(): Room {
  const kept = new Map<string, Kept>()
  const conversations = new Conversations()
  const making = textRoom({
    name: 'openai-responses',
    path: /^\/openai(\/v1)?\/responses$/,
    error: openaiError,
    read: (body) => readResponses(body, before(body)),
    check(body, ask) {
      checkResponses(body, ask.model)
      const conversation = conversationOf(body)
      if (conversation !== '') conversations.find(conversation)
      const previous = string(body.previous_response_id)
      if (previous !== '' && !kept.has(previous)) {
        throw new Refusal(
          400,
          `Previous response with id '${previous}' not found.`,
          'previous_response_id',
          'previous_response_not_found',
        )
      }
    },
    whole(answer) {
      keep(kept, answer)
      converse(answer)
      return responseObject(answer, 'whole')
    },
    stream(res, ctx, answer) {
      keep(kept, answer)
      converse(answer)
      return streamResponses(res, ctx, answer)
    },
  })
  const compacting = textRoom({
    name: making.name,
    path: /^\/openai(\/v1)?\/responses\/compact$/,
    error: openaiError,
    read: (body) => readResponses(body, before(body)),
    check: (body) => checkCompact(body),
    whole: compaction,
    // The vendor has no stream of it.
    stream: async () => undefined,
  })
  function before(body: Json): readonly TextTurn[] {
    const said = conversations.itemsOf(conversationOf(body))
    return said ? readItems(said) : (kept.get(string(body.previous_response_id))?.turns ?? [])
  }
  function converse(answer: TextAnswer): void {
    const { output } = responseObject(answer, 'whole')
    conversations.append(conversationOf(answer.body), [...inputItems(answer), ...list(output).map(record)])
  }
  return {
    name: making.name,
    match: (method, path) =>
      [making, compacting].some((room) => room.match(method, path)) ||
      (method !== 'POST' && STORED.test(path)) ||
      CONVERSATION.test(path),
    serve(req, res, ctx) {
      if (CONVERSATION.test(ctx.path)) return conversations.serve(req, ctx)
      if (req.method !== 'POST') return serveStored(req, ctx, kept)
      return (ctx.path.endsWith('/compact') ? compacting : making).serve(req, res, ctx)
    },
  }
}

function conversationOf({ conversation }: Json): string {
  return string(record(conversation).id) || string(conversation)
}

function checkCompact(body: Json): void {
  if (string(body.model) === '')
    throw new Refusal(400, "Missing required parameter: 'model'.", 'model', 'missing_required_parameter')
}

/** What the users said, and the rest in words that only the vendor can read. */
function compaction(answer: TextAnswer): Json {
  const { id, createdSeconds, reply, triggers } = answer
  const said = inputItems(answer).filter((item) => item.role === 'user')
  const packed = Buffer.from(wholeText(answer)).toString('base64')
  return {
    id: `resp_${id}`,
    object: 'response.compaction',
    created_at: createdSeconds,
    output: [...said, { id: `cmp_${id}`, type: 'compaction', encrypted_content: packed }],
    usage: responsesUsage(reply.usage, triggers) ?? null,
  }
}

const STORED = /^\/openai(?:\/v1)?\/responses\/([\w-]+)(\/input_items)?$/

function serveStored({ method }: IncomingMessage, ctx: RoomContext, kept: Map<string, Kept>): void {
  const [, id = '', items] = STORED.exec(ctx.path) ?? []
  const found = kept.get(id)
  if (!found) ctx.json(404, openaiError(404, `Response with id '${id}' not found.`, null, 'response_not_found'))
  else if (method === 'DELETE') {
    kept.delete(id)
    ctx.json(200, { id, object: 'response', deleted: true })
  } else ctx.json(200, items === undefined ? found.response : pageOf(found.items, ctx.query))
}

function keep(kept: Map<string, Kept>, answer: TextAnswer): void {
  const { id, body, ask, reply } = answer
  if (body.store === false) return
  // Instructions are not inherited by the next response.
  const own = ask.turns.filter((turn) => turn.role !== 'system')
  if (own.reduce((sum, turn) => sum + turn.text.length, reply.text.length) > KEPT_CHARS_MAX) return
  kept.set(`resp_${id}`, {
    turns: [...own, { role: 'assistant', text: reply.text, images: 0 }],
    response: responseObject(answer, 'whole'),
    items: inputItems(answer),
  })
  const oldest = kept.keys().next().value
  if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest)
}

function inputItems({ id, body }: Pick<TextAnswer, 'id' | 'body'>): Json[] {
  const input =
    typeof body.input === 'string' ? [{ role: 'user', content: [{ type: 'input_text', text: body.input }] }] : []
  const items = [...input, ...(Array.isArray(body.input) ? body.input.map(record) : [])]
  return items.map((item, i) => ({ id: `msg_${id}_${i}`, type: 'message', ...item }))
}

function readResponses(body: Json, before: readonly TextTurn[]): TextAsk {
  const model = string(body.model)
  const format = record(record(body.text).format)
  const turns: TextTurn[] = []
  if (string(body.instructions) !== '') turns.push({ role: 'system', text: string(body.instructions), images: 0 })
  turns.push(...before)
  if (typeof body.input === 'string') turns.push({ role: 'user', text: body.input, images: 0 })
  else turns.push(...readItems(list(body.input)))
  return {
    model,
    turns,
    tools: list(body.tools).map(record).flatMap(readTool),
    toolChoice: readChoice(body.tool_choice),
    parallelTools: body.parallel_tool_calls !== false,
    format: format.type === 'json_schema' ? record(format.schema) : format.type === 'json_object' ? 'json' : undefined,
    outputTokensMax: number(body.max_output_tokens),
    stop: [],
    reasons: record(body.reasoning).effort !== 'none' && familyOf(model) !== 'plain',
    seed: undefined,
  }
}

/** Those of a namespace are functions in a group; other kinds are run by the vendor, and this one runs none. */
function readTool(tool: Json): TextTool[] {
  const namespace = string(tool.name)
  if (tool.type === 'namespace')
    return list(tool.tools)
      .map(record)
      .flatMap(readTool)
      .map((inner) => ({ ...inner, namespace }))
  if (tool.type !== 'function' && tool.type !== 'custom') return []
  const own = { name: string(tool.name), description: string(tool.description), schema: record(tool.parameters) }
  return [tool.type === 'custom' ? { ...own, custom: true } : own]
}

function readItems(items: readonly unknown[]): TextTurn[] {
  const names = new Map<string, string>()
  const turns: TextTurn[] = []
  for (const given of items) {
    const item = record(given)
    if (item.type === 'function_call' || item.type === 'custom_tool_call')
      names.set(string(item.call_id), string(item.name))
    if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output') {
      const toolName = names.get(string(item.call_id))
      const { text } = readParts(item.output)
      turns.push({ role: 'tool', text, images: 0, ...(toolName === undefined ? {} : { toolName }) })
    }
    if (item.type !== undefined && item.type !== 'message') continue
    const role = item.role === 'assistant' ? 'assistant' : item.role === 'user' ? 'user' : 'system'
    turns.push({ role, ...readParts(item.content) })
  }
  return turns
}

function readParts(content: unknown): { text: string; images: number } {
  if (typeof content === 'string') return { text: content, images: 0 }
  const parts = list(content).map(record)
  return {
    text: parts
      .map((part) => string(part.text))
      .filter(Boolean)
      .join('\n'),
    images: parts.filter((part) => part.type === 'input_image' || part.type === 'input_file').length,
  }
}

function readChoice(choice: unknown): ToolChoice {
  if (choice === 'none' || choice === 'required') return choice
  const { type, name, mode } = record(choice)
  if (type === 'function') return { name: string(name) }
  return type === 'allowed_tools' && mode === 'required' ? 'required' : 'auto'
}
