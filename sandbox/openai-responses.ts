// The Responses API. responses-stream.ts writes the streamed form.
import type { IncomingMessage } from 'node:http'
import { familyOf } from './family.ts'
import { type Json, list, number, record, string } from './json.ts'
import { openaiError, Refusal } from './refusal.ts'
import { checkResponses } from './responses-rules.ts'
import { responseObject } from './responses-shape.ts'
import { streamResponses } from './responses-stream.ts'
import type { Room, RoomContext } from './room.ts'
import type { TextAsk, TextTool, TextTurn, ToolChoice } from './text.ts'
import { type TextAnswer, textRoom } from './text-room.ts'

/** What `store` keeps; the oldest are forgotten. */
const KEPT_MAX = 500
const KEPT_CHARS_MAX = 100_000
const PAGE = 20

interface Kept {
  readonly turns: readonly TextTurn[]
  readonly response: Json
  readonly items: readonly Json[]
}

/** A room of its own for each sandbox, because it remembers conversations. */
export function openResponsesRoom(): Room {
  const kept = new Map<string, Kept>()
  const making = textRoom({
    name: 'openai-responses',
    path: /^\/openai(\/v1)?\/responses$/,
    error: openaiError,
    read: (body) => readResponses(body, kept.get(string(body.previous_response_id))?.turns ?? []),
    check(body, ask) {
      checkResponses(body, ask.model)
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
      return responseObject(answer, 'whole')
    },
    stream(res, ctx, answer) {
      keep(kept, answer)
      return streamResponses(res, ctx, answer)
    },
  })
  return {
    name: making.name,
    match: (method, path) => making.match(method, path) || (method !== 'POST' && STORED.test(path)),
    serve: (req, res, ctx) => (req.method === 'POST' ? making.serve(req, res, ctx) : serveStored(req, ctx, kept)),
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
  } else ctx.json(200, items === undefined ? found.response : page(found.items, ctx.query))
}

function page(items: readonly Json[], query: URLSearchParams): Json {
  const ordered = query.get('order') === 'asc' ? items : items.toReversed()
  const from = ordered.findIndex((item) => item.id === query.get('after')) + 1
  const data = ordered.slice(from, from + (Number(query.get('limit')) || PAGE))
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + data.length < ordered.length,
  }
}

function keep(kept: Map<string, Kept>, answer: TextAnswer): void {
  const { id, body, ask, reply } = answer
  if (body.store === false) return
  // Instructions are not inherited by the next response.
  const own = ask.turns.filter((turn) => turn.role !== 'system')
  if (own.reduce((sum, turn) => sum + turn.text.length, reply.text.length) > KEPT_CHARS_MAX) return
  const input =
    typeof body.input === 'string' ? [{ role: 'user', content: [{ type: 'input_text', text: body.input }] }] : []
  const items = [...input, ...(Array.isArray(body.input) ? body.input.map(record) : [])]
  kept.set(`resp_${id}`, {
    turns: [...own, { role: 'assistant', text: reply.text, images: 0 }],
    response: responseObject(answer, 'whole'),
    items: items.map((item, i) => ({ id: `msg_${id}_${i}`, type: 'message', ...item })),
  })
  const oldest = kept.keys().next().value
  if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest)
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
