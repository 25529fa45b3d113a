// Chat requests: validated, passed on, read into the canonical form, and written from it.

import { CHAT_ANSWERS_MAX } from '../../../catalog/text-bodies.ts'
import type { TextTraits } from '../../../catalog/traits.ts'
import { invalid } from '../../../kernel/fault.ts'
import {
  given,
  isGiven,
  isObject,
  type Json,
  type JsonText,
  number,
  objectOf,
  objects,
  splice,
  strings,
  text,
} from '../../../kernel/json.ts'
import {
  type CallPart,
  type Conversation,
  cannotConvert,
  type ImagePart,
  type InputPart,
  type Media,
  type OutputPart,
  type Proof,
  type ResultPart,
  readMedia,
  type TextPart,
  type ThoughtPart,
  type Tool,
  type ToolChoice,
  type Turn,
  textOf,
  toDataUri,
} from '../canonical.ts'
import type { CheckedRequest, PassOptions } from '../format.ts'
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

// Reads a chat request into the canonical form, for vendors of another format.

const nested: Shape = (type, members) => ({ type, [type]: members })

export function readChatConversation(value: Json): Conversation {
  const tools = [
    ...objects(value.tools).map(readTool),
    ...objects(value.functions).map((entry) => readFunction(entry, text(entry.name) ?? '')),
  ]
  const format = objectOf(value.response_format)
  return given({
    ...readMembers(value),
    turns: readTurns(objects(value.messages)),
    tools: tools.length > 0 ? tools : undefined,
    toolChoice: readChoice(value.tool_choice) ?? readFunctionChoice(value.function_call),
    tokensMax: number(value.max_completion_tokens ?? value.max_tokens),
    stop: typeof value.stop === 'string' ? [value.stop] : strings(value.stop),
    format: readFormat(format, objectOf(format.json_schema)),
    effort: text(value.reasoning_effort),
    thinking: isObject(value.thinking) ? value.thinking : undefined,
    verbosity: text(value.verbosity),
  })
}

function readTurns(messages: readonly Json[]): Turn[] {
  const turns: Turn[] = []
  // The deprecated pair has no ids: calls and results alternate, so they are numbered.
  let functions = 0
  messages.forEach((message, i) => {
    const at = `messages[${i}]`
    const pushResult = (id: string, content: unknown) =>
      turns.push({ role: 'tool', parts: [{ kind: 'result', id, parts: readResult(content, at) }] })
    switch (message.role) {
      case 'system':
      case 'developer':
        turns.push({ role: message.role, parts: readTexts(message.content, at) })
        break
      case 'user':
        turns.push({ role: 'user', parts: readInput(message.content, at) })
        break
      case 'assistant': {
        const called = isObject(message.function_call) ? message.function_call : undefined
        if (called) functions++
        const legacy = called && { id: `call_function_${functions}`, function: called }
        turns.push({ role: 'assistant', parts: readOutput(message, legacy, at) })
        break
      }
      case 'tool':
        pushResult(text(message.tool_call_id) ?? '', message.content)
        break
      case 'function':
        pushResult(`call_function_${functions}`, message.content ?? '')
        break
    }
  })
  return turns
}

function readTexts(content: unknown, at: string): TextPart[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  return objects(content).map((part, j) => {
    if (part.type !== 'text') throw cannotConvert(`${at}.content[${j}].type`, `a part of type "${part.type}"`)
    return readText(part)
  })
}

function readText(part: Json): TextPart {
  return given({ kind: 'text', text: text(part.text) ?? '', cache: part.cache_control })
}

function readInput(content: unknown, at: string): InputPart[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  return objects(content).map((part, j) => readPart(part, `${at}.content[${j}]`))
}

function readPart(part: Json, at: string): InputPart {
  switch (part.type) {
    case 'text':
      return readText(part)
    case 'image_url': {
      const image = objectOf(part.image_url)
      const media = readMedia(text(image.url) ?? '', `${at}.image_url.url`)
      return given({ kind: 'image', at, media, detail: text(image.detail), cache: part.cache_control })
    }
    case 'file': {
      const file = objectOf(part.file)
      const data = text(file.file_data)
      if (data === undefined && typeof file.file_id === 'string')
        return { kind: 'file', at, media: { fileId: file.file_id } }
      if (data === undefined) throw cannotConvert(`${at}.file`, 'a file without "file_data"')
      const media = readFileData(data, `${at}.file.file_data`)
      return given({ kind: 'file', at, media, name: text(file.filename), cache: part.cache_control })
    }
    case 'input_audio':
      return readAudio(part, at)
  }
  throw cannotConvert(`${at}.type`, `a part of type "${part.type}"`)
}

function readResult(content: unknown, at: string) {
  return readInput(content, at).map((part, j) => {
    if (part.kind === 'audio') throw cannotConvert(`${at}.content[${j}].type`, 'sound in a tool result')
    return part
  })
}

/** `legacy`: the call of the deprecated pair. */
function readOutput(message: Json, legacy: Json | undefined, at: string): OutputPart[] {
  const parts: OutputPart[] = readThoughts(message)
  if (typeof message.content === 'string') parts.push({ kind: 'text', text: message.content })
  else
    objects(message.content).forEach((part, j) => {
      if (part.type === 'refusal') parts.push({ kind: 'refusal', text: text(part.refusal) ?? '' })
      else if (part.type === 'text') parts.push(readText(part))
      else if (part.type !== 'thinking')
        throw cannotConvert(`${at}.content[${j}].type`, `a part of type "${part.type}"`)
    })
  if (typeof message.refusal === 'string' && message.refusal !== '')
    parts.push({ kind: 'refusal', text: message.refusal })
  for (const call of [...objects(message.tool_calls), ...(legacy ? [legacy] : [])]) parts.push(readCall(call))
  return parts
}

function readCall(call: Json): CallPart {
  const id = text(call.id) ?? ''
  if (call.type === 'custom') {
    const custom = objectOf(call.custom)
    return { kind: 'call', id, name: text(custom.name) ?? '', input: text(custom.input) ?? '', custom: true }
  }
  const called = objectOf(call.function)
  const [name, input] = [text(called.name) ?? '', text(called.arguments) ?? '']
  return { kind: 'call', id, name, input, ...(call.extra_content !== undefined && { extra: call.extra_content }) }
}

/** Thoughts with proofs come back as `reasoning_details`, those without as `reasoning_content` or `reasoning`. */
export function readThoughts(message: Json): ThoughtPart[] {
  const parts: ThoughtPart[] = []
  for (const detail of objects(message.reasoning_details)) {
    const proof: Proof = given({
      signature: text(detail.signature),
      redacted: detail.type === 'redacted_thinking' ? text(detail.data) : undefined,
      encrypted: encryptedOf(detail),
      google: detail.type === 'thought_signature' ? text(detail.data) : undefined,
    })
    const said = text(detail.text) ?? text(detail.thinking) ?? text(detail.summary) ?? ''
    if (said !== '' || Object.keys(proof).length > 0) parts.push({ kind: 'thought', text: said, proof })
  }
  if (parts.some((part) => part.text !== '')) return parts
  const plain = text(message.reasoning_content) ?? text(message.reasoning) ?? thinkingIn(message.content)
  return plain === '' ? parts : [{ kind: 'thought', text: plain, proof: {} }, ...parts]
}

/** Mistral's thoughts are parts of the content. */
function thinkingIn(content: unknown): string {
  const parts = objects(content).filter(({ type }) => type === 'thinking')
  return parts.map(({ thinking }) => text(thinking) ?? joined(thinking)).join('')
}

/** The text of content that is a list of parts. */
export function joined(parts: unknown): string {
  return objects(parts)
    .map((part) => text(part.text) ?? '')
    .join('')
}

function encryptedOf(detail: Json): Proof['encrypted'] {
  const data = text(detail.data)
  // An id without data is dropped: it could name another account's thought at the vendor.
  return detail.type === 'reasoning.encrypted' && data ? { id: text(detail.id) ?? '', data } : undefined
}

function readTool(tool: Json, i: number): Tool {
  const entry = objectOf(tool[String(tool.type)])
  if (tool.type === 'function') return readFunction(entry, text(entry.name) ?? '', tool.cache_control)
  if (tool.type === 'custom') return readCustom(entry, text(entry.name) ?? '')
  throw cannotConvert(`tools[${i}].type`, `a tool of type "${tool.type}"`)
}

function readChoice(choice: unknown): ToolChoice | undefined {
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice
  if (!isObject(choice)) {
    if (choice === undefined || choice === null) return undefined
    throw cannotConvert('tool_choice', `"${String(choice)}"`)
  }
  if (isObject(choice.function)) return { name: text(choice.function.name) ?? '' }
  if (isObject(choice.custom)) return { name: text(choice.custom.name) ?? '', custom: true }
  const allowed = choice.allowed_tools
  if (!isObject(allowed)) throw cannotConvert('tool_choice.type', `"${String(choice.type)}"`)
  const names = objects(allowed.tools).map((tool) => text((isObject(tool.function) ? tool.function : tool).name) ?? '')
  return { allowed: names, mode: allowed.mode === 'required' ? 'required' : 'auto' }
}

function readFunctionChoice(choice: unknown): ToolChoice | undefined {
  if (choice === 'auto' || choice === 'none') return choice
  return isObject(choice) ? { name: text(choice.name) ?? '' } : undefined
}

// Writes the canonical form as a chat request, for callers of another format.

export function writeChatRequest(conversation: Conversation, model: string, traits: TextTraits): Json {
  const tokensField = traits.tokensField === 'max_completion_tokens' ? 'max_completion_tokens' : 'max_tokens'
  const body: Json = given({
    model,
    messages: conversation.turns.flatMap((turn) => writeTurn(turn, traits)),
    stream: conversation.stream ? true : undefined,
    stream_options: conversation.stream ? { include_usage: true } : undefined,
    tools: conversation.tools?.map((tool) => writeTool(tool, nested)),
    tool_choice: writeChoice(conversation.toolChoice, nested),
    parallel_tool_calls: conversation.parallelTools,
    [tokensField]: conversation.tokensMax,
    temperature: conversation.temperature,
    top_p: conversation.topP,
    stop: conversation.stop,
    response_format: writeFormat(conversation.format, nested),
    reasoning_effort: conversation.effort,
    // Thinking is on by default, so only switching it off must be sent.
    thinking: traits.thinkingObject && conversation.thinking?.type === 'disabled' ? { type: 'disabled' } : undefined,
    verbosity: conversation.verbosity,
    user: conversation.user,
    metadata: conversation.metadata,
    service_tier: conversation.serviceTier,
    store: conversation.store === true ? true : undefined,
    prompt_cache_key: conversation.cacheKey,
    safety_identifier: conversation.safetyId,
  })
  for (const entry of traits.addParams) {
    const equals = entry.indexOf('=')
    body[entry.slice(0, equals)] = JSON.parse(entry.slice(equals + 1))
  }
  for (const name of [...traits.dropParams, ...traits.dropConverted]) delete body[name]
  return traits.namedToolChoice ? body : { ...body, ...chooseByWord(body) }
}

function writeTurn(turn: Turn, traits: TextTraits): Json[] {
  switch (turn.role) {
    case 'system':
    case 'developer': {
      const content = turn.parts.map((part) => part.text).join('\n\n')
      return [{ role: traits.developerRole ? turn.role : 'system', content }]
    }
    case 'user':
      return [{ role: 'user', content: writeContent(turn.parts) }]
    case 'tool':
      return writeResults(turn.parts)
    case 'assistant': {
      const content = textOf(turn.parts, 'text')
      const refusal = textOf(turn.parts, 'refusal')
      const calls = turn.parts.filter((part) => part.kind === 'call')
      const message: Json = {
        role: 'assistant',
        content: content === '' && (calls.length > 0 || refusal !== '') ? null : content,
      }
      if (refusal !== '') message.refusal = refusal
      if (calls.length > 0)
        message.tool_calls = calls.map((call, i) =>
          call.custom
            ? { id: call.id, type: 'custom', custom: { name: call.name, input: call.input } }
            : given({
                id: call.id,
                type: 'function',
                function: { name: call.name, arguments: call.input },
                extra_content:
                  call.extra ?? (i === 0 && traits.callExtra !== undefined ? JSON.parse(traits.callExtra) : undefined),
              }),
        )
      const thought = textOf(turn.parts, 'thought')
      // These families reject a turn with calls that comes back without its reasoning; an empty one is accepted.
      if (traits.reasoningReplay && (thought !== '' || calls.length > 0)) message.reasoning_content = thought
      return [message]
    }
  }
}

function writeContent(parts: readonly InputPart[]): unknown {
  const [only] = parts
  if (parts.length === 1 && only?.kind === 'text') return only.text
  return parts.map((part) => writePart(part))
}

function writePart(part: InputPart): Json {
  switch (part.kind) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image':
      return { type: 'image_url', image_url: given({ url: addressOf(part.media, part.at), detail: part.detail }) }
    case 'file':
      if ('base64' in part.media)
        return { type: 'file', file: { file_data: toDataUri(part.media), filename: part.name ?? 'document.pdf' } }
      if ('fileId' in part.media) throw cannotConvert(part.at, 'a file by its id')
      throw cannotConvert(part.at, 'a file by its address')
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.base64, format: part.format } }
  }
}

function addressOf(media: Media, at: string): string {
  if ('url' in media) return media.url
  if ('base64' in media) return toDataUri(media)
  throw cannotConvert(at, 'an image by its id')
}

/** Tool messages contain only text, so images follow in a user message after all of them. */
function writeResults(results: readonly ResultPart[]): Json[] {
  const messages: Json[] = []
  const pictures: InputPart[] = []
  for (const result of results) {
    const content = textOf(result.parts, 'text')
    messages.push({ role: 'tool', tool_call_id: result.id, content: result.failed ? `Error: ${content}` : content })
    pictures.push(...result.parts.filter((part): part is ImagePart => part.kind !== 'text'))
  }
  if (pictures.length > 0) messages.push({ role: 'user', content: pictures.map((part) => writePart(part)) })
  return messages
}

// For models whose `tool_choice` must be a word: a choice by name is expressed by leaving the other tools out.

/** Undefined if the choice is already a word or names no existing tool. */
function chooseByWord(body: Json): { tools: Json[]; tool_choice: string } | undefined {
  const { tool_choice: choice } = body
  if (!isObject(choice)) return undefined
  const allowed = isObject(choice.allowed_tools) ? choice.allowed_tools : undefined
  const names = (allowed ? objects(allowed.tools) : [choice]).map(nameOf)
  const tools = objects(body.tools).filter((tool) => names.includes(nameOf(tool)))
  if (tools.length === 0) return undefined
  return { tools, tool_choice: allowed && allowed.mode !== 'required' ? 'auto' : 'required' }
}

function nameOf(tool: Json): unknown {
  const named = tool.function ?? tool.custom
  return isObject(named) ? named.name : undefined
}

// What the chat endpoint rejects before any vendor is called.

export function checkChat(value: Json, traits: TextTraits): CheckedRequest {
  const n = number(value.n) ?? 1
  const nMax = Math.min(traits.nMax ?? CHAT_ANSWERS_MAX, CHAT_ANSWERS_MAX)
  if (n > nMax)
    throw invalid(`"n" must be ${nMax === 1 ? 'exactly 1' : `at most ${nMax}`} for this model, not ${n}.`, 'n')
  return {
    stream: value.stream === true,
    includeUsage: isObject(value.stream_options) && value.stream_options.include_usage === true,
    n,
    tokensMax: number(value.max_completion_tokens ?? value.max_tokens),
    hasTools: hasAny(value.tools) || hasAny(value.functions),
  }
}

const hasAny = (list: unknown) => Array.isArray(list) && list.length > 0

// A chat request for a chat vendor: the caller's own text with the few necessary members replaced.

export function passChat(json: JsonText, paidRequest: CheckedRequest, options: PassOptions): string {
  const { traits } = options
  const replace: Record<string, string> = { model: JSON.stringify(options.model) }
  const add: Record<string, string> = {}
  const remove: string[] = []
  const put = (name: string, value: string) => {
    if (json.member(name)) replace[name] = value
    else add[name] = value
  }
  for (const name of traits.dropParams) if (json.member(name)) remove.push(name)
  for (const entry of traits.addParams) {
    const equals = entry.indexOf('=')
    put(entry.slice(0, equals), entry.slice(equals + 1))
  }
  limitOutput(json, paidRequest, options, { put, remove })
  const chosen = traits.namedToolChoice ? undefined : chooseByWord(json.value)
  for (const [name, value] of Object.entries(chosen ?? {})) put(name, JSON.stringify(value))
  // The vendor is always asked for usage, for metering; the caller sees it only if it asked for it.
  if (paidRequest.stream && !paidRequest.includeUsage) put('stream_options', withUsage(json.value.stream_options))
  const messages = editedMessages(json, traits)
  if (messages !== undefined) replace.messages = messages
  return splice(json, { replace, add, remove })
}

function limitOutput(
  json: JsonText,
  paidRequest: CheckedRequest,
  { traits, outputTokensCap }: PassOptions,
  edit: { put(name: string, value: string): void; remove: string[] },
): void {
  const { max_tokens: plain, max_completion_tokens: completion } = json.value
  const limit = paidRequest.tokensMax ?? outputTokensCap
  if (traits.tokensField === 'either') {
    if (limit === undefined) return
    // The vendor chooses between two that differ, so both say what is held.
    const isCompletion = isGiven(completion)
    if (isCompletion && completion !== limit) edit.put('max_completion_tokens', String(limit))
    if (isCompletion ? isGiven(plain) && plain !== limit : plain !== limit) edit.put('max_tokens', String(limit))
    return
  }
  const other = traits.tokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
  if (json.member(other)) edit.remove.push(other)
  if (limit !== undefined && limit !== json.value[traits.tokensField]) edit.put(traits.tokensField, String(limit))
}

function withUsage(options: unknown): string {
  return JSON.stringify({ ...objectOf(options), include_usage: true })
}

/**
 * The rewritten messages, if a family needs a role renamed, a key removed, or a key restored that the caller's client
 * has dropped; undefined if nothing changes.
 */
function editedMessages(json: JsonText, traits: TextTraits): string | undefined {
  const strip = traits.stripKeys.filter((key) => json.text.includes(`"${key}"`))
  const rename = !traits.developerRole && json.text.includes('"developer"')
  const replay = (traits.reasoningReplay || traits.callExtra !== undefined) && json.text.includes('"tool_calls"')
  if (strip.length === 0 && !rename && !replay) return undefined
  return JSON.stringify(
    objects(json.value.messages).map((message) => {
      const copy = without(message, strip)
      if (rename && copy.role === 'developer') copy.role = 'system'
      if (Array.isArray(copy.content))
        copy.content = copy.content.map((part) => (isObject(part) ? without(part, strip) : part))
      const calls = objects(copy.tool_calls).map((call) => without(call, strip))
      if (calls.length > 0) copy.tool_calls = calls
      if (replay && calls[0]) {
        if (traits.reasoningReplay) copy.reasoning_content ??= ''
        if (traits.callExtra !== undefined) calls[0].extra_content ??= JSON.parse(traits.callExtra)
      }
      return copy
    }),
  )
}

function without(object: Json, keys: readonly string[]): Json {
  const copy = { ...object }
  for (const key of keys) delete copy[key]
  return copy
}
