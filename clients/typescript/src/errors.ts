// What can go wrong, as classes: a program asks `instanceof`, a person reads the message.

/** Every error of this package. Of a refusal it says what the gateway said. */
export class TollgateError extends Error {
  /** The contract's number, such as 40000; 0 where the gateway did not answer. */
  readonly code: number
  /** The HTTP status; 0 where there is none. */
  readonly status: number
  readonly requestId: string | undefined
  /** Seconds until trying again makes sense. */
  readonly retryAfter: number | undefined

  constructor(message: string, told: Partial<Told> = {}, options?: { cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
    this.code = told.code ?? 0
    this.status = told.status ?? 0
    this.requestId = told.requestId
    this.retryAfter = told.retryAfter
  }
}

/** What an answer said of itself. */
export interface Told {
  readonly code: number
  readonly status: number
  readonly requestId: string | undefined
  readonly retryAfter: number | undefined
  /** Of 402. */
  readonly required: string | undefined
  readonly available: string | undefined
}

/** 400, 413 or 422: the request itself is wrong. */
export class InvalidRequestError extends TollgateError {}
/** 401: the key is missing, mistyped, revoked or expired. */
export class AuthenticationError extends TollgateError {}
/** 403: the key may not do that. */
export class AccessDeniedError extends TollgateError {}
/** 404: no such model, job, user or path. */
export class NotFoundError extends TollgateError {}
/** 409: it conflicts with an earlier request. */
export class ConflictError extends TollgateError {}
/** 429: a limit is reached. */
export class RateLimitError extends TollgateError {}
/** 5xx: the gateway or a vendor failed. */
export class ServerError extends TollgateError {}
/** No answer came, or half of one. */
export class ConnectionError extends TollgateError {}
/** The time that was given is over. */
export class TimeoutError extends TollgateError {}

/** 402: the credits do not cover the call. Nothing was charged. */
export class InsufficientCreditsError extends TollgateError {
  /** Credits that the call needs, as a decimal. */
  readonly required: string | undefined
  /** Credits that are there, as a decimal. */
  readonly available: string | undefined

  constructor(message: string, told: Partial<Told>) {
    super(message, told)
    this.required = told.required
    this.available = told.available
  }
}

/** A job ended without a result. Nothing was charged for it. */
export class JobFailedError extends TollgateError {
  readonly jobId: string

  constructor(message: string, jobId: string, requestId?: string) {
    super(message, { requestId })
    this.jobId = jobId
  }
}

const BY_STATUS: Readonly<Record<number, typeof TollgateError>> = {
  400: InvalidRequestError,
  401: AuthenticationError,
  402: InsufficientCreditsError,
  403: AccessDeniedError,
  404: NotFoundError,
  409: ConflictError,
  413: InvalidRequestError,
  422: InvalidRequestError,
  429: RateLimitError,
}

interface Refusal {
  readonly code?: unknown
  readonly message?: unknown
  readonly error?: { readonly code?: unknown; readonly message?: unknown }
}

/** The error in an answer, whichever of the contract's bodies it has. */
export function refusalOf(status: number, headers: Headers, text: string): TollgateError {
  let body: Refusal = {}
  try {
    body = (JSON.parse(text) as Refusal | null) ?? {}
  } catch {
    // Something between us and the gateway answered in its own words.
  }
  const number = [body.code, body.error?.code].find((code) => typeof code === 'number')
  const said = [body.message, body.error?.message].find((message) => typeof message === 'string')
  const kind = BY_STATUS[status] ?? (status >= 500 ? ServerError : TollgateError)
  return new kind(typeof said === 'string' ? said : `The gateway answered ${status}.`, {
    status,
    code: typeof number === 'number' ? number : 0,
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfter: secondsOf(headers),
    required: headers.get('x-tollgate-required') ?? undefined,
    available: headers.get('x-tollgate-available') ?? undefined,
  })
}

export function secondsOf(headers: Headers): number | undefined {
  const exact = Number(headers.get('retry-after-ms') ?? Number.NaN) / 1000
  const seconds = Number.isFinite(exact) ? exact : Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) ? seconds : undefined
}
