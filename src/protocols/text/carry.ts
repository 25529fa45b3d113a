// What one format's vendor wants back, carried through another format's opaque field: the caller returns it unread, and
// the next request has it again.
import type { Proof } from './dialogue.ts'

/** Begins everything packed here, so that it is never taken for a vendor's own and never sent to one. */
export const PACKED = 'tollgate.'

/**
 * For the `signature` or `encrypted_content` of a format that did not make the proof. A thought without any proof gets a
 * mark too: clients do not send back what has none, and some vendors want their thoughts back all the same.
 */
export function packProof(proof: Proof): string {
  if (proof.signature !== undefined) return `${PACKED}signature:${proof.signature}`
  if (proof.redacted !== undefined) return `${PACKED}redacted:${proof.redacted}`
  if (proof.encrypted !== undefined) return `${PACKED}encrypted:${proof.encrypted.id}:${proof.encrypted.data}`
  if (proof.google !== undefined) return `${PACKED}google:${proof.google}`
  return `${PACKED}plain:`
}

/** Undefined when the text was not packed here, so that it is the format's own. */
export function unpackProof(packed: string): Proof | undefined {
  if (!packed.startsWith(PACKED)) return undefined
  const [kind, rest] = cut(packed.slice(PACKED.length))
  if (kind === 'signature') return { signature: rest }
  if (kind === 'redacted') return { redacted: rest }
  if (kind === 'google') return { google: rest }
  if (kind !== 'encrypted') return {}
  const [id, data] = cut(rest)
  // The id alone would name a thought at its vendor, anybody's.
  return data === '' ? {} : { encrypted: { id, data } }
}

/** What a chat vendor attached to a call. */
export function packExtra(callId: string, extra: unknown): string {
  return `${PACKED}extra:${Buffer.from(JSON.stringify({ callId, extra })).toString('base64url')}`
}

export function unpackExtra(packed: string): { callId: string; extra: unknown } | undefined {
  if (!packed.startsWith(`${PACKED}extra:`)) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(packed.slice(PACKED.length + 6), 'base64url').toString('utf8'))
    const { callId, extra } = value as { callId?: unknown; extra?: unknown }
    return typeof callId === 'string' ? { callId, extra } : undefined
  } catch {
    return undefined // A caller changed it; the vendor will say what it misses.
  }
}

function cut(packed: string): [string, string] {
  const colon = packed.indexOf(':')
  return colon < 0 ? [packed, ''] : [packed.slice(0, colon), packed.slice(colon + 1)]
}
