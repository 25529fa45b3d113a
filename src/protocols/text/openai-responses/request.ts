// Responses requests: validated, read into the canonical form, and written from it.

import { createHash } from 'node:crypto'
import type { TextTraits } from '../../../catalog/traits.ts'
import { Fault } from '../../../kernel/fault.ts'
import { given, isObject, type Json, number, objectOf, objects, text } from '../../../kernel/json.ts'
import { wrong } from '../../check.ts'
import {
  type CallPart,
  type Conversation,
  cannotConvert,
  type InputPart,
  type Media,
  type OutputPart,
  type ResultPart,
  readMedia,
  type TextPart,
  type Tool,
  type ToolChoice,
  type Turn,
  toDataUri,
  unpackExtra,
  unpackProof,
} from '../canonical.ts'
import type { CheckedRequest } from '../format.ts'
import {
  readAudio,
  readCustom,
  readFileData,
  readFormat,
  readFunction,
  readMembers,
  type Shape,
  writeChoice,
  writeFormat,
  writeTool,
} from '../openai.ts'

// Reads a Responses request into the canonical form, for vendors of another format.

const STORED = ['previous_response_id', 'conversation', 'prompt']

const flat: Shape = (type, members) => ({ type, ...members })

export function readResponsesConversation(value: Json): Conversation {
  for (const name of STORED)
    if (value[name] !== undefined && value[name] !== null) throw cannotConvert(name, 'content kept at a vendor')
  const reasoning = objectOf(value.reasoning)
  const shape = objectOf(value.text)
  const format = objectOf(shape.format)
  const namespaces = new Namespaces(value.tools)
  return given({
    ...readMembers(value),
    turns: new ItemReader(value, namespaces).turns,
    tools: namespaces.tools.length > 0 ? namespaces.tools.map(readTool) : undefined,
    toolChoice: readChoice(value.tool_choice, namespaces),
    tokensMax: number(value.max_output_tokens),
    format: readFormat(format, format),
    effort: text(reasoning.effort),
    summary: text(reasoning.summary),
    verbosity: text(shape.verbosity),
  })
}

/** Items are smaller than turns: consecutive texts, thoughts and calls of an assistant form one turn. */
class ItemReader {
  readonly turns: Turn[] = []
  private readonly extras = new Map<string, unknown>()
  private output: OutputPart[] | undefined
  private results: ResultPart[] | undefined
  private readonly namespaces: Namespaces

  constructor(value: Json, namespaces: Namespaces) {
    this.namespaces = namespaces
    if (typeof value.instructions === 'string' && value.instructions !== '')
      this.push({ role: 'system', parts: [{ kind: 'text', text: value.instructions }] })
    if (typeof value.input === 'string') this.push({ role: 'user', parts: [{ kind: 'text', text: value.input }] })
    else for (const [i, item] of objects(value.input).entries()) this.read(item, `input[${i}]`)
  }

  private read(item: Json, at: string): void {
    switch (item.type ?? 'message') {
      case 'message':
        this.readMessage(item, at)
        return
      case 'reasoning':
        this.readReasoning(item)
        return
      case 'function_call':
      case 'custom_tool_call':
        this.say(this.readCall(item))
        return
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.answer({ kind: 'result', id: text(item.call_id) ?? '', parts: readResult(item.output, `${at}.output`) })
        return
    }
    // A reference to a thought may be left out; texts and calls must be included in full.
    if (item.type === 'item_reference' && text(item.id)?.startsWith('rs_')) return
    if (item.type === 'item_reference')
      throw wrong(
        at,
        'refers to a stored item, but nothing is stored for this model: send items whole, with "store": false.',
      )
    throw cannotConvert(`${at}.type`, `an item of type "${String(item.type)}"`)
  }

  private readCall(item: Json): CallPart {
    const id = text(item.call_id) ?? ''
    const name = this.namespaces.flat(text(item.name) ?? '', text(item.namespace))
    if (item.type === 'custom_tool_call') return { kind: 'call', id, name, input: text(item.input) ?? '', custom: true }
    return given({ kind: 'call', id, name, input: text(item.arguments) ?? '', extra: this.extras.get(id) })
  }

  private readMessage(item: Json, at: string): void {
    const { role } = item
    if (role === 'assistant') {
      if (typeof item.content === 'string') this.say({ kind: 'text', text: item.content })
      for (const part of objects(item.content)) {
        if (part.type === 'refusal') this.say({ kind: 'refusal', text: text(part.refusal) ?? '' })
        else this.say({ kind: 'text', text: text(part.text) ?? '' })
      }
      return
    }
    const parts: InputPart[] =
      typeof item.content === 'string'
        ? [{ kind: 'text', text: item.content }]
        : objects(item.content).map((part, j) => readPart(part, `${at}.content[${j}]`))
    if (role === 'user') this.push({ role: 'user', parts })
    else this.push({ role: role === 'system' ? 'system' : 'developer', parts: parts.map((part) => onlyText(part, at)) })
  }

  private readReasoning(item: Json): void {
    const said = thoughtIn(item)
    const packed = text(item.encrypted_content) || undefined // An empty one is no proof.
    const extra = packed === undefined ? undefined : unpackExtra(packed)
    if (extra) {
      this.extras.set(extra.callId, extra.extra)
      return
    }
    const own = packed === undefined ? {} : { encrypted: { id: text(item.id) ?? '', data: packed } }
    this.say({ kind: 'thought', text: said, proof: (packed === undefined ? undefined : unpackProof(packed)) ?? own })
  }

  private say(part: OutputPart): void {
    this.results = undefined
    if (this.output) this.output.push(part)
    else {
      this.output = [part]
      this.turns.push({ role: 'assistant', parts: this.output })
    }
  }

  private answer(part: ResultPart): void {
    this.output = undefined
    if (this.results) this.results.push(part)
    else {
      this.results = [part]
      this.turns.push({ role: 'tool', parts: this.results })
    }
  }

  private push(turn: Turn): void {
    this.output = undefined
    this.results = undefined
    this.turns.push(turn)
  }
}

/** The readable part of a thought. */
export function thoughtIn(item: Json): string {
  return [...objects(item.summary), ...objects(item.content)].map((part) => text(part.text) ?? '').join('\n\n')
}

function readPart(part: Json, at: string): InputPart {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { kind: 'text', text: text(part.text) ?? '' }
    case 'input_image':
      return given({ kind: 'image', at, media: mediaOf(part, 'image_url', at), detail: text(part.detail) })
    case 'input_file': {
      const data = text(part.file_data)
      const media = data === undefined ? mediaOf(part, 'file_url', at) : readFileData(data, `${at}.file_url`)
      return given({ kind: 'file', at, media, name: text(part.filename) })
    }
    case 'input_audio':
      return readAudio(part, at)
  }
  throw cannotConvert(`${at}.type`, `a part of type "${String(part.type)}"`)
}

function mediaOf(part: Json, name: string, at: string): Media {
  const url = text(part[name])
  if (url !== undefined) return readMedia(url, `${at}.${name}`)
  if (typeof part.file_id === 'string') return { fileId: part.file_id }
  throw cannotConvert(at, `a part without "${name}"`)
}

function onlyText(part: InputPart, at: string): TextPart {
  if (part.kind === 'text') return part
  throw cannotConvert(at, 'an instruction that is not text')
}

function readResult(output: unknown, at: string): ResultPart['parts'] {
  if (typeof output === 'string') return [{ kind: 'text', text: output }]
  return objects(output).map((entry, j) => {
    const part = readPart(entry, `${at}[${j}]`)
    if (part.kind === 'audio') throw cannotConvert(`${at}[${j}]`, 'sound in a tool result')
    return part
  })
}

function readTool({ tool, name, at }: Namespaces['tools'][number]): Tool {
  if (tool.type === 'function') return readFunction(tool, name)
  if (tool.type === 'custom') return readCustom(tool, name)
  throw cannotConvert(`${at}.type`, `a tool of type "${String(tool.type)}"`)
}

function readChoice(choice: unknown, namespaces: Namespaces): ToolChoice | undefined {
  if (choice === undefined || choice === null) return undefined
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice
  if (isObject(choice)) {
    const [name = ''] = namespaces.chosen(choice)
    if (choice.type === 'function') return { name }
    if (choice.type === 'custom') return { name, custom: true }
    if (choice.type === 'allowed_tools')
      return {
        allowed: objects(choice.tools).flatMap((tool) => namespaces.chosen(tool)),
        mode: choice.mode === 'required' ? 'required' : 'auto',
      }
  }
  throw cannotConvert('tool_choice', isObject(choice) ? `the choice "${String(choice.type)}"` : `"${String(choice)}"`)
}

// Writes the canonical form as a Responses request, for callers of another format.

/** `stop`, penalties, seeds and the like do not exist in this format and are left out, as the contract says. */
export function writeResponsesRequest(conversation: Conversation, model: string, traits: TextTraits): Json {
  const { turns } = conversation
  // Leading instructions have a separate field; later ones keep their place among the items.
  let leading = 0
  while (turns[leading]?.role === 'system' || turns[leading]?.role === 'developer') leading++
  const instructions = turns
    .slice(0, leading)
    .flatMap((turn) => (turn.role === 'system' || turn.role === 'developer' ? turn.parts.map((part) => part.text) : []))
    .filter((text) => text !== '')
    .join('\n\n')
  const custom = customCalls(turns)
  const body: Json = given({
    model,
    instructions: instructions === '' ? undefined : instructions,
    input: turns.slice(leading).flatMap((turn) => writeTurn(turn, custom)),
    stream: conversation.stream ? true : undefined,
    store: conversation.store ?? false,
    // This format makes schemas strict by default, unlike the others.
    tools: conversation.tools?.map((tool) => writeTool(tool, flat, false)),
    tool_choice: writeChoice(conversation.toolChoice, flat),
    parallel_tool_calls: conversation.parallelTools,
    max_output_tokens: conversation.tokensMax,
    temperature: conversation.temperature,
    top_p: conversation.topP,
    text: writeText(conversation),
    reasoning: writeReasoning(conversation),
    include: traits.encryptedReasoning ? ['reasoning.encrypted_content'] : undefined,
    metadata: conversation.metadata,
    user: conversation.user,
    service_tier: conversation.serviceTier,
    prompt_cache_key: conversation.cacheKey,
    safety_identifier: conversation.safetyId,
  })
  for (const name of [...traits.dropParams, ...traits.dropConverted]) delete body[name]
  return body
}

/** The results that belong to custom tools: their items have another type. */
function customCalls(turns: readonly Turn[]): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const turn of turns)
    if (turn.role === 'assistant')
      for (const part of turn.parts) if (part.kind === 'call' && part.custom) ids.add(part.id)
  return ids
}

function writeTurn(turn: Turn, custom: ReadonlySet<string>): Json[] {
  switch (turn.role) {
    case 'system':
    case 'developer':
    case 'user':
      return [{ type: 'message', role: turn.role, content: turn.parts.map((part) => writePart(part)) }]
    case 'assistant':
      return writeOutput(turn.parts)
    case 'tool':
      return turn.parts.map((part) => writeResult(part, custom))
  }
}

function writePart(part: InputPart): Json {
  switch (part.kind) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image': {
      const { media, detail } = part
      if ('fileId' in media) return given({ type: 'input_image', file_id: media.fileId, detail: detail ?? 'auto' })
      return { type: 'input_image', image_url: 'url' in media ? media.url : toDataUri(media), detail: detail ?? 'auto' }
    }
    case 'file': {
      const { media, name } = part
      if ('fileId' in media) return { type: 'input_file', file_id: media.fileId }
      if ('url' in media) return { type: 'input_file', file_url: media.url }
      return { type: 'input_file', file_data: toDataUri(media), filename: name ?? 'document.pdf' }
    }
    case 'audio':
      throw cannotConvert(part.at, 'sound')
  }
}

function writeOutput(parts: readonly OutputPart[]): Json[] {
  const items: Json[] = []
  let content: Json[] | undefined
  parts.forEach((part, i) => {
    if (part.kind === 'text' || part.kind === 'refusal') {
      if (part.text === '') return
      if (!content) {
        content = []
        items.push({ type: 'message', role: 'assistant', content })
      }
      content.push(
        part.kind === 'text' ? { type: 'output_text', text: part.text } : { type: 'refusal', refusal: part.text },
      )
      return
    }
    content = undefined
    if (part.kind === 'call') {
      const { id, name, input } = part
      items.push(
        part.custom
          ? { type: 'custom_tool_call', call_id: id, name, input }
          : { type: 'function_call', call_id: id, name, arguments: input || '{}' },
      )
    } else if (
      part.proof.encrypted &&
      parts.slice(i + 1).some((later) => later.kind === 'call' || (later.kind !== 'thought' && later.text !== ''))
    ) {
      // A thought is accepted only together with the item that followed it.
      items.push({
        type: 'reasoning',
        id: part.proof.encrypted.id,
        summary: [],
        encrypted_content: part.proof.encrypted.data,
      })
    }
  })
  return items
}

function writeResult(result: ResultPart, custom: ReadonlySet<string>): Json {
  const type = custom.has(result.id) ? 'custom_tool_call_output' : 'function_call_output'
  const plain = result.parts.every((part) => part.kind === 'text')
  const output = plain
    ? result.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')
    : result.parts.map((part) => writePart(part))
  return { type, call_id: result.id, output }
}

function writeText({ format: wanted, verbosity }: Conversation): Json | undefined {
  const format = writeFormat(wanted, flat)
  return format === undefined && verbosity === undefined ? undefined : given({ format, verbosity })
}

/** The reasoning effort, from an effort or from a budget of thinking tokens. */
function writeReasoning({ effort, summary, thinking }: Conversation): Json | undefined {
  const budget = Number(thinking?.budget_tokens)
  const wanted = effort ?? (budget > 0 ? (budget <= 2_048 ? 'low' : budget <= 12_000 ? 'medium' : 'high') : undefined)
  // A caller that asks for thinking blocks wants to see the thoughts.
  const shown = summary ?? (thinking?.type === 'enabled' || thinking?.type === 'adaptive' ? 'auto' : undefined)
  return wanted === undefined && shown === undefined ? undefined : given({ effort: wanted, summary: shown })
}

// What the Responses endpoint rejects before any vendor is called.

export function checkResponses(value: Json): CheckedRequest {
  // Background requests (background/responses.ts) have removed this member before.
  if (value.background === true)
    throw wrong('background', 'must be false here: only POST /v1/responses itself works in the background.')
  const previous = text(value.previous_response_id)
  if (previous !== undefined && (value.conversation ?? undefined) !== undefined)
    throw wrong('conversation', 'does not go with "previous_response_id": send one of them.')
  return {
    stream: value.stream === true,
    includeUsage: true,
    n: 1,
    tokensMax: number(value.max_output_tokens),
    hasTools: Array.isArray(value.tools) && value.tools.length > 0,
    continues: previous === undefined ? undefined : [{ id: previous, unknown: previousUnknown() }],
  }
}

/** The vendor's own message, because clients recognise it. */
function previousUnknown(): Fault {
  const message = 'Previous response not found: it is not of this account, was not stored, or is no longer kept.'
  return new Fault('request_invalid', {
    message,
    param: 'previous_response_id',
    vendorCode: 'previous_response_not_found',
  })
}

// Tool groups (namespaces), which only the Responses format has. Other formats have one flat list of names: a grouped
// tool is sent under a combined name, and its calls are returned under the caller's two names.

/** The longest tool name that every format accepts. */
const NAME_CHARS_MAX = 64
const DIGEST_CHARS = 8

interface Grouped {
  readonly name: string
  readonly namespace?: string
}

export class Namespaces {
  /** All tools; grouped ones have their flat names. */
  readonly tools: readonly { readonly tool: Json; readonly name: string; readonly at: string }[]
  private readonly byFlat = new Map<string, Grouped>()
  private readonly taken = new Set<string>()

  constructor(given: unknown) {
    const tools = objects(given)
    for (const { type, name } of tools) if (type !== 'namespace' && typeof name === 'string') this.taken.add(name)
    this.tools = tools.flatMap((tool, i) => {
      const at = `tools[${i}]`
      if (tool.type !== 'namespace') return [{ tool, name: text(tool.name) ?? '', at }]
      const group = text(tool.name) ?? ''
      return objects(tool.tools).map((inner, j) => ({
        tool: inner,
        name: this.flat(text(inner.name) ?? '', group),
        at: `${at}.tools[${j}]`,
      }))
    })
  }

  /** The flat name of a grouped tool; the same in every turn of a conversation. */
  flat(name: string, namespace: string | undefined): string {
    if (namespace === undefined) return name
    const joined = `${namespace}${namespace.endsWith('__') ? '' : '__'}${name}`.replaceAll(/[^\w-]/g, '_')
    const known = this.byFlat.get(joined)
    const isFree = known ? known.name === name && known.namespace === namespace : !this.taken.has(joined)
    const flat = joined.length <= NAME_CHARS_MAX && isFree ? joined : withDigest(joined, name, namespace)
    this.byFlat.set(flat, { name, namespace })
    return flat
  }

  /** The caller's name for a tool that a vendor has called. */
  grouped(flat: string): Grouped {
    return this.byFlat.get(flat) ?? { name: flat }
  }

  /** The names of a tool choice, which may be a whole group. */
  chosen(choice: Json): string[] {
    const name = text(choice.name) ?? ''
    if (choice.type !== 'namespace') return [this.flat(name, text(choice.namespace))]
    return [...this.byFlat].filter(([, { namespace }]) => namespace === name).map(([flat]) => flat)
  }
}

function withDigest(joined: string, name: string, namespace: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([namespace, name]))
    .digest('hex')
    .slice(0, DIGEST_CHARS)
  return `${joined.slice(0, NAME_CHARS_MAX - DIGEST_CHARS - 1)}_${digest}`
}
