// Converts a vendor's failure to a fault of our table, which says who must act. The vendor's message stays private
// until it is redacted for the caller of this request, so that neither a log nor another response can leak it.
import { Fault, type FaultDetails, type FaultName } from '../kernel/fault.ts'
import { given } from '../kernel/json.ts'
import { words } from '../kernel/words.ts'
import { forOperators, type RedactionScope, readVendorError, scrub, type VendorError } from './vendor-words.ts'

class VendorFault extends Fault {
  readonly #said: VendorError

  constructor(kind: FaultName, said: VendorError, details: FaultDetails = {}) {
    super(kind, details)
    this.#said = said
  }

  words(hearing: RedactionScope): string | undefined {
    const { words, message } = this.#said
    return forOperators([...words, message].filter(Boolean).join(': '), hearing) || undefined
  }

  /** The fault with as much of the vendor's message as this caller may read. */
  told(hearing: RedactionScope): Fault {
    // Only a rejection of the request itself helps the caller; other messages concern the vendor's own problems.
    if (this.blame !== 'caller') return this
    const said = this.#said
    const vendorCode = knownCode(said.words, said.message)
    const facts = {
      message: worded(scrub(said.message, hearing), vendorCode, hearing) || undefined,
      param: paramFor(said.param, hearing),
      vendorCode,
      errorDetails: detailsFor(said.details, hearing),
      failedGeneration: said.failedGeneration,
    }
    return new Fault(this.kind, { ...this.details, ...given(facts) })
  }
}

/** The vendor's message for operators. Undefined: there is none. */
export function vendorWords(error: unknown, hearing: RedactionScope): string | undefined {
  return error instanceof VendorFault ? error.words(hearing) : undefined
}

/** Any thrown error, redacted for the caller. */
export function describe(error: unknown, hearing: RedactionScope): unknown {
  return error instanceof VendorFault ? error.told(hearing) : error
}

/** Clients of the Messages format recognise a prompt that is too long only by this text. */
function worded(message: string, code: string | undefined, { paidRequest }: RedactionScope): string {
  const unheard = paidRequest.clientFormat === 'anthropic-messages' && code === 'context_length_exceeded'
  return unheard && !/prompt is too long/i.test(message) ? `prompt is too long: ${message}` : message
}

const DETAIL = /^[a-z]{1,30}(?:_[a-z]{1,30}){0,6}$/

/** Passes only single words, so that nothing else can leak. */
function detailsFor(details: VendorError['details'], hearing: RedactionScope): FaultDetails['errorDetails'] {
  const isWord = (word: string) => DETAIL.test(word) && scrub(word, hearing) === word
  if (!details || !isWord(details.error_code)) return undefined
  const unsupported = details.unsupported?.filter(isWord) ?? []
  return { error_code: details.error_code, ...(unsupported.length > 0 ? { unsupported } : {}) }
}

const PARAM = /^[a-z_][\w.[\]-]{0,99}$/i

/**
 * The field at fault. If the vendor uses another format, field names differ, and it is passed on only if the caller
 * sent a field of that name.
 */
function paramFor(param: string | undefined, hearing: RedactionScope): string | undefined {
  if (param === undefined || !PARAM.test(param) || scrub(param, hearing) !== param) return undefined
  const { clientFormat, sent } = hearing.paidRequest
  if (clientFormat === undefined || clientFormat === hearing.target.protocol) return param
  return sent?.includes(`"${param.split(/[.[]/)[0]}"`) ? param : undefined
}

const BY_WORD: readonly (readonly [RegExp, FaultName])[] = [
  // The operator's account at the vendor is empty or blocked, which is never the caller's fault.
  [/quota|billing|balance|credit/, 'upstream_unavailable'],
  [/rate_?limit|too_many|throttl/, 'upstream_rate_limited'],
  [/overload|unavailable|capacity|busy/, 'upstream_unavailable'],
  [/time_?d?_?out|deadline/, 'upstream_timeout'],
  [/auth|permission|forbidden|api_key/, 'upstream_failed'],
  [/request_too_large/, 'request_too_large'],
  [/invalid|bad_request|too_large/, 'upstream_invalid'],
]

const BY_STATUS: Readonly<Record<number, FaultName>> = {
  400: 'upstream_invalid',
  402: 'upstream_unavailable',
  404: 'upstream_invalid',
  408: 'upstream_timeout',
  409: 'conflict',
  413: 'request_too_large',
  422: 'schema_invalid',
  429: 'upstream_rate_limited',
  503: 'upstream_unavailable',
  504: 'upstream_timeout',
  529: 'upstream_unavailable',
}

const CREDENTIAL = 'it does not accept the credential'
const ACCOUNT = 'our account there is empty'
const MODEL = "it does not know the model: see the route's `model` in the catalog"

const ADDRESS = "it has nothing at this address: see the vendor's `baseUrl` in the catalog"
/** What web servers say themselves, where no API has read the request. */
const NOBODY_HOME = /^(?:404 )?(?:page )?(?:not found)?\.?$/i

/** The fault for an error that a vendor reported inside a 2xx answer or a stream. */
export function vendorFault(error: unknown): Fault {
  // What the model said before is in the stream already.
  const { failedGeneration: _, ...said } = readVendorError(error)
  if (isOurAccount(said.words, said.message, true))
    return new VendorFault('upstream_unavailable', said, { internal: { why: ACCOUNT, alert: true } })
  if (isUnknownModel(said.words, said.message))
    return new VendorFault('upstream_failed', said, { internal: { why: MODEL, alert: true } })
  const words = said.words.join(' ').toLowerCase()
  const byStatus = said.words.map((word) => BY_STATUS[Number(word)]).find((kind) => kind !== undefined)
  const kind =
    BY_WORD.find(([pattern]) => pattern.test(words))?.[1] ??
    byStatus ??
    (knownCode(said.words, '') === undefined ? 'upstream_failed' : 'upstream_invalid')
  return new VendorFault(kind, said, { internal: { why: 'the vendor reported it inside its answer' } })
}

/**
 * A vendor's objection to a credential rather than to the call: it is rejected, its account has no money, or it is rate
 * limited.
 */
export type CredentialFault = 'rejected' | 'out_of_funds' | 'rate_limited'

export interface Refusal {
  readonly fault: Fault
  /** Set if another credential may succeed. */
  readonly credential?: CredentialFault
  /** What the operator must fix: the account, the credential or the catalog's name of the model. */
  readonly ours?: string
  readonly vendorsFault: boolean
}

/**
 * The fault for an unsuccessful status. `model` is empty where none was asked, as with data: there a 404 is an answer.
 */
export function refusal(status: number, said: VendorError | undefined, model: string, later: FaultDetails): Refusal {
  const { words, message } = said ?? { words: [], message: '' }
  const made = (kind: FaultName, more: FaultDetails = {}) =>
    new VendorFault(kind, said ?? { words: [], message: '' }, { ...more, internal: { status } })
  if (said?.as !== undefined) return { fault: made(said.as), vendorsFault: false }
  if (status === 401 || (status === 403 && !isOurAccount(words, message, true)))
    return { fault: made('upstream_failed'), ours: CREDENTIAL, vendorsFault: true, credential: 'rejected' }
  const refused = status >= 400 && status < 500
  if (status === 402 || (refused && isOurAccount(words, message, status !== 429)))
    return { fault: made('upstream_unavailable'), ours: ACCOUNT, vendorsFault: true, credential: 'out_of_funds' }
  if ((status === 400 || status === 404 || status === 410) && isUnknownModel(words, message, model))
    return { fault: made('upstream_failed'), ours: MODEL, vendorsFault: false }
  if (status === 404 && model !== '' && words.length === 0 && NOBODY_HOME.test(message))
    return { fault: made('upstream_failed'), ours: ADDRESS, vendorsFault: false }
  const kind = BY_STATUS[status] ?? (refused ? 'upstream_invalid' : 'upstream_failed')
  const fault = made(kind, status === 429 || status === 503 || status === 529 ? later : {})
  const limited = status === 429 ? { credential: 'rate_limited' as const } : {}
  return { fault, vendorsFault: fault.blame === 'vendor' && status !== 429, ...limited }
}

/** The fault for the account if a vendor rejects its BYOK key; undefined if the key is not the problem. */
export function byokKeyFault({ credential, fault }: Refusal, vendor: string): Fault | undefined {
  const { retryAfterSeconds: wait } = fault.details
  const later = wait === undefined ? {} : { retryAfterSeconds: wait }
  if (credential === undefined) return undefined
  if (credential === 'rate_limited')
    return new Fault('byok_key_limited', {
      message: `This account's BYOK key for "${vendor}" is at its rate limit there. You were not charged; try again shortly.`,
      ...later,
    })
  const message =
    credential === 'out_of_funds'
      ? `The vendor says that the account of your BYOK key for "${vendor}" has no money left. You were not charged.`
      : `The vendor does not accept this account's BYOK key for "${vendor}". Replace or remove it in the console. You were not charged.`
  return new Fault('byok_key_rejected', { message })
}

/** Reads the standard retry-after header. */
export function retryAfterSeconds(headers: Readonly<Record<string, string>>): number | undefined {
  const seconds = Number(headers['retry-after'])
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(Math.ceil(seconds), 3600) : undefined
}

/**
 * By status: the type and the code of an error in the OpenAI and Messages formats. SDKs look for these words.
 */
const WORDS: Readonly<Record<number, readonly [type: string, code: string]>> = {
  400: ['invalid_request_error', 'invalid_request'],
  401: ['authentication_error', 'invalid_api_key'],
  402: ['billing_error', 'insufficient_quota'],
  403: ['permission_error', 'permission_denied'],
  404: ['not_found_error', 'not_found'],
  409: ['conflict_error', 'conflict'],
  413: ['request_too_large', 'request_too_large'],
  422: ['invalid_request_error', 'invalid_request'],
  426: ['invalid_request_error', 'upgrade_required'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
  503: ['overloaded_error', 'overloaded'],
  504: ['timeout_error', 'timeout'],
}
const wordsOf = (status: number) => WORDS[status] ?? ['api_error', 'server_error']

/** The member `error` as SDKs of the OpenAI formats read it. */
export function openaiError({ status, message, details }: Fault) {
  const [type, code] = wordsOf(status)
  const failed = details.failedGeneration === undefined ? {} : { failed_generation: details.failedGeneration }
  return { message, type, param: details.param ?? null, code: details.vendorCode ?? code, ...failed }
}

/** The member `error` as SDKs of the Messages format read it. */
export function messagesError(fault: Fault) {
  const { type, message } = openaiError(fault)
  const { vendorCode, errorDetails } = fault.details
  const details = errorDetails ?? (vendorCode === undefined ? undefined : { error_code: vendorCode })
  return { type, message, ...(details ? { details } : {}) }
}

// Vendor error codes that callers can act on and that SDKs and frameworks look for: one table for all formats. A code
// that is not in it is not passed on, because it may contain anything.

/** Codes that are passed to callers unchanged. */
const CODES: ReadonlySet<string> = new Set([
  // Content that is too long, or that the vendor rejects.
  ...words(
    `context_length_exceeded content_policy_violation content_filter moderation_blocked invalid_prompt cyber_policy`,
  ),
  // Images and files.
  ...words(`invalid_image invalid_image_format invalid_base64_image invalid_image_url invalid_image_mode image_too_large image_too_small
    image_parse_error image_file_too_large image_file_not_found image_content_policy_violation unsupported_image_media_type empty_image_file
    failed_to_download_image unsupported_file file_not_found invalid_file`),
  // Parameters.
  ...words(`unsupported_parameter unknown_parameter missing_required_parameter unsupported_value invalid_value invalid_type invalid_json_schema
    invalid_schema invalid_function_parameters duplicate_value string_above_max_length string_below_min_length array_above_max_length
    array_below_min_length integer_above_max_value integer_below_min_value decimal_above_max_value decimal_below_min_value`),
  // Conversations stored at the vendor.
  ...words(
    `tool_use_failed previous_response_not_found invalid_encrypted_content conversation_locked thread_unsupported_request`,
  ),
])

/** Other vendors' names for some of them. */
const ALIASES: Readonly<Record<string, string>> = {
  context_window_exceeded: 'context_length_exceeded',
  model_context_window_exceeded: 'context_length_exceeded',
  tokens_limit_reached: 'context_length_exceeded',
  content_policy: 'content_policy_violation',
  responsibleaipolicyviolation: 'content_filter',
  data_inspection_failed: 'content_filter',
  inputtextsensitivecontentdetected: 'content_policy_violation',
  inputimagesensitivecontentdetected: 'content_policy_violation',
  unsupported_media_type: 'unsupported_image_media_type',
}

/** Messages of vendors that send no code. */
const SAYINGS: readonly (readonly [RegExp, string])[] = [
  [
    /prompt is too long|maximum context length|context[ _](?:length|window)|input is too long|too many (?:input )?tokens/i,
    'context_length_exceeded',
  ],
  [/content (?:management |filtering |usage )?policy|content exists risk|safety system/i, 'content_policy_violation'],
  [/could not process image|(?:invalid|unsupported) image|image (?:is|was) (?:invalid|not valid)/i, 'invalid_image'],
]

/** The operator's account at the vendor is empty. */
const ACCOUNT_CODES =
  /insufficient_?(?:quota|balance|funds|credit)|billing|exceeded_current_quota|quotaexceeded|arrears/
const ACCOUNT_SAYINGS =
  /credit balance is too low|insufficient (?:balance|quota|credit|funds)|account .{0,80}suspended/i

const MODEL_CODES =
  /\b(?:model_not_(?:found|exist\w*|available|supported)|unknown_model|invalid_model|model_decommissioned|deploymentnotfound|operationnotsupported|invalidendpointormodel\S*)/
const MODEL_SAYINGS =
  /\bmodels?\b.{0,60}(?:not exist|not found|no access|not have access|no longer|removed|retired|decommissioned|not servable|end of life)|\bmodel\W{1,6}has been deprecated|(?:not found the|no such|unknown|invalid|not a valid|to use publisher) model\b|no endpoints found for|with on-demand throughput/i
/** Messages that do not name the model. */
const MODEL_ONLY =
  /^model(?:: \S{1,200}$| not (?:exist|found))|^the provided model identifier is invalid|^this model version has reached the end of its life|^could not resolve the foundation model|model is marked by provider as legacy|has been deprecated.{0,60} to (?:a )?different model/i

/** The code for callers; undefined if the vendor sent none that is known. */
function knownCode(words: readonly string[], message: string): string | undefined {
  for (const word of words) {
    const code = word.toLowerCase()
    if (CODES.has(code)) return code
    if (Object.hasOwn(ALIASES, code)) return ALIASES[code]
  }
  return SAYINGS.find(([pattern]) => pattern.test(message))?.[1]
}

/** `byWords`: also checks the message, if the status does not indicate another cause. */
function isOurAccount(words: readonly string[], message: string, byWords: boolean): boolean {
  return ACCOUNT_CODES.test(words.join(' ').toLowerCase()) || (byWords && ACCOUNT_SAYINGS.test(message))
}

/** Whether the vendor does not know the model named in the catalog. */
export function isUnknownModel(words: readonly string[], message: string, model?: string): boolean {
  if (MODEL_CODES.test(words.join(' ').toLowerCase()) || MODEL_ONLY.test(message)) return true
  // The message must name the requested model: a missing file, for example, is another error.
  return !!model && message.includes(model) && MODEL_SAYINGS.test(message.slice(0, 2_000).replace(model, ''))
}
