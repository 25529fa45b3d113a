// Text embeddings. The request is forwarded unchanged, and the vectors are relayed unread: a batch has megabytes of
// them.
import { CONTEXT_TOKENS_DEFAULT, type Model } from '../../catalog/document.ts'
import { type Json, type JsonText, memberSpan } from '../../kernel/json.ts'
import { readBody } from '../../protocols/check.ts'
import { type Answer, garbled, type PaidRequest } from '../../protocols/protocol.ts'
import { forwarded } from '../../protocols/text/forwarded.ts'
import { readWhole, renamed } from '../../protocols/text/relay.ts'
import { admitMembers } from '../../protocols/text/request-members.ts'
import { readEmbeddingsUsage } from '../../protocols/text/tokens.ts'
import { EMBEDDINGS_MEMBERS, embeddingsBody } from './body.ts'

/** Tokens that some tokenizers add around each input. */
const FRAME_TOKENS = 2
const LIKELY_BYTES_PER_TOKEN = 4

/** Converts the answer to another format. Absent: it is relayed with the model's public name. */
type Written = (answer: Json) => Json

export function readEmbeddingsRequest(
  sent: JsonText,
  uid: string,
  model?: Pick<Model, 'limits'>,
  written?: Written,
): PaidRequest {
  /** The most tokens that the model takes per input. */
  const tokensMax = model?.limits.contextTokens ?? CONTEXT_TOKENS_DEFAULT
  const { json } = admitMembers(EMBEDDINGS_MEMBERS, sent)
  const { input } = readBody(embeddingsBody, json)
  // A text, or the token numbers of one text, is one input.
  const inputs = typeof input === 'string' ? [input] : isTokens(input) ? [input] : input
  let most = 0
  let likely = 0
  for (const one of inputs) {
    // A token has at least one byte, so no correct count exceeds the hold.
    const tokens = typeof one === 'string' ? Buffer.byteLength(one) : one.length
    most += Math.min(tokens + FRAME_TOKENS, tokensMax)
    likely += Math.min(typeof one === 'string' ? Math.ceil(tokens / LIKELY_BYTES_PER_TOKEN) : tokens, tokensMax)
  }
  const answer = (body: Buffer) => (written ? rewriteVectors(body, written) : passVectors(body, uid))
  return {
    ...forwarded('openai-embeddings', '/embeddings', json, { product: uid, members: EMBEDDINGS_MEMBERS, answer }),
    worst: { input: most },
    inputTokensLikely: likely,
    // Based on the model's context and not on the bytes: a vendor may add input of its own.
    inputTokensMost: inputs.length * tokensMax,
  }
}

function isTokens(input: readonly unknown[]): input is readonly number[] {
  return typeof input[0] === 'number'
}

/** Parses everything but the vectors; of these it checks only that there are some, and where they end. */
function passVectors(body: Buffer, uid: string): Answer {
  const span = memberSpan(body.toString('latin1'), 'data')
  const vectors = body.subarray(...(span ?? [0, 0]))
  const rest = span ? Buffer.concat([body.subarray(0, span[0]), Buffer.from('[]'), body.subarray(span[1])]) : body
  const whole = readWhole(rest)
  const named = Buffer.from(renamed(rest, whole, uid))
  const place = memberSpan(named.toString('latin1'), 'data')
  if (!place || !/^\[\s*\{/.test(vectors.toString('latin1', 0, 100))) throw garbled('the answer holds no vectors')
  return {
    body: Buffer.concat([named.subarray(0, place[0]), vectors, named.subarray(place[1])]),
    contentType: 'application/json',
    usage: readEmbeddingsUsage(whole.value.usage),
  }
}

function rewriteVectors(body: Buffer, written: Written): Answer {
  const { value } = readWhole(body, 'utf8')
  return {
    body: JSON.stringify(written(value)),
    contentType: 'application/json',
    usage: readEmbeddingsUsage(value.usage),
  }
}
