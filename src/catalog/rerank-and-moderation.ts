// The endpoints that judge texts: which documents answer a question best, and what is harmful.
import { type EndpointEntry, free, integer, type JsonSchema, list, loose, number, object, string } from './endpoint.ts'

/** The most that vendors take of one request. */
export const DOCUMENTS_MAX = 1000
export const MODERATED_MAX = 1000

const texts = (description: string, most: number, other: JsonSchema): JsonSchema => ({
  type: 'array',
  minItems: 1,
  maxItems: most,
  items: { oneOf: [{ type: 'string', minLength: 1 }, other] },
  description,
})

const EXAMPLE = {
  model: 'alpha-rerank-1',
  query: 'When does the gate open?',
  documents: ['It opens at dawn.', 'Soup recipes.'],
}

/** What both shapes of a request have. */
const RERANK_FIELDS = {
  model: { type: 'string', description: 'A rerank model from GET /v1/models, such as alpha-rerank-1.' },
  query: { type: 'string', minLength: 1, description: 'What is looked for.' },
  documents: texts(`Up to ${DOCUMENTS_MAX} texts, as they are or as \`{text}\`.`, DOCUMENTS_MAX, {
    ...object({ text: { type: 'string', minLength: 1 } }),
    additionalProperties: false,
  }),
  top_n: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'How many of the best to give; absent: all.',
  },
  max_tokens_per_doc: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'How much of each document the vendor reads; vendors that do not know it may refuse it.',
  },
}
const RANKED = list(object({ index: integer, relevance_score: number }))

export const rerank: EndpointEntry = {
  route: 'POST /v1/rerank',
  tag: 'Text',
  surface: 'responses',
  sells: 'rerank',
  title: 'Rerank',
  description: 'Says how well each of some documents answers a query, best first. An extension of the contract.',
  returns: '`results`: the index of each document with its `relevance_score`, best first.',
  body: {
    ...object(
      {
        ...RERANK_FIELDS,
        return_documents: { type: ['boolean', 'null'], description: 'Whether the texts come with the results.' },
      },
      ['model', 'query', 'documents'],
    ),
    examples: [EXAMPLE],
  },
  answer: object({ results: RANKED, model: string }, ['results']),
}

export const rerankV2: EndpointEntry = {
  route: 'POST /v2/rerank',
  tag: 'Text',
  surface: 'responses',
  sells: 'rerank',
  title: 'Rerank, as Cohere’s clients ask',
  description:
    'The same models at the same price, in the shape of version 2 of Cohere’s API, for its SDKs, LangChain and the AI SDK. An extension of the contract.',
  returns: '`results`: the index of each document with its `relevance_score`, best first; `meta`: what was billed.',
  body: { ...object(RERANK_FIELDS, ['model', 'query', 'documents']), examples: [EXAMPLE] },
  answer: object(
    {
      id: string,
      results: RANKED,
      meta: loose({ api_version: object({ version: string }), billed_units: loose({ search_units: number }) }),
    },
    ['results', 'meta'],
  ),
}

export const moderations: EndpointEntry = {
  route: 'POST /v1/moderations',
  aliases: ['/alpha/moderations', '/alpha/v1/moderations'],
  tag: 'Text',
  surface: 'responses',
  sells: 'moderation',
  title: 'Moderation',
  description: 'Says whether texts are harmful, and in which way. An extension of the contract.',
  returns: '`results`: for each input `flagged`, `categories` and `category_scores`.',
  body: {
    ...object(
      {
        model: { type: 'string', description: 'A moderation model from GET /v1/models, such as alpha-moderation-1.' },
        input: {
          oneOf: [
            { type: 'string', minLength: 1 },
            texts('Texts, or parts of one input.', MODERATED_MAX, object({ type: string })),
          ],
          description: `A text, up to ${MODERATED_MAX} of them, or parts such as \`{type: "image_url"}\`, which are one input.`,
        },
      },
      ['model', 'input'],
    ),
    examples: [{ model: 'alpha-moderation-1', input: ['A kind word.', 'Another one.'] }],
  },
  answer: object(
    {
      id: string,
      model: string,
      results: list(loose({ flagged: { type: 'boolean' }, categories: free, category_scores: free })),
    },
    ['model', 'results'],
  ),
}
