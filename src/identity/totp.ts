// Time-based one-time passwords (RFC 6238): SHA-1, six digits, thirty seconds, as every authenticator app has them.
import { createHmac } from 'node:crypto'

const STEP_SECONDS = 30
const DIGITS = 6
/** A code of the step before or after counts too, for clocks that are a little off. */
const DRIFT_STEPS = 1
export const TOTP_SECRET_BYTES = 20

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648, without padding. */
export function base32(bytes: Buffer): string {
  let text = ''
  let value = 0
  let bits = 0
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff
    bits += 8
    while (bits >= 5) {
      text += ALPHABET[(value >>> (bits - 5)) & 31]
      bits -= 5
    }
  }
  return bits > 0 ? text + ALPHABET[(value << (5 - bits)) & 31] : text
}

export function totpAt(secret: Buffer, step: number, digits = DIGITS): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const hash = createHmac('sha1', secret).update(counter).digest()
  const offset = hash.readUInt8(hash.length - 1) & 15
  return String((hash.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits).padStart(digits, '0')
}

/** The time step of this code; undefined if it is not a current code. */
export function totpStep(secret: Buffer, code: string, nowMs: number): number | undefined {
  const now = Math.floor(nowMs / 1000 / STEP_SECONDS)
  for (let step = now - DRIFT_STEPS; step <= now + DRIFT_STEPS; step++) if (totpAt(secret, step) === code) return step
  return undefined
}

/** The otpauth URI for a QR code or link. */
export function totpUri(secret: Buffer, { issuer, account }: { issuer: string; account: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  return `otpauth://totp/${label}?secret=${base32(secret)}&issuer=${encodeURIComponent(issuer)}`
}
