// Assets in an S3-compatible store, over the gateway's HTTP client. A small file is one request; a larger one is a
// multipart upload, so that no file is held in memory as a whole.

import { Readable } from 'node:stream'
import {
  ASSET_TYPES,
  type AssetFacts,
  type AssetStore,
  type AssetWriter,
  isOver,
  newAssetName,
  placeOf,
} from '../../assets/store.ts'
import { type AwsCredentials, sha256, signAwsCall } from '../../kernel/aws-signature.ts'
import { Fault } from '../../kernel/fault.ts'
import { NEVER } from '../../kernel/timers.ts'
import type { World } from '../../kernel/world.ts'
import type { Deadlines, HttpCall, Upstream, UpstreamReply } from '../../upstream/call.ts'

interface S3Place {
  readonly world: World
  readonly upstream: Pick<Upstream, 'send'>
  /** Such as https://s3.eu-central-1.amazonaws.com. */
  readonly endpoint: string
  readonly bucket: string
  /** Those of a role end after a while, so they are asked for before each request. */
  readonly credentials: AwsCredentials | (() => AwsCredentials | Promise<AwsCredentials>)
  /** Puts the bucket into the host name instead of the path. */
  readonly virtualHost?: boolean
}

interface S3Options extends S3Place {
  /** A prefix of every key. */
  readonly prefix?: string
}

interface S3Ask {
  readonly query?: Record<string, string>
  readonly headers?: Record<string, string>
  readonly body?: readonly Buffer[]
}

/** A signed request to a bucket. Rejects with `unavailable` when the store could not be reached. */
export type S3Send = (method: HttpCall['method'], key: string, ask?: S3Ask) => Promise<UpstreamReply>

const DEADLINES: Deadlines = { connectMs: 5_000, firstByteMs: 30_000, idleMs: 30_000, totalMs: 600_000 }
/** S3 requires parts of at least 5 MiB. */
const PART_BYTES = 8 * 1_048_576
const TEXT_BYTES_MAX = 4 * 1_048_576

export function createS3Client(options: S3Place): S3Send {
  const { world, upstream, credentials, bucket } = options
  const endpoint = new URL(options.endpoint)
  if (options.virtualHost) endpoint.hostname = `${bucket}.${endpoint.hostname}`
  const root = options.virtualHost ? '' : `/${bucket}`

  return async (method, key, ask = {}) => {
    const url = new URL(endpoint)
    url.pathname = `${root}/${key}`
    url.search = new URLSearchParams(ask.query).toString().replaceAll('+', '%20')
    const body = ask.body && Buffer.concat(ask.body)
    const bodySha256 = sha256(body ?? '')
    // S3 wants the body's hash as a header too.
    const signed = { ...ask.headers, 'x-amz-content-sha256': bodySha256 }
    const call = { method, url, headers: signed, bodySha256, service: 's3' }
    try {
      const keys = typeof credentials === 'function' ? await credentials() : credentials
      const headers = signAwsCall(call, keys, world.nowMs())
      return await upstream.send(
        { method, url: url.href, headers, ...(body ? { body } : {}) },
        { deadlines: DEADLINES, signal: NEVER },
      )
    } catch (cause) {
      throw unavailable({ method, why: cause instanceof Fault ? cause.kind : String(cause) }, cause)
    }
  }
}

export function createS3Store(options: S3Options, send = createS3Client(options)): AssetStore {
  const { world } = options
  const prefix = (options.prefix ?? 'assets').replace(/^\/+|(?<!\/)\/+$/g, '')

  function keyOf(name: string): string | undefined {
    const place = placeOf(name)
    return place && `${prefix}/${place.hour}/${place.hash}`
  }

  /** The text of an answer that had to succeed. */
  async function done(reply: UpstreamReply): Promise<string> {
    const text = String(await reply.read(TEXT_BYTES_MAX))
    // A completed upload may report its failure with status 200.
    if (reply.status >= 300 || text.includes('<Error>'))
      throw unavailable({ status: reply.status, text: text.slice(0, 500) })
    return text
  }

  async function list(query: Record<string, string>, each: (xml: string) => Promise<void> | void): Promise<void> {
    for (let next: string | undefined = ''; next !== undefined; ) {
      const token: Record<string, string> = next === '' ? {} : { 'continuation-token': next }
      const xml: string = await done(await send('GET', '', { query: { 'list-type': '2', ...query, ...token } }))
      await each(xml)
      next = tagsOf(xml, 'NextContinuationToken')[0]
    }
  }

  return {
    async create(facts) {
      const name = newAssetName(world, facts)
      return new S3Writer({ facts, name, key: keyOf(name)! }, send, done)
    },

    async open(name) {
      const key = keyOf(name)
      if (key === undefined) return undefined
      const head = await send('HEAD', key)
      await head.read(0)
      if (head.status === 404) return undefined
      const bytes = Number(head.headers['content-length'])
      if (head.status !== 200 || !Number.isSafeInteger(bytes)) throw unavailable({ status: head.status })
      return {
        bytes,
        read: (start, end) => streamOf(() => send('GET', key, { headers: { range: `bytes=${start}-${end}` } })),
        close: async () => undefined,
      }
    },

    async remove(name) {
      const key = keyOf(name)
      if (key !== undefined) await done(await send('DELETE', key))
    },

    async sweep() {
      const nowMs = world.nowMs()
      const over: string[] = []
      await list({ prefix: `${prefix}/`, delimiter: '/' }, (xml) => {
        for (const found of tagsOf(xml, 'Prefix')) {
          const hour = found.slice(prefix.length + 1, -1)
          if (isOver(hour, nowMs)) over.push(hour)
        }
      })
      for (const hour of over)
        await list({ prefix: `${prefix}/${hour}/` }, async (xml) => {
          for (const key of tagsOf(xml, 'Key')) await done(await send('DELETE', key))
        })
      return over.length
    },
  }
}

interface Written {
  readonly facts: AssetFacts
  readonly name: string
  readonly key: string
}

/** Buffers one part at a time. */
class S3Writer implements AssetWriter {
  private readonly facts: AssetFacts
  private readonly name: string
  private readonly key: string
  private readonly send: S3Send
  private readonly done: (reply: UpstreamReply) => Promise<string>
  private part: Buffer[] = []
  private partBytes = 0
  private bytes = 0
  private uploadId: string | undefined
  private readonly etags: string[] = []

  constructor({ facts, name, key }: Written, send: S3Send, done: S3Writer['done']) {
    this.facts = facts
    this.name = name
    this.key = key
    this.send = send
    this.done = done
  }

  get bytesInMemory(): number {
    return this.partBytes
  }

  async write(chunk: Buffer): Promise<void> {
    this.part.push(chunk)
    this.partBytes += chunk.length
    this.bytes += chunk.length
    if (this.partBytes >= PART_BYTES) await this.uploadPart()
  }

  async commit() {
    if (this.uploadId === undefined) {
      await this.done(await this.send('PUT', this.key, { headers: this.headers(), body: this.part }))
    } else {
      if (this.partBytes > 0) await this.uploadPart()
      const parts = this.etags.map(
        (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
      )
      const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)
      await this.done(await this.send('POST', this.key, { query: { uploadId: this.uploadId }, body: [body] }))
    }
    return { ...this.facts, name: this.name, bytes: this.bytes }
  }

  async abort(): Promise<void> {
    this.part = []
    const uploadId = this.uploadId
    this.uploadId = undefined
    if (uploadId === undefined) return
    // If the store is down now, its own lifecycle rules remove the unfinished upload later.
    await this.send('DELETE', this.key, { query: { uploadId } }).then(
      (reply) => reply.read(TEXT_BYTES_MAX),
      () => undefined,
    )
  }

  private headers(): Record<string, string> {
    return { 'content-type': ASSET_TYPES[this.facts.extension] }
  }

  private async uploadPart(): Promise<void> {
    if (this.uploadId === undefined) {
      const xml = await this.done(
        await this.send('POST', this.key, { query: { uploads: '' }, headers: this.headers() }),
      )
      this.uploadId = tagsOf(xml, 'UploadId')[0]
      if (this.uploadId === undefined) throw unavailable({ why: 'no upload id' })
    }
    const query = { partNumber: String(this.etags.length + 1), uploadId: this.uploadId }
    const body = this.part
    this.part = []
    this.partBytes = 0
    const reply = await this.send('PUT', this.key, { query, body })
    await this.done(reply)
    this.etags.push(reply.headers.etag ?? '')
  }
}

/** An answer's body as a stream with backpressure. */
function streamOf(send: () => Promise<UpstreamReply>): Readable {
  let wanted: () => void = () => {}
  let reply: UpstreamReply | undefined
  const stream = new Readable({
    read() {
      wanted()
    },
    destroy(error, callback) {
      reply?.abort()
      callback(error)
    },
  })
  const run = async () => {
    reply = await send()
    if (stream.destroyed) return reply.abort()
    if (reply.status !== 206 && reply.status !== 200) throw unavailable({ status: reply.status })
    await reply.pipe((chunk) => {
      if (stream.push(chunk)) return undefined
      return new Promise((resolve) => {
        wanted = resolve
      })
    })
    stream.push(null)
  }
  run().catch((error) => stream.destroy(error))
  return stream
}

/** Unescapes XML: our keys need no escapes, but continuation tokens may. */
export function tagsOf(xml: string, tag: string): string[] {
  return [...xml.matchAll(new RegExp(`<${tag}>([^<]*)</${tag}>`, 'g'))].map(([, text = '']) =>
    text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&'),
  )
}

function unavailable(internal: Record<string, unknown>, cause?: unknown): Fault {
  return new Fault('unavailable', { internal: { store: 's3', ...internal }, cause })
}
