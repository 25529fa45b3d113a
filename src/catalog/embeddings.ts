// The embeddings endpoint: what it takes and what it gives.
import { type EndpointEntry, type JsonSchema, object } from './endpoint.ts'

const tokens = (description: string): JsonSchema => ({
  type: 'array',
  minItems: 1,
  items: { type: 'integer', minimum: 0 },
  description,
})

const body: JsonSchema = {
  type: 'object',
  required: ['model', 'input'],
  additionalProperties: true,
  examples: [{ model: 'alpha-embed-3-small', input: ['The gate is open.', 'The barrier is up.'] }],
  properties: {
    model: { type: 'string', description: 'An embedding model from GET /v1/models, such as alpha-embed-3-small.' },
    input: {
      description: 'What to embed: one input, or up to 2048 of them. None may be empty.',
      oneOf: [
        { type: 'string', minLength: 1, description: 'One text.' },
        { type: 'array', minItems: 1, maxItems: 2048, items: { type: 'string', minLength: 1 }, description: 'Texts.' },
        tokens('One text as tokens.'),
        { type: 'array', minItems: 1, maxItems: 2048, items: tokens('A text as tokens.'), description: 'Such texts.' },
      ],
    },
    dimensions: {
      type: ['integer', 'null'],
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'How many numbers a vector has, where the model can shorten it.',
    },
    encoding_format: {
      type: ['string', 'null'],
      enum: ['float', 'base64', null],
      default: 'float',
      description: 'base64: the vector as little-endian 32-bit floats.',
    },
    user: { type: ['string', 'null'], description: 'Your own name for the end user.' },
  },
}

const answer = object({
  object: { const: 'list' },
  data: {
    type: 'array',
    items: object({
      object: { const: 'embedding' },
      index: { type: 'integer' },
      embedding: { type: ['array', 'string'], items: { type: 'number' } },
    }),
  },
  model: { type: 'string' },
  usage: object({ prompt_tokens: { type: 'integer' }, total_tokens: { type: 'integer' } }),
})

export const embeddings: EndpointEntry = {
  route: 'POST /v1/embeddings',
  aliases: ['/alpha/embeddings', '/alpha/v1/embeddings'],
  tag: 'Text',
  surface: 'responses',
  sells: 'embedding',
  title: 'Embeddings',
  description: 'Turns texts into vectors whose nearness is nearness in meaning. An extension of the contract.',
  returns: 'A `list` of `embedding`, one for each input and in their order, with `usage.prompt_tokens`.',
  body,
  answer,
}
