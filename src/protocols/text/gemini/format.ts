// Google's format for generating content.
import type { TextFormat } from '../format.ts'
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
} from './answer.ts'
import { geminiPrompt } from './member.ts'
import { checkGemini, readGeminiConversation, writeGeminiRequest } from './request.ts'

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
