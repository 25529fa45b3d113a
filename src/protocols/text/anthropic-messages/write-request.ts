// Neutral words as a Messages request, for callers who speak another format.

import type { TextTraits } from '../../../catalog/traits.ts'
import { invalid } from '../../../kernel/fault.ts'
import { given, type Json } from '../../check.ts'
import {
  cannotConvert,
  type Dialogue,
  type FilePart,
  type ImagePart,
  type InputPart,
  inputObject,
  JSON_INSTRUCTION,
  type OutputPart,
  type ResultPart,
  type TextPart,
  type Tool,
  type Turn,
} from '../dialogue.ts'
import { writeThinking } from './thinking.ts'

export function writeMessagesRequest(dialogue: Dialogue, model: string, traits: TextTraits): Json {
  const messages = writeTurns(dialogue.turns)
  if (messages.length === 0)
    throw invalid('The conversation holds nothing but instructions or empty messages; say something.', 'messages')
  const stop = dialogue.stop?.filter((sequence) => sequence.trim() !== '')
  const tools = toolsAllowed(dialogue)
  const body = given({
    model,
    max_tokens: dialogue.tokensMax,
    system: writeSystem(dialogue),
    messages,
    stream: dialogue.stream ? true : undefined,
    tools: tools.length > 0 ? tools.map(writeTool) : undefined,
    tool_choice: tools.length > 0 ? writeChoice(dialogue) : undefined,
    temperature: dialogue.temperature,
    top_p: dialogue.topP,
    stop_sequences: stop && stop.length > 0 ? stop : undefined,
    ...writeThinking(dialogue, traits),
    metadata: userOf(dialogue),
    service_tier:
      dialogue.serviceTier === 'auto' ? 'auto' : dialogue.serviceTier === 'default' ? 'standard_only' : undefined,
  }) as Json
  for (const name of [...traits.dropParams, ...traits.dropConverted]) delete body[name]
  return body
}

function userOf({ user, safetyId }: Dialogue): Json | undefined {
  const id = user ?? safetyId
  return id === undefined ? undefined : { user_id: id }
}

/** This format has one place for instructions, wherever they stood. */
function writeSystem({ turns, format }: Dialogue): Json[] | undefined {
  const blocks = turns.flatMap((turn) =>
    turn.role === 'system' || turn.role === 'developer'
      ? turn.parts.filter((part) => part.text.trim() !== '').map(writeText)
      : [],
  )
  // It keeps answers to a schema, and knows none that any object fits.
  if (format?.kind === 'object') blocks.push({ type: 'text', text: JSON_INSTRUCTION })
  return blocks.length > 0 ? blocks : undefined
}

function writeText(part: TextPart): Json {
  return given({ type: 'text', text: part.text, cache_control: part.cache })
}

/** Empty blocks are refused by the vendor and mean nothing: they are left out, and so are turns without any. */
function writeTurns(turns: readonly Turn[]): Json[] {
  const messages: Json[] = []
  // The blocks of the message that holds tool results: all results of a turn belong into one, before anything else.
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
  // A single block of nothing but space counts as empty too.
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
      // A thought without the vendor's signature would be refused.
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

/** The vendor takes letters, digits, "_" and "-"; calls and results are changed alike. */
function toolId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'
}

function toolsAllowed({ tools = [], toolChoice }: Dialogue): readonly Tool[] {
  if (typeof toolChoice !== 'object' || !('allowed' in toolChoice)) return tools
  return tools.filter((tool) => toolChoice.allowed.includes(tool.name))
}

function writeTool(tool: Tool, i: number): Json {
  if (tool.kind === 'custom') throw cannotConvert(`tools[${i}].type`, 'a custom tool')
  const { name, description, schema, strict, cache } = tool
  const inputSchema = { ...(schema ?? { properties: {} }), type: 'object' }
  return given({ name, description, input_schema: inputSchema, strict, cache_control: cache })
}

function writeChoice({ toolChoice, parallelTools }: Dialogue): Json | undefined {
  const one = parallelTools === false ? { disable_parallel_tool_use: true } : {}
  if (toolChoice === undefined) return parallelTools === false ? { type: 'auto', ...one } : undefined
  if (toolChoice === 'none') return { type: 'none' }
  if (toolChoice === 'auto') return { type: 'auto', ...one }
  if (toolChoice === 'required') return { type: 'any', ...one }
  if ('allowed' in toolChoice) return { type: toolChoice.mode === 'required' ? 'any' : 'auto', ...one }
  return { type: 'tool', name: toolChoice.name, ...one }
}
