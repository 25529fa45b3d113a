// Tokens that a request bears: the operator's, and the one for scrapes.
import { createHash } from 'node:crypto'
import { sameBytes } from '../kernel/secret.ts'

/** Digests have one length, so that the comparison tells nothing about the token's. */
export function bearerCheck(token: string): (authorization: string | undefined) => boolean {
  const expected = digest(token)
  return (authorization = '') => sameBytes(digest(/^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ''), expected)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
