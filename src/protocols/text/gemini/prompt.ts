// What of a request becomes the prompt, in the words by which prompts are measured.
import { isObject, type Json, objects } from '../../check.ts'
import { member, objectAt, textAt } from './member.ts'

export function geminiPrompt(value: Json): readonly unknown[] {
  const tools = objects(member(value, 'tools'))
  // What runs at the vendor brings in what is not in the request.
  const hosted = tools.some((tool) => Object.keys(tool).some((name) => !/^function_?declarations$/i.test(name)))
  return [
    measured(member(value, 'systemInstruction')),
    objects(value.contents).map(measured),
    tools,
    member(objectAt(value, 'generationConfig'), 'responseSchema'),
    member(objectAt(value, 'generationConfig'), 'responseJsonSchema'),
    hosted ? { type: 'web_search_call' } : undefined,
  ]
}

function measured(content: unknown): unknown {
  if (!isObject(content)) return content
  return { role: content.role ?? 'user', content: objects(content.parts).map(measuredPart) }
}

function measuredPart(part: Json): unknown {
  const inline = member(part, 'inlineData')
  const file = member(part, 'fileData')
  const called = member(part, 'functionCall')
  const response = member(part, 'functionResponse')
  if (isObject(inline)) return media(textAt(inline, 'mimeType') ?? '', { data: inline.data })
  if (isObject(file)) return media(textAt(file, 'mimeType') ?? '', { url: textAt(file, 'fileUri') ?? '' })
  if (isObject(called)) return { input: called }
  if (isObject(response))
    return [{ input: { name: response.name, response: response.response } }, objects(response.parts).map(measuredPart)]
  return part
}

function media(type: string, held: Json): Json {
  const kind = type.startsWith('image/') ? 'image' : type.startsWith('audio/') ? 'audio' : 'file'
  return { type: kind, ...held }
}
