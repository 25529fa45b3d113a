// Responses that are kept, at their vendor or in the gateway: how they are asked for, followed, cancelled and deleted.
import type { EndpointEntry } from './endpoint.ts'
import { inPath, type TextField } from './field.ts'
import { inputItemsAnswer, responseAnswer, responseDeletedAnswer } from './generation-answers.ts'

const responseId = inPath('The `id` of a response that was made with `store`.', 'resp_0123456789abcdef')
const includes: TextField = {
  kind: 'text',
  description: 'What else to show, as the protocol names it; may be repeated.',
  example: 'reasoning.encrypted_content',
}

export const STORED_RESPONSES = {
  'responses/{id}': {
    route: 'GET /alpha/responses/{id}',
    aliases: ['/alpha/v1/responses/{id}', '/v1/responses/{id}'],
    tag: 'Text',
    surface: 'responses',
    streams: true,
    title: 'A stored response',
    description:
      'A response of this account that its vendor keeps, or that was made in the background. Free of charge. An extension of the contract.',
    returns: 'The `response`, whole, or its events.',
    params: {
      id: responseId,
      include: includes,
      stream: {
        kind: 'choice',
        allowed: ['true', 'false'],
        description: 'Of one in the background that was made with `stream`: its events.',
        example: 'false',
      },
      starting_after: {
        kind: 'integer',
        min: 0,
        description: 'With `stream`: only the events after this number.',
        example: '0',
      },
    },
    answer: responseAnswer,
  },
  'responses/{id}/delete': {
    route: 'DELETE /alpha/responses/{id}',
    aliases: ['/alpha/v1/responses/{id}', '/v1/responses/{id}'],
    tag: 'Text',
    surface: 'responses',
    title: 'Delete a stored response',
    description:
      'Deletes a response of this account: at its vendor, and of one in the background everything that the gateway has of it. Free of charge. An extension of the contract.',
    returns: '`{id, object, deleted}`.',
    params: { id: responseId },
    answer: responseDeletedAnswer,
  },
  'responses/{id}/cancel': {
    route: 'POST /alpha/responses/{id}/cancel',
    aliases: ['/alpha/v1/responses/{id}/cancel', '/v1/responses/{id}/cancel'],
    tag: 'Text',
    surface: 'responses',
    title: 'Cancel a response in the background',
    description:
      'Ends a response that was made with `background`: its vendor is cut off, unless it tells only at the end what it bills, and what was made by then is charged. One that has ended stays what it is. An extension of the contract.',
    returns:
      'The `response`, with `status` `cancelled`, and as soon as the charge is known with the output and the `usage` that it is for.',
    params: { id: responseId },
    answer: responseAnswer,
  },
  'responses/{id}/input_items': {
    route: 'GET /alpha/responses/{id}/input_items',
    aliases: ['/alpha/v1/responses/{id}/input_items', '/v1/responses/{id}/input_items'],
    tag: 'Text',
    surface: 'responses',
    title: 'The input of a stored response',
    description:
      'The items that a response of this account was made from. Free of charge. An extension of the contract.',
    returns: 'A `list` of items; while `has_more` is true, `last_id` is the `after` of the next page.',
    params: {
      id: responseId,
      limit: { kind: 'integer', min: 1, max: 100, description: 'How many.', example: '20' },
      order: { kind: 'choice', allowed: ['asc', 'desc'], description: 'Oldest or newest first.', example: 'asc' },
      after: { kind: 'text', description: 'Only items after the one with this id.', example: 'msg_0123' },
      include: includes,
    },
    answer: inputItemsAnswer,
  },
} satisfies Record<string, EndpointEntry>
