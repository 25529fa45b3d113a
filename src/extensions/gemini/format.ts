// Google's format, on both sides.

import { edited, isObject, type Json, type JsonText, objectOf, objects } from '../../kernel/json.ts'
import { SEARCH_MEMBER } from '../../protocols/text/extras.ts'
import type { Place, TextFormat } from '../../protocols/text/format.ts'
import { membersOf } from '../../protocols/text/request-members.ts'
import {
  ArrayRelay,
  GeminiObserver,
  GeminiReader,
  GeminiWriter,
  passGemini,
  passGeminiAnswer,
  readGeminiReply,
  rollUpGemini,
  unrollGemini,
  writeGeminiReply,
} from './answer.ts'
import { geminiBody, inSnakeCase } from './endpoints.ts'
import { geminiPrompt, hasVendorTools } from './member.ts'
import { COUNTED_TOOLS, checkGemini, readGeminiConversation, readGeminiFormat, writeGeminiRequest } from './request.ts'
import { surface } from './surface.ts'

const inBoth = (names: readonly string[]) => names.flatMap((name) => [name, inSnakeCase(name)])
/** Members that select a model or a location without a price here. */
const SELECTING = inBoth(['routingConfig', 'modelSelectionConfig', 'modelConfig'])

const configOf = (value: Json) => objectOf(value.generationConfig ?? value.generation_config)

export const geminiFormat: TextFormat = {
  name: 'gemini',
  auth: { header: 'x-goog-api-key' },
  surface,
  members: membersOf(
    { forwarded: geminiBody.forwarded, limits: [] },
    {
      refused: inBoth(['modelArmorConfig', 'continuationToken', 'automaticContinuation']),
      inside: (value) => SELECTING.map((name) => [`generationConfig.${name}`, configOf(value)[name]]),
    },
  ),
  extras: {
    tools: COUNTED_TOOLS,
    toolOf: (tool) => (Object.keys(tool).some((name) => SEARCH_MEMBER.test(name)) ? 'web_search' : undefined),
    media: {
      member: 'responseModalities',
      wanted: (value) => ({ modalities: configOf(value).responseModalities ?? configOf(value).response_modalities }),
      bound,
    },
  },
  settings: (value) => value.generationConfig ?? value.generation_config,
  address: ({ baseUrl, model }, stream) =>
    `${baseUrl}/models/${encodeURIComponent(model)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  body: geminiBody,
  check: checkGemini,
  smallest: (question, tokens) => ({
    contents: [{ parts: [{ text: question }] }],
    generationConfig: { maxOutputTokens: tokens },
  }),
  lenient: ({ value }) => [...listsOf(value)],
  runsElsewhere: hasVendorTools,
  wanted: (request) => readGeminiFormat(configOf(request)),
  texts: ({ candidates }) =>
    objects(candidates).map(({ content }) =>
      objects(objectOf(content).parts).flatMap((part): Place[] =>
        part.thought === true || typeof part.text !== 'string' ? [] : [[part, 'text']],
      ),
    ),
  prompt: geminiPrompt,
  pass: passGemini,
  passAnswer: passGeminiAnswer,
  observe: (uid, paidRequest) => new GeminiObserver(uid, paidRequest),
  readConversation: readGeminiConversation,
  writeReply: writeGeminiReply,
  writer: (facts) => new GeminiWriter(facts),
  framed: (relay, request) => (request.alt === 'sse' ? relay : new ArrayRelay(relay)),
  writeRequest: writeGeminiRequest,
  readReply: readGeminiReply,
  reader: () => new GeminiReader(),
  unroll: unrollGemini,
  rollUp: rollUpGemini,
}

function bound(json: JsonText, tokensMost: number): JsonText {
  const name = json.member('generationConfig') ? 'generationConfig' : 'generation_config'
  const config = objectOf(json.value[name])
  if ((config.maxOutputTokens ?? config.max_output_tokens ?? undefined) !== undefined) return json
  const spelling = name === 'generationConfig' ? 'maxOutputTokens' : 'max_output_tokens'
  return edited(json, { replace: { [name]: JSON.stringify({ ...config, [spelling]: tokensMost }) } })
}

const DECLARED = ['functionDeclarations', 'function_declarations']

/** A tool with a list of functions, where it had one function alone. */
function withFunctions(tool: unknown): unknown {
  const name = DECLARED.find((one) => isObject(tool) && isObject(tool[one]))
  return name !== undefined && isObject(tool) ? { ...tool, [name]: [tool[name]] } : tool
}

/** Google reads a single object where a list is documented. */
export function* listsOf(value: Json): Generator<[name: string, value: unknown]> {
  const list = (one: unknown) => (isObject(one) ? [one] : one)
  const isLoose = (content: unknown) => isObject(content) && isObject(content.parts)
  const withParts = (content: unknown) =>
    isLoose(content) && isObject(content) ? { ...content, parts: list(content.parts) } : content
  const { tools } = value
  const isLone = (tool: unknown) => isObject(tool) && DECLARED.some((name) => isObject(tool[name]))
  if (isObject(tools) || (Array.isArray(tools) && tools.some(isLone)))
    yield ['tools', [tools].flat().map(withFunctions)]
  for (const name of ['systemInstruction', 'system_instruction'])
    if (isLoose(value[name])) yield [name, withParts(value[name])]
  const { contents } = value
  if (isObject(contents)) yield ['contents', [withParts(contents)]]
  else if (Array.isArray(contents) && contents.some(isLoose)) yield ['contents', contents.map(withParts)]
}
