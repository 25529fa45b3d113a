// Certificates for tests, made on the spot: an authority, and servers that it vouches for, for whichever address and
// time.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

interface Pair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export interface Authority extends Pair {
  readonly name: string
  /** As it is given to those who are to trust it. */
  readonly certificate: string
}

interface Wanted {
  /** The IPv4 address that the certificate is for. */
  readonly address: string
  readonly fromDays: number
  readonly toDays: number
}

const DAY_MS = 86_400_000

// The encoding of certificates (X.690): a tag, a length, and what is inside.
function item(tag: number, ...inside: Buffer[]): Buffer {
  const content = Buffer.concat(inside)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const sequence = (...inside: Buffer[]) => item(0x30, ...inside)
const octets = (content: Buffer) => item(0x04, content)
const bits = (content: Buffer) => item(0x03, Buffer.from([0]), content)
const word = (text: string) => item(0x0c, Buffer.from(text))
const yes = item(0x01, Buffer.from([255]))

/** Object identifiers, as they are encoded. */
const ID = {
  ecdsaWithSha256: '2a8648ce3d040302',
  commonName: '550403',
  basicConstraints: '551d13',
  alternativeName: '551d11',
} as const
const id = (name: keyof typeof ID) => item(0x06, Buffer.from(ID[name], 'hex'))

const nameOf = (text: string) => sequence(item(0x31, sequence(id('commonName'), word(text))))
const moment = (ms: number) => {
  const digits = new Date(ms).toISOString().replaceAll(/\D/g, '').slice(0, 14)
  return item(0x18, Buffer.from(`${digits}Z`))
}
const algorithm = sequence(id('ecdsaWithSha256'))

function certify(
  subject: { readonly name: string; readonly key: KeyObject },
  issuer: { readonly name: string; readonly privateKey: KeyObject },
  { fromDays, toDays }: Pick<Wanted, 'fromDays' | 'toDays'>,
  extension: Buffer,
): string {
  const nowMs = Date.now()
  const inside = sequence(
    item(0xa0, item(0x02, Buffer.from([2]))),
    item(0x02, Buffer.from([1, ...Buffer.from(String(nowMs + fromDays)).subarray(-6)])),
    algorithm,
    nameOf(issuer.name),
    sequence(moment(nowMs + fromDays * DAY_MS), moment(nowMs + toDays * DAY_MS)),
    nameOf(subject.name),
    subject.key.export({ type: 'spki', format: 'der' }),
    item(0xa3, sequence(extension)),
  )
  const whole = sequence(inside, algorithm, bits(sign('sha256', inside, issuer.privateKey)))
  const lines = whole.toString('base64').replaceAll(/(.{64})/g, '$1\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}

const newPair = (): Pair => generateKeyPairSync('ec', { namedCurve: 'P-256' })

export function makeAuthority(name: string): Authority {
  const pair = newPair()
  const isAuthority = sequence(id('basicConstraints'), yes, octets(sequence(yes)))
  const self = { name, key: pair.publicKey }
  const certificate = certify(self, { name, privateKey: pair.privateKey }, { fromDays: -400, toDays: 400 }, isAuthority)
  return { ...pair, name, certificate }
}

/** What a server needs. */
export function makeCertificate(authority: Authority, wanted: Wanted): { key: string; cert: string } {
  const pair = newPair()
  const address = item(0x87, Buffer.from(wanted.address.split('.').map(Number)))
  const names = sequence(id('alternativeName'), octets(sequence(address)))
  const subject = { name: `a server at ${wanted.address}`, key: pair.publicKey }
  const cert = certify(subject, authority, wanted, names)
  return { cert, key: String(pair.privateKey.export({ type: 'pkcs8', format: 'pem' })) }
}
