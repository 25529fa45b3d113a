// A vendor's "no" to a request, in whatever words its format uses.

export class Refusal extends Error {
  readonly status: number
  readonly param: string | null
  readonly code: string | null

  constructor(status: number, message: string, param: string | null = null, code: string | null = null) {
    super(message)
    this.status = status
    this.param = param
    this.code = code
  }
}

/** A request that is not valid: most refusals. */
export const invalid = (message: string, param: string | null = null, code: string | null = 'invalid_value') =>
  new Refusal(400, message, param, code)

export const missing = (param: string) =>
  invalid(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter')

export const unknown = (param: string) => invalid(`Unknown parameter: '${param}'.`, param, 'unknown_parameter')

export const notAmong = (values: readonly string[], value: unknown, param: string) =>
  invalid(
    `Invalid value: '${String(value)}'. Supported values are: ${values.map((one) => `'${one}'`).join(', ')}.`,
    param,
  )

export const notOfType = (param: string, expected: string) =>
  invalid(`Invalid type for '${param}': expected ${expected}.`, param, 'invalid_type')

/** Sixteen tokens are the least that can be asked for. */
export function checkTokensMost(param: string, limit: number | undefined): void {
  if (limit === undefined || limit >= 16) return
  const message = `Invalid '${param}': integer below minimum value. Expected a value >= 16, but got ${limit} instead.`
  throw invalid(message, param, 'integer_below_min_value')
}

const OPENAI_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

const OPENAI_CODES: Readonly<Record<number, string>> = {
  401: 'invalid_api_key',
  402: 'insufficient_quota',
  404: 'model_not_found',
  429: 'rate_limit_exceeded',
}

/** The error body of the chat, Responses and image APIs. */
export function openaiError(status: number, message: string, param: string | null = null, code: string | null = null) {
  const type = OPENAI_TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
  return { error: { message, type, param, code: code ?? OPENAI_CODES[status] ?? null } }
}

const MESSAGES_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** The error body of the Messages API, which puts codes into details. */
export function messagesError(
  status: number,
  message: string,
  _param: string | null = null,
  code: string | null = null,
) {
  const type = MESSAGES_TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
  const details = code === null ? {} : { details: { error_code: code } }
  return { type: 'error', error: { type, message, ...details }, request_id: 'req_simulated' }
}

const GOOGLE_STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** The error body of Google's APIs. */
export function googleError(status: number, message: string) {
  return { error: { code: status, message, status: GOOGLE_STATUSES[status] ?? 'INTERNAL' } }
}
