// What a caller should do about each fault: for the reference page and for the console. The compiler asks for a sentence.
import type { FaultName } from './fault.ts'

export const ADVICE: Record<FaultName, string> = {
  request_invalid:
    'Read the message: it names the field and what is allowed. Correct the request; a repetition fails again.',
  request_too_large: 'Send less. The message names the limit if there is one.',
  body_too_slow: 'Send it again over a faster connection, or send less.',
  method_not_allowed: 'Use one of the methods in the `allow` header.',
  schema_invalid:
    'The vendor understood the request but cannot process it. Read the message and change the fields that it names.',
  key_missing:
    'Send the header `Authorization: Bearer <key>`, or `x-api-key`. A proxy between you and the gateway may have removed it.',
  key_unknown:
    'Check for missing characters, for the right gateway address, and in the console whether the key was revoked or has expired.',
  access_denied:
    'The key may not do this: another account owns the job, the key is restricted, or your address is outside its ranges.',
  model_restricted: 'Use a model of `GET /v1/models` with this key, or ask whoever manages the key to allow this one.',
  own_key_refused:
    'The owner of the account must replace or remove its own key for this vendor, or allow calls with the gateway’s credential at the full price.',
  not_found: 'Check the path. Analytics and social paths are listed in the reference.',
  model_unknown: 'Take the id from `GET /v1/models`. Display names are not ids.',
  job_unknown: 'Use the digits of `data.jobId` as a string: they are too long for a JavaScript number.',
  conflict:
    'The same `Idempotency-Key` came with another body, or its first call is still running; or the job can no longer be cancelled. The message says which.',
  credits_short:
    'The message states what the call needs and what is available. Add credits, or ask for less: a smaller `max_tokens` makes a smaller hold.',
  rate_limited:
    'Wait for `retry-after` seconds. The header `x-tollgate-limit` names the limit. Waiting a moment does not help with a spending limit; it has `x-should-retry: false`.',
  own_key_limited:
    'Wait for `retry-after` seconds. The limit belongs to your own key at the vendor; raise it there, or allow calls with the gateway’s credential.',
  upstream_rate_limited: 'Wait for `retry-after` seconds and try again. Nothing was charged.',
  upstream_invalid:
    'The vendor rejected the request, and the message is the vendor’s. Correct the request; a repetition fails again.',
  upstream_failed: 'Try again after a moment. If it keeps failing, tell the operator the request id.',
  upstream_garbled: 'Try again. If it keeps failing, tell the operator the request id.',
  unavailable: 'Wait for `retry-after` seconds and try again. Nothing was charged.',
  upstream_unavailable: 'Wait for `retry-after` seconds and try again, or use another model.',
  upstream_timeout: 'Try again, ask for less output, or use `stream: true`, so that the answer begins sooner.',
  internal: 'Try again once. If it keeps failing, tell the operator the request id: the log has the reason.',
}
