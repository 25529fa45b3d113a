// Shared by chat and Responses. Chat nests a tool, a choice or a schema in a member named like its type; Responses puts
// the members beside the type.
import { flag, given, isObject, type Json, number, objectOf, text } from '../../kernel/json.ts'
import {
  type AnswerFormat,
  fromBase64,
  type InputPart,
  type Media,
  readMedia,
  type Tool,
  type ToolChoice,
} from './canonical.ts'

/** Writes an object of that type in the format's own nesting. */
export type Shape = (type: string, members: Json) => Json

/** The members of a request that have the same names in both formats. */
export function readMembers(value: Json) {
  return {
    stream: value.stream === true,
    parallelTools: flag(value.parallel_tool_calls),
    temperature: number(value.temperature),
    topP: number(value.top_p),
    user: text(value.user),
    metadata: isObject(value.metadata) ? value.metadata : undefined,
    // Groq's word, which its clients send in every request.
    serviceTier: value.service_tier === 'on_demand' ? 'default' : text(value.service_tier),
    store: flag(value.store),
    cacheKey: text(value.prompt_cache_key),
    safetyId: text(value.safety_identifier),
  }
}

export function readFunction(entry: Json, name: string, cache?: unknown): Tool {
  return given({
    kind: 'function',
    name,
    description: text(entry.description),
    schema: isObject(entry.parameters) ? entry.parameters : undefined,
    strict: flag(entry.strict),
    cache,
  })
}

export function readCustom(entry: Json, name: string): Tool {
  return given({ kind: 'custom', name, description: text(entry.description), format: entry.format })
}

export function writeTool(tool: Tool, shape: Shape, strict?: boolean): Json {
  const { name, description } = tool
  if (tool.kind === 'custom') return shape('custom', given({ name, description, format: tool.format }))
  const parameters = tool.schema ?? { type: 'object', properties: {} }
  return shape('function', given({ name, description, parameters, strict: tool.strict ?? strict }))
}

export function writeChoice(choice: ToolChoice | undefined, shape: Shape): unknown {
  if (choice === undefined || typeof choice === 'string') return choice
  if (!('allowed' in choice)) return shape(choice.custom ? 'custom' : 'function', { name: choice.name })
  return shape('allowed_tools', { mode: choice.mode, tools: choice.allowed.map((name) => shape('function', { name })) })
}

/** `schema`: the object with the members of the schema's format. */
export function readFormat({ type }: Json, schema: Json): AnswerFormat | undefined {
  if (type === 'json_object') return { kind: 'object' }
  if (type !== 'json_schema') return undefined
  return given({
    kind: 'schema',
    name: text(schema.name),
    schema: objectOf(schema.schema),
    strict: flag(schema.strict),
    description: text(schema.description),
  })
}

export function writeFormat(format: AnswerFormat | undefined, shape: Shape): Json | undefined {
  if (!format) return undefined
  if (format.kind === 'object') return { type: 'json_object' }
  const { name = 'answer', schema, strict, description } = format
  return shape('json_schema', given({ name, schema, strict, description }))
}

export function readAudio(part: Json, at: string): InputPart {
  const audio = objectOf(part.input_audio)
  return { kind: 'audio', at, base64: text(audio.data) ?? '', format: text(audio.format) ?? '' }
}

/** A file's data: a data URI, or the base64 of a PDF. */
export function readFileData(data: string, at: string): Media {
  return data.startsWith('data:') ? readMedia(data, at) : fromBase64(data, 'application/pdf')
}
