// Judgements of texts: rerank and moderations. The request goes on as it was sent, and of the answer only what it used is read.
import { CONTEXT_TOKENS_DEFAULT, type Model } from '../../catalog/document.ts'
import { moderationsBody, rerankBody } from '../../catalog/rerank-and-moderation.ts'
import type { JsonText } from '../../kernel/json.ts'
import type { ProtocolName } from '../../meter/kind.ts'
import { readCount, type Usage } from '../../meter/usage.ts'
import { isObject, type Json, objectOf, readBody, wrong } from '../check.ts'
import { garbled, jsonCall, type PaidRequest } from '../protocol.ts'
import { readErrorBody } from '../vendor-words.ts'
import { readWhole, renamed } from './relay.ts'
import { admitMembers, type MemberFormat, withoutUnknown } from './request-members.ts'

/** Around a query and a document. */
const FRAME_TOKENS = 8
const LIKELY_BYTES_PER_TOKEN = 4
/** Vendors that bill by the search count a hundred documents, or pieces of 500 tokens of longer ones, as one. */
const DOCUMENTS_PER_CALL = 100
const PIECE_TOKENS = 500

/** In whose shape the answer is: as the vendor gave it, or as version 2 of Cohere's API has it. */
type RerankShape = 'vendor' | 'cohere'

/** Paid by tokens where the price says so, else by the search. */
export function readRerankRequest(
  json: JsonText,
  uid: string,
  model?: Pick<Model, 'limits' | 'pricing'>,
  shape: RerankShape = 'vendor',
): PaidRequest {
  const { query, documents: given, rank_fields } = readBody(rerankBody, json)
  if (rank_fields !== undefined && rank_fields !== null)
    throw wrong('rank_fields', 'is not offered: documents are ranked by their text.')
  const documents = given.map((one) => (typeof one === 'string' ? one : one.text))
  const tokensMax = model?.limits.contextTokens ?? CONTEXT_TOKENS_DEFAULT
  // A token is at least a byte, so that no honest count is above the hold.
  const sizes = documents.map((text) => Buffer.byteLength(text) + Buffer.byteLength(query) + FRAME_TOKENS)
  const most = sizes.reduce((sum, size) => sum + Math.min(size, tokensMax), 0)
  const callsOf = (bytesPerToken: number) => {
    // Each piece of a document stands beside the query.
    const room = Math.max(PIECE_TOKENS / 10, PIECE_TOKENS - Buffer.byteLength(query) / bytesPerToken)
    const pieces = documents.reduce((sum, text) => {
      const tokens = Math.min(Buffer.byteLength(text) / bytesPerToken + FRAME_TOKENS, tokensMax)
      return sum + Math.ceil(tokens / room)
    }, 0)
    return Math.ceil(pieces / DOCUMENTS_PER_CALL)
  }
  const calls = callsOf(1)
  const byTokens = model?.pricing.tiers.some(({ input }) => input !== undefined) ?? false
  // Without a report by the pieces that vendors make of long documents.
  const searches = (value: Json) => searchesOf(value) ?? callsOf(LIKELY_BYTES_PER_TOKEN)
  const usageOf = byTokens
    ? (value: Json): Usage | undefined => {
        const input = tokensOf(value)
        return input === undefined ? undefined : { input }
      }
    : (value: Json): Usage => ({
        // By the vendors' own rule for what a search is: no document has more pieces than bytes allow.
        call: Math.min(searches(value), calls),
      })
  const written = shape === 'cohere' ? (value: Json) => cohereAnswer(value, searches(value)) : undefined
  return {
    ...passed({ clientFormat: 'rerank', path: '/rerank', written }, json, uid, usageOf),
    worst: byTokens ? { input: most } : { call: calls },
    ...(byTokens
      ? { inputTokensLikely: Math.ceil(most / LIKELY_BYTES_PER_TOKEN), inputTokensMost: documents.length * tokensMax }
      : {}),
  }
}

/** Paid by the input: vendors report nothing. */
export function readModerationsRequest(json: JsonText, uid: string): PaidRequest {
  const { input } = readBody(moderationsBody, json)
  const isTexts = Array.isArray(input) && input.every((entry) => typeof entry === 'string')
  // Parts of several kinds are one input together.
  const worst = { call: isTexts ? input.length : 1 }
  return { ...passed({ clientFormat: 'openai-moderations', path: '/moderations' }, json, uid, () => worst), worst }
}

type UsageOf = (value: Json) => Usage | undefined

interface Way {
  readonly clientFormat: ProtocolName & MemberFormat
  /** Below the vendor's address. */
  readonly path: string
  /** The answer in other words than the vendor's. Absent: it passes, with the public name of the model. */
  readonly written?: ((value: Json) => Json) | undefined
}

function passed(
  { clientFormat, path, written }: Way,
  sent: JsonText,
  uid: string,
  usageOf: UsageOf,
): Omit<PaidRequest, 'worst'> {
  const { json, unknown } = admitMembers(clientFormat, sent)
  return {
    product: uid,
    clientFormat,
    sent: json.text,
    stream: false,
    price: {},
    open: (target) => ({
      call: jsonCall(path, target.passesUnknown ? json : withoutUnknown(json, unknown), target),
      answer(body) {
        const whole = readWhole(body, written ? 'utf8' : 'latin1')
        if (!Array.isArray(whole.value.results)) throw garbled('the answer has no results')
        const said = written ? JSON.stringify(written(whole.value)) : renamed(body, whole, uid)
        return { body: said, contentType: 'application/json', usage: usageOf(whole.value) }
      },
      vendorError: readErrorBody,
    }),
  }
}

/** Where vendors report it. */
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

/** Vendors of other shapes name neither an id nor what they bill; clients of this one require the results alone. */
function cohereAnswer({ id, results, meta }: Json, searches: number): Json {
  const ranked = (Array.isArray(results) ? results : []).filter(isObject)
  return {
    ...(typeof id === 'string' ? { id } : {}),
    results: ranked.map(({ index, relevance_score }) => ({ index, relevance_score })),
    meta: { api_version: { version: '2' }, billed_units: { search_units: searches }, ...objectOf(meta) },
  }
}
