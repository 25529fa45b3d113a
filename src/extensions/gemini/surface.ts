// What Google's SDKs read besides answers: errors, keys, lists of models, and what to use instead of what is not here.
import type { Model } from '../../catalog/document.ts'
import { integer, object, string } from '../../catalog/endpoint.ts'
import type { Fault } from '../../kernel/fault.ts'
import type { FormatSurface } from '../../protocols/text/format.ts'

/** Google's word for a status. */
const STATUS: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  409: 'ABORTED',
  413: 'OUT_OF_RANGE',
  422: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** With details of the types that its SDKs know. */
export function errorBody({ status, code, message, details }: Fault, requestId: string) {
  const typed = (name: string, members: object) => ({ '@type': `type.googleapis.com/google.rpc.${name}`, ...members })
  const { param, retryAfterSeconds: wait } = details
  const error = {
    code: status,
    message,
    status: STATUS[status] ?? 'INTERNAL',
    details: [
      typed('ErrorInfo', {
        reason: details.vendorCode ?? String(code),
        domain: 'tollgate',
        metadata: { code: String(code) },
      }),
      typed('RequestInfo', { requestId }),
      ...(param === undefined
        ? []
        : [typed('BadRequest', { fieldViolations: [{ field: param, description: message }] })]),
      ...(wait === undefined ? [] : [typed('RetryInfo', { retryDelay: `${wait}s` })]),
    ],
  }
  return { error }
}

const FILES = 'Files are not offered in this format. Send them as inlineData, or as fileData by their address.'
const BATCHES = 'Batches are not offered in this format. POST /v1/batches takes a file of lines.'

/** The actions that an embedding model, and one of text, has. */
const METHODS = {
  embedding: ['embedContent', 'batchEmbedContents'],
  text: ['generateContent', 'streamGenerateContent', 'countTokens'],
}

export const surface: FormatSurface = {
  name: 'gemini',
  below: 'gemini',
  errorBody,
  errorSchema: object({
    error: object({ code: integer, message: string, status: string, details: { type: 'array', items: object({}) } }),
  }),
  // Its examples for curl have the key in the address.
  keyOf: (headers, query) => headers['x-goog-api-key'] ?? new URLSearchParams(query).get('key') ?? undefined,
  insteadOf(parts) {
    if (parts.includes('files')) return FILES
    const isBatch = parts[1] === 'batches' || parts.some((part) => /:(?:async)?batch(?:Generate|Embed)/i.test(part))
    return isBatch ? BATCHES : undefined
  },
  models: {
    offers: ({ clientFormats, type }) => clientFormats.includes('gemini') || type === 'embedding',
    entry(uid, { name, version, limits, type }: Model) {
      const { contextTokens, outputTokensMax } = limits
      return {
        name: `models/${uid}`,
        baseModelId: uid,
        version: version ?? '1',
        displayName: name,
        ...(contextTokens === undefined ? {} : { inputTokenLimit: contextTokens }),
        ...(outputTokensMax === undefined ? {} : { outputTokenLimit: outputTokensMax }),
        supportedGenerationMethods: type === 'embedding' ? METHODS.embedding : METHODS.text,
      }
    },
    list: (entries) => `{"models":[${entries.join(',')}]}`,
  },
}
