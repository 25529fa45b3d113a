// Links that are secrets: to set the gateway up, to join an account, to choose a new password. The token stands behind
// the `#`, which browsers do not send along; what is stored is its digest.
import { createHash } from 'node:crypto'
import type { World } from '../kernel/world.ts'

export function newToken(world: World): string {
  return world.bytes(32).toString('base64url')
}

export function digestOfToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** `base` is the address that people reach the gateway at, without a slash at its end. */
export function setupLink(base: string, token: string): string {
  return `${base}/console/setup#token=${token}`
}

export function inviteLink(base: string, token: string): string {
  return `${base}/console/invite#token=${token}`
}
