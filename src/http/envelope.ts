// A fault as the body that its surface promises, to the letter of the contract.
import type { Fault } from '../kernel/fault.ts'
import type { Surface } from '../protocols/protocol.ts'

/** What the official SDKs call an error, by the contract's code and status. */
const SDK_TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  409: 'conflict_error',
  413: 'request_too_large',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  500: 'api_error',
  502: 'api_error',
  503: 'overloaded_error',
  504: 'timeout_error',
}

const SDK_CODES: Record<number, string> = {
  10000: 'invalid_request',
  10001: 'validation_error',
  20000: 'invalid_api_key',
  20001: 'permission_denied',
  30000: 'not_found',
  30001: 'conflict',
  40000: 'insufficient_quota',
  40001: 'rate_limit_exceeded',
  50000: 'upstream_error',
  50001: 'overloaded',
  50002: 'timeout',
  50003: 'server_error',
}

export interface BodyOptions {
  readonly requestId: string
  /** The request bears an SDK's mark or came by an alias: the flat bodies then carry the member that the SDK reads. */
  readonly sdk: boolean
}

export function faultBody(fault: Fault, surface: Surface, { requestId, sdk }: BodyOptions): string {
  const { code, message, status } = fault
  const type = SDK_TYPES[status] ?? 'api_error'
  const nested = { message, type, param: fault.details.param ?? null, code: SDK_CODES[code] ?? 'error' }
  switch (surface) {
    case 'native':
      return JSON.stringify({ success: false, error: { code, message }, requestId })
    case 'messages':
      return JSON.stringify({ type: 'error', error: { type, message }, request_id: requestId, code, message })
    case 'responses':
      return JSON.stringify({ code, message, type: 'api_error', requestId, error: nested })
    case 'chat':
      return JSON.stringify({ code, message, type: 'api_error', requestId, ...(sdk ? { error: nested } : {}) })
    case 'images':
      return JSON.stringify({ code, message, type: 'api_error', ...(sdk ? { requestId, error: nested } : {}) })
  }
}

export function faultHeaders(fault: Fault): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/json; charset=utf-8',
    ...fault.details.headers,
  }
  const wait = fault.details.retryAfterSeconds ?? (fault.status === 429 || fault.status === 503 ? 1 : undefined)
  if (wait !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(wait)))
    headers['retry-after-ms'] = String(Math.max(1, Math.round(wait * 1000)))
  }
  return headers
}

const SDK_AGENTS = /\bai-sdk\/|\bai\/\d|OpenAI\/|Anthropic\//i

export function hasSdkMark(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  return headers['x-stainless-lang'] !== undefined || SDK_AGENTS.test(String(headers['user-agent'] ?? ''))
}
