// The endpoints of message batches, as the anthropic SDKs call them. The batches are those of `batches.ts`.
import * as z from 'zod'
import { schemaOf } from '../../catalog/body.ts'
import { boolean, integer, list, nullable, object, string } from '../../catalog/endpoint.ts'
import { inPath } from '../../catalog/field.ts'
import { defineEndpoints } from '../../catalog/generation.ts'

export const messageBatchBody = z
  .looseObject({
    requests: z
      .array(
        z.looseObject({
          custom_id: z.string().describe('By which the result is found.'),
          params: z.looseObject({}).describe('As the body of POST /v1/messages.'),
        }),
      )
      .min(1)
      .describe('Each is a call of its own.'),
  })
  .meta({
    examples: [
      {
        requests: [
          {
            custom_id: 'one',
            params: {
              model: 'beta-sonnet-4-6',
              max_tokens: 100,
              messages: [{ role: 'user', content: 'What is a toll gate?' }],
            },
          },
        ],
      },
    ],
  })

const batch = object({
  id: string,
  type: { const: 'message_batch' },
  processing_status: { type: 'string', enum: ['in_progress', 'canceling', 'ended'] },
  request_counts: object({
    processing: integer,
    succeeded: integer,
    errored: integer,
    canceled: integer,
    expired: integer,
  }),
  created_at: string,
  expires_at: string,
  ended_at: nullable(string),
  archived_at: nullable(string),
  cancel_initiated_at: nullable(string),
  results_url: nullable(string),
})
const about = { tag: 'Batches', surface: 'messages', partOf: 'batches' } as const
const params = { id: inPath('The `id` of a batch of this account.', 'batch_01jd0') }
const at = <Rest extends string>(method: 'GET' | 'POST', rest: Rest) =>
  ({ route: `${method} /v1/messages/batches${rest}`, aliases: [`/beta/v1/messages/batches${rest}`] }) as const

export const MESSAGE_BATCHES = defineEndpoints({
  'messages/batches': {
    ...about,
    ...at('GET', ''),
    title: 'Message batches',
    description: 'The batches of messages of this account, newest first. An extension of the contract.',
    returns: '`data`; while `has_more` is true, `last_id` is the `after_id` of the next page.',
    params: {
      after_id: { kind: 'text', description: 'Only what comes after the one with this id.', example: 'batch_01jd0' },
      limit: { kind: 'integer', min: 1, max: 1000, default: '20', description: 'How many.', example: '20' },
    },
    answer: object({
      data: list({ ...batch }),
      has_more: boolean,
      first_id: nullable(string),
      last_id: nullable(string),
    }),
  },
  'messages/batches/create': {
    ...about,
    ...at('POST', ''),
    title: 'Create a message batch',
    description:
      'Runs messages in the background, as a batch of the lines that they make. Each is a call of its own. An extension of the contract.',
    returns: 'The batch.',
    body: schemaOf(messageBatchBody),
    answer: batch,
  },
  'messages/batches/{id}': {
    ...about,
    ...at('GET', '/{id}'),
    title: 'A message batch',
    description: 'How far a batch of messages has come. An extension of the contract.',
    returns: 'The batch; its results are at `results_url` when it has ended.',
    params,
    answer: batch,
  },
  'messages/batches/{id}/results': {
    ...about,
    ...at('GET', '/{id}/results'),
    title: 'The results of a message batch',
    description: 'A line of JSON for each message, in any order. An extension of the contract.',
    returns: '`{custom_id, result}` in each line; the `type` of a result is succeeded, errored, canceled or expired.',
    params,
    gives: 'application/octet-stream',
  },
  'messages/batches/{id}/cancel': {
    ...about,
    ...at('POST', '/{id}/cancel'),
    title: 'Cancel a message batch',
    description: 'Starts no more of its messages. Answered ones are charged. An extension of the contract.',
    returns: 'The batch, which is `canceling`.',
    params,
    answer: batch,
  },
})
