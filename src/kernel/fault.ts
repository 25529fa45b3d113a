// Every way a call can go wrong, one row each: the contract's integer code, the HTTP status, who is to blame and the
// text a caller may read. The reference page in docs/reference is generated from this table.

export type Blame = 'caller' | 'vendor' | 'gateway'

const by = (blame: Blame) => (code: number, status: number, text: string) => ({ code, status, blame, text })
const caller = by('caller')
const vendor = by('vendor')
const gateway = by('gateway')

export const FAULTS = {
  request_invalid: caller(10000, 400, 'The request is not valid.'),
  request_too_large: caller(10000, 413, 'The request body is too large.'),
  body_too_slow: caller(10000, 408, 'The request body arrived too slowly.'),
  method_not_allowed: caller(10000, 405, 'This path does not support that method.'),
  no_websocket: caller(10000, 426, 'WebSockets are not offered here.'),
  websocket_required: caller(10000, 426, 'This address accepts only WebSockets.'),
  guardrail_blocked: caller(10000, 400, 'A guardrail of this gateway blocked this call.'),
  schema_invalid: caller(10001, 422, 'The vendor could not process these fields.'),
  key_missing: caller(20000, 401, 'No API key was given. Send it as "Authorization: Bearer <key>".'),
  key_unknown: caller(
    20000,
    401,
    'This API key is not valid. It may be mistyped, revoked or expired; create a new one in the console.',
  ),
  access_denied: caller(20001, 403, 'This key may not do that.'),
  proof_required: caller(20001, 403, 'Confirm that it is you before you do this.'),
  account_inactive: caller(20001, 403, 'This account is suspended or closed.'),
  model_restricted: caller(20001, 403, 'This key may not use that model.'),
  byok_key_rejected: caller(
    20001,
    403,
    "The vendor does not accept this account's BYOK key. Replace or remove it in the console. You were not charged.",
  ),
  tool_sign_in_needed: caller(20001, 403, 'This tool needs a sign-in at its server. Nothing was charged.'),
  not_found: caller(30000, 404, 'There is nothing at this address.'),
  model_unknown: caller(
    30000,
    404,
    'This model does not exist or is not enabled. GET /v1/models lists the models of this key.',
  ),
  job_unknown: caller(30000, 404, 'There is no job with this id.'),
  conflict: caller(30001, 409, 'The request conflicts with an earlier one.'),
  credits_short: caller(40000, 402, 'Not enough credits for the worst case of this call.'),
  rate_limited: caller(40001, 429, 'A limit of this key or account is reached.'),
  byok_key_limited: caller(
    40001,
    429,
    "The vendor limits this account's BYOK key. You were not charged; try again shortly.",
  ),
  upstream_rate_limited: vendor(
    40001,
    429,
    'The vendor is at its rate limit. You were not charged; try again shortly.',
  ),
  upstream_invalid: caller(10000, 400, 'The vendor rejected the request.'),
  upstream_failed: vendor(50000, 502, 'The vendor failed. You were not charged for what it did not deliver.'),
  upstream_garbled: vendor(50000, 502, 'The vendor sent an answer that could not be parsed.'),
  answer_unfit: vendor(
    50000,
    422,
    'The model’s answer is not the requested JSON. It was charged as the vendor billed it.',
  ),
  unavailable: gateway(50001, 503, 'The service is not available right now. Nothing was charged; try again shortly.'),
  upstream_unavailable: vendor(
    50001,
    503,
    'The vendor is not available right now. You were not charged; try again shortly.',
  ),
  upstream_timeout: vendor(50002, 504, 'The vendor was too slow. You were not charged for what it did not deliver.'),
  internal: gateway(50003, 500, 'Something went wrong on our side.'),
}

export type FaultName = keyof typeof FAULTS

export function isFaultName(name: unknown): name is FaultName {
  return typeof name === 'string' && Object.hasOwn(FAULTS, name)
}

export interface FaultDetails {
  /**
   * Public text that replaces the table's: only for what is safe and useful to the caller, such as the field's name.
   */
  message?: string
  /** The request field at fault, for the bodies that have a place for it. */
  param?: string
  /**
   * `error.details` of Messages bodies. SDKs act on the code, for example by sending the whole conversation of a
   * thread.
   */
  errorDetails?: { readonly error_code: string; readonly unsupported?: readonly string[] }
  /** A vendor's code that SDKs and frameworks know, for the bodies that have a place for it. */
  vendorCode?: string
  /** The model's words that were no valid tool call, for the bodies that have a place for them. */
  failedGeneration?: string
  /** When trying again makes sense, in seconds. */
  retryAfterSeconds?: number
  /** Calls in the background do not wait for it either: it may take a month, and only this caller has reached it. */
  readonly isFinal?: boolean
  /** Extra response headers, such as the limit that was reached. */
  headers?: Record<string, string>
  /** The key that was rejected, and its account. */
  whose?: { readonly keyId: string; readonly accountId: string }
  /** What only the log may see. */
  internal?: Record<string, unknown>
  cause?: unknown
  /** Already counted where it was thrown, so it is not logged: there may be thousands a second. */
  readonly counted?: boolean
}

export class Fault extends Error {
  readonly kind: FaultName
  readonly code: number
  readonly status: number
  readonly blame: Blame
  readonly details: FaultDetails
  /** The product of the rejected call, once it is known. */
  product = ''

  constructor(kind: FaultName, details: FaultDetails = {}) {
    const spec = FAULTS[kind]
    const framesMax = Error.stackTraceLimit
    // The stack of a caller's mistake helps nobody, and collecting it is a tenth of the cost of a rejection.
    if (spec.blame === 'caller') Error.stackTraceLimit = 0
    super(details.message ?? spec.text, details.cause === undefined ? undefined : { cause: details.cause })
    Error.stackTraceLimit = framesMax
    this.name = 'Fault'
    this.kind = kind
    this.code = spec.code
    this.status = spec.status
    this.blame = spec.blame
    this.details = details
  }
}

/** Turns anything thrown into a fault. Unexpected errors are `internal`, and their text stays internal. */
export function asFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  return new Fault('internal', { cause: error })
}

export function invalid(message: string, param?: string): Fault {
  return new Fault('request_invalid', param === undefined ? { message } : { message, param })
}

/** The caller closed the connection, so work stops. Nobody is to blame. */
export const CLIENT_CLOSED = new Fault('request_invalid', { message: 'The caller closed the connection.' })

// What a caller should do about each fault: for the reference page and for the console. The compiler asks for a
// sentence.

export const ADVICE: Record<FaultName, string> = {
  request_invalid:
    'Read the message: it names the field and what is allowed. Correct the request; a repetition fails again.',
  request_too_large: 'Send less. The message names the limit if there is one.',
  body_too_slow: 'Send it again over a faster connection, or send less.',
  method_not_allowed: 'Use one of the methods in the `allow` header.',
  no_websocket: 'Send a POST, with `"stream": true` for events. Programs that support both switch automatically.',
  websocket_required: 'Open a WebSocket to it, with the key in the `Authorization` header of the handshake.',
  guardrail_blocked:
    'The message names the guardrail, and may say why. Change the texts; a repetition is blocked again. Ask the operator if you think that the block is wrong.',
  schema_invalid:
    'The vendor understood the request but cannot process it. Read the message and change the fields that it names.',
  key_missing:
    'Send the header `Authorization: Bearer <key>`, or `x-api-key`. A proxy between you and the gateway may have removed it.',
  key_unknown:
    'Check for missing characters, for the right gateway address, and in the console whether the key was revoked or has expired.',
  access_denied:
    'The key may not do this: another account owns the job, the key is restricted, or your address is outside its ranges.',
  proof_required:
    'Only people in the console see this: the header `x-tollgate-proof` names what to give (`passkey`, `totp`, `recovery`, `password`, `sso`, or `enrol` to set one up). Give it, then repeat the request.',
  account_inactive:
    'The message says why, and whom to ask. A repetition fails until the operator reopens the account; its credits stay.',
  model_restricted:
    'Use a model of `GET /v1/models` with this key, or ask an owner of the key’s account to allow this one.',
  byok_key_rejected:
    'The owner of the account must replace or remove its BYOK key for this vendor, or allow calls with the gateway’s credential at the full price.',
  tool_sign_in_needed:
    'The message has the address at which the member of this key signs in, once. For a key without a member, an owner or admin of the account signs in.',
  not_found: 'Check the path. Analytics and social paths are listed in the reference.',
  model_unknown: 'Take the id from `GET /v1/models`. Display names are not ids.',
  job_unknown: 'Use the digits of `data.jobId` as a string: they are too long for a JavaScript number.',
  conflict:
    'The same `Idempotency-Key` came with another body, or its first call is still running; or the job can no longer be cancelled. The message says which.',
  credits_short:
    'The message states what the call needs and what is available. Add credits, or ask for less: a smaller `max_tokens` makes a smaller hold.',
  rate_limited:
    'Wait for `retry-after` seconds. The header `x-tollgate-limit` names the limit. Waiting a moment does not help with a spending limit; it has `x-should-retry: false`.',
  byok_key_limited:
    'Wait for `retry-after` seconds. The limit belongs to your BYOK key at the vendor; raise it there, or allow calls with the gateway’s credential.',
  upstream_rate_limited: 'Wait for `retry-after` seconds and try again. Nothing was charged.',
  upstream_invalid:
    'The vendor rejected the request, and the message is the vendor’s. Correct the request; a repetition fails again.',
  upstream_failed: 'Try again after a moment. If it keeps failing, tell the operator the request id.',
  upstream_garbled: 'Try again. If it keeps failing, tell the operator the request id.',
  answer_unfit:
    'The model did not follow the schema. Let the answer be repaired (`x-tollgate-json: repair`), simplify the schema, or use another model.',
  unavailable: 'Wait for `retry-after` seconds and try again. Nothing was charged.',
  upstream_unavailable: 'Wait for `retry-after` seconds and try again, or use another model.',
  upstream_timeout: 'Try again, ask for less output, or use `stream: true`, so that the answer begins sooner.',
  internal: 'Try again once. If it keeps failing, tell the operator the request id: the log has the reason.',
}

/** A short form of the value that was sent, for an error message. */
export function valueWords(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  if (value === '') return 'an empty string'
  if (typeof value === 'string')
    return `the string ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`
  return String(value)
}
