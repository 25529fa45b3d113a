// Neutral words as a Responses request, for callers who speak another format.

import type { TextTraits } from '../../../catalog/traits.ts'
import { given, type Json } from '../../check.ts'
import {
  cannotConvert,
  type Dialogue,
  type InputPart,
  type OutputPart,
  type ResultPart,
  type Tool,
  type ToolChoice,
  type Turn,
} from '../dialogue.ts'
import { toDataUri } from '../media.ts'

/** `stop`, penalties, seeds and the like have no place in this format and are left out, as the contract says. */
export function writeResponsesRequest(dialogue: Dialogue, model: string, traits: TextTraits): Json {
  const { turns } = dialogue
  // Leading instructions have a field of their own; later ones keep their place among the items.
  let leading = 0
  while (turns[leading]?.role === 'system' || turns[leading]?.role === 'developer') leading++
  const instructions = turns
    .slice(0, leading)
    .flatMap((turn) => (turn.role === 'system' || turn.role === 'developer' ? turn.parts.map((part) => part.text) : []))
    .filter((text) => text !== '')
    .join('\n\n')
  const custom = customCalls(turns)
  const body = given({
    model,
    instructions: instructions === '' ? undefined : instructions,
    input: turns.slice(leading).flatMap((turn) => writeTurn(turn, custom)),
    stream: dialogue.stream ? true : undefined,
    store: dialogue.store ?? false,
    tools: dialogue.tools?.map(writeTool),
    tool_choice: writeChoice(dialogue.toolChoice),
    parallel_tool_calls: dialogue.parallelTools,
    max_output_tokens: dialogue.tokensMax,
    temperature: dialogue.temperature,
    top_p: dialogue.topP,
    text: writeText(dialogue),
    reasoning: writeReasoning(dialogue),
    include: traits.encryptedReasoning ? ['reasoning.encrypted_content'] : undefined,
    metadata: dialogue.metadata,
    user: dialogue.user,
    service_tier: dialogue.serviceTier,
    prompt_cache_key: dialogue.cacheKey,
    safety_identifier: dialogue.safetyId,
  }) as Json
  for (const name of [...traits.dropParams, ...traits.dropConverted]) delete body[name]
  return body
}

/** Which results answer custom tools: their items are of another type. */
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
      // A thought is only welcome together with what followed it.
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

function writeTool(tool: Tool): Json {
  const { name, description } = tool
  if (tool.kind === 'custom') return given({ type: 'custom', name, description, format: tool.format })
  // This format makes schemas strict unless told otherwise, which the others do not.
  return given({
    type: 'function',
    name,
    description,
    parameters: tool.schema ?? { type: 'object', properties: {} },
    strict: tool.strict ?? false,
  })
}

function writeChoice(choice: ToolChoice | undefined): unknown {
  if (choice === undefined || typeof choice === 'string') return choice
  if ('allowed' in choice)
    return {
      type: 'allowed_tools',
      mode: choice.mode,
      tools: choice.allowed.map((name) => ({ type: 'function', name })),
    }
  return { type: choice.custom ? 'custom' : 'function', name: choice.name }
}

function writeText({ format, verbosity }: Dialogue): Json | undefined {
  const written =
    format?.kind === 'object'
      ? { type: 'json_object' }
      : format &&
        given({
          type: 'json_schema',
          name: format.name ?? 'answer',
          schema: format.schema,
          strict: format.strict,
          description: format.description,
        })
  return written === undefined && verbosity === undefined ? undefined : given({ format: written, verbosity })
}

/** How hard to think, from an effort or from a budget of thinking tokens. */
function writeReasoning({ effort, summary, thinking }: Dialogue): Json | undefined {
  const budget = Number(thinking?.budget_tokens)
  const wanted = effort ?? (budget > 0 ? (budget <= 2_048 ? 'low' : budget <= 12_000 ? 'medium' : 'high') : undefined)
  // A caller who asks to think in blocks wants to see the thoughts.
  const shown = summary ?? (thinking?.type === 'enabled' || thinking?.type === 'adaptive' ? 'auto' : undefined)
  return wanted === undefined && shown === undefined ? undefined : given({ effort: wanted, summary: shown })
}
