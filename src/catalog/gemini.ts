// Google's format for generating content: its endpoints, which have the model in their addresses.
import { type EndpointEntry, free, integer, type JsonSchema, list, loose, number, object, string } from './endpoint.ts'
import { modelInPath } from './field.ts'

const model = modelInPath('delta-3.8-flash')

/** As with Google, a single object may stand for a list of one. */
const oneOrMore = (items: JsonSchema): JsonSchema => ({ ...items, type: ['array', 'object'], items })

const parts = oneOrMore(free)
const contents: JsonSchema = {
  ...oneOrMore(object({ role: { type: 'string', enum: ['user', 'model', 'function'] }, parts }, ['parts'])),
  minItems: 1,
  description: 'The conversation: parts with text, inlineData, fileData, functionCall or functionResponse.',
}
const example = { contents: [{ role: 'user', parts: [{ text: 'Say hello in three languages.' }] }] }

const maybe = (description: string): JsonSchema => ({ ...free, type: ['object', 'null'], description })

const body: JsonSchema = {
  ...object(
    {
      contents,
      systemInstruction: { ...maybe('Instructions, as `{parts: [{text}]}`.'), properties: { parts } },
      generationConfig: maybe(
        'maxOutputTokens, temperature, topP, stopSequences, candidateCount, responseMimeType, responseSchema, responseJsonSchema, thinkingConfig …',
      ),
      tools: {
        ...oneOrMore(free),
        type: ['array', 'object', 'null'],
        description: 'Functions, as `[{functionDeclarations}]`. Tools that run at the vendor have no price.',
      },
      toolConfig: maybe('Which functions may or must be called.'),
      safetySettings: { type: ['array', 'null'], items: free, description: 'For vendors that have such settings.' },
    },
    ['contents'],
  ),
  examples: [example],
}

const answer = object(
  {
    candidates: list(
      object({ content: loose({ role: string, parts: list(free) }), finishReason: string, index: integer }, []),
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
  },
  [],
)

/** Google's SDKs in Vertex mode name a project and a place, or with a key neither. They mean nothing here. */
const VERTEX = ['projects/{project}/locations/{location}/publishers/{publisher}', 'publishers/{publisher}'].flatMap(
  (below) => [`/gemini/v1beta1/${below}`, `/gemini/v1/${below}`],
)
const othersOf = (action: string) => ['/gemini/v1', ...VERTEX].map((base) => `${base}/models/{model}:${action}`)

const shared = { tag: 'Text', surface: 'gemini', params: { model } } as const
const OPENED = 'For models whose `clientFormats` in the catalog name `gemini`. An extension of the contract.'

export const generateContent: EndpointEntry = {
  ...shared,
  route: 'POST /gemini/v1beta/models/{model}:generateContent',
  aliases: othersOf('generateContent'),
  sells: 'text',
  format: 'gemini',
  title: 'Generate content',
  description: `Google's protocol, whole. ${OPENED}`,
  returns: 'A `GenerateContentResponse`.',
  body,
  answer,
}

export const streamGenerateContent: EndpointEntry = {
  ...generateContent,
  route: 'POST /gemini/v1beta/models/{model}:streamGenerateContent',
  aliases: othersOf('streamGenerateContent'),
  streams: true,
  params: {
    model,
    alt: {
      kind: 'choice',
      allowed: ['sse', 'json'],
      description: '`sse` for server-sent events; without it a JSON array, element by element.',
      example: 'sse',
    },
  },
  title: 'Generate content as a stream',
  description: `Google's protocol, as a stream. ${OPENED}`,
  returns: 'Pieces of a `GenerateContentResponse`, of which the last have `finishReason`.',
  answer: list(answer),
}

export const countGeminiTokens: EndpointEntry = {
  ...shared,
  route: 'POST /gemini/v1beta/models/{model}:countTokens',
  aliases: othersOf('countTokens'),
  modelOf: 'gemini',
  title: 'Count the tokens of contents',
  description:
    'How many input tokens a request of Google’s protocol has. Free of charge. An extension of the contract.',
  returns: '`{totalTokens}`.',
  body: {
    ...object({ contents, generateContentRequest: maybe('A whole request, instead of contents.') }, []),
    examples: [example],
  },
  answer: object({ totalTokens: integer }),
}

/** The maximum of Google's own endpoint per request. */
export const EMBED_REQUESTS_MAX = 100

const embedModel = modelInPath('alpha-embed-3-small')
const embedFields: Readonly<Record<string, JsonSchema>> = {
  content: { ...object({ parts: list(object({ text: string })) }), description: 'What to embed: its texts, as one.' },
  outputDimensionality: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'How many numbers a vector has, where the model can shorten it.',
  },
  taskType: {
    type: ['string', 'null'],
    description: 'Accepted but not sent to the vendor: only Google’s own models support it.',
  },
  title: { type: ['string', 'null'], description: 'As `taskType`.' },
}
const vector = object({ values: list(number) })
const usageMetadata = loose({ promptTokenCount: integer })
const embedShared = { ...shared, params: { model: embedModel }, sells: 'embedding' } as const

export const embedContent: EndpointEntry = {
  ...embedShared,
  route: 'POST /gemini/v1beta/models/{model}:embedContent',
  aliases: ['/gemini/v1/models/{model}:embedContent'],
  title: 'Embed a content',
  description:
    'One vector, as Google’s protocol asks for it, at the price of /v1/embeddings. An extension of the contract.',
  returns: '`embedding.values`, and in `usageMetadata` the tokens.',
  body: { ...object(embedFields, ['content']), examples: [{ content: { parts: [{ text: 'The gate is open.' }] } }] },
  answer: object({ embedding: vector, usageMetadata }, ['embedding']),
}

export const batchEmbedContents: EndpointEntry = {
  ...embedShared,
  route: 'POST /gemini/v1beta/models/{model}:batchEmbedContents',
  aliases: ['/gemini/v1/models/{model}:batchEmbedContents'],
  title: 'Embed contents',
  description: `Up to ${EMBED_REQUESTS_MAX} vectors, as Google’s SDKs ask for them, at the price of /v1/embeddings. An extension of the contract.`,
  returns: '`embeddings`, one with `values` for each request and in their order, and in `usageMetadata` the tokens.',
  body: {
    ...object(
      {
        requests: {
          type: 'array',
          minItems: 1,
          maxItems: EMBED_REQUESTS_MAX,
          items: object({ model: { type: ['string', 'null'], description: 'As in the address.' }, ...embedFields }, [
            'content',
          ]),
        },
      },
      ['requests'],
    ),
    examples: [
      {
        requests: ['The gate is open.', 'The barrier is up.'].map((text) => ({
          model: 'models/alpha-embed-3-small',
          content: { parts: [{ text }] },
        })),
      },
    ],
  },
  answer: object({ embeddings: list(vector), usageMetadata }, ['embeddings']),
}
