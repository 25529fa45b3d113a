// A Messages request in neutral words, for vendors that speak another format.

import { given, isObject, type Json, objects, text } from '../../check.ts'
import { unpackExtra, unpackProof } from '../carry.ts'
import {
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
import { fromBase64, readMedia } from '../media.ts'
import { threadUnsupported } from '../vendor-side.ts'

export function readMessagesDialogue(value: Json): Dialogue {
  if (isObject(value.thread)) throw threadUnsupported('this model keeps no threads')
  if (objects(value.mcp_servers).length > 0) throw cannotConvert('mcp_servers', 'a remote tool server')
  const choice = isObject(value.tool_choice) ? value.tool_choice : {}
  const config = isObject(value.output_config) ? value.output_config : {}
  const metadata = isObject(value.metadata) ? value.metadata : {}
  const format = isObject(config.format) ? config.format : {}
  return given({
    turns: readTurns(value),
    stream: value.stream === true,
    tools: readTools(value.tools),
    toolChoice: readChoice(choice),
    parallelTools: choice.disable_parallel_tool_use === true ? false : undefined,
    tokensMax: value.max_tokens,
    temperature: value.temperature,
    topP: value.top_p,
    stop: Array.isArray(value.stop_sequences) && value.stop_sequences.length > 0 ? value.stop_sequences : undefined,
    format:
      format.type === 'json_schema'
        ? { kind: 'schema', schema: isObject(format.schema) ? format.schema : {}, strict: true }
        : undefined,
    effort: config.effort,
    thinking: value.thinking,
    user: text(metadata.user_id),
    serviceTier: value.service_tier === 'standard_only' ? 'default' : value.service_tier,
  }) as unknown as Dialogue
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
  return objects(system).map(
    (block) => given({ kind: 'text' as const, text: text(block.text) ?? '', cache: block.cache_control }) as TextPart,
  )
}

/** Results answer the turn before, so they come first, as a turn of their own. */
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
      return given({ kind: 'text' as const, text: text(block.text) ?? '', cache }) as TextPart
    case 'image':
      return given({ kind: 'image' as const, at, media: readSource(block.source, at), cache }) as ImagePart
    case 'document': {
      const source = isObject(block.source) ? block.source : {}
      if (source.type === 'text') return { kind: 'text', text: text(source.data) ?? '' }
      return given({
        kind: 'file' as const,
        at,
        media: readSource(source, at),
        name: text(block.title),
        cache,
      }) as FilePart
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

function readSource(source: unknown, at: string): Media {
  if (isObject(source)) {
    if (source.type === 'base64') return fromBase64(text(source.data) ?? '', text(source.media_type) ?? '')
    if (source.type === 'url') return readMedia(text(source.url) ?? '', `${at}.source.url`)
    if (source.type === 'file') return { fileId: text(source.file_id) ?? '' }
  }
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
        const extra = extras.get(id)
        parts.push({
          kind: 'call',
          id,
          name: text(block.name) ?? '',
          input: JSON.stringify(block.input ?? {}),
          ...(extra === undefined ? {} : { extra }),
        })
        break
      }
      // What tools of another vendor's server did stays behind; its effect is in the text.
    }
  }
  return parts
}

function readTools(tools: unknown): Tool[] | undefined {
  const read = objects(tools).map((tool, i) => {
    if (tool.type !== undefined && tool.type !== null && tool.type !== 'custom')
      throw cannotConvert(`tools[${i}].type`, `a tool of type "${String(tool.type)}"`)
    return given({
      kind: 'function' as const,
      name: text(tool.name) ?? '',
      description: text(tool.description),
      schema: isObject(tool.input_schema) ? tool.input_schema : undefined,
      strict: typeof tool.strict === 'boolean' ? tool.strict : undefined,
      cache: tool.cache_control,
    }) as Tool
  })
  return read.length > 0 ? read : undefined
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
