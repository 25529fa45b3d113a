// The Messages format.
import { isObject } from '../../check.ts'
import type { TextFormat } from '../format.ts'
import { MessagesReader, MessagesWriter, readMessagesReply, writeMessagesReply } from './answer.ts'
import { MessagesObserver, passMessages, passMessagesAnswer, rollUpMessage, unrollMessage } from './pass.ts'
import { checkMessages, readMessagesConversation, writeMessagesRequest } from './request.ts'

/** The version sent to the vendor if the caller names none. */
const VERSION_DEFAULT = '2023-06-01'

export const anthropicMessages: TextFormat = {
  name: 'anthropic-messages',
  // The prompt is counted at the start and text can be counted as it comes, but hidden thinking cannot.
  reportsAtEnd: ({ thinking }, { thinkingOptional }) =>
    !thinkingOptional || (isObject(thinking) && thinking.type !== 'disabled'),
  address: ({ baseUrl }) => `${baseUrl}/v1/messages`,
  models: '/v1/models',
  headers(options) {
    const beta = options.callerHeaders?.['anthropic-beta']
    return {
      'anthropic-version': options.callerHeaders?.['anthropic-version'] ?? VERSION_DEFAULT,
      ...(beta === undefined ? {} : { 'anthropic-beta': beta }),
    }
  },
  check: checkMessages,
  prompt: (value) => [value.system, value.messages, value.tools, value.output_config],
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
