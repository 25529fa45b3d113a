// What of a request becomes the prompt, in the words by which prompts are measured.
import { isObject, type Json, objects } from '../../check.ts'
import { JSON_INSTRUCTION } from '../dialogue.ts'
import { member, objectAt, textAt } from './member.ts'

export function geminiPrompt(value: Json): readonly unknown[] {
  const tools = objects(member(value, 'tools'))
  const config = objectAt(value, 'generationConfig')
  // What runs at the vendor brings in what is not in the request.
  const hosted = tools.some((tool) => Object.keys(tool).some((name) => !/^function_?declarations$/i.test(name)))
  return [
    measured(member(value, 'systemInstruction')),
    objects(value.contents).map(measured),
    { input: tools },
    { input: [member(config, 'responseSchema'), member(config, 'responseJsonSchema')] },
    textAt(config, 'responseMimeType') === 'application/json' ? JSON_INSTRUCTION : undefined,
    hosted ? { type: 'web_search_call' } : undefined,
  ]
}

function measured(content: unknown): unknown {
  if (!isObject(content)) return content
  return { role: content.role ?? 'user', content: objects(content.parts).map(measuredPart) }
}

/** Nothing here has a type: what is no media is the caller's own JSON, all of which is covered. */
function measuredPart(part: unknown): unknown {
  if (!isObject(part)) return own(part)
  const { inlineData, inline_data, fileData, file_data, functionResponse, function_response, ...rest } = part
  return [
    { input: rest },
    media(inlineData ?? inline_data),
    media(fileData ?? file_data),
    result(functionResponse ?? function_response),
  ]
}

function result(response: unknown): unknown {
  if (!isObject(response) || !Array.isArray(response.parts)) return own(response)
  const { parts, ...rest } = response
  return [{ input: rest }, parts.map(measuredPart)]
}

const own = (value: unknown) => (value === undefined || value === null ? undefined : { input: value })

function media(held: unknown): unknown {
  if (!isObject(held)) return own(held)
  const { data, fileUri, file_uri, ...rest } = held
  const type = textAt(held, 'mimeType') ?? ''
  const kind = type.startsWith('image/') ? 'image' : type.startsWith('audio/') ? 'audio' : 'file'
  return [{ type: kind, data, url: fileUri ?? file_uri }, { input: rest }]
}
