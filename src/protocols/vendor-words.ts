// A vendor's error message: read from the formats in use, and redacted so that a caller cannot learn whose account, key
// or address is behind the gateway. The caller's own names and ids stay.

import type { FaultName } from '../kernel/fault.ts'
import { isObject, jsonIn, objectOf, text } from '../kernel/json.ts'
import { redact, withoutContent } from '../kernel/redact.ts'
import type { PaidRequest, Target } from './protocol.ts'

/** A vendor's error before redaction. */
export interface VendorError {
  readonly message: string
  /** The vendor's names for the error, from `type`, `code`, `status` and `details.error_code`. */
  readonly words: readonly string[]
  readonly param?: string
  /** The model's words that the vendor could not read as a tool call (Groq). */
  readonly failedGeneration?: string
  /** What it means, where the vendor's status does not say so. */
  readonly as?: FaultName
  /** `error.details` of the Messages format: a code that SDKs act on, and the unsupported features. */
  readonly details?: { readonly error_code: string; readonly unsupported?: readonly string[] }
}

/** For whom the message is redacted: the caller knows the names it sent, but must learn nothing about the vendor. */
export interface RedactionScope {
  readonly paidRequest: Pick<PaidRequest, 'product' | 'clientFormat' | 'sent'>
  readonly target: Target
}

/** Names that vendors use in messages for themselves, their products and their model families. */
const VENDOR_NAMES =
  /\b(open\s?ai|chat\s?gpt|gpt-[\w.-]+|azure|anthropic|claude(?:-[\w.-]+)?|deep\s?seek(?:-[\w.-]+)?|gemini(?:-[\w.-]+)?|google(?:apis)?|vertex(?:\s?ai)?|moonshot(?:\s?ai)?|kimi(?:-[\w.-]+)?|mini\s?max(?:-[\w.-]+)?|volc(?:engine)?|byte\s?dance|bytedance|seedance|ark|bedrock|open\s?router|twitter|similar\s?web)\b/gi

/** Patterns of credentials, whole or partial. */
const KEYS: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, '[key]'],
  // Field names can look like these too, but have no digits.
  [/\b(?:sk|pk|rk|api|key|ak|xai|gsk)[-_](?=[\w*.-]{0,200}[\d*])[\w*.-]{6,}/gi, '[key]'],
  [/\bAIza[\w-]{10,}/g, '[key]'],
  [/\beyJ[\w-]{8,400}\.[\w-]+\.[\w-]*/g, '[key]'],
]

const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\barn:aws[\w-]*:[\w:/.-]+/gi, '[id]'],
  [/(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+/g, '[address]'],
  [/[a-z0-9+.-]{1,30}:\/\/[^\s"'<>)\]]+/gi, '[address]'],
  [
    /(?<![a-z0-9.-])[a-z0-9.-]*\.(?:com|net|org|io|ai|dev|cn|cloud|app|internal|local|lan|corp|svc|intranet)(?::\d+)?(?:\/[^\s"'<>)\]]*)?\b/gi,
    '[address]',
  ],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g, '[address]'],
  [/(?<![\w:])(?:[0-9a-f]{1,4}:){1,7}:(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?(?!\w)/gi, '[address]'],
  [/(?<![\w:])(?:[0-9a-f]{1,4}:){5,7}[0-9a-f]{1,4}(?!\w)/gi, '[address]'],
  ...KEYS,
  [/\b[0-9a-f]{32,}\b/gi, '[id]'],
  [/\bprojects\/[\w.:-]+/gi, 'projects/[id]'],
  [
    /\b(?:org|proj|acct|account|user|project|team|ws|wrkspc|req|resp|chatcmpl|cf-ray)[-_](?=[\w-]{0,200}\d)[\w-]{6,}/gi,
    '[id]',
  ],
  [
    /(?<![\w-])(?=[\w-]{0,200}\d)(?<=\b(?:organi[sz]ation|account|project|tenant|team)(?:\s+id)?(?:\s*[:=])?\s+["'`]?)[\w-]{6,}/gi,
    '[id]',
  ],
  [VENDOR_NAMES, 'the vendor'],
]

const CHARS_MAX = 500
/** How many words of a message are looked up in the caller's request, which may have megabytes. */
const LOOKUPS_MAX = 20

/** Vendor text that a caller may read. */
export function scrub(message: string, { paidRequest, target }: RedactionScope): string {
  const known = withoutSecrets(message, target).replaceAll(target.model, paidRequest.product)
  const isOwn = ownWords(paidRequest)
  const kept: string[] = []
  let clean = known.slice(0, CHARS_MAX * 4).replaceAll('\0', ' ')
  for (const [pattern, mark] of SECRETS)
    clean = clean.replace(pattern, (found: string, ...rest: unknown[]) => {
      const [at, whole] = rest.slice(-2) as [number, string]
      // Replaced by a placeholder, so that no other pattern matches a part of it.
      return isOwn(found, whole, at) ? `\0${kept.push(found) - 1}\0` : mark
    })
  clean = clean.replace(/\0(\d{1,4})\0/g, (_, index: string) => kept[Number(index)] ?? '')
  clean = clean.replace(/\s+/g, ' ').trim()
  return clean.length > CHARS_MAX ? `${clean.slice(0, CHARS_MAX)}…` : clean
}

/** For operators, who may know the vendor: removes only what looks like a credential. */
export function withoutKeys(said: string): string {
  return KEYS.reduce((text, [pattern, mark]) => text.replace(pattern, mark), said)
}

/** Vendor text that an operator may read later: without secrets, addresses and the caller's own content. */
export function forOperators(said: string, { paidRequest, target }: RedactionScope): string {
  let clean = withoutSecrets(said, target).slice(0, CHARS_MAX * 4)
  for (const [pattern, mark] of SECRETS) if (pattern !== VENDOR_NAMES) clean = clean.replace(pattern, mark)
  return withoutContent(clean, paidRequest.sent).slice(0, CHARS_MAX).toWellFormed()
}

/** Removes our credential, the values of our headers, and the vendor's address. */
export function withoutSecrets(said: string, { secret, headers, baseUrl }: Target): string {
  const values = Object.values(headers).flatMap((value) => [value, value.replace(/^\S+\s+/, '')])
  return redact(
    redact(said, [...(secret === undefined ? [] : [secret]), ...values]),
    [URL.parse(baseUrl)?.host ?? ''],
    '[address]',
  )
}

/** Whether a text is a string of its own in the caller's request: a model, a tool, a file, an address. */
function ownWords({
  product,
  sent,
}: RedactionScope['paidRequest']): (found: string, whole: string, at: number) => boolean {
  let lookups = 0
  return (found, whole, at) => {
    const word = found.replace(/(?<![.,;:!?])[.,;:!?]+$/, '')
    if (word === product) return true
    // A plain company name belongs to the vendor unless it is quoted, because a vendor names itself without quotes.
    const quoted = /["'`]/.test(whole[at - 1] ?? '') && /["'`]/.test(whole[at + found.length] ?? '')
    if (!sent || (!quoted && /^[a-z\s]+$/i.test(word)) || ++lookups > LOOKUPS_MAX) return false
    return sent.includes(`"${word}"`)
  }
}

const DETAILS_MAX = 20

/** Reads an error object in any of the known forms. */
export function readVendorError(error: unknown): VendorError {
  if (!isObject(error)) return { message: text(error) ?? '', words: [] }
  const details = objectOf(error.details)
  const words = [error.type, error.code, error.status, details.error_code].flatMap((word) =>
    typeof word === 'string' || typeof word === 'number' ? [String(word).slice(0, 200)] : [],
  )
  const param = text(error.param)
  const failed = text(error.failed_generation)
  const code = text(details.error_code)
  const unsupported = Array.isArray(details.unsupported) ? details.unsupported.slice(0, DETAILS_MAX) : []
  return {
    message: text(error.message) ?? text(error.msg) ?? '',
    words,
    ...(param ? { param } : {}),
    ...(failed ? { failedGeneration: failed } : {}),
    ...(code
      ? { details: { error_code: code, unsupported: unsupported.filter((word) => typeof word === 'string') } }
      : {}),
  }
}

/** Reads the error from a body; undefined for an HTML page or a truncated body, which contain nothing for a caller. */
export function readErrorBody(body: Buffer): VendorError | undefined {
  const value = jsonIn(body.subarray(0, 65_536).toString('utf8'))
  // One vendor wraps the body in an array.
  const outer = Array.isArray(value) ? value[0] : value
  if (!isObject(outer)) return undefined
  if (outer.error) return readVendorError(outer.error)
  const base = outer.base_resp
  const message = text(outer.message) ?? (isObject(base) ? text(base.status_msg) : undefined) ?? text(outer.detail)
  return { ...readVendorError(outer), message: message ?? '' }
}
