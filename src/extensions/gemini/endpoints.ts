// Google's format for generating content: its endpoints, which have the model in their addresses.

import {
  Body,
  boolean,
  type Described,
  list as describedList,
  number as describedNumber,
  object as describedObject,
  isAbsent,
  listCheck,
  type Members,
  mustBe,
  open,
  record,
  required,
  strings,
  text,
  wholeNumber,
  wrong,
} from '../../catalog/described.ts'
import {
  type EndpointEntry,
  free,
  having,
  integer,
  type JsonSchema,
  list,
  loose,
  number,
  object,
  string,
} from '../../catalog/endpoint.ts'
import { choice, modelInPath } from '../../catalog/field.ts'
import { defineEndpoints, FREE } from '../../catalog/generation.ts'
import { TextBody } from '../../catalog/text-bodies.ts'
import { isObject, type Json } from '../../kernel/json.ts'

const model = modelInPath('delta-3.8-flash')
const maybe = (description: string): JsonSchema => ({ ...free, type: ['object', 'null'], description })

/** The format's names may also be written in snake case. */
export const inSnakeCase = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** `maxOutputTokens` or `max_output_tokens`: vendors accept both. */
export function member(value: Json, name: string): unknown {
  return value[name] ?? value[inSnakeCase(name)] ?? undefined
}

/** Each member in both spellings, of which one is documented. */
const spelled = (members: Members): Members => ({
  ...members,
  ...Object.fromEntries(
    Object.entries(members).flatMap(([name, described]) =>
      inSnakeCase(name) === name ? [] : [[inSnakeCase(name), { ...described, schema: undefined }]],
    ),
  ),
})

/** As with Google, a single object may stand for a list of one. */
const oneOrMore = (items: JsonSchema): JsonSchema => ({ ...items, type: ['array', 'object'], items })

/** The kinds of parts; a part is exactly one of them. */
const KINDS = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse']
const isText = (value: unknown) => typeof value === 'string'

const part: Described = {
  check(value) {
    if (!isObject(value)) return mustBe('an object', value)
    if (!isAbsent(value.text) && !isText(value.text)) return mustBe('a string', value.text, 'text')
    const [kind, ...others] = KINDS.filter((name) => member(value, name) !== undefined)
    if (others.length > 0)
      return wrong(`must be one of ${KINDS.join(', ')}, not ${[kind, ...others].join(' and ')} at once.`)
    if (kind === undefined || kind === 'text') return undefined
    const inside = member(value, kind)
    if (!isObject(inside)) return mustBe('an object', inside, kind)
    if (
      kind === 'inlineData' &&
      Object.keys(inside).length > 0 &&
      !(isText(inside.data) && isText(member(inside, 'mimeType')))
    )
      return wrong('must have "mimeType" and "data", both strings.', kind)
    return kind.startsWith('function') && !isText(inside.name) ? wrong('must be a string.', `${kind}.name`) : undefined
  },
}
const partsSchema = oneOrMore(free)
const parts: Described = { schema: partsSchema, check: listCheck(part, { what: 'an array of objects' }) }

const ROLES = ['user', 'model', 'function']
const role: Described = {
  schema: { type: 'string', enum: ROLES },
  check: (value) => (isText(value) && ROLES.includes(value) ? undefined : mustBe('one of user, model', value)),
}
const content = describedObject({ role, parts: required(parts) })
const contents: JsonSchema = {
  ...oneOrMore(content.schema ?? free),
  minItems: 1,
  description: 'The conversation: parts with text, inlineData, fileData, functionCall or functionResponse.',
}
const example = { contents: [{ role: 'user', parts: [{ text: 'Say hello in three languages.' }] }] }

const withParts = (schema: JsonSchema): Described => {
  const { check } = describedObject({ parts: required(parts) })
  return { schema, check: (value) => (isObject(value) ? check?.(value, '') : mustBe('an object with "parts"', value)) }
}
const declaration = describedObject({ name: required(text()) })
const tool = describedObject(
  spelled({ functionDeclarations: { check: listCheck(declaration, { what: 'an array of objects' }) } }),
)

/** Images and sound have prices of their own, which the protocol asks for; anything else could cost anything. */
const modalities: Described = {
  check(value) {
    if (!Array.isArray(value)) return mustBe('an array of strings', value)
    const other: unknown = value.find((entry) => !/^(?:text|image|audio)$/i.test(String(entry)))
    return other === undefined ? undefined : mustBe('of TEXT, IMAGE and AUDIO', other)
  },
}

const generationConfig = open(
  'maxOutputTokens, temperature, topP, stopSequences, candidateCount, responseMimeType, responseSchema, responseJsonSchema, thinkingConfig …',
  spelled({
    temperature: describedNumber(),
    topP: describedNumber(),
    topK: describedNumber(),
    presencePenalty: describedNumber(),
    frequencyPenalty: describedNumber(),
    seed: wholeNumber(Number.MIN_SAFE_INTEGER),
    maxOutputTokens: wholeNumber(1),
    candidateCount: wholeNumber(1),
    stopSequences: strings(),
    responseModalities: modalities,
    thinkingConfig: open(undefined, spelled({ thinkingBudget: wholeNumber(-1) })),
  }),
)

const kept = 'refers to what a vendor keeps, which is not shared between accounts here; send the content itself.'

/** What is counted, and what is generated from. */
const promptMembers = {
  contents: required({
    schema: contents,
    check: listCheck(content, { what: 'an array of objects', least: 'content' }),
  }),
  systemInstruction: withParts({
    ...maybe('Instructions, as `{parts: [{text}]}`.'),
    properties: { parts: partsSchema },
  }),
}

export const geminiPrompt = new Body(example, spelled(promptMembers))

export const geminiBody = new TextBody(
  example,
  spelled({
    ...promptMembers,
    generationConfig,
    tools: {
      schema: {
        ...oneOrMore(free),
        type: ['array', 'object', 'null'],
        description: 'Functions, as `[{functionDeclarations}]`. Tools that run at the vendor have no price.',
      },
      check: listCheck(tool, { what: 'an array of objects' }),
    },
    toolConfig: record('Which functions may or must be called.'),
    safetySettings: describedList(record(), 'For vendors that have such settings.'),
    labels: record(),
    stream: boolean(),
    alt: { check: (value) => (value === 'json' || value === 'sse' ? undefined : mustBe('sse or json', value)) },
    cachedContent: { check: () => wrong(kept) },
  }),
  { forwarded: 'model serviceTier service_tier store speed inference_geo' },
)

const answer = loose({
  candidates: list(
    loose({ content: loose({ role: string, parts: list(free) }), finishReason: string, index: integer }),
  ),
  promptFeedback: free,
  usageMetadata: loose({
    promptTokenCount: integer,
    cachedContentTokenCount: integer,
    candidatesTokenCount: integer,
    thoughtsTokenCount: integer,
    totalTokenCount: integer,
  }),
  modelVersion: string,
  responseId: string,
})

/** Google's SDKs in Vertex mode name a project and a place, or with a key neither. They mean nothing here. */
const VERTEX = ['projects/{project}/locations/{location}/publishers/{publisher}', 'publishers/{publisher}'].flatMap(
  (below) => [`/gemini/v1beta1/${below}`, `/gemini/v1/${below}`],
)
const othersOf = (action: string) => ['/gemini/v1', ...VERTEX].map((base) => `${base}/models/{model}:${action}`)

const shared = { tag: 'Text', surface: 'gemini', params: { model } } as const
const OPENED = 'For models whose `clientFormats` in the catalog name `gemini`. An extension of the contract.'

const generateContent: EndpointEntry = {
  ...shared,
  after: 'messages',
  route: 'POST /gemini/v1beta/models/{model}:generateContent',
  aliases: othersOf('generateContent'),
  sells: 'text',
  format: 'gemini',
  title: 'Generate content',
  description: `Google's protocol, whole. ${OPENED}`,
  returns: 'A `GenerateContentResponse`.',
  body: geminiBody.schema,
  answer,
}

const streamGenerateContent: EndpointEntry = {
  ...generateContent,
  after: 'gemini',
  route: 'POST /gemini/v1beta/models/{model}:streamGenerateContent',
  aliases: othersOf('streamGenerateContent'),
  streams: true,
  params: {
    model,
    alt: choice('`sse` for server-sent events; without it a JSON array, element by element.', ['sse', 'json']),
  },
  title: 'Generate content as a stream',
  description: `Google's protocol, as a stream. ${OPENED}`,
  returns: 'Pieces of a `GenerateContentResponse`, of which the last have `finishReason`.',
  answer: list(answer),
}

/** The maximum of Google's own endpoint per request. */
export const EMBED_REQUESTS_MAX = 100

const embedModel = modelInPath('alpha-embed-3-small')
const embedContentSchema = {
  ...object({ parts: list(object({ text: string })) }),
  description: 'What to embed: its texts, as one.',
}
const embedMembers = spelled({
  content: required(withParts(embedContentSchema)),
  outputDimensionality: wholeNumber(1, 'How many numbers a vector has, where the model can shorten it.'),
  taskType: text('Accepted but not sent to the vendor: only Google’s own models support it.'),
  title: text('As `taskType`.'),
})
export const embedBody = new Body({ content: { parts: [{ text: 'The gate is open.' }] } }, embedMembers)
const vector = object({ values: list(number) })
const usageMetadata = loose({ promptTokenCount: integer })
const embedShared = { ...shared, params: { model: embedModel }, sells: 'embedding' } as const

const embedContent: EndpointEntry = {
  ...embedShared,
  after: 'embeddings',
  route: 'POST /gemini/v1beta/models/{model}:embedContent',
  aliases: ['/gemini/v1/models/{model}:embedContent'],
  title: 'Embed a content',
  description:
    'One vector, as Google’s protocol asks for it, at the price of /v1/embeddings. An extension of the contract.',
  returns: '`embedding.values`, and in `usageMetadata` the tokens.',
  body: embedBody.schema,
  answer: having('embedding', { embedding: vector, usageMetadata }),
}

const batchEmbedContents: EndpointEntry = {
  ...embedShared,
  after: 'gemini/embed',
  route: 'POST /gemini/v1beta/models/{model}:batchEmbedContents',
  aliases: ['/gemini/v1/models/{model}:batchEmbedContents'],
  title: 'Embed contents',
  description: `Up to ${EMBED_REQUESTS_MAX} vectors, as Google’s SDKs ask for them, at the price of /v1/embeddings. An extension of the contract.`,
  returns: '`embeddings`, one with `values` for each request and in their order, and in `usageMetadata` the tokens.',
  body: {
    ...having('requests', {
      requests: {
        type: 'array',
        minItems: 1,
        maxItems: EMBED_REQUESTS_MAX,
        items: describedObject({ model: text('As in the address.'), ...embedMembers }).schema,
      },
    }),
    examples: [
      {
        requests: ['The gate is open.', 'The barrier is up.'].map((text) => ({
          model: 'models/alpha-embed-3-small',
          content: { parts: [{ text }] },
        })),
      },
    ],
  },
  answer: having('embeddings', { embeddings: list(vector), usageMetadata }),
}

export const PAID_GEMINI = defineEndpoints({
  gemini: generateContent,
  'gemini/stream': streamGenerateContent,
  'gemini/embed': embedContent,
  'gemini/embed_batch': batchEmbedContents,
})

export const FREE_GEMINI = defineEndpoints({
  'gemini/count_tokens': {
    ...shared,
    after: 'responses/input_tokens',
    route: 'POST /gemini/v1beta/models/{model}:countTokens',
    aliases: othersOf('countTokens'),
    modelOf: 'gemini',
    title: 'Count the tokens of contents',
    description:
      'How many input tokens a request of Google’s protocol has. Free of charge. An extension of the contract.',
    returns: '`{totalTokens}`.',
    body: {
      ...loose({ contents, generateContentRequest: maybe('A whole request, instead of contents.') }),
      examples: [example],
    },
    answer: object({ totalTokens: integer }),
  },
})

/** The lists of models, also where Google's SDKs ask for them. */
export const LISTS = [FREE.models, FREE['models/{id}']].map((spec) => {
  const below = spec.path.replace('/v1/', '/')
  return { ...spec, aliases: [...spec.aliases, `/gemini/v1beta${below}`, `/gemini/v1${below}`] }
})
