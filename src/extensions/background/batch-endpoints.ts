// The endpoints of files and batches, as the openai SDKs call them.
import * as z from 'zod'
import { schemaOf } from '../../catalog/body.ts'
import { boolean, having, integer, list, mapOf, nullable, object, string } from '../../catalog/endpoint.ts'
import { type Field, inPath, isId } from '../../catalog/field.ts'
import { defineEndpoints } from '../../catalog/generation.ts'

export const BATCH_STATUSES = [
  'validating',
  'failed',
  'in_progress',
  'finalizing',
  'completed',
  'expired',
  'cancelling',
  'cancelled',
] as const
export type BatchStatus = (typeof BATCH_STATUSES)[number]

const fileId = inPath('The `id` of a file of this account.', 'file-01jd0000000000000000000000')
const batchId = inPath('The `id` of a batch of this account.', 'batch_01jd0')

const paging = (most: number, initial: string) =>
  ({
    after: { kind: 'text', description: 'Only what comes after the one with this id.', example: 'file-01jd0' },
    limit: { kind: 'integer', min: 1, max: most, default: initial, description: 'How many.', example: '20' },
  }) satisfies Record<string, Field>

/** As `expires_after` and `output_expires_after` have it. */
const FILE_SECONDS_MIN = 3_600
export const FILE_SECONDS_MAX = 30 * 86_400
const range = `must be ${FILE_SECONDS_MIN} to ${FILE_SECONDS_MAX}.`
const expiry = z.looseObject({
  anchor: z.literal('created_at', 'must be created_at.'),
  seconds: z.int(range).min(FILE_SECONDS_MIN, range).max(FILE_SECONDS_MAX, range),
})
export const fileExpiry = z.object({ expires_after: expiry })

const METADATA = { members: 16, nameChars: 64, valueChars: 512 } as const
const isText = (text: unknown, most: number) =>
  typeof text === 'string' && text.length <= most && text.isWellFormed() && !text.includes('\0')
const isMetadata = (value: unknown): value is Record<string, string> =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).length <= METADATA.members &&
  Object.entries(value).every(([name, text]) => isText(name, METADATA.nameChars) && isText(text, METADATA.valueChars))

export const batchBody = z
  .looseObject({
    endpoint: z.string().describe('What each line is sent to, such as /v1/chat/completions.'),
    input_file_id: z
      .string()
      .refine(isId, 'must be the id of a file.')
      .describe('A file of this account with the purpose `batch`.'),
    completion_window: z.literal('24h', 'must be 24h.'),
    metadata: z
      .custom<Record<string, string>>(
        isMetadata,
        `must be an object of up to ${METADATA.members} texts, of up to ${METADATA.valueChars} characters each.`,
      )
      .meta({ ...mapOf({ type: 'string', maxLength: METADATA.valueChars }), maxProperties: METADATA.members })
      .nullish(),
    output_expires_after: expiry.nullish().describe('How long the results are kept; 30 days by default.'),
  })
  .meta({
    examples: [
      { input_file_id: 'file-01jd0000000000000000000000', endpoint: '/v1/chat/completions', completion_window: '24h' },
    ],
  })

const file = having('id object bytes created_at filename purpose', {
  id: { type: 'string', pattern: '^file-' },
  object: { const: 'file' },
  bytes: integer,
  created_at: integer,
  expires_at: integer,
  filename: string,
  purpose: { type: 'string', enum: ['batch', 'batch_output'] },
  status: string,
})

const moment = nullable(integer)
const batch = having('id object endpoint input_file_id completion_window status created_at request_counts', {
  id: { type: 'string', pattern: '^batch_' },
  object: { const: 'batch' },
  endpoint: string,
  input_file_id: string,
  completion_window: string,
  status: { type: 'string', enum: BATCH_STATUSES },
  errors: nullable(
    object({
      object: { const: 'list' },
      data: list(object({ code: string, line: nullable(integer), message: string, param: nullable(string) })),
    }),
  ),
  output_file_id: nullable(string),
  error_file_id: nullable(string),
  created_at: integer,
  in_progress_at: moment,
  expires_at: moment,
  finalizing_at: moment,
  completed_at: moment,
  failed_at: moment,
  expired_at: moment,
  cancelling_at: moment,
  cancelled_at: moment,
  request_counts: object({ total: integer, completed: integer, failed: integer }),
  metadata: { type: ['object', 'null'], additionalProperties: { type: 'string' } },
})
const pageOf = (item: object) =>
  object({
    object: { const: 'list' },
    data: list({ ...item }),
    first_id: nullable(string),
    last_id: nullable(string),
    has_more: boolean,
  })

const about = { tag: 'Batches', surface: 'responses', partOf: 'batches' } as const

export const BATCHES = defineEndpoints({
  files: {
    ...about,
    route: 'GET /v1/files',
    title: 'Files',
    description: 'The files of this account. An extension of the contract.',
    returns: 'A `list` of files; while `has_more` is true, `last_id` is the `after` of the next page.',
    params: {
      ...paging(1000, '100'),
      order: { kind: 'choice', allowed: ['asc', 'desc'], default: 'desc', description: 'By time.', example: 'desc' },
      purpose: { kind: 'text', description: 'Only files of this purpose.', example: 'batch' },
    },
    answer: pageOf(file),
  },
  'files/create': {
    ...about,
    route: 'POST /v1/files',
    largeBody: true,
    recorded: true,
    title: 'Upload a file',
    description:
      'Keeps a file of up to 100 MB for a batch: a JSON object in each line, with `custom_id`, `method`, `url` and `body`. An extension of the contract.',
    returns: 'The file.',
    form: true,
    body: {
      ...having('file purpose', {
        file: { type: 'string', format: 'binary', description: 'The lines.' },
        purpose: { type: 'string', enum: ['batch'] },
        'expires_after[anchor]': { type: 'string', enum: ['created_at'] },
        'expires_after[seconds]': {
          type: 'integer',
          minimum: FILE_SECONDS_MIN,
          maximum: FILE_SECONDS_MAX,
          description: 'How long it is kept; 30 days by default.',
        },
      }),
      examples: [{ file: '@lines.jsonl', purpose: 'batch' }],
    },
    answer: file,
  },
  'files/{id}': {
    ...about,
    route: 'GET /v1/files/{id}',
    title: 'A file',
    description: 'What is known of a file of this account. An extension of the contract.',
    returns: 'The file, without its content.',
    params: { id: fileId },
    answer: file,
  },
  'files/{id}/content': {
    ...about,
    route: 'GET /v1/files/{id}/content',
    title: 'The content of a file',
    description:
      'The bytes of a file of this account: of an uploaded one, or of the results of a batch. An extension of the contract.',
    returns: 'The bytes.',
    params: { id: fileId },
    gives: 'application/octet-stream',
  },
  'files/{id}/delete': {
    ...about,
    route: 'DELETE /v1/files/{id}',
    title: 'Delete a file',
    description: 'Deletes a file of this account, unless a batch still reads it (409). An extension of the contract.',
    returns: '`{id, object, deleted}`.',
    params: { id: fileId },
    answer: object({ id: string, object: { const: 'file' }, deleted: boolean }),
  },
  batches: {
    ...about,
    route: 'GET /v1/batches',
    title: 'Batches',
    description: 'The batches of this account, newest first. An extension of the contract.',
    returns: 'A `list` of batches; while `has_more` is true, `last_id` is the `after` of the next page.',
    params: paging(100, '20'),
    answer: pageOf(batch),
  },
  'batches/create': {
    ...about,
    route: 'POST /v1/batches',
    title: 'Create a batch',
    description:
      'Runs the requests of a file in the background, within the limits of the key and at the price that the models have in batches. Each line is a call of its own, charged as it is answered. An extension of the contract.',
    returns: 'The batch, which is being validated.',
    body: schemaOf(batchBody),
    answer: batch,
  },
  'batches/{id}': {
    ...about,
    route: 'GET /v1/batches/{id}',
    title: 'A batch',
    description: 'How far a batch of this account has come, and where its results are. An extension of the contract.',
    returns: 'The batch. Lines that succeeded are in `output_file_id`, all others in `error_file_id`.',
    params: { id: batchId },
    answer: batch,
  },
  'batches/{id}/cancel': {
    ...about,
    route: 'POST /v1/batches/{id}/cancel',
    title: 'Cancel a batch',
    description:
      'Starts no more of its lines. Answered lines stay available and are charged. An extension of the contract.',
    returns: 'The batch, which is `cancelling`.',
    params: { id: batchId },
    answer: batch,
  },
})
