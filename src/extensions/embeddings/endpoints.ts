// The endpoints for embeddings, rerank and moderation.
import * as z from 'zod'
import { listOf, schemaOf, wholeNumber } from '../../catalog/body.ts'
import { free, having, integer, list, loose, number, object, string } from '../../catalog/endpoint.ts'
import { defineEndpoints } from '../../catalog/generation.ts'
import { embeddingsBody } from './body.ts'

/** The largest request that vendors accept. */
const TEXTS_MAX = 1000
const texts = { most: TEXTS_MAX, of: 'entries' }

const EXAMPLE = {
  model: 'alpha-rerank-1',
  query: 'When does the gate open?',
  documents: ['It opens at dawn.', 'Soup recipes.'],
}

// Other content than text would be neither held nor charged.
const named = z.strictObject(
  { text: z.string().min(1) },
  {
    error: ({ code }) =>
      code === 'unrecognized_keys'
        ? 'must have "text" and nothing beside it: put what is to be ranked into "text".'
        : undefined,
  },
)

/** In Cohere's shape. */
const rerankV2Body = z
  .looseObject({
    model: z.string().describe('A rerank model from GET /v1/models, such as alpha-rerank-1.'),
    query: z.string().min(1).describe('What is looked for.'),
    documents: listOf(z.union([z.string().min(1), named], 'a string or {text}'), texts).describe(
      `Up to ${TEXTS_MAX} texts, as they are or as \`{text}\`.`,
    ),
    top_n: wholeNumber(1).nullish().describe('How many of the best to give; absent: all.'),
    max_tokens_per_doc: wholeNumber(1)
      .nullish()
      .describe('How much of each document the vendor reads; vendors that do not support it may reject it.'),
  })
  .meta({ examples: [EXAMPLE] })

export const rerankBody = rerankV2Body
  .extend({ return_documents: z.boolean().nullish().describe('Whether the texts come with the results.') })
  .meta({ examples: [EXAMPLE] })

export const moderationsBody = z
  .looseObject({
    model: z.string().describe('A moderation model from GET /v1/models, such as alpha-moderation-1.'),
    input: z
      .union(
        [
          z.string().min(1),
          listOf(
            z.union([z.string().min(1), z.looseObject({ type: z.string() })], 'a string or a part'),
            texts,
          ).describe('Texts, or parts of one input.'),
        ],
        'an array',
      )
      .describe(`A text, up to ${TEXTS_MAX} of them, or parts such as \`{type: "image_url"}\`, which are one input.`),
  })
  .meta({ examples: [{ model: 'alpha-moderation-1', input: ['A kind word.', 'Another one.'] }] })

const vectors = object({
  object: { const: 'list' },
  data: list(
    object({ object: { const: 'embedding' }, index: integer, embedding: { type: ['array', 'string'], items: number } }),
  ),
  model: string,
  usage: object({ prompt_tokens: integer, total_tokens: integer }),
})

const RANKED = list(object({ index: integer, relevance_score: number }))

export const EMBEDDINGS = defineEndpoints({
  embeddings: {
    route: 'POST /v1/embeddings',
    aliases: ['/alpha/embeddings', '/alpha/v1/embeddings'],
    tag: 'Text',
    surface: 'responses',
    sells: 'embedding',
    after: 'gemini/stream',
    title: 'Embeddings',
    description: 'Turns texts into vectors whose nearness is nearness in meaning. An extension of the contract.',
    returns: 'A `list` of `embedding`, one for each input and in their order, with `usage.prompt_tokens`.',
    body: schemaOf(embeddingsBody),
    answer: vectors,
  },
  rerank: {
    route: 'POST /v1/rerank',
    tag: 'Text',
    surface: 'responses',
    sells: 'rerank',
    after: 'gemini/embed_batch',
    title: 'Rerank',
    description: 'Says how well each of some documents answers a query, best first. An extension of the contract.',
    returns: '`results`: the index of each document with its `relevance_score`, best first.',
    body: schemaOf(rerankBody),
    answer: having('results', { results: RANKED, model: string }),
  },
  'rerank/v2': {
    route: 'POST /v2/rerank',
    tag: 'Text',
    surface: 'responses',
    sells: 'rerank',
    after: 'gemini/embed_batch',
    title: 'Rerank, as Cohere’s clients ask',
    description:
      'The same models at the same price, in the shape of version 2 of Cohere’s API, for its SDKs, LangChain and the AI SDK. An extension of the contract.',
    returns: '`results`: the index of each document with its `relevance_score`, best first; `meta`: what was billed.',
    body: schemaOf(rerankV2Body),
    answer: having('results meta', {
      id: string,
      results: RANKED,
      meta: loose({ api_version: object({ version: string }), billed_units: loose({ search_units: number }) }),
    }),
  },
  moderations: {
    route: 'POST /v1/moderations',
    aliases: ['/alpha/moderations', '/alpha/v1/moderations'],
    tag: 'Text',
    surface: 'responses',
    sells: 'moderation',
    after: 'gemini/embed_batch',
    title: 'Moderation',
    description: 'Says whether texts are harmful, and in which way. An extension of the contract.',
    returns: '`results`: for each input `flagged`, `categories` and `category_scores`.',
    body: schemaOf(moderationsBody),
    answer: having('model results', {
      id: string,
      model: string,
      results: list(loose({ flagged: { type: 'boolean' }, categories: free, category_scores: free })),
    }),
  },
})
