// Writes a fault as the error body that the contract defines for its surface.

import type { Surface } from '../../catalog/endpoint.ts'
import type { Fault } from '../../kernel/fault.ts'
import type { Log } from '../../kernel/log.ts'
import { SURFACES } from '../../protocols/text/formats.ts'
import { openaiError } from '../../protocols/vendor-fault.ts'

interface BodyOptions {
  readonly requestId: string
  /**
   * The request has an SDK's header or came by an alias. The flat bodies then also have the field that the SDK reads.
   */
  readonly sdk: boolean
}

export function faultBody(fault: Fault, surface: Surface, { requestId, sdk }: BodyOptions): string {
  const { code, message } = fault
  const own = SURFACES[surface]
  if (own) return JSON.stringify(own.errorBody(fault, requestId))
  const nested = openaiError(fault)
  switch (surface) {
    case 'native':
      return JSON.stringify({ success: false, error: { code, message }, requestId })
    case 'responses':
      return JSON.stringify({ code, message, type: 'api_error', requestId, error: nested })
    case 'chat':
      return JSON.stringify({ code, message, type: 'api_error', requestId, ...(sdk ? { error: nested } : {}) })
    default:
      return JSON.stringify({ code, message, type: 'api_error', ...(sdk ? { requestId, error: nested } : {}) })
  }
}

/** The body in the shape that the SDKs read. */
export function sdkBody(fault: Fault, surface: Surface, requestId: string): string {
  return faultBody(fault, surface, { requestId, sdk: true })
}

/** Some SDKs read all answers below the first part of their addresses, also at paths without an endpoint. */
export function surfaceOf(path: string, surface: Surface = 'native'): Surface {
  if (surface !== 'native') return surface
  const first = /^\/+([a-z]+)(?:[/?]|$)/.exec(path)?.[1]
  return Object.values(SURFACES).find(({ below }) => below === first)?.name ?? surface
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

/** Logs the gateway's own faults with their cause for the operator. The caller gets only the general message. */
export function logFault(fault: Fault, requestId: string, log: Log): void {
  if ((fault.blame === 'gateway' || fault.kind === 'internal') && !fault.details.counted)
    log.error({ requestId, fault: fault.kind, ...fault.details.internal, error: fault.cause }, 'fault')
}

const SDK_AGENTS = /\bai-sdk\/|\bai\/\d|OpenAI\/|Anthropic\//i

export function hasSdkMark(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  return headers['x-stainless-lang'] !== undefined || SDK_AGENTS.test(String(headers['user-agent'] ?? ''))
}
