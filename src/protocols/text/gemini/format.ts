// Google's format for generating content.
import type { TextFormat } from '../format.ts'
import { ArrayRelay } from './array.ts'
import { checkGemini } from './check.ts'
import { GeminiObserver, passGemini, passGeminiAnswer } from './pass.ts'
import { geminiPrompt } from './prompt.ts'
import { readGeminiDialogue } from './read-request.ts'
import { GeminiReader } from './read-stream.ts'
import { readGeminiReply, writeGeminiReply } from './reply.ts'
import { rollUpGemini, unrollGemini } from './roll.ts'
import { writeGeminiRequest } from './write-request.ts'
import { GeminiWriter } from './write-stream.ts'

export const gemini: TextFormat = {
  name: 'gemini',
  reportsAtEnd: () => true,
  address: ({ baseUrl, model }, stream) =>
    `${baseUrl}/models/${encodeURIComponent(model)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  check: checkGemini,
  prompt: geminiPrompt,
  pass: passGemini,
  passAnswer: passGeminiAnswer,
  observe: (uid, ask) => new GeminiObserver(uid, ask),
  readDialogue: readGeminiDialogue,
  writeReply: writeGeminiReply,
  writer: (facts) => new GeminiWriter(facts),
  framed: (relay, request) => (request.alt === 'sse' ? relay : new ArrayRelay(relay)),
  writeRequest: writeGeminiRequest,
  readReply: readGeminiReply,
  reader: () => new GeminiReader(),
  unroll: unrollGemini,
  rollUp: rollUpGemini,
}
