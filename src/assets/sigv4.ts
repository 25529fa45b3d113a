// AWS Signature Version 4, as S3-compatible stores want it: headers in, headers out, and no clock of its own.
import { createHash, createHmac } from 'node:crypto'

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
}

interface SignedCall {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly bodySha256: string
}

const SERVICE = 's3'

export function sha256(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** The headers to send: the given ones, the date, the body's hash and the signature over all of them. */
export function signCall(call: SignedCall, credentials: S3Credentials, nowMs: number): Record<string, string> {
  const date = new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const day = date.slice(0, 8)
  const headers: Record<string, string> = {
    ...call.headers,
    'x-amz-content-sha256': call.bodySha256,
    'x-amz-date': date,
  }
  // The client writes the host header itself, from the address.
  const signed = Object.entries({ ...headers, host: call.url.host }).sort(([a], [b]) => (a < b ? -1 : 1))
  const names = signed.map(([name]) => name).join(';')
  const canonical = [
    call.method,
    encodePath(decodeURIComponent(call.url.pathname)),
    [...call.url.searchParams]
      .map(([name, value]) => `${encode(name)}=${encode(value)}`)
      .sort()
      .join('&'),
    ...signed.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, ' ')}`),
    '',
    names,
    call.bodySha256,
  ].join('\n')
  const scope = `${day}/${credentials.region}/${SERVICE}/aws4_request`
  const text = ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n')
  const key = [day, credentials.region, SERVICE, 'aws4_request'].reduce<string | Buffer>(
    (secret, part) => hmac(secret, part),
    `AWS4${credentials.secretAccessKey}`,
  )
  const signature = hmac(key, text).toString('hex')
  headers.authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`
  return headers
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/** Stricter than encodeURIComponent: only letters, digits and -._~ stay. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

function encodePath(path: string): string {
  return path.split('/').map(encode).join('/')
}
