// Rerank and moderations. The request is forwarded unchanged, and only the usage is read from the answer.
import { CONTEXT_TOKENS_DEFAULT, type Model } from '../../catalog/document.ts'
import { isObject, type Json, type JsonText, objectOf } from '../../kernel/json.ts'
import { words } from '../../kernel/words.ts'
import { readCount, type Usage } from '../../meter/usage.ts'
import { readBody, wrong } from '../../protocols/check.ts'
import { type Answer, garbled, type PaidRequest } from '../../protocols/protocol.ts'
import { forwarded } from '../../protocols/text/forwarded.ts'
import { readWhole, renamed } from '../../protocols/text/relay.ts'
import { membersOf } from '../../protocols/text/request-members.ts'
import { moderationsBody, rerankBody } from './endpoints.ts'

const RERANKED = membersOf(
  {
    forwarded: [
      ...Object.keys(rerankBody.shape),
      ...words('top_k truncation truncate max_chunks_per_doc truncate_prompt_tokens user'),
    ],
    limits: [],
  },
  { refused: words('images messages') },
)
const MODERATED = membersOf({ forwarded: [...Object.keys(moderationsBody.shape), 'user'], limits: [] })

/** Tokens around a query and a document. */
const FRAME_TOKENS = 8
const LIKELY_BYTES_PER_TOKEN = 4
/**
 * Vendors that bill by the search count a hundred documents as one search; a longer document counts once per 500
 * tokens.
 */
const DOCUMENTS_PER_CALL = 100
const PIECE_TOKENS = 500

/**
 * Charged by tokens if the price has a rate for them, else by the search. `shape`: the vendor's own answer, or version
 * 2 of Cohere's API.
 */
export function readRerankRequest(
  json: JsonText,
  uid: string,
  model?: Pick<Model, 'limits' | 'pricing'>,
  shape: 'vendor' | 'cohere' = 'vendor',
): PaidRequest {
  const { query, documents: given, rank_fields } = readBody(rerankBody, json)
  if (rank_fields !== undefined && rank_fields !== null)
    throw wrong('rank_fields', 'is not offered: documents are ranked by their text.')
  const documents = given.map((one) => (typeof one === 'string' ? one : one.text))
  const tokensMax = model?.limits.contextTokens ?? CONTEXT_TOKENS_DEFAULT
  // A token has at least one byte, so no correct count exceeds the hold.
  const sizes = documents.map((text) => Buffer.byteLength(text) + Buffer.byteLength(query) + FRAME_TOKENS)
  const most = sizes.reduce((sum, size) => sum + Math.min(size, tokensMax), 0)
  const callsOf = (bytesPerToken: number) => {
    // Each piece of a document is combined with the query.
    const room = Math.max(PIECE_TOKENS / 10, PIECE_TOKENS - Buffer.byteLength(query) / bytesPerToken)
    const pieces = documents.reduce((sum, text) => {
      const tokens = Math.min(Buffer.byteLength(text) / bytesPerToken + FRAME_TOKENS, tokensMax)
      return sum + Math.ceil(tokens / room)
    }, 0)
    return Math.ceil(pieces / DOCUMENTS_PER_CALL)
  }
  const calls = callsOf(1)
  const byTokens = model?.pricing.tiers.some(({ input }) => input !== undefined) ?? false
  // Without a report, searches are estimated from the pieces that vendors make of long documents.
  const searches = (value: Json) => searchesOf(value) ?? callsOf(LIKELY_BYTES_PER_TOKEN)
  const usageOf = byTokens
    ? (value: Json): Usage | undefined => {
        const input = tokensOf(value)
        return input === undefined ? undefined : { input }
      }
    : (value: Json): Usage => ({ call: searches(value) })
  const written = shape === 'cohere' ? (value: Json) => cohereAnswer(value, searches(value)) : undefined
  return {
    ...forwarded('rerank', '/rerank', json, {
      product: uid,
      members: RERANKED,
      answer: readsResults(uid, usageOf, written),
    }),
    worst: byTokens ? { input: most } : { call: calls },
    ...(byTokens
      ? { inputTokensLikely: Math.ceil(most / LIKELY_BYTES_PER_TOKEN), inputTokensMost: documents.length * tokensMax }
      : {}),
  }
}

/** Charged per input, because vendors report no usage. */
export function readModerationsRequest(json: JsonText, uid: string): PaidRequest {
  const { input } = readBody(moderationsBody, json)
  const isTexts = Array.isArray(input) && input.every((entry) => typeof entry === 'string')
  // Parts of several kinds together are one input.
  const worst = { call: isTexts ? input.length : 1 }
  const answer = readsResults(uid, () => worst)
  return {
    ...forwarded('openai-moderations', '/moderations', json, { product: uid, members: MODERATED, answer }),
    worst,
  }
}

/** `written` converts the answer to another form. Absent: it is relayed with the model's public name. */
const readsResults =
  (uid: string, usageOf: (value: Json) => Usage | undefined, written?: (value: Json) => Json) =>
  (body: Buffer): Answer => {
    const whole = readWhole(body, written ? 'utf8' : 'latin1')
    const own = Array.isArray(whole.value.results)
    const value = own ? whole.value : withResults(body, uid)
    const said = written ? JSON.stringify(written(value)) : own ? renamed(body, whole, uid) : JSON.stringify(value)
    return { body: said, contentType: 'application/json', usage: usageOf(value) }
  }

/** An answer of Voyage, which calls its results `data`, in the form of the others. */
function withResults(body: Buffer, uid: string): Json {
  const { data, ...rest } = readWhole(body, 'utf8').value
  if (!Array.isArray(data)) throw garbled('the answer has no results')
  return { ...rest, model: uid, results: data }
}

/** The tokens, from either place where vendors report them. */
function tokensOf({ usage, meta }: Json): number | undefined {
  const own = objectOf(usage)
  const billed = objectOf(objectOf(meta).billed_units)
  const counted = objectOf(objectOf(meta).tokens)
  return (
    readCount(own.total_tokens) ??
    readCount(own.prompt_tokens) ??
    readCount(billed.input_tokens) ??
    readCount(counted.input_tokens)
  )
}

function searchesOf({ meta }: Json): number | undefined {
  const billed = objectOf(objectOf(meta).billed_units)
  return readCount(billed.search_units)
}

/** Vendors of other formats send neither an id nor billed units; Cohere's clients require only the results. */
function cohereAnswer({ id, results, meta }: Json, searches: number): Json {
  const ranked = (Array.isArray(results) ? results : []).filter(isObject)
  return {
    ...(typeof id === 'string' ? { id } : {}),
    results: ranked.map(({ index, relevance_score }) => ({ index, relevance_score })),
    meta: { api_version: { version: '2' }, billed_units: { search_units: searches }, ...objectOf(meta) },
  }
}
