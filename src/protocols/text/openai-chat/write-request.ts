// Neutral words as a chat request, for callers who speak another format.

import type { TextTraits } from '../../../catalog/traits.ts'
import { given, type Json } from '../../check.ts'
import {
  cannotConvert,
  type Dialogue,
  type ImagePart,
  type InputPart,
  type Media,
  type ResultPart,
  type Tool,
  type ToolChoice,
  type Turn,
  textOf,
} from '../dialogue.ts'
import { toDataUri } from '../media.ts'
import { chooseByWord } from './tool-choice.ts'

export function writeChatRequest(dialogue: Dialogue, model: string, traits: TextTraits): Json {
  const tokensField = traits.tokensField === 'max_completion_tokens' ? 'max_completion_tokens' : 'max_tokens'
  const body = given({
    model,
    messages: dialogue.turns.flatMap((turn) => writeTurn(turn, traits)),
    stream: dialogue.stream ? true : undefined,
    stream_options: dialogue.stream ? { include_usage: true } : undefined,
    tools: dialogue.tools?.map(writeTool),
    tool_choice: writeChoice(dialogue.toolChoice),
    parallel_tool_calls: dialogue.parallelTools,
    [tokensField]: dialogue.tokensMax,
    temperature: dialogue.temperature,
    top_p: dialogue.topP,
    stop: dialogue.stop,
    response_format: writeFormat(dialogue.format),
    reasoning_effort: dialogue.effort,
    // Where thinking is the default, only switching it off needs saying.
    thinking: traits.thinkingObject && dialogue.thinking?.type === 'disabled' ? { type: 'disabled' } : undefined,
    verbosity: dialogue.verbosity,
    user: dialogue.user,
    metadata: dialogue.metadata,
    service_tier: dialogue.serviceTier,
    store: dialogue.store === true ? true : undefined,
    prompt_cache_key: dialogue.cacheKey,
    safety_identifier: dialogue.safetyId,
  }) as Json
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
    case 'developer':
      return [
        {
          role: traits.developerRole ? turn.role : 'system',
          content: turn.parts.map((part) => part.text).join('\n\n'),
        },
      ]
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
      // These families refuse a turn with calls that comes back without its reasoning; an empty one is accepted.
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

/** Tool messages hold text only: pictures follow in a user's message after all of them. */
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

function writeTool(tool: Tool): Json {
  if (tool.kind === 'custom')
    return { type: 'custom', custom: given({ name: tool.name, description: tool.description, format: tool.format }) }
  const { name, description, schema, strict } = tool
  return {
    type: 'function',
    function: given({ name, description, parameters: schema ?? { type: 'object', properties: {} }, strict }),
  }
}

function writeChoice(choice: ToolChoice | undefined): unknown {
  if (choice === undefined || typeof choice === 'string') return choice
  if ('allowed' in choice)
    return {
      type: 'allowed_tools',
      allowed_tools: {
        mode: choice.mode,
        tools: choice.allowed.map((name) => ({ type: 'function', function: { name } })),
      },
    }
  return choice.custom
    ? { type: 'custom', custom: { name: choice.name } }
    : { type: 'function', function: { name: choice.name } }
}

function writeFormat(format: Dialogue['format']): Json | undefined {
  if (!format) return undefined
  if (format.kind === 'object') return { type: 'json_object' }
  const { name, schema, strict, description } = format
  return { type: 'json_schema', json_schema: given({ name: name ?? 'answer', schema, strict, description }) }
}
