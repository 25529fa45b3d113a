// The least that a vendor can be asked for in each format, for whoever wants to see it work.
import type { ProtocolName, TextProtocolName } from '../catalog/kind.ts'
import { readJson } from '../kernel/json.ts'
import type { Ask } from './protocol.ts'
import { readModerationsAsk, readRerankAsk } from './text/judgement.ts'
import { readEmbeddingsAsk } from './text/openai-embeddings.ts'
import { type ModelFacts, readTextAsk } from './text/text.ts'

const QUESTION = 'Hi'
/** Models that think, and the Responses format, refuse less. */
const TOKENS_LEAST = 16

const TEXT: Readonly<Record<TextProtocolName, (tokens: number) => object>> = {
  'openai-chat': (tokens) => ({ messages: [{ role: 'user', content: QUESTION }], max_tokens: tokens }),
  'openai-responses': () => ({ input: QUESTION, max_output_tokens: TOKENS_LEAST }),
  'anthropic-messages': (tokens) => ({ messages: [{ role: 'user', content: QUESTION }], max_tokens: tokens }),
  gemini: (tokens) => ({ contents: [{ parts: [{ text: QUESTION }] }], generationConfig: { maxOutputTokens: tokens } }),
}

/** Undefined for formats whose least call is not small: a picture, a film, a row of data that is paid for. */
export function smallestAsk(protocol: ProtocolName, model: ModelFacts): Ask | undefined {
  const inJson = (body: object) => readJson(Buffer.from(JSON.stringify({ model: model.uid, ...body })))
  if (protocol === 'rerank') return readRerankAsk(inJson({ query: QUESTION, documents: [QUESTION] }), model.uid)
  if (protocol === 'openai-moderations') return readModerationsAsk(inJson({ input: QUESTION }), model.uid)
  if (protocol === 'openai-embeddings') return readEmbeddingsAsk(inJson({ input: QUESTION }), model.uid)
  if (!Object.hasOwn(TEXT, protocol)) return undefined
  const door = protocol as TextProtocolName // it is one of the names of the table
  const tokens = model.traits.tokensField === 'max_completion_tokens' ? TOKENS_LEAST : 1
  return readTextAsk(door, inJson(TEXT[door](tokens)), model)
}
