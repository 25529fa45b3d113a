// What must never come back from a gateway that is well, whatever it is sent.
import type { Surface } from '../../src/catalog/endpoint.ts'
import type { FuzzedRequest } from './requests.ts'

export interface Answer {
  readonly status: number
  readonly type: string
  readonly text: string
  /** Kept where secrets are looked for. */
  readonly headers: string
  readonly requestId: string | undefined
  readonly ms: number
  /** What was wrong with the bytes around it. */
  readonly wrong?: string
}

const INTERNAL =
  /\bat [\w.<>]+ \(|\bat file:|node:internal|\.ts:\d+|\bselect \w+ from\b|\binsert into\b|SQLSTATE|pg_catalog|ECONNREFUSED|Cannot read propert|\/node_modules\/|violates .* constraint/i

const isText = (value: unknown) => typeof value === 'string' && value !== ''
const isCode = (value: unknown) => Number.isInteger(value)

type Body = Record<string, unknown> & { readonly error?: Record<string, unknown> }

/** The members that each door's refusals have. */
const SHAPES: Readonly<Record<Surface, (body: Body) => boolean>> = {
  native: ({ success, error, requestId }) =>
    success === false && isCode(error?.code) && isText(error?.message) && isText(requestId),
  messages: ({ type, error, request_id: id, code, message }) =>
    type === 'error' && isText(error?.type) && isText(error?.message) && isText(id) && isCode(code) && isText(message),
  responses: ({ code, message, type, requestId, error }) =>
    isCode(code) && isText(message) && type === 'api_error' && isText(requestId) && isText(error?.message),
  chat: ({ code, message, type, requestId }) =>
    isCode(code) && isText(message) && type === 'api_error' && isText(requestId),
  gemini: ({ error }) => isCode(error?.code) && isText(error?.message) && isText(error?.status),
  images: ({ code, message, type }) => isCode(code) && isText(message) && type === 'api_error',
}

/** Undefined: as it should be. */
export function fault(request: FuzzedRequest, answer: Answer, slowMsMax: number): string | undefined {
  const { status, type, text, ms, requestId } = answer
  if (answer.wrong !== undefined) return `${status}, ${answer.wrong}`
  if (status >= 500 && !request.script) return `${status} ${text.slice(0, 300)}`
  if (ms > slowMsMax) return `took ${Math.round(ms)} ms`
  if (!requestId) return `${status} without x-request-id`
  if (status < 400 || request.method === 'HEAD') return undefined
  if (INTERNAL.test(text)) return `${status} with internal text: ${text.slice(0, 300)}`
  if (!type.startsWith('application/json')) return `${status} as ${type}: ${text.slice(0, 300)}`
  let body: Body
  try {
    body = JSON.parse(text) as Body
  } catch {
    return `${status} without JSON: ${text.slice(0, 300)}`
  }
  const shapes = request.surface ? [SHAPES[request.surface]] : Object.values(SHAPES)
  return shapes.some((shape) => shape(body)) ? undefined : `${status} in another shape: ${text.slice(0, 300)}`
}
