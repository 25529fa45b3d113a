// AWS Signature Version 4: headers in, headers out. The caller passes the time.
import { createHash, createHmac } from 'node:crypto'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
  /** Of temporary credentials. */
  readonly sessionToken?: string | undefined
}

interface AwsCall {
  readonly method: string
  readonly url: URL
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly bodySha256: string
  /** Such as `s3` or `secretsmanager`. */
  readonly service: string
}

export function sha256(...pieces: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}

/** The headers to send: the given ones, the date and the signature over all of them. */
export function signAwsCall(call: AwsCall, credentials: AwsCredentials, nowMs: number): Record<string, string> {
  const date = new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const day = date.slice(0, 8)
  const { region, sessionToken } = credentials
  const headers: Record<string, string> = {
    ...call.headers,
    'x-amz-date': date,
    ...(sessionToken === undefined ? {} : { 'x-amz-security-token': sessionToken }),
  }
  // The HTTP client sets the host header itself, from the URL.
  const signed = Object.entries({ ...headers, host: call.url.host }).sort(([a], [b]) => (a < b ? -1 : 1))
  const names = signed.map(([name]) => name).join(';')
  const canonical = [
    call.method,
    canonicalPath(call),
    queryOf(call.url.searchParams),
    ...signed.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, ' ')}`),
    '',
    names,
    call.bodySha256,
  ].join('\n')
  const scope = `${day}/${region}/${call.service}/aws4_request`
  const text = ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n')
  const key = [day, region, call.service, 'aws4_request'].reduce<string | Buffer>(
    (secret, part) => hmac(secret, part),
    `AWS4${credentials.secretAccessKey}`,
  )
  const signature = hmac(key, text).toString('hex')
  headers.authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`
  return headers
}

/** By name, then by value: `Param` stands before `Param-3`, although `=` comes after `-`. */
function queryOf(parameters: URLSearchParams): string {
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
  return [...parameters]
    .map(([name, value]) => [encode(name), encode(value)] as const)
    .sort(([a, one], [b, other]) => order(a, b) || order(one, other))
    .map((pair) => pair.join('='))
    .join('&')
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/** Stricter than encodeURIComponent: only letters, digits and -._~ stay. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** S3 signs the path as it is; every other service encodes what is encoded already once more, and reads "//" as "/". */
function canonicalPath({ service, url }: Pick<AwsCall, 'service' | 'url'>): string {
  const path = service === 's3' ? decodeURIComponent(url.pathname) : url.pathname.replaceAll(/\/{2,}/g, '/')
  return path.split('/').map(encode).join('/')
}
