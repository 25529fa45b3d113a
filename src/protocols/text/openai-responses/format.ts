// The Responses format, on both sides.
import { responsesBody } from '../../../catalog/text-bodies.ts'
import { isObject, objectOf, objects } from '../../../kernel/json.ts'
import { type TextFormat, typed } from '../format.ts'
import { readFormat } from '../openai.ts'
import { formatParts } from '../prompt.ts'
import { membersOf } from '../request-members.ts'
import { ResponsesReader, ResponsesWriter, readResponsesReply, writeResponsesReply } from './answer.ts'
import {
  passResponses,
  passResponsesAnswer,
  ResponsesObserver,
  rollUpResponse,
  unrollResponse,
  usageOfFailed,
} from './pass.ts'
import { checkResponses, readResponsesConversation, writeResponsesRequest } from './request.ts'

export const openaiResponses: TextFormat = {
  name: 'openai-responses',
  address: ({ baseUrl }) => `${baseUrl}/responses`,
  body: responsesBody,
  members: membersOf(responsesBody),
  extras: {
    tools: ['web_search', 'file_search', 'code_interpreter', 'image_generation'],
    cap: { member: 'max_tool_calls', of: 'request' },
  },
  check: checkResponses,
  // It rejects lower limits.
  smallest: (question, tokens) => ({ input: question, max_output_tokens: Math.max(tokens, 16) }),
  wanted: ({ text }) => readFormat(objectOf(objectOf(text).format), objectOf(objectOf(text).format)),
  texts: ({ output }) =>
    objects(output)
      .filter(({ type }) => type === 'message')
      .map(({ content }) => typed(content, 'output_text')),
  prompt: (value) => [
    value.instructions,
    value.input,
    value.tools,
    value.text,
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
  usageOfFailed,
  unroll: unrollResponse,
  rollUp: rollUpResponse,
}
