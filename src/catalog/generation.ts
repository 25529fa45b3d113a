// The endpoints of models, generation, jobs and accounts: paths and parameters. Their behaviour is in the
// protocols and in the pipeline; only data endpoints are complete in their entries.

import type { KindName } from '../meter/kind.ts'
import type { EndpointEntry, EndpointSpec } from './endpoint.ts'
import { choice, inPath, integer, modelInPath, text } from './field.ts'
import {
  chatAnswer,
  compactAnswer,
  countTokensAnswer,
  inputTokensAnswer,
  JOB_STATUSES,
  jobAnswer,
  jobsAnswer,
  messageAnswer,
  modelAnswer,
  modelsAnswer,
  openaiVideoAnswer,
  responseAnswer,
  videoAnswer,
} from './generation-answers.ts'
import { imageEdits, images } from './images.ts'
import { withRouting } from './preference-body.ts'
import { chatBody, compactBody, countTokensBody, messagesBody, quoteBody, responsesBody } from './text-bodies.ts'
import { openaiVideoBody, videoBody } from './video-bodies.ts'

const jobId = inPath('The `jobId` of the answer that created the job.', '1789000000000000001')
const videoId = inPath('The `id` of the answer that created the video.', 'video_1789000000000000001')
const modelId = modelInPath('alpha-5.4')

/** Endpoints that are paid for, besides the data endpoints. */
export const PAID = defineEndpoints({
  chat: {
    route: 'POST /v1/chat-completions',
    aliases: ['/v1/chat/completions', '/alpha/chat/completions', '/alpha/v1/chat/completions'],
    tag: 'Text',
    surface: 'chat',
    sells: 'text',
    format: 'openai-chat',
    streams: true,
    presetModel: 'alpha-5.4',
    title: 'Chat completion',
    description: 'Answers a conversation with any text model, as one JSON answer or as a stream that ends with [DONE].',
    returns: 'A `chat.completion`, or with `stream: true` events of `chat.completion.chunk`.',
    body: chatBody.schema,
    answer: chatAnswer,
  },
  responses: {
    route: 'POST /alpha/responses',
    aliases: ['/alpha/v1/responses', '/v1/responses'],
    tag: 'Text',
    surface: 'responses',
    sells: 'text',
    format: 'openai-responses',
    streams: true,
    title: 'Create a response',
    description: 'The multimodal Responses protocol.',
    returns: 'A `response`, or with `stream: true` its events.',
    body: responsesBody.schema,
    answer: responseAnswer,
  },
  'responses/compact': {
    route: 'POST /alpha/responses/compact',
    aliases: ['/alpha/v1/responses/compact', '/v1/responses/compact'],
    tag: 'Text',
    surface: 'responses',
    sells: 'text',
    format: 'openai-responses',
    title: 'Compact a conversation',
    description:
      'Lets the vendor shorten a long conversation, if it supports that: the items that come back are the `input` of the next response. Priced like a response. An extension of the contract.',
    returns: 'A `response.compaction` with its `output` and `usage`.',
    body: compactBody.schema,
    answer: compactAnswer,
  },
  messages: {
    route: 'POST /beta/v1/messages',
    aliases: ['/v1/messages', '/beta/messages'],
    tag: 'Text',
    surface: 'messages',
    sells: 'text',
    format: 'anthropic-messages',
    streams: true,
    title: 'Create a message',
    description: 'The Messages protocol.',
    returns: 'A `message`, or with `stream: true` its events.',
    body: messagesBody.schema,
    answer: messageAnswer,
  },
  images,
  'images/edits': imageEdits,
  video: {
    route: 'POST /v1/video/seedance',
    tag: 'Video and jobs',
    sells: 'video',
    hidesModels: true,
    title: 'Video generation',
    description:
      'Starts a job that makes a video. First and last frames cannot be combined with references. An Idempotency-Key makes it safe to send again.',
    returns: '`data.jobId`, for GET /v1/jobs/{id}.',
    body: videoBody.schema,
    answer: videoAnswer,
  },
  'video/create': {
    route: 'POST /v1/videos',
    tag: 'Video and jobs',
    surface: 'responses',
    sells: 'video',
    hidesModels: true,
    largeBody: true,
    form: true,
    title: 'Video generation by the openai SDK',
    description: 'Starts the same job, as `videos.create()` sends it: a form, or JSON. An extension of the contract.',
    returns: 'The video, with its status; ask GET /v1/videos/{id} until it is completed or failed.',
    body: openaiVideoBody.schema,
    answer: openaiVideoAnswer,
  },
})

/** Endpoints that are free of charge. */
export const FREE = defineEndpoints({
  count_tokens: {
    route: 'POST /beta/v1/messages/count_tokens',
    aliases: ['/v1/messages/count_tokens', '/beta/messages/count_tokens'],
    tag: 'Text',
    surface: 'messages',
    modelOf: 'messages',
    title: 'Count the tokens of a message',
    description: 'How many input tokens a Messages request has. Free of charge.',
    returns: '`{input_tokens}`.',
    body: countTokensBody.schema,
    answer: countTokensAnswer,
  },
  'responses/input_tokens': {
    route: 'POST /alpha/responses/input_tokens',
    aliases: ['/alpha/v1/responses/input_tokens', '/v1/responses/input_tokens'],
    tag: 'Text',
    surface: 'responses',
    modelOf: 'responses',
    title: 'Count the tokens of a response',
    description:
      'How many input tokens a Responses request has, without the response that it continues. Free of charge. An extension of the contract.',
    returns: '`{object, input_tokens}`.',
    body: responsesBody.schema,
    answer: inputTokensAnswer,
  },
  jobs: {
    route: 'GET /v1/jobs',
    tag: 'Video and jobs',
    partOf: 'video',
    title: 'Own jobs',
    description: 'The jobs of this account, newest first. An extension of the contract.',
    returns: '`data`: an array of jobs; while `hasMore` is true, `nextBefore` is the `before` of the next page.',
    params: {
      limit: integer('How many.', 1, 100, '20'),
      before: {
        ...text('Only older jobs than this one.', '1789000000000000001'),
        pattern: '^[0-9]{1,30}$',
        form: 'the id of a job',
      },
      status: { kind: 'choice', allowed: JOB_STATUSES, description: 'Only jobs in this status.', example: 'COMPLETED' },
    },
    answer: jobsAnswer,
  },
  'jobs/{id}': {
    route: 'GET /v1/jobs/{id}',
    tag: 'Video and jobs',
    partOf: 'video',
    title: 'A job',
    description: 'Status and result of a job. Ask every 5 to 10 seconds until it is COMPLETED, FAILED or CANCELLED.',
    returns:
      '`data`: id, status, inputParams (the parameters of the creation that are known, long data URIs shortened), outputResult, createdAt, startedAt, completedAt.',
    params: { id: jobId },
    answer: jobAnswer,
  },
  'jobs/{id}/cancel': {
    route: 'DELETE /v1/jobs/{id}',
    tag: 'Video and jobs',
    partOf: 'video',
    title: 'Cancel a job',
    description: 'Cancels a job where the vendor allows it, and 409 where it does not. An extension of the contract.',
    returns: '`data`: the job.',
    params: { id: jobId },
    answer: jobAnswer,
  },
  'videos/{id}': {
    route: 'GET /v1/videos/{id}',
    tag: 'Video and jobs',
    surface: 'responses',
    partOf: 'video',
    title: 'A video, as the openai SDK reads it',
    description: 'The status of a job in the shape of `videos.retrieve()`. An extension of the contract.',
    returns: 'The video.',
    params: { id: videoId },
    answer: openaiVideoAnswer,
  },
  'videos/{id}/content': {
    route: 'GET /v1/videos/{id}/content',
    tag: 'Video and jobs',
    surface: 'responses',
    partOf: 'video',
    gives: 'video/mp4',
    title: 'The file of a video',
    description:
      'Redirects to the file of a completed video, as `videos.downloadContent()` asks for it; 409 before. An extension of the contract.',
    returns: 'The file, behind a redirect.',
    params: { id: videoId, variant: choice('Only the video itself.', ['video'], 'video') },
  },
  'jobs/{id}/events': {
    route: 'GET /v1/jobs/{id}/events',
    tag: 'Video and jobs',
    partOf: 'video',
    recorded: true,
    streams: true,
    title: 'Events of a job',
    description: 'Changes of status as server-sent events, until the job has ended. An extension of the contract.',
    returns: 'One event for each status.',
    params: { id: jobId },
  },
  models: {
    route: 'GET /v1/models',
    aliases: ['/alpha/v1/models', '/alpha/models', '/beta/v1/models'],
    tag: 'Account and models',
    title: 'Models',
    description: 'The models that this key may use, with their prices.',
    returns:
      '`data`: an array of uid, name, version, type and pricing. The aliases answer in the shapes of their SDKs.',
    answer: modelsAnswer,
  },
  'models/{id}': {
    route: 'GET /v1/models/{id}',
    aliases: ['/alpha/v1/models/{id}', '/alpha/models/{id}', '/beta/v1/models/{id}'],
    tag: 'Account and models',
    title: 'A model',
    description: 'One model of this key.',
    returns: '`data`: uid, name, version, type and pricing.',
    params: { id: modelId },
    answer: modelAnswer,
  },
  account: {
    route: 'GET /v1/account',
    tag: 'Account and models',
    title: 'The account of this key',
    description: 'Balance, held credits, limits and restrictions. An extension of the contract.',
    returns: '`data`: the account.',
  },
  quote: {
    route: 'POST /v1/quote',
    tag: 'Account and models',
    title: 'Quote',
    description: 'What a request would hold and cost, without running it. An extension of the contract.',
    returns: '`data`: the hold and the price in credits.',
    params: {
      endpoint: text(
        'The id of the endpoint that the request is meant for: `chat`, `images`, `siteanalytics/websites/visits` … Absent: it follows from the model and the fields.',
        'chat',
      ),
      batch: choice('At the price that the model has in batches.', ['true', 'false'], 'false'),
    },
    body: quoteBody,
  },
})

export type FreeId = keyof typeof FREE

/** `Sells`: nothing, unless one of them sells something. */
export function defineEndpoints<Id extends string, Sells extends KindName | undefined = undefined>(
  entries: Record<Id, EndpointEntry & { readonly sells?: Sells }>,
): Record<Id, EndpointSpec & { readonly sells?: Sells }> {
  const named = Object.entries<EndpointEntry>(entries).map(([id, { route, ...entry }]) => {
    const [method, path] = route.split(' ')
    return [id, { id, method, path, aliases: [], surface: 'native', ...withRouting(entry) }]
  })
  // The type of a route says what stands before its space.
  return Object.fromEntries(named) as Record<Id, EndpointSpec & { sells?: Sells }>
}
