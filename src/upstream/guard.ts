// The SSRF guard: fetches URLs that callers give. It denies by default: address.ts checks every URL, every redirect and
// every resolved IP. The socket is opened to a checked IP, and its remote address is checked again before a byte is
// sent.
import net from 'node:net'
import tls from 'node:tls'
import { Fault } from '../kernel/fault.ts'
import { type ImageType, imageTypeOf, MAGIC_BYTES, PIXELS_MAX, readImageFacts } from '../kernel/parsers/image-file.ts'
import type { World } from '../kernel/world.ts'
import {
  type Destination,
  type DestinationRules,
  isPublicAddress,
  judge,
  Refusal,
  resolvePublicName,
  sameAddress,
} from './address.ts'
import { createMinuteBudget, type MinuteBudget } from './budget.ts'
import type { HttpCall, Upstream, UpstreamReply } from './call.ts'
import { type Connect, Connection, requestOf } from './connection.ts'
import { createDeadlineWatch } from './deadline.ts'
import { exchange } from './exchange.ts'

/** The same message for every reason, so that a caller cannot use it to map our network. */
export const IMAGE_REFUSED =
  'The image could not be fetched. It must be a PNG, JPEG, WebP or GIF of at most 20 MB and 50 megapixels at a public http or https address that answers quickly.'
export const ADDRESS_REFUSED = 'This address cannot be used. It must be a public http or https address.'

const FETCHED = 'pictures fetched (data URIs do not count)'

interface Limits {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly totalMs: number
  readonly redirectsMax: number
}

const IMAGE_LIMITS: Limits = { connectMs: 3_000, firstByteMs: 5_000, totalMs: 20_000, redirectsMax: 3 }
const POST_LIMITS: Limits = { connectMs: 3_000, firstByteMs: 10_000, totalMs: 15_000, redirectsMax: 0 }
const DOWNLOAD_LIMITS: Limits = { connectMs: 5_000, firstByteMs: 30_000, totalMs: 600_000, redirectsMax: 3 }
/** After the grace period, a body slower than the minimum rate is aborted. */
const RATE_GRACE_MS = 3_000
const RATE_BYTES_PER_MS_MIN = 10
const SOCKET_CLEANUP_MS = 10_000
/** How much of a receiver's answer is read: enough to see why it refused. */
const EXCERPT_BYTES_MAX = 1_024
/** Of an answer to `send`: a vendor's report is the largest that is asked for. */
const SENT_BYTES_MAX = 16 * 1_048_576
const USER_AGENT = 'tollgate'
const REDIRECTS = new Set([301, 302, 303, 307, 308])

export interface GuardedFetch {
  /**
   * Fetches an image that a caller names. Rejects with request_invalid and always the same message, or with
   * rate_limited.
   */
  fetchImage(
    url: string,
    options: { account: string; bytesMax: number; signal: AbortSignal },
  ): Promise<{ bytes: Buffer; type: ImageType }>
  /**
   * Posts to a caller's URL without following redirects. Returns the beginning of the answer. Rejects with
   * upstream_failed or rate_limited.
   */
  post(
    url: string,
    body: string,
    headers: Readonly<Record<string, string>>,
    options: { account: string; signal: AbortSignal },
  ): Promise<{ status: number; excerpt: string }>
  /**
   * Copies a vendor's result piece by piece; follows up to three redirects or `redirectsMax`. Rejects with
   * upstream_failed, or with the error of `write`.
   */
  download(
    url: string,
    write: (chunk: Buffer) => Promise<void> | undefined,
    options: { bytesMax: number; signal: AbortSignal; redirectsMax?: number },
  ): Promise<{ bytes: number; contentType: string }>
  /**
   * Makes one call without following redirects and returns the whole answer, of at most `bytesMax`. Rejects with
   * upstream_failed.
   */
  request(
    call: { method: 'GET' | 'POST'; url: string; headers: Readonly<Record<string, string>>; body?: string | undefined },
    options: { bytesMax: number; signal: AbortSignal; deadlineMs?: number },
  ): Promise<{ status: number; headers: UpstreamReply['headers']; body: Buffer }>
  /**
   * As the HTTP client for vendors does, to an address that is not trusted: the answer has arrived whole. Rejects with
   * upstream_failed or upstream_timeout.
   */
  send: Upstream['send']
  /** Checks a URL before it is stored. Rejects with request_invalid. */
  check(url: string, options: { signal: AbortSignal }): Promise<void>
}

/** The outbound limits of each account per minute. */
interface GuardBudgets {
  readonly fetches: MinuteBudget
  readonly fetchedBytes: MinuteBudget
  readonly posts: MinuteBudget
}

export interface GuardOptions {
  readonly world: World
  /** Absent: no limits. */
  readonly budgets?: GuardBudgets
  /** Replaces the DNS, for tests. */
  readonly resolve?: DestinationRules['resolve']
  /** `host:port` pairs that are allowed although they are not public: for operators and tests. */
  readonly allow?: Iterable<string>
  readonly ports?: Iterable<number>
  /** Replaces the time limits for images, for tests. */
  readonly imageLimits?: Partial<Limits>
}

export function createGuardedFetch(options: GuardOptions): GuardedFetch {
  const { world, budgets } = options
  const watch = createDeadlineWatch(world)
  const rules: DestinationRules = {
    ports: new Set(options.ports ?? [80, 443]),
    allow: new Set(options.allow),
    resolve: options.resolve ?? resolvePublicName,
  }
  const imageLimits = { ...IMAGE_LIMITS, ...options.imageLimits }

  /** Makes one call and follows its redirects; `use` reads the last answer while the connection is open. */
  async function walk<T>(
    first: Omit<HttpCall, 'url'> & { url: string },
    limits: Limits,
    signal: AbortSignal,
    use: (reply: UpstreamReply) => Promise<T>,
  ): Promise<T> {
    const endMs = world.elapsedMs() + limits.totalMs
    let address = first.url
    let base: URL | undefined
    for (let hop = 0; ; hop++) {
      const destination = await withinMs(limits.connectMs, signal, (own) => judge(address, rules, own, base))
      const connection = new Connection(connectorTo(destination))
      try {
        const deadlines = {
          connectMs: limits.connectMs,
          firstByteMs: limits.firstByteMs,
          idleMs: limits.firstByteMs,
          totalMs: Math.max(1, endMs - world.elapsedMs()),
        }
        const request = requestOf(hostOf(destination), destination.path, first)
        if (request instanceof Fault) throw request
        const reply = await exchange(connection, request, { world, watch, deadlines, signal })
        const next = REDIRECTS.has(reply.status) ? reply.headers.location : undefined
        if (next === undefined || limits.redirectsMax === 0) return await use(reply)
        if (hop >= limits.redirectsMax) throw new Refusal('too many redirects')
        address = next
        base = destination.url
      } finally {
        // No connection outlives its call, so that the next call checks the address again.
        connection.close()
      }
    }
  }

  /** Aborts at the caller's signal or after `ms`, whichever comes first. */
  async function withinMs<T>(ms: number, signal: AbortSignal, run: (own: AbortSignal) => Promise<T>): Promise<T> {
    const own = new AbortController()
    const late = Promise.withResolvers<never>()
    const stop = (reason: unknown) => {
      late.reject(reason)
      own.abort(reason)
    }
    const onAbort = () => stop(signal.reason)
    const cancel = world.after(ms, () => stop(new Refusal('the name servers are too slow')))
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
    try {
      return await Promise.race([run(own.signal), late.promise])
    } finally {
      cancel()
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Reads a body with a size limit and a minimum rate. */
  async function receive(
    reply: UpstreamReply,
    bytesMax: number,
    take: (chunk: Buffer) => Promise<void> | undefined,
  ): Promise<number> {
    if (reply.status !== 200) throw new Refusal(`status ${reply.status}`)
    if (Number(reply.headers['content-length'] ?? 0) > bytesMax) throw new Refusal('announced as too large')
    const startMs = world.elapsedMs()
    let bytes = 0
    await reply.pipe((chunk) => {
      bytes += chunk.length
      if (bytes > bytesMax) throw new Refusal('too large')
      const ms = world.elapsedMs() - startMs
      if (ms > RATE_GRACE_MS && bytes < ms * RATE_BYTES_PER_MS_MIN) throw new Refusal('too slow')
      return take(chunk)
    })
    return bytes
  }

  async function image(
    reply: UpstreamReply,
    { account, bytesMax }: { account: string; bytesMax: number },
  ): Promise<{ bytes: Buffer; type: ImageType }> {
    const file = new Gathering(Number(reply.headers['content-length'] ?? 0), bytesMax)
    await receive(reply, bytesMax, (chunk) => {
      spend(budgets?.fetchedBytes, account, chunk.length, (max) => `${Math.floor(max / 1_000_000)} MB of ${FETCHED}`)
      const had = file.length
      file.add(chunk)
      // A file that does not start like an image is not read any further.
      if (had < MAGIC_BYTES && file.length >= MAGIC_BYTES && !imageTypeOf(file.bytes()))
        throw new Refusal('not a picture')
      return undefined
    })
    const bytes = file.bytes()
    const facts = readImageFacts([bytes])
    if (!facts || facts.width * facts.height > PIXELS_MAX) throw new Refusal('not a picture of a permitted size')
    return { bytes, type: facts.type }
  }

  return {
    async fetchImage(url, { signal, ...about }) {
      const call = { method: 'GET', url, headers: { accept: 'image/*', 'user-agent': USER_AGENT } } as const
      try {
        spend(budgets?.fetches, about.account, 1, (max) => `${max} ${FETCHED}`)
        return await walk(call, imageLimits, signal, (reply) => image(reply, about))
      } catch (error) {
        if (signal.aborted) throw signal.reason
        if (error instanceof Fault && error.kind === 'rate_limited') throw error
        throw new Fault('request_invalid', { message: IMAGE_REFUSED, internal: whyOf(error), cause: error })
      }
    },

    async post(url, body, headers, { account, signal }) {
      const call = { method: 'POST', url, headers: { ...headers, 'user-agent': USER_AGENT }, body } as const
      spend(budgets?.posts, account, 1, (max) => `${max} webhooks sent`)
      try {
        return await walk(call, POST_LIMITS, signal, async (reply) => ({
          status: reply.status,
          excerpt: await excerptOf(reply),
        }))
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw new Fault('upstream_failed', { internal: whyOf(error), cause: error })
      }
    },

    async download(url, write, { bytesMax, signal, redirectsMax = DOWNLOAD_LIMITS.redirectsMax }) {
      let mine: { readonly error: unknown } | undefined
      const take = (chunk: Buffer) => {
        const keep = (error: unknown): never => {
          mine = { error }
          throw error
        }
        try {
          return write(chunk)?.catch(keep)
        } catch (error) {
          return keep(error)
        }
      }
      try {
        return await walk(
          { method: 'GET', url, headers: { 'user-agent': USER_AGENT } },
          { ...DOWNLOAD_LIMITS, redirectsMax },
          signal,
          async (reply) => ({
            bytes: await receive(reply, bytesMax, take),
            contentType: reply.headers['content-type'] ?? 'application/octet-stream',
          }),
        )
      } catch (error) {
        if (mine) throw mine.error
        if (signal.aborted) throw signal.reason
        throw new Fault('upstream_failed', { internal: whyOf(error), cause: error })
      }
    },

    async request({ method, url, headers, body }, { bytesMax, signal, deadlineMs }) {
      const own = { ...headers, 'user-agent': USER_AGENT }
      const call = { method, url, headers: own, ...(body === undefined ? {} : { body }) }
      try {
        return await walk(call, limitsWithin(deadlineMs), signal, async (reply) => ({
          status: reply.status,
          headers: reply.headers,
          body: await reply.read(bytesMax),
        }))
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw new Fault('upstream_failed', { internal: whyOf(error), cause: error })
      }
    },

    async send({ headers, ...call }, { deadlines, signal }) {
      const own = { ...call, headers: { ...headers, 'user-agent': USER_AGENT } }
      try {
        return await walk(own, { ...deadlines, redirectsMax: 0 }, signal, async (reply) =>
          whole(reply, await reply.read(SENT_BYTES_MAX)),
        )
      } catch (error) {
        if (signal.aborted) throw signal.reason
        if (error instanceof Fault) throw error
        throw new Fault('upstream_failed', { internal: whyOf(error), cause: error })
      }
    },

    async check(url, { signal }) {
      try {
        await withinMs(IMAGE_LIMITS.connectMs, signal, (own) => judge(url, rules, own))
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw new Fault('request_invalid', { message: ADDRESS_REFUSED, internal: whyOf(error), cause: error })
      }
    },
  }
}

function limitsWithin(ms: number | undefined): Limits {
  if (ms === undefined) return POST_LIMITS
  return { ...POST_LIMITS, connectMs: Math.min(POST_LIMITS.connectMs, ms), firstByteMs: ms, totalMs: ms }
}

/** An answer that has been read. */
function whole({ status, headers }: UpstreamReply, body: Buffer): UpstreamReply {
  return {
    status,
    headers,
    letGo() {},
    abort() {},
    async read(bytesMax) {
      if (body.length > bytesMax) throw new Fault('upstream_garbled', { internal: { bytesMax } })
      return body
    },
    async pipe(onData) {
      await onData(body)
    },
  }
}

/** Reads as much as arrives. The status is known already, so an error in the body is ignored. */
async function excerptOf(reply: UpstreamReply): Promise<string> {
  const pieces = new Gathering(0, EXCERPT_BYTES_MAX)
  try {
    await reply.pipe((chunk) => {
      pieces.add(chunk.subarray(0, EXCERPT_BYTES_MAX - pieces.length))
      if (pieces.length >= EXCERPT_BYTES_MAX) throw new Refusal('enough was read')
      return undefined
    })
  } catch {
    // Enough was read, or the answer broke off.
  }
  return pieces.bytes().toString('utf8')
}

/** Throws rate_limited, with a message for the caller, when the account's budget is used up. */
export function spend(
  budget: MinuteBudget | undefined,
  account: string,
  amount: number,
  words: (max: number) => string,
): void {
  const waitSeconds = budget?.spend(account, amount)
  if (!budget || waitSeconds === undefined) return
  throw new Fault('rate_limited', {
    message: `Rate limit exceeded: an account may have ${words(budget.perMinute)} per minute. Try again in ${waitSeconds} s.`,
    retryAfterSeconds: waitSeconds,
    headers: { 'x-tollgate-limit': 'outbound' },
  })
}

function hostOf({ protocol, host, port }: Destination): string {
  return new URL(`${protocol}//${net.isIPv6(host) ? `[${host}]` : host}:${port}`).host
}

/** Opens sockets to the checked addresses only, one after the other, and verifies the socket's remote address. */
function connectorTo({ addresses, host, port, protocol, trusted }: Destination): Connect {
  return (onread, opened) => {
    let latest: net.Socket | undefined
    const attempt = (index: number) => {
      const address = addresses[index]!
      const secure = protocol === 'https:'
      const place = { host: address, port, onread }
      const socket = secure
        ? tls.connect({ ...place, servername: net.isIP(host) ? '' : host, ALPNProtocols: ['http/1.1'] })
        : net.connect(place)
      latest = socket
      socket.setNoDelay(true)
      // The call has its own, shorter deadline; this one closes sockets that it leaves behind.
      socket.setTimeout(SOCKET_CLEANUP_MS, () => socket.destroy(new Refusal('no connection')))
      const onError = (error: Error) => {
        socket.destroy()
        if (index + 1 < addresses.length) attempt(index + 1)
        else opened(error)
      }
      socket.once('error', onError)
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        socket.removeListener('error', onError)
        socket.removeAllListeners('timeout')
        const remote = socket.remoteAddress ?? ''
        if (sameAddress(remote, address) && (trusted || isPublicAddress(remote))) opened(undefined, socket)
        else {
          socket.destroy()
          opened(new Refusal(`connected to ${remote}`))
        }
      })
    }
    attempt(0)
    return () =>
      latest
        ?.removeAllListeners('error')
        .on('error', () => undefined)
        .destroy()
  }
}

/** Collects a body of known or unknown length without holding it twice. */
class Gathering {
  length = 0
  private buffer: Buffer
  private readonly bytesMax: number

  constructor(announced: number, bytesMax: number) {
    this.bytesMax = bytesMax
    this.buffer = Buffer.allocUnsafeSlow(
      announced > 0 && announced <= bytesMax ? announced : Math.min(bytesMax, 65_536),
    )
  }

  add(chunk: Buffer): void {
    const needed = this.length + chunk.length
    if (needed > this.buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(this.bytesMax, this.buffer.length * 2)))
      this.buffer.copy(larger, 0, 0, this.length)
      this.buffer = larger
    }
    chunk.copy(this.buffer, this.length)
    this.length = needed
  }

  bytes(): Buffer {
    return this.buffer.subarray(0, this.length)
  }
}

function whyOf(error: unknown): Record<string, unknown> {
  if (error instanceof Refusal) return { why: error.message }
  return error instanceof Fault ? { why: error.kind, ...error.details.internal } : { why: String(error) }
}

// The guard for callers' addresses, made from the settings.

interface OutboundSettings {
  readonly TOLLGATE_OUTBOUND_ALLOW: string
  readonly TOLLGATE_FETCHES_PER_MINUTE: number
  readonly TOLLGATE_FETCH_BYTES_PER_MINUTE: number
  readonly TOLLGATE_WEBHOOKS_PER_MINUTE: number
}

export function createOutboundGuard(world: World, settings: OutboundSettings): GuardedFetch {
  return createGuardedFetch({
    world,
    allow: settings.TOLLGATE_OUTBOUND_ALLOW.split(/[\s,]+/).filter(Boolean),
    budgets: {
      fetches: createMinuteBudget(world, settings.TOLLGATE_FETCHES_PER_MINUTE),
      fetchedBytes: createMinuteBudget(world, settings.TOLLGATE_FETCH_BYTES_PER_MINUTE),
      posts: createMinuteBudget(world, settings.TOLLGATE_WEBHOOKS_PER_MINUTE),
    },
  })
}
