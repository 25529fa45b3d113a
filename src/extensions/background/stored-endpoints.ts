// Conversations that a vendor stores, in the form of the openai SDKs, and stored responses, at their vendor or in the
// gateway: paths, bodies and answers.
import { having, type JsonSchema, list, nullable } from '../../catalog/endpoint.ts'
import { choice, inPath, integer, text } from '../../catalog/field.ts'
import { defineEndpoints } from '../../catalog/generation.ts'
import { responseAnswer } from '../../catalog/generation-answers.ts'

const string = { type: 'string' } as const
const object = (properties: JsonSchema, required: readonly string[] = Object.keys(properties)): JsonSchema => ({
  type: 'object',
  properties,
  required,
})
const metadata: JsonSchema = {
  type: ['object', 'null'],
  maxProperties: 16,
  additionalProperties: { type: 'string', maxLength: 512 },
  description: 'Up to 16 notes of your own.',
}
const items: JsonSchema = {
  type: 'array',
  items: { type: 'object', additionalProperties: true },
  maxItems: 20,
  description: 'Items as `input` of a response has them.',
}
const message = { type: 'message', role: 'user', content: 'My name is Ada.' }

const conversation = object({
  id: string,
  object: { const: 'conversation' },
  created_at: { type: 'integer' },
  metadata: { type: ['object', 'null'], additionalProperties: { type: 'string' } },
})
const item = object({ type: string, id: string, role: string }, ['type'])

const responseDeleted = having('id object deleted', { id: string, object: string, deleted: { type: 'boolean' } })
const itemsAnswer = having('object data has_more', {
  object: { const: 'list' },
  data: list(having('type', { type: string, id: string, role: string })),
  first_id: nullable(string),
  last_id: nullable(string),
  has_more: { type: 'boolean' },
})

const id = inPath('The `id` of a conversation of this account.', 'conv_0123456789abcdef')
const itemId = inPath('The `id` of an item of the conversation.', 'msg_0123456789abcdef')
const include = text('What else to show, as the protocol names it; may be repeated.', 'reasoning.encrypted_content')
/** Of a list of items. */
const paging = {
  limit: { ...integer('How many.', 1, 100), example: '20' },
  order: choice('Oldest or newest first.', ['asc', 'desc']),
  after: text('Only items after the one with this id.', 'msg_0123'),
  include,
}

const shared = { tag: 'Text', surface: 'responses', recorded: true } as const
/** Each endpoint has three paths, like responses. */
const at = (below: string) =>
  ({
    ...shared,
    partOf: 'responses',
    aliases: [`/alpha/conversations${below}`, `/alpha/v1/conversations${below}`],
  }) as const
const FREE = 'Free of charge. An extension of the contract.'

const responseId = inPath('The `id` of a response that was made with `store`.', 'resp_0123456789abcdef')

const stored = (below: string) => ({
  ...shared,
  aliases: [`/alpha/v1/responses/{id}${below}`, `/v1/responses/{id}${below}`],
})

export const STORED = defineEndpoints({
  'responses/{id}': {
    route: 'GET /alpha/responses/{id}',
    ...stored(''),
    streams: true,
    title: 'A stored response',
    description:
      'A response of this account that its vendor keeps, or that was made in the background. Free of charge. An extension of the contract.',
    returns: 'The `response`, whole, or its events.',
    params: {
      id: responseId,
      include,
      stream: {
        ...choice('Of one in the background that was made with `stream`: its events.', ['true', 'false']),
        example: 'false',
      },
      starting_after: integer('With `stream`: only the events after this number.', 0),
    },
    answer: responseAnswer,
  },
  'responses/{id}/delete': {
    route: 'DELETE /alpha/responses/{id}',
    ...stored(''),
    title: 'Delete a stored response',
    description:
      'Deletes a response of this account: at its vendor, and of one in the background everything that the gateway has of it. Free of charge. An extension of the contract.',
    returns: '`{id, object, deleted}`.',
    params: { id: responseId },
    answer: responseDeleted,
  },
  'responses/{id}/cancel': {
    route: 'POST /alpha/responses/{id}/cancel',
    ...stored('/cancel'),
    title: 'Cancel a response in the background',
    description:
      'Cancels a background response: its vendor is stopped, unless it reports usage only at the end, and what was made by then is charged. A response that has ended does not change. An extension of the contract.',
    returns:
      'The `response`, with `status` `cancelled`, and as soon as the charge is known with the output and the `usage` that it is for.',
    params: { id: responseId },
    answer: responseAnswer,
  },
  'responses/{id}/input_items': {
    route: 'GET /alpha/responses/{id}/input_items',
    ...stored('/input_items'),
    title: 'The input of a stored response',
    description:
      'The items that a response of this account was made from. Free of charge. An extension of the contract.',
    returns: 'A `list` of items; while `has_more` is true, `last_id` is the `after` of the next page.',
    params: { id: responseId, ...paging },
    answer: itemsAnswer,
  },
  'conversations/create': {
    ...at(''),
    route: 'POST /v1/conversations',
    modelOf: 'responses',
    title: 'Create a conversation',
    description: `Creates a conversation at a vendor that stores conversations: that of \`model\`, or of the first model of this key that has one. ${FREE}`,
    returns: 'The `conversation`, whose id is the `conversation` of responses.',
    body: {
      ...object(
        {
          items: { ...items, type: ['array', 'null'] },
          metadata,
          model: { type: ['string', 'null'], description: 'A model that the conversation is meant for. Not sent on.' },
        },
        [],
      ),
      examples: [{ items: [message], metadata: { topic: 'names' } }],
    },
    answer: conversation,
  },
  'conversations/{id}': {
    ...at('/{id}'),
    route: 'GET /v1/conversations/{id}',
    title: 'A conversation',
    description: `A conversation of this account. ${FREE}`,
    returns: 'The `conversation`.',
    params: { id },
    answer: conversation,
  },
  'conversations/{id}/update': {
    ...at('/{id}'),
    route: 'POST /v1/conversations/{id}',
    title: 'Change a conversation',
    description: `Replaces the metadata of a conversation of this account. ${FREE}`,
    returns: 'The `conversation`.',
    params: { id },
    body: { ...object({ metadata }), examples: [{ metadata: { topic: 'names' } }] },
    answer: conversation,
  },
  'conversations/{id}/delete': {
    ...at('/{id}'),
    route: 'DELETE /v1/conversations/{id}',
    title: 'Delete a conversation',
    description: `Deletes a conversation of this account at its vendor. ${FREE}`,
    returns: '`{id, object, deleted}`.',
    params: { id },
    answer: object({ id: string, object: string, deleted: { type: 'boolean' } }),
  },
  'conversations/{id}/items': {
    ...at('/{id}/items'),
    route: 'GET /v1/conversations/{id}/items',
    title: 'The items of a conversation',
    description: `The items of a conversation of this account, newest first. ${FREE}`,
    returns: 'A `list` of items; while `has_more` is true, `last_id` is the `after` of the next page.',
    params: { id, ...paging },
    answer: itemsAnswer,
  },
  'conversations/{id}/items/create': {
    ...at('/{id}/items'),
    route: 'POST /v1/conversations/{id}/items',
    title: 'Add items to a conversation',
    description: `Adds up to 20 items to a conversation of this account. ${FREE}`,
    returns: 'A `list` of the items.',
    params: { id, include },
    body: { ...object({ items }), examples: [{ items: [message] }] },
    answer: itemsAnswer,
  },
  'conversations/{id}/items/{item}': {
    ...at('/{id}/items/{item}'),
    route: 'GET /v1/conversations/{id}/items/{item}',
    title: 'An item of a conversation',
    description: `One item of a conversation of this account. ${FREE}`,
    returns: 'The item.',
    params: { id, item: itemId, include },
    answer: item,
  },
  'conversations/{id}/items/{item}/delete': {
    ...at('/{id}/items/{item}'),
    route: 'DELETE /v1/conversations/{id}/items/{item}',
    title: 'Delete an item of a conversation',
    description: `Takes an item out of a conversation of this account. ${FREE}`,
    returns: 'The `conversation`.',
    params: { id, item: itemId },
    answer: conversation,
  },
})
