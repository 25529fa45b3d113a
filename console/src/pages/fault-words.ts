// What is known of each fault by its name: put in by the build, from the table that the server answers by.
import type { FaultName } from '../../../src/kernel/fault.ts'

declare const FAULT_WORDS: Record<string, { text: string; advice: string }>

/** As a label; the compiler asks for one of every fault. */
const TITLES: Readonly<Record<FaultName, string>> = {
  request_invalid: 'Invalid request',
  request_too_large: 'Request too large',
  body_too_slow: 'Upload too slow',
  method_not_allowed: 'Method not allowed',
  no_websocket: 'No WebSockets',
  websocket_required: 'Needs a WebSocket',
  guardrail_blocked: 'Blocked by a guardrail',
  schema_invalid: 'Invalid fields',
  key_missing: 'No API key',
  key_unknown: 'Unknown API key',
  access_denied: 'Access denied',
  proof_required: 'Proof needed',
  account_inactive: 'Account not active',
  model_restricted: 'Model not allowed',
  byok_key_rejected: 'BYOK key rejected',
  tool_sign_in_needed: 'Sign-in at the tool server needed',
  not_found: 'Not found',
  model_unknown: 'Unknown model',
  job_unknown: 'Unknown job',
  conflict: 'Conflict',
  credits_short: 'Not enough credits',
  rate_limited: 'Rate limit',
  byok_key_limited: 'BYOK key rate limit',
  upstream_rate_limited: 'Vendor rate limit',
  upstream_invalid: 'Rejected by the vendor',
  upstream_failed: 'Vendor error',
  upstream_garbled: 'Unreadable vendor response',
  answer_unfit: 'Answer does not match the JSON schema',
  unavailable: 'Gateway unavailable',
  upstream_unavailable: 'Vendor unavailable',
  upstream_timeout: 'Vendor timeout',
  internal: 'Gateway error',
}

export const faultTitle = (name: string): string =>
  Object.hasOwn(TITLES, name) ? TITLES[name as FaultName] : name.replaceAll('_', ' ') // it is one of its names
export const faultText = (name: string): string | undefined => FAULT_WORDS[name]?.text
/** The advice is written for the reference, with code marked by backticks. */
export const faultAdvice = (name: string): string | undefined => FAULT_WORDS[name]?.advice.replaceAll('`', '')
export const faultPage = (name: string) => `/docs/reference/errors#${name}`
