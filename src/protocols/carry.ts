// What one format's vendor wants back, carried through another format's opaque field: the caller returns it unread, and
// the next request has it again.
import type { Proof } from './dialogue.ts'

/** For the `signature` or `encrypted_content` of a format that did not make the proof. */
export function packProof(proof: Proof): string | undefined {
  if (proof.signature !== undefined) return `signature:${proof.signature}`
  if (proof.redacted !== undefined) return `redacted:${proof.redacted}`
  if (proof.encrypted !== undefined) return `encrypted:${proof.encrypted.id}:${proof.encrypted.data}`
  return undefined
}

/** Undefined when the text was not packed here, so that it is the format's own. */
export function unpackProof(packed: string): Proof | undefined {
  const [kind, rest] = cut(packed)
  if (kind === 'signature') return { signature: rest }
  if (kind === 'redacted') return { redacted: rest }
  if (kind !== 'encrypted') return undefined
  const [id, data] = cut(rest)
  return { encrypted: { id, data } }
}

/** What a chat vendor attached to a call. */
export function packExtra(callId: string, extra: unknown): string {
  return `extra:${Buffer.from(JSON.stringify({ callId, extra })).toString('base64url')}`
}

export function unpackExtra(packed: string): { callId: string; extra: unknown } | undefined {
  const [kind, rest] = cut(packed)
  if (kind !== 'extra') return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(rest, 'base64url').toString('utf8'))
    const { callId, extra } = value as { callId?: unknown; extra?: unknown }
    return typeof callId === 'string' ? { callId, extra } : undefined
  } catch {
    return undefined // A caller changed it; the vendor will say what it misses.
  }
}

function cut(packed: string): [string, string] {
  const colon = packed.indexOf(':')
  return colon < 0 ? ['', packed] : [packed.slice(0, colon), packed.slice(colon + 1)]
}
