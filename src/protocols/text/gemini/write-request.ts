// Neutral words as a request of this format, for callers who speak another.
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
  type OutputPart,
  type ResultPart,
  type Tool,
  type Turn,
  textOf,
} from '../dialogue.ts'
import { signatureOf } from './member.ts'

/** What the vendor's own endpoint for chat takes an effort for. */
const BUDGETS: Readonly<Record<string, number>> = { minimal: 512, low: 1024, medium: 8192, high: 24_576, xhigh: 32_768 }

export function writeGeminiRequest(dialogue: Dialogue, _model: string, traits: TextTraits): Json {
  const contents = writeTurns(dialogue.turns, traits)
  if (contents.length === 0)
    throw invalid('The conversation holds nothing but instructions or empty messages; say something.', 'messages')
  const system = dialogue.turns.flatMap((turn) =>
    turn.role === 'system' || turn.role === 'developer' ? turn.parts.map(({ text }) => ({ text })) : [],
  )
  const tools = toolsAllowed(dialogue)
  const config = given({
    maxOutputTokens: dialogue.tokensMax,
    temperature: dialogue.temperature,
    topP: dialogue.topP,
    stopSequences: dialogue.stop?.filter((sequence) => sequence !== ''),
    ...writeFormat(dialogue.format),
    thinkingConfig: writeThinking(dialogue, traits),
  })
  const body = given({
    contents,
    systemInstruction: system.length > 0 ? { parts: system } : undefined,
    tools: tools.length > 0 ? [{ functionDeclarations: tools.map(writeTool) }] : undefined,
    toolConfig: tools.length > 0 ? writeChoice(dialogue) : undefined,
    generationConfig: Object.keys(config).length > 0 ? config : undefined,
  }) as Json // An object of what is there.
  for (const name of [...traits.dropParams, ...traits.dropConverted]) delete body[name]
  return body
}

function writeTurns(turns: readonly Turn[], traits: TextTraits): Json[] {
  /** The format wants a result's name, which only the call has. */
  const names = new Map<string, string>()
  const contents: Json[] = []
  const push = (role: string, parts: readonly Json[]) => {
    if (parts.length > 0) contents.push({ role, parts })
  }
  for (const [i, turn] of turns.entries()) {
    if (turn.role === 'user') push('user', turn.parts.flatMap(writeInput))
    else if (turn.role === 'tool') {
      // All results of a turn belong into one content, before anything else.
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
        }) as Json, // The signature may be absent.
      )
    } else if (part.kind !== 'thought') {
      if (part.text === '') continue
      out.push({ text: part.text, ...(waiting === undefined ? {} : { thoughtSignature: waiting }) })
      waiting = undefined
    } else if (part.proof.google !== undefined) {
      // The vendor wants its signature where it was: at a text, before which other formats carry it, or at an empty one.
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

function toolsAllowed({ tools = [], toolChoice }: Dialogue): readonly Tool[] {
  if (typeof toolChoice !== 'object' || !('allowed' in toolChoice) || toolChoice.mode === 'required') return tools
  return tools.filter((tool) => toolChoice.allowed.includes(tool.name))
}

function writeTool(tool: Tool, i: number): Json {
  if (tool.kind === 'custom') throw cannotConvert(`tools[${i}].type`, 'a custom tool')
  return given({ name: tool.name, description: tool.description, parametersJsonSchema: tool.schema }) as Json // The rest may be absent.
}

function writeChoice({ toolChoice }: Dialogue): Json | undefined {
  const config = (mode: string, names?: readonly string[]) => ({
    functionCallingConfig: { mode, ...(names ? { allowedFunctionNames: names } : {}) },
  })
  if (toolChoice === undefined) return undefined
  if (toolChoice === 'none' || toolChoice === 'auto') return config(toolChoice.toUpperCase())
  if (toolChoice === 'required') return config('ANY')
  if ('name' in toolChoice) return config('ANY', [toolChoice.name])
  return toolChoice.mode === 'required' ? config('ANY', toolChoice.allowed) : config('AUTO')
}

function writeFormat(format: Dialogue['format']): Json {
  if (!format) return {}
  return {
    responseMimeType: 'application/json',
    ...(format.kind === 'schema' ? { responseJsonSchema: format.schema } : {}),
  }
}

function writeThinking({ thinking, effort, summary }: Dialogue, traits: TextTraits): Json | undefined {
  if (thinking?.type === 'disabled' || (thinking === undefined && effort === 'none'))
    return traits.thinkingOptional ? { thinkingBudget: 0 } : undefined
  const budget = thinking?.budget_tokens
  if (typeof budget === 'number') return { thinkingBudget: budget, includeThoughts: true }
  const shown = thinking !== undefined || summary !== undefined || effort !== undefined ? { includeThoughts: true } : {}
  if (effort === undefined || traits.effort === 'none') return Object.keys(shown).length > 0 ? shown : undefined
  if (traits.effort === 'budget') return { thinkingBudget: BUDGETS[effort] ?? BUDGETS.high, ...shown }
  return { thinkingLevel: effort === 'xhigh' || effort === 'max' ? 'high' : effort, ...shown }
}
