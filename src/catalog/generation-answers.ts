// What successful answers look like, where the contract fixes it; the protocols' own answers are open objects.
import type { JsonSchema } from './endpoint.ts'
import { KINDS } from './kind.ts'

export const JOB_STATUSES = ['PENDING', 'CONNECT', 'PROCESSING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const
export type JobStatus = (typeof JOB_STATUSES)[number]

const integer = { type: 'integer' } as const
const string = { type: 'string' } as const

export function object(properties: Record<string, unknown>, required = Object.keys(properties)): JsonSchema {
  return { type: 'object', properties, required }
}

function envelope(data: unknown): JsonSchema {
  return object({ success: { const: true }, data, requestId: { type: 'string', pattern: '^req_' } })
}

const component = (name: keyof typeof COMPONENTS) => ({ $ref: `#/components/schemas/${name}` })

/** What several answers have in common. */
export const COMPONENTS = {
  Model: object({
    uid: string,
    name: string,
    version: { type: ['string', 'null'] },
    type: { type: 'string', examples: Object.keys(KINDS) },
    pricing: {
      type: ['object', 'null'],
      properties: {
        unit: { const: 'credits' },
        tokenTierBasis: string,
        tiers: { type: 'array', items: { type: 'object' } },
      },
    },
  }),
  JobStatus: { type: 'string', enum: JOB_STATUSES },
  Job: object(
    {
      id: { type: 'string', pattern: '^[0-9]+$' },
      status: { $ref: '#/components/schemas/JobStatus' },
      inputParams: { type: 'object' },
      outputResult: {
        type: ['array', 'null'],
        items: object({ url: { type: 'array', items: { type: 'string', format: 'uri' } } }),
      },
      createdAt: { type: 'string', format: 'date-time' },
      startedAt: { type: ['string', 'null'], format: 'date-time' },
      completedAt: { type: ['string', 'null'], format: 'date-time' },
      error: object({ code: string, message: string }),
    },
    ['id', 'status', 'inputParams', 'outputResult', 'createdAt', 'startedAt', 'completedAt'],
  ),
}

export const chatAnswer: JsonSchema = object(
  {
    id: string,
    object: { const: 'chat.completion' },
    created: integer,
    model: string,
    choices: {
      type: 'array',
      items: object({
        index: integer,
        message: object({ role: string, content: { type: ['string', 'null'] } }),
        finish_reason: { type: ['string', 'null'] },
      }),
    },
    usage: object({ prompt_tokens: integer, completion_tokens: integer, total_tokens: integer }),
  },
  ['id', 'object', 'created', 'model', 'choices'],
)

export const imagesAnswer: JsonSchema = object(
  {
    created: integer,
    data: { type: 'array', items: object({ url: { type: 'string', format: 'uri' } }) },
    usage: object({ input_tokens: integer, output_tokens: integer, total_tokens: integer }),
  },
  ['created', 'data'],
)

export const modelsAnswer: JsonSchema = envelope({ type: 'array', items: component('Model') })

export const modelAnswer: JsonSchema = envelope(component('Model'))

export const videoAnswer: JsonSchema = envelope(
  object({ jobId: { type: 'string', pattern: '^[0-9]+$' }, status: component('JobStatus') }),
)

export const jobsAnswer: JsonSchema = object(
  {
    success: { const: true },
    data: { type: 'array', items: component('Job') },
    hasMore: { type: 'boolean' },
    nextBefore: string,
    requestId: { type: 'string', pattern: '^req_' },
  },
  ['success', 'data', 'hasMore', 'requestId'],
)

export const jobAnswer: JsonSchema = envelope(component('Job'))

export const countTokensAnswer: JsonSchema = object({ input_tokens: integer })
