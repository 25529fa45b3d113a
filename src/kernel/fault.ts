// Every way a call can go wrong, one row each: the contract's integer code, the HTTP status, who is to blame and the
// text a caller may read. The reference page in docs/reference is generated from this table.

export type Blame = 'caller' | 'upstream' | 'us'

interface FaultSpec {
  readonly code: number
  readonly status: number
  readonly blame: Blame
  readonly text: string
}

export const FAULTS = {
  request_invalid: { code: 10000, status: 400, blame: 'caller', text: 'The request is not valid.' },
  request_too_large: { code: 10000, status: 413, blame: 'caller', text: 'The request body is too large.' },
  body_too_slow: { code: 10000, status: 408, blame: 'caller', text: 'The request body arrived too slowly.' },
  method_not_allowed: { code: 10000, status: 405, blame: 'caller', text: 'This path does not support that method.' },
  schema_invalid: { code: 10001, status: 422, blame: 'caller', text: 'The vendor could not process these fields.' },
  key_missing: {
    code: 20000,
    status: 401,
    blame: 'caller',
    text: 'No API key was given. Send it as "Authorization: Bearer <key>".',
  },
  key_unknown: {
    code: 20000,
    status: 401,
    blame: 'caller',
    text: 'This API key is not valid. It may be mistyped, revoked or expired; create a new one in the console.',
  },
  access_denied: { code: 20001, status: 403, blame: 'caller', text: 'This key may not do that.' },
  model_restricted: { code: 20001, status: 403, blame: 'caller', text: 'This key may not use that model.' },
  own_key_refused: {
    code: 20001,
    status: 403,
    blame: 'caller',
    text: "The vendor does not accept this account's own key. Replace or remove it in the console. You were not charged.",
  },
  not_found: { code: 30000, status: 404, blame: 'caller', text: 'There is nothing at this address.' },
  model_unknown: {
    code: 30000,
    status: 404,
    blame: 'caller',
    text: 'This model does not exist or is not enabled. GET /v1/models lists the models of this key.',
  },
  job_unknown: { code: 30000, status: 404, blame: 'caller', text: 'There is no job with this id.' },
  conflict: { code: 30001, status: 409, blame: 'caller', text: 'The request conflicts with an earlier one.' },
  credits_short: {
    code: 40000,
    status: 402,
    blame: 'caller',
    text: 'Not enough credits for the worst case of this call.',
  },
  rate_limited: { code: 40001, status: 429, blame: 'caller', text: 'A limit of this key or account is reached.' },
  own_key_limited: {
    code: 40001,
    status: 429,
    blame: 'caller',
    text: "The vendor limits this account's own key. You were not charged; try again shortly.",
  },
  upstream_rate_limited: {
    code: 40001,
    status: 429,
    blame: 'upstream',
    text: 'The vendor is at its rate limit. You were not charged; try again shortly.',
  },
  upstream_invalid: { code: 10000, status: 400, blame: 'caller', text: 'The vendor rejected the request.' },
  upstream_failed: {
    code: 50000,
    status: 502,
    blame: 'upstream',
    text: 'The vendor failed. You were not charged for what it did not deliver.',
  },
  upstream_garbled: {
    code: 50000,
    status: 502,
    blame: 'upstream',
    text: 'The vendor sent an answer that could not be parsed.',
  },
  unavailable: {
    code: 50001,
    status: 503,
    blame: 'us',
    text: 'The service is not available right now. Nothing was charged; try again shortly.',
  },
  upstream_unavailable: {
    code: 50001,
    status: 503,
    blame: 'upstream',
    text: 'The vendor is not available right now. You were not charged; try again shortly.',
  },
  upstream_timeout: {
    code: 50002,
    status: 504,
    blame: 'upstream',
    text: 'The vendor was too slow. You were not charged for what it did not deliver.',
  },
  internal: { code: 50003, status: 500, blame: 'us', text: 'Something went wrong on our side.' },
} as const satisfies Record<string, FaultSpec>

export type FaultName = keyof typeof FAULTS

export function isFaultName(name: unknown): name is FaultName {
  return typeof name === 'string' && Object.hasOwn(FAULTS, name)
}

export interface FaultDetails {
  /** Public text that replaces the table's: only for what is safe and useful to the caller, such as the field's name. */
  message?: string
  /** The request field at fault, for the bodies that have a place for it. */
  param?: string
  /** `error.details` of Messages bodies. SDKs act on the code, for example by sending the whole conversation of a thread. */
  errorDetails?: { readonly error_code: string; readonly unsupported?: readonly string[] }
  /** A vendor's code that SDKs and frameworks know, for the bodies that have a place for it. */
  vendorCode?: string
  /** When trying again makes sense, in seconds. */
  retryAfterSeconds?: number
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
