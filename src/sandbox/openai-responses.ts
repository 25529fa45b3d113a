// The Responses API. responses-stream.ts writes the streamed form.
import { familyOf } from './family.ts'
import { type Json, list, number, record, string } from './json.ts'
import { openaiError, Refusal } from './refusal.ts'
import { checkResponses } from './responses-rules.ts'
import { responseObject } from './responses-shape.ts'
import { streamResponses } from './responses-stream.ts'
import type { TextAsk, TextTurn, ToolChoice } from './text.ts'
import { textRoom } from './text-room.ts'

/** Conversations that `previous_response_id` can take up again; the oldest are forgotten. */
const KEPT_MAX = 500
const KEPT_CHARS_MAX = 100_000

/** A room of its own for each sandbox, because it remembers conversations. */
export function openResponsesRoom() {
  const kept = new Map<string, readonly TextTurn[]>()
  return textRoom({
    name: 'openai-responses',
    path: /^\/openai(\/v1)?\/responses$/,
    error: openaiError,
    read: (body) => readResponses(body, kept.get(string(body.previous_response_id)) ?? []),
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
      keep(kept, answer.id, answer.body, answer.ask.turns, answer.reply.text)
      return responseObject(answer, 'whole')
    },
    stream(res, ctx, answer) {
      keep(kept, answer.id, answer.body, answer.ask.turns, answer.reply.text)
      return streamResponses(res, ctx, answer)
    },
  })
}

function keep(
  kept: Map<string, readonly TextTurn[]>,
  id: string,
  body: Json,
  turns: readonly TextTurn[],
  text: string,
): void {
  if (body.store === false) return
  // Instructions are not inherited by the next response.
  const own = turns.filter((turn) => turn.role !== 'system')
  if (own.reduce((sum, turn) => sum + turn.text.length, text.length) > KEPT_CHARS_MAX) return
  kept.set(`resp_${id}`, [...own, { role: 'assistant', text, images: 0 }])
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
    tools: list(body.tools)
      .map(record)
      .filter((tool) => tool.type === 'function')
      .map((tool) => ({
        name: string(tool.name),
        description: string(tool.description),
        schema: record(tool.parameters),
      })),
    toolChoice: readChoice(body.tool_choice),
    parallelTools: body.parallel_tool_calls !== false,
    format: format.type === 'json_schema' ? record(format.schema) : format.type === 'json_object' ? 'json' : undefined,
    outputTokensMax: number(body.max_output_tokens),
    stop: [],
    reasons: record(body.reasoning).effort !== 'none' && familyOf(model) !== 'plain',
    seed: undefined,
  }
}

function readItems(items: readonly unknown[]): TextTurn[] {
  const names = new Map<string, string>()
  const turns: TextTurn[] = []
  for (const given of items) {
    const item = record(given)
    if (item.type === 'function_call') names.set(string(item.call_id), string(item.name))
    if (item.type === 'function_call_output') {
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
