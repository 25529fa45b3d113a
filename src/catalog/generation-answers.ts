// Schemas of successful answers. Vendors add members every month, so all of them allow additional members.

import { KIND_NAMES } from '../meter/kind.ts'
import { component, free, having, integer, type JsonSchema, list, nullable, object, string } from './endpoint.ts'

export const JOB_STATUSES = ['PENDING', 'CONNECT', 'PROCESSING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const
export type JobStatus = (typeof JOB_STATUSES)[number]

const requestId = { type: 'string', pattern: '^req_' } as const

export function envelope(data: unknown): JsonSchema {
  return object({ success: { const: true }, data, requestId })
}

/** What several answers have in common. */
export const COMPONENTS = {
  Model: object({
    uid: string,
    name: string,
    version: nullable(string),
    type: { type: 'string', examples: KIND_NAMES },
    pricing: {
      type: ['object', 'null'],
      properties: { unit: { const: 'credits' }, tokenTierBasis: string, tiers: list(free) },
      additionalProperties: true,
    },
  }),
  JobStatus: { type: 'string', enum: JOB_STATUSES },
  Job: having('id status inputParams outputResult createdAt startedAt completedAt', {
    id: { type: 'string', pattern: '^[0-9]+$' },
    status: component('JobStatus'),
    inputParams: free,
    outputResult: nullable(list(object({ url: list({ type: 'string', format: 'uri' }) }))),
    createdAt: { type: 'string', format: 'date-time' },
    startedAt: { type: ['string', 'null'], format: 'date-time' },
    completedAt: { type: ['string', 'null'], format: 'date-time' },
    error: having('code message', { code: integer, message: string, reason: string }),
  }),
} satisfies Record<string, JsonSchema>

export const chatAnswer = having('id object created model choices', {
  id: string,
  object: { const: 'chat.completion' },
  created: integer,
  model: string,
  choices: list(
    object({
      index: integer,
      message: having('role content', {
        role: string,
        content: nullable(string),
        refusal: nullable(string),
        reasoning_content: nullable(string),
        tool_calls: list(
          having('id', { id: string, type: string, function: object({ name: string, arguments: string }) }),
        ),
      }),
      finish_reason: nullable(string),
    }),
  ),
  usage: object({ prompt_tokens: integer, completion_tokens: integer, total_tokens: integer }),
})

export const imagesAnswer = having('created data', {
  created: integer,
  data: list(having('url', { url: { type: 'string', format: 'uri' }, b64_json: string })),
  usage: object({ input_tokens: integer, output_tokens: integer, total_tokens: integer }),
})

const part = having('type', { type: string, text: string, annotations: list(free) })

/** A Responses answer, not streamed or stored. */
export const responseAnswer = having('id object created_at model output', {
  id: string,
  object: { const: 'response' },
  created_at: integer,
  status: { type: 'string', examples: ['completed', 'incomplete', 'in_progress', 'failed'] },
  model: string,
  output: list(
    having('type', {
      type: { type: 'string', examples: ['message', 'reasoning', 'function_call'] },
      id: string,
      role: string,
      status: nullable(string),
      content: nullable(list(part)),
      call_id: string,
      name: string,
      arguments: string,
      summary: list(having('type', { type: string, text: string })),
    }),
  ),
  error: nullable(object({ code: string, message: string })),
  incomplete_details: nullable(object({ reason: string })),
  instructions: { description: 'As it was asked: a text, or items.' },
  previous_response_id: nullable(string),
  store: { type: 'boolean' },
  metadata: nullable(free as { type: string }),
  usage: nullable(
    having('input_tokens output_tokens total_tokens', {
      input_tokens: integer,
      output_tokens: integer,
      total_tokens: integer,
      output_tokens_details: free,
    }),
  ),
})

export const compactAnswer = having('object output', {
  id: string,
  object: { const: 'response.compaction' },
  created_at: { type: 'integer' },
  output: list(having('type', { type: string })),
  usage: object({ input_tokens: integer, output_tokens: integer, total_tokens: integer }),
})

export const messageAnswer = having('id type role model content stop_reason usage', {
  id: string,
  type: { const: 'message' },
  role: { const: 'assistant' },
  model: string,
  content: list(
    having('type', {
      type: { type: 'string', examples: ['text', 'thinking', 'tool_use'] },
      text: string,
      thinking: string,
      signature: string,
      id: string,
      name: string,
      input: free,
    }),
  ),
  stop_reason: nullable({
    type: 'string',
    examples: ['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'pause_turn', 'refusal'],
  }),
  stop_sequence: nullable(string),
  usage: having('input_tokens output_tokens', {
    input_tokens: integer,
    output_tokens: integer,
    cache_creation_input_tokens: nullable(integer),
    cache_read_input_tokens: nullable(integer),
  }),
})

export const modelsAnswer = envelope(list(component('Model')))

export const modelAnswer = envelope(component('Model'))

export const videoAnswer = envelope(
  object({ jobId: { type: 'string', pattern: '^[0-9]+$' }, status: component('JobStatus') }),
)

export const openaiVideoAnswer = object({
  id: { type: 'string', pattern: '^video_[0-9]+$' },
  object: { const: 'video' },
  created_at: integer,
  completed_at: nullable(integer),
  expires_at: nullable(integer),
  status: { type: 'string', enum: ['queued', 'in_progress', 'completed', 'failed'] },
  progress: integer,
  model: string,
  prompt: nullable(string),
  seconds: string,
  size: string,
  remixed_from_video_id: nullable(string),
  error: nullable(object({ code: string, message: string })),
})

export const jobsAnswer = having('success data hasMore requestId', {
  success: { const: true },
  data: list(component('Job')),
  hasMore: { type: 'boolean' },
  nextBefore: string,
  requestId,
})

export const jobAnswer = envelope(component('Job'))

export const countTokensAnswer = object({ input_tokens: integer })
export const inputTokensAnswer = object({ object: { const: 'response.input_tokens' }, input_tokens: integer })
