// A chat request in neutral words, for vendors that speak another format.
import { given, isObject, type Json, objects, text } from '../../check.ts'
import {
  type CallPart,
  cannotConvert,
  type Dialogue,
  type InputPart,
  type OutputPart,
  type Proof,
  type TextPart,
  type ThoughtPart,
  type Tool,
  type ToolChoice,
  type Turn,
} from '../dialogue.ts'
import { fromBase64, readMedia } from '../media.ts'

export function readChatDialogue(value: Json): Dialogue {
  const tools = [...readTools(value.tools), ...readFunctions(value.functions)]
  const choice = readChoice(value.tool_choice) ?? readFunctionChoice(value.function_call)
  const format = isObject(value.response_format) ? value.response_format : {}
  const schema = isObject(format.json_schema) ? format.json_schema : {}
  const tokensMax = value.max_completion_tokens ?? value.max_tokens
  return given({
    turns: readTurns(value.messages as Json[]),
    stream: value.stream === true,
    tools: tools.length > 0 ? tools : undefined,
    toolChoice: choice,
    parallelTools: value.parallel_tool_calls,
    tokensMax,
    temperature: value.temperature,
    topP: value.top_p,
    stop: typeof value.stop === 'string' ? [value.stop] : value.stop,
    format:
      format.type === 'json_object'
        ? { kind: 'object' }
        : format.type === 'json_schema'
          ? given({
              kind: 'schema',
              name: schema.name,
              schema: schema.schema ?? {},
              strict: schema.strict,
              description: schema.description,
            })
          : undefined,
    effort: value.reasoning_effort,
    thinking: value.thinking,
    verbosity: value.verbosity,
    user: value.user,
    metadata: value.metadata,
    serviceTier: value.service_tier,
    store: value.store,
    cacheKey: value.prompt_cache_key,
    safetyId: value.safety_identifier,
  }) as unknown as Dialogue
}

function readTurns(messages: readonly Json[]): Turn[] {
  const turns: Turn[] = []
  // The deprecated pair has no ids: calls and answers alternate, so a running number names them.
  let functions = 0
  messages.forEach((message, i) => {
    const at = `messages[${i}]`
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
        turns.push({
          role: 'assistant',
          parts: readOutput(message, called && { called, id: `call_function_${functions}` }, at),
        })
        break
      }
      case 'tool':
        turns.push({
          role: 'tool',
          parts: [{ kind: 'result', id: text(message.tool_call_id) ?? '', parts: readResult(message.content, at) }],
        })
        break
      case 'function':
        turns.push({
          role: 'tool',
          parts: [{ kind: 'result', id: `call_function_${functions}`, parts: readResult(message.content ?? '', at) }],
        })
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
  return given({ kind: 'text' as const, text: text(part.text) ?? '', cache: part.cache_control }) as TextPart
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
      const image = part.image_url as Json
      const media = readMedia(image.url as string, `${at}.image_url.url`)
      return given({
        kind: 'image' as const,
        at,
        media,
        detail: text(image.detail),
        cache: part.cache_control,
      }) as InputPart
    }
    case 'file': {
      const file = isObject(part.file) ? part.file : {}
      const data = text(file.file_data)
      const name = text(file.filename)
      if (data === undefined && typeof file.file_id === 'string')
        return { kind: 'file', at, media: { fileId: file.file_id } }
      if (data === undefined) throw cannotConvert(`${at}.file`, 'a file without "file_data"')
      const media = data.startsWith('data:')
        ? readMedia(data, `${at}.file.file_data`)
        : fromBase64(data, 'application/pdf')
      return given({ kind: 'file' as const, at, media, name, cache: part.cache_control }) as InputPart
    }
    case 'input_audio': {
      const audio = isObject(part.input_audio) ? part.input_audio : {}
      return { kind: 'audio', at, base64: text(audio.data) ?? '', format: text(audio.format) ?? '' }
    }
  }
  throw cannotConvert(`${at}.type`, `a part of type "${part.type}"`)
}

function readResult(content: unknown, at: string) {
  return readInput(content, at).map((part, j) => {
    if (part.kind === 'audio') throw cannotConvert(`${at}.content[${j}].type`, 'sound in a tool result')
    return part
  })
}

function readOutput(message: Json, legacy: { called: Json; id: string } | undefined, at: string): OutputPart[] {
  const parts: OutputPart[] = readThoughts(message)
  if (typeof message.content === 'string') parts.push({ kind: 'text', text: message.content })
  else
    objects(message.content).forEach((part, j) => {
      if (part.type === 'refusal') parts.push({ kind: 'refusal', text: text(part.refusal) ?? '' })
      else if (part.type === 'text') parts.push(readText(part))
      else throw cannotConvert(`${at}.content[${j}].type`, `a part of type "${part.type}"`)
    })
  if (typeof message.refusal === 'string' && message.refusal !== '')
    parts.push({ kind: 'refusal', text: message.refusal })
  for (const call of objects(message.tool_calls)) parts.push(readCall(call))
  if (legacy)
    parts.push({
      kind: 'call',
      id: legacy.id,
      name: text(legacy.called.name) ?? '',
      input: text(legacy.called.arguments) ?? '',
    })
  return parts
}

function readCall(call: Json): CallPart {
  const id = text(call.id) ?? ''
  if (call.type === 'custom') {
    const custom = isObject(call.custom) ? call.custom : {}
    return { kind: 'call', id, name: text(custom.name) ?? '', input: text(custom.input) ?? '', custom: true }
  }
  const called = isObject(call.function) ? call.function : {}
  const extra = call.extra_content
  return {
    kind: 'call',
    id,
    name: text(called.name) ?? '',
    input: text(called.arguments) ?? '',
    ...(extra === undefined ? {} : { extra }),
  }
}

/** Thoughts with their proofs come back as `reasoning_details`; without proofs, as `reasoning_content` or `reasoning`. */
export function readThoughts(message: Json): ThoughtPart[] {
  const parts: ThoughtPart[] = []
  for (const detail of objects(message.reasoning_details)) {
    const proof: Proof = given({
      signature: text(detail.signature),
      redacted: redactedOf(detail),
      encrypted: encryptedOf(detail),
      google: detail.type === 'thought_signature' ? text(detail.data) : undefined,
    }) as Proof
    const said = text(detail.text) ?? text(detail.thinking) ?? text(detail.summary) ?? ''
    if (said !== '' || Object.keys(proof).length > 0) parts.push({ kind: 'thought', text: said, proof })
  }
  if (parts.some((part) => part.text !== '')) return parts
  const plain = text(message.reasoning_content) ?? text(message.reasoning) ?? ''
  return plain === '' ? parts : [{ kind: 'thought', text: plain, proof: {} }, ...parts]
}

function redactedOf(detail: Json): string | undefined {
  return detail.type === 'redacted_thinking' ? text(detail.data) : undefined
}

function encryptedOf(detail: Json): Proof['encrypted'] {
  const data = text(detail.data)
  // Without its content the id alone would say whose thought it is.
  return detail.type === 'reasoning.encrypted' && data ? { id: text(detail.id) ?? '', data } : undefined
}

function readTools(tools: unknown): Tool[] {
  return objects(tools).map((tool, i) => {
    if (tool.type === 'function') return readFunction(tool.function as Json, tool.cache_control)
    if (tool.type !== 'custom') throw cannotConvert(`tools[${i}].type`, `a tool of type "${tool.type}"`)
    const custom = isObject(tool.custom) ? tool.custom : {}
    return given({
      kind: 'custom' as const,
      name: text(custom.name) ?? '',
      description: text(custom.description),
      format: custom.format,
    }) as Tool
  })
}

function readFunctions(functions: unknown): Tool[] {
  return objects(functions).map((entry) => readFunction(entry, undefined))
}

function readFunction(entry: Json, cache: unknown): Tool {
  return given({
    kind: 'function' as const,
    name: text(entry.name) ?? '',
    description: text(entry.description),
    schema: isObject(entry.parameters) ? entry.parameters : undefined,
    strict: typeof entry.strict === 'boolean' ? entry.strict : undefined,
    cache,
  }) as Tool
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
