// Gemini requests: validated, read into the canonical form, and written from it.

import type { TextTraits } from '../../catalog/traits.ts'
import { invalid } from '../../kernel/fault.ts'
import { given, isObject, type Json, number, objectOf, objects, strings, text } from '../../kernel/json.ts'
import { wrong } from '../../protocols/check.ts'
import {
  type CallPart,
  type Conversation,
  cannotConvert,
  type FilePart,
  fromBase64,
  type ImagePart,
  type InputPart,
  inputObject,
  type Media,
  nothingSaid,
  type OutputPart,
  type ResultPart,
  type TextPart,
  type Tool,
  type ToolChoice,
  type Turn,
  textOf,
  toolsAllowed,
} from '../../protocols/text/canonical.ts'
import { hostedRefusal } from '../../protocols/text/extras.ts'
import type { CheckedRequest } from '../../protocols/text/format.ts'
import { inSnakeCase, member } from './endpoints.ts'
import { objectAt, objectsAt, readExtra, readSaid, signatureOf, textAt } from './member.ts'

// Reads a Gemini request into the canonical form, for vendors of another format.

export function readGeminiConversation(value: Json): Conversation {
  const config = objectAt(value, 'generationConfig')
  const tools = objectsAt(value, 'tools').flatMap(readTools)
  const stop = strings(member(config, 'stopSequences')) ?? []
  const modalities = strings(member(config, 'responseModalities')) ?? []
  if (modalities.some((one) => !/^text$/i.test(one)))
    throw cannotConvert('generationConfig.responseModalities', 'an answer with pictures or sound')
  return given({
    turns: readTurns(value),
    stream: value.stream === true,
    tools: tools.length > 0 ? tools : undefined,
    toolChoice: readChoice(objectAt(objectAt(value, 'toolConfig'), 'functionCallingConfig')),
    tokensMax: number(member(config, 'maxOutputTokens')),
    temperature: number(config.temperature),
    topP: number(member(config, 'topP')),
    stop: stop.length > 0 ? stop : undefined,
    format: readGeminiFormat(config),
    ...readThinking(objectAt(config, 'thinkingConfig')),
  })
}

function readThinking(config: Json): Pick<Conversation, 'effort' | 'thinking'> {
  const level = textAt(config, 'thinkingLevel')?.toLowerCase()
  if (level !== undefined && level !== 'thinking_level_unspecified') return { effort: level }
  const budget = member(config, 'thinkingBudget')
  if (budget === 0) return { thinking: { type: 'disabled' } }
  return typeof budget === 'number' && budget > 0 ? { thinking: { type: 'enabled', budget_tokens: budget } } : {}
}

export function readGeminiFormat(config: Json): Conversation['format'] {
  const type = textAt(config, 'responseMimeType') ?? 'text/plain'
  if (type === 'text/plain') return undefined
  // Other formats would return an enumeration as JSON and not as the bare word that the caller expects.
  if (type !== 'application/json')
    throw cannotConvert('generationConfig.responseMimeType', `the type ${JSON.stringify(type.slice(0, 60))}`)
  const json = member(config, 'responseJsonSchema')
  const open = member(config, 'responseSchema')
  if (isObject(json)) return { kind: 'schema', schema: json }
  return isObject(open) ? { kind: 'schema', schema: fromOpenApi(open) } : { kind: 'object' }
}

/** Calls may lack ids: results are then matched by name, in order. */
class Calls {
  private made = 0
  private readonly open: { readonly id: string; readonly name: string }[] = []

  call(name: string, id: string | undefined): string {
    const own = id ?? `call_${++this.made}_${name}`.slice(0, 64)
    this.open.push({ id: own, name })
    return own
  }

  result(name: string, id: string | undefined): string {
    const at = this.open.findIndex((call) => (id === undefined ? call.name === name : call.id === id))
    const [found] = at < 0 ? [] : this.open.splice(at, 1)
    return found?.id ?? id ?? `call_${++this.made}_${name}`.slice(0, 64)
  }
}

function readTurns(value: Json): Turn[] {
  const turns: Turn[] = []
  const system = member(value, 'systemInstruction')
  const said = isObject(system) ? objects(system.parts) : []
  const parts = said.flatMap((part): TextPart[] =>
    text(part.text) ? [{ kind: 'text', text: text(part.text) ?? '' }] : [],
  )
  if (parts.length > 0) turns.push({ role: 'system', parts })
  const calls = new Calls()
  objects(value.contents).forEach((content, i) => {
    const at = `contents[${i}].parts`
    if (content.role === 'model') {
      const parts = objects(content.parts).flatMap((part, j) => readOutput(part, `${at}[${j}]`, calls))
      turns.push({ role: 'assistant', parts })
      return
    }
    const results: ResultPart[] = []
    const input: InputPart[] = []
    objects(content.parts).forEach((part, j) => {
      const response = member(part, 'functionResponse')
      if (isObject(response)) results.push(readResult(response, `${at}[${j}]`, calls))
      else input.push(readInput(part, `${at}[${j}]`))
    })
    if (results.length > 0) turns.push({ role: 'tool', parts: results })
    if (input.length > 0) turns.push({ role: 'user', parts: input })
  })
  return turns
}

function readInput(part: Json, at: string): InputPart {
  if (typeof part.text === 'string') return { kind: 'text', text: part.text }
  const media = readMedia(part, at)
  if (!media) throw cannotConvert(at, `a part with ${Object.keys(part).slice(0, 3).join(', ') || 'nothing'}`)
  return media
}

function readMedia(part: Json, at: string): InputPart | undefined {
  const inline = member(part, 'inlineData')
  const file = member(part, 'fileData')
  if (isObject(inline)) {
    const type = textAt(inline, 'mimeType') ?? ''
    const data = text(inline.data) ?? ''
    if (type.startsWith('audio/')) return { kind: 'audio', at, base64: data, format: audioFormat(type) }
    return part_(type, at, fromBase64(data, type), textAt(inline, 'displayName'))
  }
  if (!isObject(file)) return undefined
  const uri = textAt(file, 'fileUri') ?? ''
  const type = textAt(file, 'mimeType') ?? ''
  // Files stored at Google can be read only with Google's key.
  const reachable = /^https?:\/\//i.test(uri) && !/^https?:\/\/[^/]*googleapis\.com\//i.test(uri)
  return part_(type, at, reachable ? { url: uri } : { fileId: uri }, textAt(file, 'displayName'))
}

function part_(type: string, at: string, media: Media, name: string | undefined): ImagePart | FilePart {
  return type.startsWith('image/') ? { kind: 'image', at, media } : given({ kind: 'file', at, media, name })
}

function audioFormat(type: string): string {
  const name = type.slice('audio/'.length).replace(/^x-/, '')
  return name === 'mpeg' ? 'mp3' : name === 'wave' ? 'wav' : name
}

function readOutput(part: Json, at: string, calls: Calls): OutputPart[] {
  const signature = textAt(part, 'thoughtSignature')
  const called = member(part, 'functionCall')
  if (isObject(called)) return [readCall(called, signature, calls)]
  const said = text(part.text)
  if (said === undefined) {
    if (member(part, 'executableCode') || member(part, 'codeExecutionResult')) return [] // Its effect is in the text.
    throw cannotConvert(at, `a part with ${Object.keys(part).slice(0, 3).join(', ') || 'nothing'}`)
  }
  return readSaid(said, part.thought === true, signature)
}

function readCall(called: Json, signature: string | undefined, calls: Calls): CallPart {
  const name = text(called.name) ?? ''
  return given({
    kind: 'call',
    id: calls.call(name, text(called.id)),
    name,
    input: JSON.stringify(called.args ?? {}),
    extra: readExtra(signature),
  })
}

/** Clients wrap a tool's output, because the format requires an object. */
function readResult(response: Json, at: string, calls: Calls): ResultPart {
  const name = text(response.name) ?? ''
  const said = objectOf(response.response)
  const keys = Object.keys(said)
  const only = keys.length === 1 ? keys[0] : undefined
  const wrapped = only === 'output' || only === 'result' || only === 'error' ? said[only] : said
  const parts = objects(response.parts).map((part, k): ImagePart | FilePart => {
    const media = readMedia(part, `${at}.functionResponse.parts[${k}]`)
    if (media?.kind === 'image' || media?.kind === 'file') return media
    throw cannotConvert(`${at}.functionResponse.parts[${k}]`, 'this kind of part in the response of a tool')
  })
  return {
    kind: 'result',
    id: calls.result(name, text(response.id)),
    parts: [{ kind: 'text', text: typeof wrapped === 'string' ? wrapped : JSON.stringify(wrapped) }, ...parts],
    ...(only === 'error' ? { failed: true } : {}),
  }
}

function readTools(tool: Json, i: number): Tool[] {
  const other = Object.keys(tool).find((name) => !/^function_?declarations$/i.test(name) && tool[name] !== null)
  if (other !== undefined) throw cannotConvert(`tools[${i}].${other}`, 'a tool that runs at the vendor')
  return objectsAt(tool, 'functionDeclarations').map((entry): Tool => {
    const json = member(entry, 'parametersJsonSchema')
    const open = entry.parameters
    return given({
      kind: 'function',
      name: text(entry.name) ?? '',
      description: text(entry.description),
      schema: isObject(json) ? json : isObject(open) ? fromOpenApi(open) : undefined,
    })
  })
}

function readChoice(config: Json): ToolChoice | undefined {
  const allowed = strings(member(config, 'allowedFunctionNames')) ?? []
  switch (text(config.mode)?.toUpperCase()) {
    case 'NONE':
      return 'none'
    case 'AUTO':
      return 'auto'
    case 'VALIDATED':
      return allowed.length > 0 ? { allowed, mode: 'auto' } : 'auto'
    case 'ANY':
      if (allowed.length === 1 && allowed[0] !== undefined) return { name: allowed[0] }
      return allowed.length > 0 ? { allowed, mode: 'required' } : 'required'
  }
  return undefined
}

// Writes the canonical form as a Gemini request, for callers of another format.

/** The thinking budgets that Google's own chat endpoint uses for each effort. */
const BUDGETS: Readonly<Record<string, number>> = { minimal: 512, low: 1024, medium: 8192, high: 24_576, xhigh: 32_768 }

export function writeGeminiRequest(conversation: Conversation, _model: string, traits: TextTraits): Json {
  const contents = writeTurns(conversation.turns, traits)
  if (contents.length === 0) throw nothingSaid()
  const system = conversation.turns.flatMap((turn) =>
    turn.role === 'system' || turn.role === 'developer' ? turn.parts.map(({ text }) => ({ text })) : [],
  )
  const { toolChoice } = conversation
  const isNamed = typeof toolChoice === 'object' && 'mode' in toolChoice && toolChoice.mode === 'required'
  const tools = isNamed ? (conversation.tools ?? []) : toolsAllowed(conversation)
  const config = given({
    maxOutputTokens: conversation.tokensMax,
    temperature: conversation.temperature,
    topP: conversation.topP,
    stopSequences: conversation.stop?.filter((sequence) => sequence !== ''),
    ...writeFormat(conversation.format),
    thinkingConfig: writeThinking(conversation, traits),
  })
  const body: Json = given({
    contents,
    systemInstruction: system.length > 0 ? { parts: system } : undefined,
    tools: tools.length > 0 ? [{ functionDeclarations: tools.map(writeTool) }] : undefined,
    toolConfig: tools.length > 0 ? writeChoice(conversation) : undefined,
    generationConfig: Object.keys(config).length > 0 ? config : undefined,
  })
  for (const name of [...traits.dropParams, ...traits.dropConverted]) delete body[name]
  return body
}

function writeTurns(turns: readonly Turn[], traits: TextTraits): Json[] {
  /** The format requires the name in a result, and only the call has it. */
  const names = new Map<string, string>()
  const contents: Json[] = []
  const push = (role: string, parts: readonly Json[]) => {
    if (parts.length > 0) contents.push({ role, parts })
  }
  for (const [i, turn] of turns.entries()) {
    if (turn.role === 'user') push('user', turn.parts.flatMap(writeInput))
    else if (turn.role === 'tool') {
      // All results of a turn go into one content, before anything else.
      if (turns[i - 1]?.role === 'tool') continue
      const rest = turns.slice(i)
      const end = rest.findIndex(({ role }) => role !== 'tool')
      const results = rest
        .slice(0, end < 0 ? rest.length : end)
        .flatMap(({ role, parts }) => (role === 'tool' ? parts : []))
      push('user', [...results.map((part) => writeResult(part, names)), ...results.flatMap(writeResultMedia)])
    } else if (turn.role === 'assistant') {
      for (const part of turn.parts) if (part.kind === 'call') names.set(part.id, part.name)
      push('model', writeOutput(turn.parts, traits))
    }
  }
  return contents
}

function writeInput(part: InputPart): Json[] {
  switch (part.kind) {
    case 'text':
      return part.text === '' ? [] : [{ text: part.text }]
    case 'audio':
      return [{ inlineData: { mimeType: `audio/${part.format || 'wav'}`, data: part.base64 } }]
    case 'image':
    case 'file':
      return [writeMedia(part)]
  }
}

const BY_ENDING: Readonly<Record<string, string>> = {
  png: 'image/png',
  gif: 'image/gif',
  webp: 'image/webp',
  heic: 'image/heic',
  txt: 'text/plain',
  html: 'text/html',
  csv: 'text/csv',
  mp4: 'video/mp4',
}

function writeMedia({ kind, media, at }: ImagePart | FilePart): Json {
  if ('base64' in media) return { inlineData: { mimeType: media.type, data: media.base64 } }
  if ('fileId' in media) throw cannotConvert(at, 'a file by its id')
  const ending = /\.([a-z0-9]{1,5})(?:[?#]|$)/i.exec(media.url)?.[1]?.toLowerCase() ?? ''
  const mimeType = BY_ENDING[ending] ?? (kind === 'image' ? 'image/jpeg' : 'application/pdf')
  return { fileData: { fileUri: media.url, mimeType } }
}

function writeOutput(parts: readonly OutputPart[], traits: TextTraits): Json[] {
  const out: Json[] = []
  let called = false
  let waiting: string | undefined
  const sign = () => {
    if (waiting !== undefined) out.push({ text: '', thoughtSignature: waiting })
    waiting = undefined
  }
  for (const part of parts) {
    if (part.kind === 'call') {
      sign()
      if (part.custom) throw cannotConvert('tools', 'a call of a custom tool')
      const usual = called || traits.callExtra === undefined ? undefined : signatureOf(JSON.parse(traits.callExtra))
      called = true
      out.push(
        given({
          functionCall: { id: part.id, name: part.name, args: inputObject(part.input) },
          thoughtSignature: signatureOf(part.extra) ?? usual,
        }),
      )
    } else if (part.kind !== 'thought') {
      if (part.text === '') continue
      out.push({ text: part.text, ...(waiting === undefined ? {} : { thoughtSignature: waiting }) })
      waiting = undefined
    } else if (part.proof.google !== undefined) {
      // The vendor requires its signature back: it goes to the preceding text, else to the next one, else to an empty
      // text.
      const last = out.at(-1)
      if (last && typeof last.text === 'string') last.thoughtSignature = part.proof.google
      else waiting = part.proof.google
    }
  }
  sign()
  return out
}

function writeResult({ id, parts, failed }: ResultPart, names: ReadonlyMap<string, string>): Json {
  const said = textOf(parts, 'text')
  return { functionResponse: { id, name: names.get(id) ?? id, response: failed ? { error: said } : { output: said } } }
}

function writeResultMedia({ parts }: ResultPart): Json[] {
  return parts.filter((part): part is ImagePart | FilePart => part.kind !== 'text').map(writeMedia)
}

function writeTool(tool: Tool, i: number): Json {
  if (tool.kind === 'custom') throw cannotConvert(`tools[${i}].type`, 'a custom tool')
  return given({ name: tool.name, description: tool.description, parametersJsonSchema: tool.schema })
}

function writeChoice({ toolChoice }: Conversation): Json | undefined {
  const config = (mode: string, names?: readonly string[]) => ({
    functionCallingConfig: { mode, ...(names ? { allowedFunctionNames: names } : {}) },
  })
  if (toolChoice === undefined) return undefined
  if (toolChoice === 'none' || toolChoice === 'auto') return config(toolChoice.toUpperCase())
  if (toolChoice === 'required') return config('ANY')
  if ('name' in toolChoice) return config('ANY', [toolChoice.name])
  return toolChoice.mode === 'required' ? config('ANY', toolChoice.allowed) : config('AUTO')
}

function writeFormat(format: Conversation['format']): Json {
  if (!format) return {}
  return {
    responseMimeType: 'application/json',
    ...(format.kind === 'schema' ? { responseJsonSchema: format.schema } : {}),
  }
}

function writeThinking({ thinking, effort, summary }: Conversation, traits: TextTraits): Json | undefined {
  if (thinking?.type === 'disabled' || (thinking === undefined && effort === 'none'))
    return traits.thinkingOptional ? { thinkingBudget: 0 } : undefined
  const budget = thinking?.budget_tokens
  if (typeof budget === 'number') return { thinkingBudget: budget, includeThoughts: true }
  const shown = thinking !== undefined || summary !== undefined || effort !== undefined ? { includeThoughts: true } : {}
  if (effort === undefined || traits.effort === 'none') return Object.keys(shown).length > 0 ? shown : undefined
  if (traits.effort === 'budget') return { thinkingBudget: BUDGETS[effort] ?? BUDGETS.high, ...shown }
  return { thinkingLevel: effort === 'xhigh' || effort === 'max' ? 'high' : effort, ...shown }
}

// Converts the format's own schemas (types in capitals, `nullable`, counts as texts) to JSON Schema.

const COUNTS = ['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties']
const NAMES = [...COUNTS, 'anyOf', 'additionalProperties']

function fromOpenApi(schema: Json): Json {
  const out: Json = {}
  for (const [given, value] of Object.entries(schema)) {
    const name = NAMES.find((one) => given === inSnakeCase(one)) ?? given
    if (value === null || value === undefined || /^(?:nullable|property_?ordering)$/i.test(name)) continue
    if (name === 'type' && typeof value === 'string') out.type = value.toLowerCase()
    else if (name === 'properties' && isObject(value))
      out.properties = Object.fromEntries(
        Object.entries(value).map(([key, one]) => [key, isObject(one) ? fromOpenApi(one) : one]),
      )
    else if (COUNTS.includes(name)) out[name] = Number(value)
    else if (Array.isArray(value) && name === 'anyOf')
      out.anyOf = value.map((one) => (isObject(one) ? fromOpenApi(one) : one))
    else
      out[name] = isObject(value) && (name === 'items' || name === 'additionalProperties') ? fromOpenApi(value) : value
  }
  if (schema.nullable === true && typeof out.type === 'string') out.type = [out.type, 'null']
  return out
}

// What the endpoints of this format reject before any vendor is called.

const CANDIDATES_MAX = 8
/** Tools that run at the vendor, with the names that prices and permissions use. */
const HOSTED: Readonly<Record<string, string>> = {
  googleSearch: 'web_search',
  googleSearchRetrieval: 'web_search',
  enterpriseWebSearch: 'web_search',
  fileSearch: 'file_search',
  googleMaps: 'google_maps',
  retrieval: 'file_search',
  mcpServers: 'mcp',
}
/** Those whose uses its answers tell. */
export const COUNTED_TOOLS = ['web_search'] as const
/** Tools that the caller runs, and those that cost only the tokens that the vendor reports. */
const ADMITTED = ['functionDeclarations', 'computerUse', 'urlContext', 'codeExecution']

export function checkGemini(value: Json, traits: TextTraits): CheckedRequest {
  checkSpelling(value, '')
  checkTools(objects(value.tools), traits)
  const config = objectAt(value, 'generationConfig')
  const n = number(member(config, 'candidateCount')) ?? 1
  const nField = 'candidateCount'
  if (n > CANDIDATES_MAX) throw wrong(nField, `must be at most ${CANDIDATES_MAX}, not ${n}.`)
  return {
    stream: value.stream === true,
    includeUsage: true,
    n,
    nField,
    tokensMax: number(member(config, 'maxOutputTokens')),
    hasTools: Array.isArray(value.tools) && value.tools.length > 0,
  }
}

/** Members with the caller's own names, which may differ only in spelling. */
const OWN = /^(?:args|response|parameters|labels|(?:parameters|response)_?(?:json_?)?schema)$/i

/** Rejects a name that is present in both spellings, because the vendor would decide which one counts. */
export function checkSpelling(value: unknown, at: string): void {
  if (Array.isArray(value)) for (const [i, entry] of value.entries()) checkSpelling(entry, `${at}[${i}]`)
  if (!isObject(value)) return
  const before = at === '' ? '' : `${at}.`
  for (const name of Object.keys(value)) {
    const other = inSnakeCase(name)
    if (other !== name && Object.hasOwn(value, other))
      throw wrong(`${before}${other}`, `is "${name}" in another spelling: send one of them.`)
    if (!OWN.test(name)) checkSpelling(value[name], before + name)
  }
}

const storesRefused = (at: string) =>
  invalid(
    `"${at}": it reads stores of the operator's account at the vendor; send the documents in "contents", or ask the operator to allow "file_search" (the model's "hostedTools").`,
    at,
  )

function checkTools(tools: readonly Json[], traits: TextTraits): void {
  tools.forEach((tool, i) => {
    for (const name of Object.keys(tool)) {
      if (ADMITTED.some((local) => name === local || name === inSnakeCase(local)) || tool[name] === null) continue
      const hosted = Object.keys(HOSTED).find((one) => name === one || name === inSnakeCase(one)) ?? name
      const at = `tools[${i}].${name}`
      const refused = hostedRefusal(HOSTED[hosted] ?? name, at, traits, COUNTED_TOOLS)
      if (refused) throw HOSTED[hosted] === 'file_search' ? storesRefused(at) : refused
    }
  })
}
