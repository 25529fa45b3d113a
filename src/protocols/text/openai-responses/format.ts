// The Responses format.
import { isObject } from '../../check.ts'
import type { TextFormat } from '../format.ts'
import { formatParts } from '../prompt.ts'
import { ResponsesReader, ResponsesWriter, readResponsesReply, writeResponsesReply } from './answer.ts'
import { passResponses, passResponsesAnswer, ResponsesObserver, rollUpResponse, unrollResponse } from './pass.ts'
import { checkResponses, readResponsesConversation, writeResponsesRequest } from './request.ts'

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
