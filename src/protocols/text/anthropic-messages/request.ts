// Messages requests: validated, read into the canonical form, and written from it.

import type { TextTraits } from '../../../catalog/traits.ts'
import { Fault } from '../../../kernel/fault.ts'
import { flag, given, isObject, type Json, number, objectOf, objects, strings, text } from '../../../kernel/json.ts'
import { words } from '../../../kernel/words.ts'
import {
  type Conversation,
  cannotConvert,
  type FilePart,
  fromBase64,
  type ImagePart,
  type InputPart,
  inputObject,
  JSON_INSTRUCTION,
  type Media,
  nothingSaid,
  type OutputPart,
  type ResultPart,
  readMedia,
  type TextPart,
  type Tool,
  type ToolChoice,
  type Turn,
  toolsAllowed,
  unpackExtra,
  unpackProof,
} from '../canonical.ts'
import { threadUnsupported } from '../extras.ts'
import type { CheckedRequest } from '../format.ts'

// Reads a Messages request into the canonical form, for vendors of another format.

export function readMessagesConversation(value: Json): Conversation {
  if (isObject(value.thread)) throw threadUnsupported('this model keeps no threads')
  if (objects(value.mcp_servers).length > 0) throw cannotConvert('mcp_servers', 'a remote tool server')
  const choice = objectOf(value.tool_choice)
  const config = objectOf(value.output_config)
  const format = objectOf(config.format ?? value.output_format)
  const tools = objects(value.tools).map(readTool)
  const stop = strings(value.stop_sequences) ?? []
  return given({
    turns: readTurns(value),
    stream: value.stream === true,
    tools: tools.length > 0 ? tools : undefined,
    toolChoice: readChoice(choice),
    parallelTools: choice.disable_parallel_tool_use === true ? false : undefined,
    tokensMax: number(value.max_tokens),
    temperature: number(value.temperature),
    topP: number(value.top_p),
    stop: stop.length > 0 ? stop : undefined,
    format:
      format.type === 'json_schema'
        ? ({ kind: 'schema', schema: objectOf(format.schema), strict: true } as const)
        : undefined,
    effort: text(config.effort),
    thinking: isObject(value.thinking) ? value.thinking : undefined,
    user: text(objectOf(value.metadata).user_id),
    serviceTier: value.service_tier === 'standard_only' ? 'default' : text(value.service_tier),
  })
}

function readTurns(value: Json): Turn[] {
  const turns: Turn[] = []
  const system = readSystem(value.system)
  if (system.length > 0) turns.push({ role: 'system', parts: system })
  objects(value.messages).forEach((message, i) => {
    const at = `messages[${i}].content`
    const blocks =
      typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : objects(message.content)
    if (message.role === 'system') turns.push({ role: 'system', parts: readSystem(message.content) })
    else if (message.role === 'assistant') turns.push({ role: 'assistant', parts: readOutput(blocks) })
    else pushUser(turns, blocks, at)
  })
  return turns
}

function readSystem(system: unknown): TextPart[] {
  if (typeof system === 'string') return system === '' ? [] : [{ kind: 'text', text: system }]
  return objects(system).map(readText)
}

function readText(block: Json): TextPart {
  return given({ kind: 'text', text: text(block.text) ?? '', cache: block.cache_control })
}

/** Tool results answer the previous turn, so they come first, as a separate turn. */
function pushUser(turns: Turn[], blocks: readonly Json[], at: string): void {
  const results: ResultPart[] = []
  const parts: InputPart[] = []
  blocks.forEach((block, j) => {
    if (block.type === 'tool_result') results.push(readResult(block, `${at}[${j}].content`))
    else parts.push(readBlock(block, `${at}[${j}]`))
  })
  if (results.length > 0) turns.push({ role: 'tool', parts: results })
  if (parts.length > 0) turns.push({ role: 'user', parts })
}

function readBlock(block: Json, at: string): TextPart | ImagePart | FilePart {
  const cache = block.cache_control
  switch (block.type) {
    case 'text':
      return readText(block)
    case 'image':
      return given({ kind: 'image', at, media: readSource(block.source, at), cache })
    case 'document': {
      const source = objectOf(block.source)
      if (source.type === 'text') return { kind: 'text', text: text(source.data) ?? '' }
      return given({ kind: 'file', at, media: readSource(source, at), name: text(block.title), cache })
    }
    case 'search_result': {
      const said = objects(block.content).map((part) => text(part.text) ?? '')
      return {
        kind: 'text',
        text: [text(block.title) ?? '', text(block.source) ?? '', ...said].filter((line) => line !== '').join('\n'),
      }
    }
  }
  throw cannotConvert(`${at}.type`, `a block of type "${String(block.type)}"`)
}

function readSource(given: unknown, at: string): Media {
  const source = objectOf(given)
  if (source.type === 'base64') return fromBase64(text(source.data) ?? '', text(source.media_type) ?? '')
  if (source.type === 'url') return readMedia(text(source.url) ?? '', `${at}.source.url`)
  if (source.type === 'file') return { fileId: text(source.file_id) ?? '' }
  throw cannotConvert(`${at}.source`, 'this source')
}

function readResult(block: Json, at: string): ResultPart {
  const { content } = block
  const parts =
    typeof content === 'string'
      ? [{ kind: 'text' as const, text: content }]
      : objects(content).map((part, j) => readBlock(part, `${at}[${j}]`))
  return {
    kind: 'result',
    id: text(block.tool_use_id) ?? '',
    parts,
    ...(block.is_error === true ? { failed: true } : {}),
  }
}

function readOutput(blocks: readonly Json[]): OutputPart[] {
  const parts: OutputPart[] = []
  const extras = new Map<string, unknown>()
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
        parts.push({ kind: 'text', text: text(block.text) ?? '' })
        break
      case 'thinking': {
        const signature = text(block.signature) ?? ''
        const proof = signature === '' ? {} : (unpackProof(signature) ?? { signature })
        parts.push({ kind: 'thought', text: text(block.thinking) ?? '', proof })
        break
      }
      case 'redacted_thinking': {
        const data = text(block.data) ?? ''
        const extra = unpackExtra(data)
        if (extra) extras.set(extra.callId, extra.extra)
        else parts.push({ kind: 'thought', text: '', proof: unpackProof(data) ?? { redacted: data } })
        break
      }
      case 'tool_use': {
        const id = text(block.id) ?? ''
        const input = JSON.stringify(block.input ?? {})
        parts.push(given({ kind: 'call', id, name: text(block.name) ?? '', input, extra: extras.get(id) }))
        break
      }
      // Results of another vendor's server tools are left out; their effect is in the text.
    }
  }
  return parts
}

function readTool(tool: Json, i: number): Tool {
  if (tool.type !== undefined && tool.type !== null && tool.type !== 'custom')
    throw cannotConvert(`tools[${i}].type`, `a tool of type "${String(tool.type)}"`)
  return given({
    kind: 'function',
    name: text(tool.name) ?? '',
    description: text(tool.description),
    schema: isObject(tool.input_schema) ? tool.input_schema : undefined,
    strict: flag(tool.strict),
    cache: tool.cache_control,
  })
}

function readChoice(choice: Json): ToolChoice | undefined {
  switch (choice.type) {
    case 'auto':
    case 'none':
      return choice.type
    case 'any':
      return 'required'
    case 'tool':
      return { name: text(choice.name) ?? '' }
  }
  return undefined
}

// Writes the canonical form as a Messages request, for callers of another format.

const SERVICE_TIERS: Readonly<Record<string, string>> = { auto: 'auto', default: 'standard_only' }

export function writeMessagesRequest(conversation: Conversation, model: string, traits: TextTraits): Json {
  const messages = writeTurns(conversation.turns)
  if (messages.length === 0) throw nothingSaid()
  const stop = conversation.stop?.filter((sequence) => sequence.trim() !== '')
  const tools = toolsAllowed(conversation)
  const body: Json = given({
    model,
    max_tokens: conversation.tokensMax,
    system: writeSystem(conversation),
    messages,
    stream: conversation.stream ? true : undefined,
    tools: tools.length > 0 ? tools.map(writeTool) : undefined,
    tool_choice: tools.length > 0 ? writeChoice(conversation) : undefined,
    temperature: conversation.temperature,
    top_p: conversation.topP,
    stop_sequences: stop && stop.length > 0 ? stop : undefined,
    ...writeThinking(conversation, traits),
    metadata: userOf(conversation),
    service_tier: conversation.serviceTier && SERVICE_TIERS[conversation.serviceTier],
  })
  for (const name of [...traits.dropParams, ...traits.dropConverted]) delete body[name]
  // Models of this format reject both together, and clients of others send both by default.
  if (body.temperature !== undefined) delete body.top_p
  return body
}

function userOf({ user, safetyId }: Conversation): Json | undefined {
  const id = user ?? safetyId
  return id === undefined ? undefined : { user_id: id }
}

/** This format has one place for instructions, so all of them are moved there. */
function writeSystem({ turns, format }: Conversation): Json[] | undefined {
  const blocks = turns.flatMap((turn) =>
    turn.role === 'system' || turn.role === 'developer'
      ? turn.parts.filter((part) => part.text.trim() !== '').map(writeText)
      : [],
  )
  // The format supports JSON with a schema but not JSON without one, so an instruction asks for it.
  if (format?.kind === 'object') blocks.push({ type: 'text', text: JSON_INSTRUCTION })
  return blocks.length > 0 ? blocks : undefined
}

function writeText(part: TextPart): Json {
  return given({ type: 'text', text: part.text, cache_control: part.cache })
}

/** The vendor rejects empty blocks, so they are left out, and so are turns without any block. */
function writeTurns(turns: readonly Turn[]): Json[] {
  const messages: Json[] = []
  // The blocks of the message with tool results: all results of a turn go into one message, before anything else.
  let results: Json[] | undefined
  for (const turn of turns) {
    if (turn.role === 'tool') {
      const blocks = turn.parts.map(writeResult)
      if (results) results.splice(firstOther(results), 0, ...blocks)
      else {
        results = blocks
        messages.push({ role: 'user', content: blocks })
      }
    } else if (turn.role === 'user') {
      const blocks = writeInput(turn.parts)
      if (results) results.push(...blocks)
      else if (blocks.length > 0) messages.push({ role: 'user', content: blocks })
    } else if (turn.role === 'assistant') {
      results = undefined
      const blocks = turn.parts.flatMap(writeOutput)
      if (blocks.length > 0) messages.push({ role: 'assistant', content: blocks })
    }
  }
  return messages
}

function firstOther(blocks: readonly Json[]): number {
  const found = blocks.findIndex((block) => block.type !== 'tool_result')
  return found < 0 ? blocks.length : found
}

function writeInput(parts: readonly InputPart[]): Json[] {
  const full = parts.filter((part) => part.kind !== 'text' || part.text !== '')
  // A single block of whitespace counts as empty too.
  if (full.length === 1 && full[0]?.kind === 'text' && full[0].text.trim() === '') return []
  return full.map(writeBlock)
}

function writeBlock(part: InputPart): Json {
  switch (part.kind) {
    case 'text':
      return writeText(part)
    case 'image':
      return given({ type: 'image', source: writeSource(part), cache_control: part.cache })
    case 'file':
      return given({ type: 'document', source: writeSource(part), title: part.name, cache_control: part.cache })
    case 'audio':
      throw cannotConvert(part.at, 'sound')
  }
}

function writeSource(part: ImagePart | FilePart): Json {
  const { media } = part
  if ('url' in media) return { type: 'url', url: media.url }
  if ('fileId' in media) throw cannotConvert(part.at, 'a file by its id')
  if (part.kind === 'file' && media.type.startsWith('text/'))
    return { type: 'text', media_type: 'text/plain', data: Buffer.from(media.base64, 'base64').toString('utf8') }
  if (part.kind === 'file' && media.type !== 'application/pdf')
    throw cannotConvert(part.at, `a file of type "${media.type}"`)
  return { type: 'base64', media_type: media.type, data: media.base64 }
}

function writeOutput(part: OutputPart): Json[] {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text }]
    case 'call':
      if (part.custom) throw cannotConvert('tools', 'a call of a custom tool')
      return [{ type: 'tool_use', id: toolId(part.id), name: part.name, input: inputObject(part.input) }]
    case 'thought':
      if (part.proof.signature !== undefined)
        return [{ type: 'thinking', thinking: part.text, signature: part.proof.signature }]
      // The vendor would reject a thinking block without its signature.
      return part.proof.redacted === undefined ? [] : [{ type: 'redacted_thinking', data: part.proof.redacted }]
  }
}

function writeResult(result: ResultPart): Json {
  const parts = result.parts.filter((part) => part.kind !== 'text' || part.text !== '')
  const only = parts[0]
  const content =
    parts.length === 0 ? '' : parts.length === 1 && only?.kind === 'text' ? only.text : parts.map(writeBlock)
  return given({ type: 'tool_result', tool_use_id: toolId(result.id), content, is_error: result.failed })
}

/** The vendor accepts letters, digits, "_" and "-"; ids of calls and results are changed the same way. */
function toolId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'
}

function writeTool(tool: Tool, i: number): Json {
  if (tool.kind === 'custom') throw cannotConvert(`tools[${i}].type`, 'a custom tool')
  const { name, description, schema, strict, cache } = tool
  const inputSchema = { ...(schema ?? { properties: {} }), type: 'object' }
  return given({ name, description, input_schema: inputSchema, strict, cache_control: cache })
}

function writeChoice({ toolChoice, parallelTools }: Conversation): Json | undefined {
  const one = parallelTools === false ? { disable_parallel_tool_use: true } : {}
  if (toolChoice === undefined) return parallelTools === false ? { type: 'auto', ...one } : undefined
  if (toolChoice === 'none') return { type: 'none' }
  if (toolChoice === 'auto') return { type: 'auto', ...one }
  if (toolChoice === 'required') return { type: 'any', ...one }
  if ('allowed' in toolChoice) return { type: toolChoice.mode === 'required' ? 'any' : 'auto', ...one }
  return { type: 'tool', name: toolChoice.name, ...one }
}

// Thinking effort and answer format, in the parameters that the model's family accepts.

/** Thinking budgets in tokens for families without an effort parameter. The vendor requires at least 1,024. */
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 32_768,
  max: 32_768,
}
const BUDGET_MIN = 1_024
const EFFORTS = words('low medium high xhigh max')

function writeThinking(conversation: Conversation, traits: TextTraits): { thinking?: Json; output_config?: Json } {
  const thinking = thinkingOf(conversation, traits)
  const asked = conversation.effort === 'minimal' ? 'low' : conversation.effort
  const effort = traits.effort === 'config' ? EFFORTS.find((one) => one === asked) : undefined
  const format =
    conversation.format?.kind === 'schema' ? { type: 'json_schema', schema: conversation.format.schema } : undefined
  return {
    ...(thinking ? { thinking } : {}),
    ...(effort || format ? { output_config: { ...(effort ? { effort } : {}), ...(format ? { format } : {}) } } : {}),
  }
}

function thinkingOf(conversation: Conversation, traits: TextTraits): Json | undefined {
  // Every real call has a limit, from its caller or from its hold; a trial conversion has none.
  const { thinking, effort, tokensMax = Number.MAX_SAFE_INTEGER } = conversation
  if (thinking?.type === 'disabled' || (thinking === undefined && effort === 'none'))
    return traits.thinkingOptional ? { type: 'disabled' } : undefined
  if (thinking !== undefined)
    return mayThink(conversation) ? knownThinking(thinking, effort, { traits, tokensMax }) : undefined
  if (traits.effort !== 'budget' || effort === undefined || !mayThink(conversation)) return undefined
  // With thinking on, this family rejects sampling parameters, so explicit parameters of the caller take precedence.
  if (conversation.temperature !== undefined || conversation.topP !== undefined) return undefined
  return withBudget(BUDGETS[effort] ?? 0, tokensMax)
}

function withBudget(wanted: number, tokensMax: number): Json | undefined {
  const budget = Math.min(wanted, tokensMax - 1)
  return budget < BUDGET_MIN ? undefined : { type: 'enabled', budget_tokens: budget }
}

/**
 * Adapts the thinking parameter to the model: agents ask every model for adaptive thinking, which models with budgets
 * only would reject.
 */
export function knownThinking(
  thinking: Json,
  effort: string | undefined,
  { traits, tokensMax }: { readonly traits: TextTraits; readonly tokensMax: number },
): Json | undefined {
  if (traits.effort !== 'budget' || thinking.type !== 'adaptive') return thinking
  return withBudget(BUDGETS[effort ?? 'medium'] ?? BUDGET_MIN, tokensMax)
}

/**
 * False if the vendor would reject thinking: with a forced tool, or if a turn with tool calls came back without its
 * signed thinking block.
 */
function mayThink({ turns, toolChoice }: Conversation): boolean {
  const forced =
    toolChoice === 'required' ||
    (typeof toolChoice === 'object' && ('name' in toolChoice || toolChoice.mode === 'required'))
  if (forced) return false
  return turns.every(
    (turn) =>
      turn.role !== 'assistant' ||
      !turn.parts.some((part) => part.kind === 'call') ||
      turn.parts.some(
        (part) => part.kind === 'thought' && (part.proof.signature !== undefined || part.proof.redacted !== undefined),
      ),
  )
}

// What the Messages endpoint rejects before any vendor is called.

export function checkMessages({ thread, stream, max_tokens: most, tools }: Json): CheckedRequest {
  const previous = isObject(thread) && thread.type === 'continue' ? thread.previous_message_id : undefined
  return {
    keeps: isObject(thread),
    continues: previous === undefined ? undefined : [{ id: String(previous), unknown: threadUnknown() }],
    stream: stream === true,
    includeUsage: true,
    n: 1,
    tokensMax: number(most),
    hasTools: Array.isArray(tools) && tools.length > 0,
  }
}

/** SDKs recognise the code and start the thread again with the whole conversation. */
function threadUnknown(): Fault {
  return new Fault('not_found', {
    message: 'There is no thread that ends with this message. Send the whole conversation to begin one.',
    errorDetails: { error_code: 'thread_not_found' },
  })
}
