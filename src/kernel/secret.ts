// Keys of distinct purpose from one root: what is made for one purpose is worthless for every other.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  scrypt,
  timingSafeEqual,
} from 'node:crypto'
import type { World } from './world.ts'

type Purpose =
  | 'access-token'
  | 'alert'
  | 'alert-mail'
  | 'api-key'
  | 'asset-url'
  | 'audit'
  | 'audit-export'
  | 'browser'
  | 'client-secret'
  | 'mailbox'
  | 'account-domain'
  | 'content'
  | 'credential'
  | 'delivery'
  | 'guardrail'
  | 'ledger'
  | 'ledger-address'
  | 'oauth'
  | 'own-key'
  | 'page-token'
  | 'second-factor'
  | 'session'
  | 'test-payments'
  | 'webhook'
  | 'continuation'

export interface Secrets {
  key(purpose: Purpose): Buffer
}

export function createSecrets(root: string): Secrets {
  const keys = new Map<Purpose, Buffer>()
  return {
    key(purpose) {
      let key = keys.get(purpose)
      if (!key) {
        key = Buffer.from(hkdfSync('sha256', root, 'tollgate', purpose, 32))
        keys.set(purpose, key)
      }
      return key
    },
  }
}

export function sign(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

export function sameBytes(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}

/** AES-256-GCM; `place` (table, row, column) is authenticated, so a sealed value cannot be moved elsewhere. */
export function seal(key: Buffer, place: string, content: string | Buffer, world: World): Buffer {
  const nonce = world.bytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(place))
  const sealed = Buffer.concat([cipher.update(bytesOf(content)), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed])
}

/** Undefined when the key, the place or a byte is another. */
export function unseal(key: Buffer, place: string, sealed: Buffer): string | undefined {
  return unsealBytes(key, place, sealed)?.toString('utf8')
}

function unsealBytes(key: Buffer, place: string, sealed: Buffer): Buffer | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12)).setAAD(Buffer.from(place))
    decipher.setAuthTag(sealed.subarray(12, 28))
    return Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()])
  } catch {
    return undefined
  }
}

const bytesOf = (content: string | Buffer) => (typeof content === 'string' ? Buffer.from(content) : content)

/** Where a content is stored: a sealed value that was moved elsewhere does not open. */
interface ContentPlace {
  readonly table: string
  readonly row: string
  readonly column: string
}

/** Encrypts what callers sent and were sent, wherever it is stored. */
export interface ContentSealer {
  seal(place: ContentPlace, content: string | Buffer): Buffer
  /** Undefined: it was sealed under another secret, or elsewhere. */
  open(place: ContentPlace, sealed: Buffer): Buffer | undefined
}

export function createContentSealer(secrets: Secrets, world: World): ContentSealer {
  const key = secrets.key('content')
  // The last is the form of what is sealed.
  const nameOf = ({ table, row, column }: ContentPlace) => `${table}|${row}|${column}|1`
  return {
    seal: (place, content) => seal(key, nameOf(place), content, world),
    open: (place, sealed) => unsealBytes(key, nameOf(place), sealed),
  }
}

/** By which two who both have a secret see that it is the same. It is slow, so that nobody tries out many values. */
export function fingerprintOf(secret: string, salt: string): Promise<string> {
  return new Promise((resolve, reject) =>
    scrypt(secret, salt, 32, (error, bytes) => (error ? reject(error) : resolve(bytes.toString('hex')))),
  )
}

// The token that a scrape bears.

/** Digests have one length, so that the comparison tells nothing about the token's. */
export function bearerCheck(token: string): (authorization: string | undefined) => boolean {
  const expected = digest(token)
  return (authorization = '') => sameBytes(digest(/^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ''), expected)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
