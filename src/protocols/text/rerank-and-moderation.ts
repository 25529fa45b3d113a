// Judgements of texts: rerank and moderations. The request goes on as it was sent, and of the answer only what it used is read.
import { CONTEXT_TOKENS_DEFAULT, type Model } from '../../catalog/document.ts'
import { DOCUMENTS_MAX, MODERATED_MAX } from '../../catalog/rerank-and-moderation.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { type JsonText, splice } from '../../kernel/json.ts'
import type { ProtocolName } from '../../meter/kind.ts'
import { readCount, type Usage } from '../../meter/usage.ts'
import { Fields, isObject, type Json, mustBe } from '../check.ts'
import type { PaidRequest } from '../protocol.ts'
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
  const fields = new Fields(json)
  const query = fields.required('query')
  if (typeof query !== 'string') throw mustBe('query', 'a string', query)
  if (query === '') throw invalid('"query" must not be empty.', 'query')
  const documents = readTexts(fields.required('documents'), 'documents', DOCUMENTS_MAX)
  fields.integer('top_n', 1)
  fields.boolean('return_documents')
  fields.integer('max_tokens_per_doc', 1)
  if (fields.get('rank_fields') !== undefined)
    throw invalid('"rank_fields" is not offered: documents are ranked by their text.', 'rank_fields')
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
  const given = new Fields(json).required('input')
  const isParts = Array.isArray(given) && given.some((entry) => typeof entry !== 'string')
  if (typeof given !== 'string') readTexts(given, 'input', MODERATED_MAX, true)
  else if (given === '') throw invalid('"input" must not be empty.', 'input')
  // Parts of several kinds are one input together.
  const worst = { call: Array.isArray(given) && !isParts ? given.length : 1 }
  return { ...passed({ clientFormat: 'openai-moderations', path: '/moderations' }, json, uid, () => worst), worst }
}

function readTexts(value: unknown, at: string, most: number, parts = false): string[] {
  if (!Array.isArray(value)) throw mustBe(at, 'an array', value)
  if (value.length === 0 || value.length > most)
    throw invalid(`"${at}" must hold 1 to ${most} entries, not ${value.length}.`, at)
  return value.map((entry, i) => {
    if (parts && isObject(entry) && typeof entry.type === 'string') return ''
    // What stands beside the text would be neither held for nor charged.
    const other = isObject(entry) && !parts ? Object.keys(entry).find((name) => name !== 'text') : undefined
    if (other !== undefined)
      throw invalid(
        `"${at}[${i}]" must have "text" and nothing beside it: put what is to be ranked into "text".`,
        `${at}[${i}]`,
      )
    const text = isObject(entry) && !parts ? entry.text : entry
    if (typeof text !== 'string')
      throw mustBe(`${at}[${i}]`, parts ? 'a string or a part' : 'a string or {text}', entry)
    if (text === '') throw invalid(`"${at}[${i}]" must not be empty.`, `${at}[${i}]`)
    return text
  })
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
      call: {
        method: 'POST',
        url: target.baseUrl + path,
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: splice(target.passesUnknown ? json : withoutUnknown(json, unknown), {
          replace: { model: JSON.stringify(target.model) },
        }),
      },
      answer(body) {
        const whole = readWhole(body, written ? 'utf8' : 'latin1')
        if (!Array.isArray(whole.value.results))
          throw new Fault('upstream_garbled', { internal: { why: 'the answer has no results' } })
        const said = written ? JSON.stringify(written(whole.value)) : renamed(body, whole, uid)
        return { body: said, contentType: 'application/json', usage: usageOf(whole.value) }
      },
      said: readErrorBody,
    }),
  }
}

/** Where vendors report it. */
function tokensOf({ usage, meta }: Json): number | undefined {
  const own = isObject(usage) ? usage : {}
  const billed = isObject(meta) && isObject(meta.billed_units) ? meta.billed_units : {}
  const counted = isObject(meta) && isObject(meta.tokens) ? meta.tokens : {}
  return (
    readCount(own.total_tokens) ??
    readCount(own.prompt_tokens) ??
    readCount(billed.input_tokens) ??
    readCount(counted.input_tokens)
  )
}

function searchesOf({ meta }: Json): number | undefined {
  const billed = isObject(meta) && isObject(meta.billed_units) ? meta.billed_units : {}
  return readCount(billed.search_units)
}

/** Vendors of other shapes name neither an id nor what they bill; clients of this one require the results alone. */
function cohereAnswer({ id, results, meta }: Json, searches: number): Json {
  const ranked = (Array.isArray(results) ? results : []).filter(isObject)
  return {
    ...(typeof id === 'string' ? { id } : {}),
    results: ranked.map(({ index, relevance_score }) => ({ index, relevance_score })),
    meta: { api_version: { version: '2' }, billed_units: { search_units: searches }, ...(isObject(meta) ? meta : {}) },
  }
}
