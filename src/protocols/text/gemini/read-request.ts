// A request of this format in neutral words, for vendors that speak another.
import { given, isObject, type Json, objects, text } from '../../check.ts'
import {
  type CallPart,
  cannotConvert,
  type Dialogue,
  type FilePart,
  type ImagePart,
  type InputPart,
  type Media,
  type OutputPart,
  type ResultPart,
  type TextPart,
  type Tool,
  type ToolChoice,
  type Turn,
} from '../dialogue.ts'
import { fromBase64 } from '../media.ts'
import { member, objectAt, objectsAt, readExtra, readProof, textAt } from './member.ts'
import { fromOpenApi } from './schema.ts'

export function readGeminiDialogue(value: Json): Dialogue {
  const config = objectAt(value, 'generationConfig')
  const tools = objectsAt(value, 'tools').flatMap(readTools)
  const stop = member(config, 'stopSequences')
  return given({
    turns: readTurns(value),
    stream: value.stream === true,
    tools: tools.length > 0 ? tools : undefined,
    toolChoice: readChoice(objectAt(objectAt(value, 'toolConfig'), 'functionCallingConfig')),
    tokensMax: member(config, 'maxOutputTokens'),
    temperature: config.temperature,
    topP: member(config, 'topP'),
    stop: Array.isArray(stop) && stop.length > 0 ? stop : undefined,
    format: readFormat(config),
    ...readThinking(objectAt(config, 'thinkingConfig')),
  }) as unknown as Dialogue // Every member was checked by the endpoint.
}

function readThinking(config: Json): Pick<Dialogue, 'effort' | 'thinking'> {
  const level = textAt(config, 'thinkingLevel')?.toLowerCase()
  if (level !== undefined && level !== 'thinking_level_unspecified') return { effort: level }
  const budget = member(config, 'thinkingBudget')
  if (budget === 0) return { thinking: { type: 'disabled' } }
  return typeof budget === 'number' && budget > 0 ? { thinking: { type: 'enabled', budget_tokens: budget } } : {}
}

function readFormat(config: Json): Dialogue['format'] {
  const type = textAt(config, 'responseMimeType') ?? 'text/plain'
  if (type === 'text/plain') return undefined
  // What is left of an enumeration in other formats is JSON, not the bare word that the caller reads.
  if (type !== 'application/json')
    throw cannotConvert('generationConfig.responseMimeType', `the type ${JSON.stringify(type.slice(0, 60))}`)
  const json = member(config, 'responseJsonSchema')
  const open = member(config, 'responseSchema')
  if (isObject(json)) return { kind: 'schema', schema: json }
  return isObject(open) ? { kind: 'schema', schema: fromOpenApi(open) } : { kind: 'object' }
}

/** Calls may come without ids: results are then matched by name, in their order. */
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
      turns.push({
        role: 'assistant',
        parts: objects(content.parts).flatMap((part, j) => readOutput(part, `${at}[${j}]`, calls)),
      })
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
  // Files at the vendor can be read with its key alone.
  const reachable = /^https?:\/\//i.test(uri) && !/^https?:\/\/[^/]*googleapis\.com\//i.test(uri)
  return part_(type, at, reachable ? { url: uri } : { fileId: uri }, textAt(file, 'displayName'))
}

function part_(type: string, at: string, media: Media, name: string | undefined): ImagePart | FilePart {
  return type.startsWith('image/')
    ? { kind: 'image', at, media }
    : (given({ kind: 'file' as const, at, media, name }) as FilePart) // Only the name may be absent.
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
  const proof = readProof(signature)
  if (part.thought === true) return [{ kind: 'thought', text: said, proof }]
  const parts: OutputPart[] = said === '' ? [] : [{ kind: 'text', text: said }]
  return Object.keys(proof).length > 0 ? [...parts, { kind: 'thought', text: '', proof }] : parts
}

function readCall(called: Json, signature: string | undefined, calls: Calls): CallPart {
  const name = text(called.name) ?? ''
  return given({
    kind: 'call' as const,
    id: calls.call(name, text(called.id)),
    name,
    input: JSON.stringify(called.args ?? {}),
    extra: readExtra(signature),
  }) as CallPart // Only what was attached may be absent.
}

/** Clients wrap what a tool said, because the format wants an object. */
function readResult(response: Json, at: string, calls: Calls): ResultPart {
  const name = text(response.name) ?? ''
  const said = isObject(response.response) ? response.response : {}
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
  return objectsAt(tool, 'functionDeclarations').map((entry) => {
    const json = member(entry, 'parametersJsonSchema')
    const open = entry.parameters
    return given({
      kind: 'function' as const,
      name: text(entry.name) ?? '',
      description: text(entry.description),
      schema: isObject(json) ? json : isObject(open) ? fromOpenApi(open) : undefined,
    }) as Tool // What may be absent is optional there too.
  })
}

function readChoice(config: Json): ToolChoice | undefined {
  const names = member(config, 'allowedFunctionNames')
  const allowed = Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
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
