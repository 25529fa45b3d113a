// A Responses request in neutral words, for vendors that speak another format.
import { invalid } from '../../../kernel/fault.ts'
import { given, isObject, type Json, objects, text } from '../../check.ts'
import { unpackExtra, unpackProof } from '../carry.ts'
import {
  type AnswerFormat,
  type CallPart,
  cannotConvert,
  type Dialogue,
  type InputPart,
  type Media,
  type OutputPart,
  type ResultPart,
  type TextPart,
  type Tool,
  type ToolChoice,
  type Turn,
} from '../dialogue.ts'
import { fromBase64, readMedia } from '../media.ts'
import { Namespaces } from './namespaces.ts'

const STORED = ['previous_response_id', 'conversation', 'prompt']

export function readResponsesDialogue(value: Json): Dialogue {
  for (const name of STORED)
    if (value[name] !== undefined && value[name] !== null) throw cannotConvert(name, 'content kept at a vendor')
  const reasoning = isObject(value.reasoning) ? value.reasoning : {}
  const shape = isObject(value.text) ? value.text : {}
  const namespaces = new Namespaces(value.tools)
  return given({
    turns: new ItemReader(value, namespaces).turns,
    stream: value.stream === true,
    tools: readTools(namespaces),
    toolChoice: readChoice(value.tool_choice, namespaces),
    parallelTools: value.parallel_tool_calls,
    tokensMax: value.max_output_tokens,
    temperature: value.temperature,
    topP: value.top_p,
    format: readFormat(shape.format),
    effort: reasoning.effort,
    summary: reasoning.summary,
    verbosity: shape.verbosity,
    user: value.user,
    metadata: value.metadata,
    serviceTier: value.service_tier,
    store: value.store,
    cacheKey: value.prompt_cache_key,
    safetyId: value.safety_identifier,
  }) as unknown as Dialogue
}

/** Items are finer than turns: what an assistant said, thought and called in a row is one turn. */
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
        this.say(
          this.withExtra({
            kind: 'call',
            id: text(item.call_id)!,
            name: this.nameOf(item),
            input: text(item.arguments)!,
          }),
        )
        return
      case 'custom_tool_call':
        this.say({
          kind: 'call',
          id: text(item.call_id)!,
          name: this.nameOf(item),
          input: text(item.input)!,
          custom: true,
        })
        return
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.answer({ kind: 'result', id: text(item.call_id)!, parts: readResult(item.output, `${at}.output`) })
        return
    }
    // A thought that is only referred to may stay behind; what was said and called must be here.
    if (item.type === 'item_reference' && text(item.id)?.startsWith('rs_')) return
    if (item.type === 'item_reference')
      throw invalid(
        `"${at}" refers to a stored item, but nothing is stored for this model: send items whole, with "store": false.`,
        at,
      )
    throw cannotConvert(`${at}.type`, `an item of type "${String(item.type)}"`)
  }

  private nameOf(item: Json): string {
    return this.namespaces.flat(text(item.name) ?? '', text(item.namespace))
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
    const said = [...objects(item.summary), ...objects(item.content)].map((part) => text(part.text) ?? '').join('\n\n')
    const packed = text(item.encrypted_content) || undefined // An empty one proves nothing.
    const extra = packed === undefined ? undefined : unpackExtra(packed)
    if (extra) {
      this.extras.set(extra.callId, extra.extra)
      return
    }
    const own = packed === undefined ? {} : { encrypted: { id: text(item.id) ?? '', data: packed } }
    this.say({ kind: 'thought', text: said, proof: (packed === undefined ? undefined : unpackProof(packed)) ?? own })
  }

  private withExtra(call: CallPart): CallPart {
    const extra = this.extras.get(call.id)
    return extra === undefined ? call : { ...call, extra }
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

function readPart(part: Json, at: string): InputPart {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { kind: 'text', text: text(part.text) ?? '' }
    case 'input_image':
      return given({
        kind: 'image' as const,
        at,
        media: mediaOf(part, 'image_url', at),
        detail: text(part.detail),
      }) as InputPart
    case 'input_file': {
      const data = text(part.file_data)
      const media =
        data !== undefined && !data.startsWith('data:')
          ? fromBase64(data, 'application/pdf')
          : mediaOf({ ...part, file_url: data ?? part.file_url }, 'file_url', at)
      return given({ kind: 'file' as const, at, media, name: text(part.filename) }) as InputPart
    }
    case 'input_audio': {
      const audio = isObject(part.input_audio) ? part.input_audio : {}
      return { kind: 'audio', at, base64: text(audio.data) ?? '', format: text(audio.format) ?? '' }
    }
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

function readTools({ tools }: Namespaces): Tool[] | undefined {
  const read = tools.map(({ tool, name, at }): Tool => {
    const { description } = tool
    if (tool.type === 'function')
      return given({
        kind: 'function' as const,
        name,
        description,
        schema: isObject(tool.parameters) ? tool.parameters : undefined,
        strict: typeof tool.strict === 'boolean' ? tool.strict : undefined,
      }) as Tool
    if (tool.type === 'custom')
      return given({ kind: 'custom' as const, name, description, format: tool.format }) as Tool
    throw cannotConvert(`${at}.type`, `a tool of type "${String(tool.type)}"`)
  })
  return read.length > 0 ? read : undefined
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

function readFormat(format: unknown): AnswerFormat | undefined {
  if (!isObject(format)) return undefined
  if (format.type === 'json_object') return { kind: 'object' }
  if (format.type !== 'json_schema') return undefined
  const { name, strict, description } = format
  return given({
    kind: 'schema' as const,
    name,
    schema: isObject(format.schema) ? format.schema : {},
    strict,
    description,
  }) as AnswerFormat
}
