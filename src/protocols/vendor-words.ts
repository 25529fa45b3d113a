// What a vendor says about a failure: read into a fault, and cleaned of everything that would tell a caller whose
// account, key or address is behind the gateway.
import { Fault, type FaultDetails, type FaultName } from '../kernel/fault.ts'
import { isObject, type Json, text } from './check.ts'

/** Names by which vendors call themselves, their products and their model families in messages. */
const VENDOR_NAMES =
  /\b(open\s?ai|chat\s?gpt|gpt-[\w.-]+|azure|anthropic|claude(?:-[\w.-]+)?|deep\s?seek(?:-[\w.-]+)?|gemini(?:-[\w.-]+)?|google(?:apis)?|vertex(?:\s?ai)?|moonshot(?:\s?ai)?|kimi(?:-[\w.-]+)?|mini\s?max(?:-[\w.-]+)?|volc(?:engine)?|byte\s?dance|bytedance|seedance|ark|bedrock|open\s?router|twitter|similar\s?web)\b/gi

const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/[\w.+-]+@[\w-]+\.[\w.-]+/g, '[address]'],
  [/\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)\]]+/gi, '[address]'],
  [/\b(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|dev|cn|cloud)(?:\/[^\s"'<>)\]]*)?/gi, '[address]'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g, '[address]'],
  [/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, '[key]'],
  // Names of fields look like these too, but have no digits.
  [/\b(?:sk|pk|rk|api|key|ak|xai|gsk)[-_](?=[\w*.-]*[\d*])[\w*.-]{6,}/gi, '[key]'],
  [/\bAIza[\w-]{10,}/g, '[key]'],
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, '[key]'],
  [
    /\b(?:org|proj|acct|account|user|project|team|ws|wrkspc|req|resp|chatcmpl|cf-ray)[-_](?=[\w-]*\d)[\w-]{6,}/gi,
    '[id]',
  ],
  [
    /\b(organi[sz]ation|account|project|tenant|team)((?:\s+id)?\s*[:=]?\s+)["'`]?(?=[\w-]*\d)[\w-]{6,}["'`]?/gi,
    '$1$2[id]',
  ],
]

const CHARS_MAX = 500

/** Vendor text that a caller may read. */
export function scrub(message: string): string {
  let clean = message.slice(0, CHARS_MAX * 4)
  for (const [pattern, mark] of SECRETS) clean = clean.replace(pattern, mark)
  clean = clean.replace(VENDOR_NAMES, 'the provider').replace(/\s+/g, ' ').trim()
  return clean.length > CHARS_MAX ? `${clean.slice(0, CHARS_MAX)}…` : clean
}

/** The message in a vendor's error body, in any of the shapes in use; undefined when there is none. */
export function errorMessage(body: unknown): string | undefined {
  // One vendor wraps the body in an array.
  const outer = Array.isArray(body) ? body[0] : body
  if (!isObject(outer)) return undefined
  const error = outer.error
  if (typeof error === 'string') return error
  if (isObject(error)) return text(error.message) ?? text(error.msg)
  const base = outer.base_resp
  return text(outer.message) ?? (isObject(base) ? text(base.status_msg) : undefined) ?? text(outer.detail)
}

/** The scrubbed words of an error body, with the public name of the model; undefined when it holds none. */
export function readErrorText(body: Buffer, model?: { vendorName: string; uid: string }): string | undefined {
  try {
    const message = errorMessage(JSON.parse(body.subarray(0, 65_536).toString('utf8')))
    const said = model ? message?.replaceAll(model.vendorName, model.uid) : message
    const clean = said === undefined ? '' : scrub(said)
    return clean === '' ? undefined : clean
  } catch {
    return undefined // An HTML page or a cut body says nothing that a caller should read.
  }
}

const DETAIL = /^[a-z][a-z0-9_]{0,60}$/
const DETAILS_MAX = 20

/** `error.details` of a Messages vendor: only single words, so that nothing else of it can get out. */
export function readErrorDetails(body: Buffer): FaultDetails['errorDetails'] {
  try {
    const said = JSON.parse(body.subarray(0, 65_536).toString('utf8')) as { error?: { details?: Json } } | null
    const { error_code: code, unsupported } = said?.error?.details ?? {}
    if (typeof code !== 'string' || !DETAIL.test(code)) return undefined
    const words = Array.isArray(unsupported) ? unsupported.slice(0, DETAILS_MAX) : []
    const known = words.filter((word): word is string => typeof word === 'string' && DETAIL.test(word))
    return known.length > 0 ? { error_code: code, unsupported: known } : { error_code: code }
  } catch {
    return undefined // A body that is not JSON has no details.
  }
}

const BY_WORD: readonly (readonly [RegExp, FaultName])[] = [
  // Our own account is empty or refused: never the caller's doing.
  [/quota|billing|balance|credit/, 'upstream_unavailable'],
  [/rate_?limit|too_many|throttl/, 'upstream_rate_limited'],
  [/overload|unavailable|capacity|busy/, 'upstream_unavailable'],
  [/time_?d?_?out|deadline/, 'upstream_timeout'],
  [/auth|permission|forbidden|api_key/, 'upstream_failed'],
  [/invalid|bad_request|context_length|content_(?:filter|policy)|too_large/, 'upstream_invalid'],
]

const BY_STATUS: Readonly<Record<number, FaultName>> = {
  400: 'upstream_invalid',
  402: 'upstream_unavailable',
  408: 'upstream_timeout',
  413: 'upstream_invalid',
  422: 'upstream_invalid',
  429: 'upstream_rate_limited',
  503: 'upstream_unavailable',
  504: 'upstream_timeout',
  529: 'upstream_unavailable',
}

/** The fault for an error that a vendor reported inside a 2xx answer or a stream. */
export function vendorFault(error: unknown): Fault {
  const given: Json = isObject(error) ? error : { message: error }
  const words = `${text(given.type) ?? ''} ${text(given.code) ?? ''} ${text(given.status) ?? ''}`.toLowerCase()
  const kind =
    BY_WORD.find(([pattern]) => pattern.test(words))?.[1] ??
    BY_STATUS[Number(given.code ?? given.status)] ??
    'upstream_failed'
  const said = text(given.message)
  // Only a refusal of the request itself helps the caller; other words are about the vendor's own troubles.
  const message = kind === 'upstream_invalid' && said ? scrub(said) : undefined
  return new Fault(kind, { ...(message ? { message } : {}), internal: { vendor: given } })
}

/** How the OpenAI-shaped and the Messages-shaped bodies name a fault; SDKs look for these words. */
export interface ErrorWords {
  readonly type: string
  readonly code: string
}

const WORDS: Readonly<Record<number, ErrorWords>> = {
  400: { type: 'invalid_request_error', code: 'invalid_request' },
  401: { type: 'authentication_error', code: 'invalid_api_key' },
  402: { type: 'billing_error', code: 'insufficient_quota' },
  403: { type: 'permission_error', code: 'permission_denied' },
  404: { type: 'not_found_error', code: 'not_found' },
  409: { type: 'conflict_error', code: 'conflict' },
  413: { type: 'request_too_large', code: 'request_too_large' },
  422: { type: 'invalid_request_error', code: 'invalid_request' },
  429: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  500: { type: 'api_error', code: 'server_error' },
  502: { type: 'api_error', code: 'server_error' },
  503: { type: 'overloaded_error', code: 'overloaded' },
  504: { type: 'timeout_error', code: 'timeout' },
}

export function errorWords(fault: Fault): ErrorWords {
  return WORDS[fault.status] ?? { type: 'api_error', code: 'server_error' }
}
