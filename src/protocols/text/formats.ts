// The text formats: how each checks a request, and reads and writes requests, answers and streams.
import type { TextProtocolName } from '../../meter/kind.ts'
import { isObject } from '../check.ts'
import { MessagesReader, MessagesWriter, readMessagesReply, writeMessagesReply } from './anthropic-messages/answer.ts'
import {
  MessagesObserver,
  passMessages,
  passMessagesAnswer,
  rollUpMessage,
  unrollMessage,
} from './anthropic-messages/pass.ts'
import { checkMessages, readMessagesConversation, writeMessagesRequest } from './anthropic-messages/request.ts'
import type { TextFormat } from './format.ts'
import {
  ArrayRelay,
  GeminiObserver,
  GeminiReader,
  GeminiWriter,
  passGemini,
  passGeminiAnswer,
  readGeminiReply,
  rollUpGemini,
  unrollGemini,
  writeGeminiReply,
} from './gemini/answer.ts'
import { geminiPrompt } from './gemini/member.ts'
import { checkGemini, readGeminiConversation, writeGeminiRequest } from './gemini/request.ts'
import { ChatReader, ChatWriter, passChatAnswer, readChatReply, writeChatReply } from './openai-chat/answer.ts'
import { ChatObserver, ChunkRepairer, passChat, repairAnswer, rollUpChat, unrollChat } from './openai-chat/pass.ts'
import { checkChat, readChatConversation, writeChatRequest } from './openai-chat/request.ts'
import { ResponsesReader, ResponsesWriter, readResponsesReply, writeResponsesReply } from './openai-responses/answer.ts'
import {
  passResponses,
  passResponsesAnswer,
  ResponsesObserver,
  rollUpResponse,
  unrollResponse,
} from './openai-responses/pass.ts'
import { checkResponses, readResponsesConversation, writeResponsesRequest } from './openai-responses/request.ts'
import { formatParts } from './prompt.ts'

const openaiChat: TextFormat = {
  name: 'openai-chat',
  reportsAtEnd: () => true,
  address: ({ baseUrl }) => `${baseUrl}/chat/completions`,
  check: checkChat,
  prompt: (value) => [
    ...[value.messages, value.tools, value.functions, value.documents, value.chat_template_kwargs],
    ...formatParts(value.response_format),
  ],
  pass: passChat,
  passAnswer: passChatAnswer,
  observe(uid, paidRequest, traits) {
    // Calls without an index occur only in requests with tools; the others keep the fast path.
    const quirks = paidRequest.hasTools ? traits.quirks : traits.quirks.filter((quirk) => quirk !== 'tool-index')
    const mender = quirks.length > 0 ? new ChunkRepairer(quirks) : undefined
    return new ChatObserver({ uid, includeUsage: paidRequest.includeUsage, n: paidRequest.n, traits, mender })
  },
  readConversation: readChatConversation,
  writeReply: writeChatReply,
  writer: (facts) => new ChatWriter(facts),
  writeRequest: writeChatRequest,
  readReply(value, traits) {
    if (traits.quirks.length > 0) repairAnswer(value, traits.quirks)
    return readChatReply(value, traits)
  },
  reader: (traits) => new ChatReader(traits),
  unroll: unrollChat,
  rollUp: rollUpChat,
}

export const openaiResponses: TextFormat = {
  name: 'openai-responses',
  reportsAtEnd: () => true,
  address: ({ baseUrl }) => `${baseUrl}/responses`,
  check: checkResponses,
  prompt: (value) => [
    ...[value.instructions, value.input, value.tools, value.text],
    ...formatParts(isObject(value.text) ? value.text.format : undefined),
  ],
  pass: passResponses,
  passAnswer: passResponsesAnswer,
  observe: (uid) => new ResponsesObserver(uid),
  readConversation: readResponsesConversation,
  writeReply: writeResponsesReply,
  writer: (facts) => new ResponsesWriter(facts),
  writeRequest: writeResponsesRequest,
  readReply: readResponsesReply,
  reader: () => new ResponsesReader(),
  unroll: unrollResponse,
  rollUp: rollUpResponse,
}

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

export const gemini: TextFormat = {
  name: 'gemini',
  reportsAtEnd: () => true,
  address: ({ baseUrl, model }, stream) =>
    `${baseUrl}/models/${encodeURIComponent(model)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  check: checkGemini,
  prompt: geminiPrompt,
  pass: passGemini,
  passAnswer: passGeminiAnswer,
  observe: (uid, paidRequest) => new GeminiObserver(uid, paidRequest),
  readConversation: readGeminiConversation,
  writeReply: writeGeminiReply,
  writer: (facts) => new GeminiWriter(facts),
  framed: (relay, request) => (request.alt === 'sse' ? relay : new ArrayRelay(relay)),
  writeRequest: writeGeminiRequest,
  readReply: readGeminiReply,
  reader: () => new GeminiReader(),
  unroll: unrollGemini,
  rollUp: rollUpGemini,
}

export const FORMATS: Readonly<Record<TextProtocolName, TextFormat>> = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  'anthropic-messages': anthropicMessages,
  gemini,
}
