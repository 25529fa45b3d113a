// The Messages format, on both sides.

import { messagesBody } from '../../../catalog/text-bodies.ts'
import { objectOf } from '../../../kernel/json.ts'
import { messagesError } from '../../vendor-fault.ts'
import { type TextFormat, typed } from '../format.ts'
import { membersOf } from '../request-members.ts'
import { MessagesReader, MessagesWriter, readMessagesReply, writeMessagesReply } from './answer.ts'
import { inCloud } from './cloud.ts'
import { MessagesObserver, passMessages, passMessagesAnswer, rollUpMessage, unrollMessage } from './pass.ts'
import { checkMessages, readMessagesConversation, writeMessagesRequest } from './request.ts'

/** The version sent to the vendor if the caller names none. */
const VERSION_DEFAULT = '2023-06-01'

export const anthropicMessages: TextFormat = {
  name: 'anthropic-messages',
  address: ({ baseUrl }) => `${baseUrl}/v1/messages`,
  models: '/v1/models',
  auth: { header: 'x-api-key' },
  headers(options) {
    const beta = options.callerHeaders?.['anthropic-beta']
    return {
      'anthropic-version': options.callerHeaders?.['anthropic-version'] ?? VERSION_DEFAULT,
      ...(beta === undefined ? {} : { 'anthropic-beta': beta }),
    }
  },
  inCloud,
  body: messagesBody,
  members: membersOf(messagesBody),
  extras: {
    tools: ['web_search', 'code_execution'],
    // Code execution is billed by the time of its container, five minutes at least, which no answer reports and no
    // request can limit: a request that offers it is charged one run, and none lasts longer than the vendor's deadline.
    uncounted: (units) => (units.includes('codeRun') ? { codeRun: 1 } : undefined),
    cap: { member: 'max_uses', of: ['webSearch'] },
  },
  surface: {
    name: 'messages',
    below: 'beta',
    errorBody: (fault, request_id) => {
      const { code, message } = fault
      return { type: 'error', error: messagesError(fault), request_id, code, message }
    },
    models: {
      offers: ({ clientFormats }) => clientFormats.includes('anthropic-messages'),
      entry: (id, { name }, created) => ({
        type: 'model',
        id,
        display_name: name,
        created_at: new Date(created * 1000).toISOString(),
      }),
      list: (entries, page) => `{"data":[${entries.join(',')}],${page}}`,
    },
  },
  check: checkMessages,
  smallest: (question, tokens) => ({ messages: [{ role: 'user', content: question }], max_tokens: tokens }),
  wanted({ output_config, output_format }) {
    const { type, schema } = objectOf(objectOf(output_config).format ?? output_format)
    return type === 'json_schema' ? { kind: 'schema', schema: objectOf(schema) } : undefined
  },
  texts: ({ content }) => [typed(content, 'text')],
  prompt: (value) => [value.system, value.messages, value.tools, value.output_config, value.output_format],
  pass: passMessages,
  passAnswer: passMessagesAnswer,
  observe: (uid, paidRequest) => new MessagesObserver(uid, paidRequest),
  readConversation: readMessagesConversation,
  writeReply: writeMessagesReply,
  writer: (facts) => new MessagesWriter(facts),
  writeRequest: writeMessagesRequest,
  readReply: readMessagesReply,
  reader: () => new MessagesReader(),
  unroll: unrollMessage,
  rollUp: rollUpMessage,
}
