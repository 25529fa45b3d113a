// The MCP client of the gateway: calls and lists the tools of a foreign server. Everything belongs to one call: its
// bytes, its requests, its deadline and its abort. Sockets come from the one HTTP client. The library is loaded at the
// first call.
import type { ConnectOptions, DiscoverResult, Tool } from '@modelcontextprotocol/client'
import { asFault, Fault } from '../../../kernel/fault.ts'
import { VERSION } from '../../../kernel/version.ts'
import type { World } from '../../../kernel/world.ts'
import type { Deadlines, HttpCall, Upstream, UpstreamReply } from '../../../upstream/call.ts'

interface Bounds {
  readonly deadlines: Deadlines
  readonly signal: AbortSignal
  /** Of everything that the server sends for this call, handshake and notices included. */
  readonly bytesMax: number
  readonly requestsMax?: number
}

export type OnProgress = (done: number, total: number | undefined, message: string | undefined) => void

export type ToolClient = ReturnType<typeof createToolClient>

/** What was agreed at the first call: the newest revision needs no more, the older ones a session. */
type Agreed = { readonly discover: DiscoverResult } | { readonly sessionId: string; readonly protocolVersion: string }

/**
 * Handshake, call, a few resumptions, and answers to what the server asks of its client; a server that asks for more is
 * cut off.
 */
const REQUESTS_MAX = 12
const PAGES_MAX = 20
/** Sessions that are remembered for one server; the oldest is forgotten. */
const SESSIONS_MAX = 200
const SERVERS_MAX = 200
/** What is remembered of one session. With the two bounds above, all of them together stay within 160 MB. */
const AGREED_CHARS_MAX = 4_096
/** After its response has ended, so long until a call without a result has failed. */
const LINGER_MS = 500
const CANCEL_MS = 2_000
const NOT_FOUND = 404

/** The server's instructions are not used, and may be long. */
function withoutTexts({ instructions: _, ...discover }: DiscoverResult): DiscoverResult {
  return discover
}

export function createToolClient({ upstream, world }: { upstream: Upstream; world: World }) {
  const servers = new Map<string, Map<string, Agreed>>()
  const library = () => import('@modelcontextprotocol/client')

  function sessionsOf(url: string): Map<string, Agreed> {
    const known = servers.get(url) ?? new Map<string, Agreed>()
    remember(servers, url, known, SERVERS_MAX)
    return known
  }

  /** Opens the protocol, runs one piece of work, and closes whatever is left of it. */
  async function within<T>(
    to: Pick<HttpCall, 'url' | 'headers'>,
    bounds: Bounds & { readonly session: string },
    work: (client: InstanceType<Awaited<ReturnType<typeof library>>['Client']>, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { Client, StreamableHTTPClientTransport } = await library()
    const sessions = sessionsOf(to.url)
    const agreed = sessions.get(bounds.session)
    const own = new Call(bounds, { upstream, world })
    const transport = new StreamableHTTPClientTransport(new URL(to.url), {
      fetch: own.fetch,
      requestInit: { headers: { ...to.headers } },
      reconnectionOptions: {
        initialReconnectionDelay: 100,
        maxReconnectionDelay: 1_000,
        reconnectionDelayGrowFactor: 2,
        maxRetries: 2,
      },
      ...(agreed && 'sessionId' in agreed ? agreed : {}),
    })
    const client = new Client(
      { name: 'tollgate', version: VERSION },
      { versionNegotiation: { mode: 'auto' }, inputRequired: { autoFulfill: false } },
    )
    const options = { timeout: bounds.deadlines.totalMs, signal: own.signal }
    const prior: ConnectOptions = agreed
      ? { prior: 'discover' in agreed ? { kind: 'modern', discover: agreed.discover } : { kind: 'legacy' } }
      : {}
    try {
      // The types of the library are written without `exactOptionalPropertyTypes`.
      await client.connect(transport as Parameters<typeof client.connect>[0], { ...options, ...prior })
      const discover = client.getDiscoverResult()
      // An older server without sessions is resumed as well: an empty id is not sent.
      const { sessionId = '', protocolVersion = '' } = transport
      const now: Agreed = discover ? { discover: withoutTexts(discover) } : { sessionId, protocolVersion }
      // A server that says too much is asked again for each call.
      if (JSON.stringify(now).length <= AGREED_CHARS_MAX) remember(sessions, bounds.session, now, SESSIONS_MAX)
      return await own.run(work(client, own.signal))
    } catch (error) {
      sessions.delete(bounds.session)
      throw own.failure ?? error
    } finally {
      own.end()
      await client.close().catch(() => undefined)
    }
  }

  /** A session that the server has forgotten is opened again, once: it says so before it does anything. */
  async function again<T>(session: string, url: string, run: () => Promise<T>): Promise<T> {
    const had = sessionsOf(url).has(session)
    try {
      return await run()
    } catch (error) {
      if (!had || statusOf(error) !== NOT_FOUND) throw error
      return run()
    }
  }

  return {
    /** Calls a tool. The reply is the whole result as JSON, or the status with which the server refused. */
    async call(
      to: Pick<HttpCall, 'url' | 'headers'>,
      { name, args, inputSchema }: { name: string; args: Record<string, unknown>; inputSchema: Tool['inputSchema'] },
      /** `session`: whose state the server may keep; calls of others never see it. */
      bounds: Bounds & { readonly session: string; readonly onProgress?: OnProgress | undefined },
    ): Promise<UpstreamReply> {
      const { onProgress } = bounds
      const asking = onProgress && {
        onprogress: (at: { progress: number; total?: number | undefined; message?: string | undefined }) =>
          onProgress(at.progress, at.total, at.message),
      }
      const run = () =>
        within(to, bounds, (client, signal) =>
          client.callTool(
            { name, arguments: args },
            // Without its output schema, which the library would compile: that is checked elsewhere, within bounds.
            { signal, timeout: bounds.deadlines.totalMs, toolDefinition: { name, inputSchema }, ...asking },
          ),
        )
      try {
        return replyOf(200, JSON.stringify({ result: await again(bounds.session, to.url, run) }))
      } catch (error) {
        return refusalOf(error, bounds.signal)
      }
    },
    /** All tools of the server as it lists them, of at most `toolsMax`. */
    async list(to: Pick<HttpCall, 'url' | 'headers'>, bounds: Bounds & { readonly toolsMax: number }): Promise<Tool[]> {
      const all: Tool[] = []
      await within(to, { ...bounds, requestsMax: REQUESTS_MAX + PAGES_MAX, session: '' }, async (client, signal) => {
        let cursor: string | undefined
        for (let page = 0; page < PAGES_MAX; page++) {
          const params = cursor === undefined ? {} : { cursor }
          const found = await client.request({ method: 'tools/list', params }, { signal })
          all.push(...found.tools)
          cursor = found.nextCursor
          if (cursor === undefined) return
          if (all.length > bounds.toolsMax) break
        }
        throw garbled(`it lists more than ${bounds.toolsMax} tools, or more than ${PAGES_MAX} pages`)
      })
      return all
    },
  }
}

/** One call: what it may still use, and its end. */
class Call {
  readonly #own = new AbortController()
  readonly #bounds: Bounds
  readonly #upstream: Upstream
  readonly #world: World
  readonly #stops: Array<() => void> = []
  #bytes: number
  #requests: number
  #unlinger: () => void = () => undefined
  failure: unknown

  constructor(bounds: Bounds, { upstream, world }: { upstream: Upstream; world: World }) {
    this.#bounds = bounds
    this.#upstream = upstream
    this.#world = world
    this.#bytes = bounds.bytesMax
    this.#requests = bounds.requestsMax ?? REQUESTS_MAX
    const leave = () => this.#fail(bounds.signal.reason)
    bounds.signal.addEventListener('abort', leave)
    if (bounds.signal.aborted) leave()
    const late = () => this.#fail(new Fault('upstream_timeout', { internal: { phase: 'total', sent: true } }))
    this.#stops.push(world.after(bounds.deadlines.totalMs, late), () =>
      bounds.signal.removeEventListener('abort', leave),
    )
  }

  get signal(): AbortSignal {
    return this.#own.signal
  }

  /** The work, or what ended it: the library does not notice every end of a stream. */
  run<T>(work: Promise<T>): Promise<T> {
    const ended = Promise.withResolvers<never>()
    const onAbort = () => ended.reject(this.#own.signal.reason)
    this.#own.signal.addEventListener('abort', onAbort)
    if (this.#own.signal.aborted) onAbort()
    work.catch(() => undefined)
    return Promise.race([work, ended.promise])
  }

  end(): void {
    this.#unlinger()
    for (const stop of this.#stops) stop()
    this.#fail(undefined)
  }

  #fail(reason: unknown): void {
    this.failure ??= reason
    this.#own.abort(reason)
  }

  fetch = async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    this.#unlinger()
    const { method = 'GET' } = init
    const headers = Object.fromEntries(new Headers(init.headers))
    // Nobody listens to what a server says outside of calls.
    if (method === 'GET' && headers['last-event-id'] === undefined) return new Response(null, { status: 405 })
    const body = typeof init.body === 'string' ? init.body : undefined
    const { id, method: what } = body === undefined ? {} : (JSON.parse(body) as { id?: unknown; method?: unknown }) // The library wrote it.
    const isCancel = what === 'notifications/cancelled'
    // The last word of a cancelled call; nobody waits for it.
    if (isCancel) return this.#send({ method: 'POST', url: String(url), headers, body: body ?? '' }, this.#briefly())
    if (this.#requests-- <= 0) throw this.#broken('it asks for too much')
    const call = { method: method as HttpCall['method'], url: String(url), headers, ...(body ? { body } : {}) } // The library sends POST, GET and DELETE.
    return this.#send(call, this.#own.signal, id !== undefined && what !== undefined)
  }

  #briefly(): AbortSignal {
    const brief = new AbortController()
    this.#world.after(CANCEL_MS, () => brief.abort(new Fault('upstream_timeout')))
    return brief.signal
  }

  async #send(call: HttpCall, signal: AbortSignal, isAwaited = false): Promise<Response> {
    const reply = await this.#upstream.send(call, { deadlines: this.#bounds.deadlines, signal }).catch((error) => {
      if (signal === this.#own.signal) this.failure ??= error
      throw error
    })
    const isEmpty = reply.status === 204 || reply.status === 205 || reply.status === 304
    return new Response(isEmpty ? null : this.#bodyOf(reply, isAwaited), {
      status: reply.status,
      headers: { ...reply.headers },
    })
  }

  /** The limit is on what arrives, not on what was announced. */
  #bodyOf(reply: UpstreamReply, isAwaited: boolean): ReadableStream<Uint8Array> {
    return new ReadableStream({
      start: (stream) => {
        const take = (chunk: Buffer) => {
          this.#bytes -= chunk.length
          if (this.#bytes < 0) throw garbled(`it sent more than ${this.#bounds.bytesMax} bytes`)
          stream.enqueue(new Uint8Array(chunk))
          return undefined
        }
        reply.pipe(take).then(
          () => {
            stream.close()
            if (!isAwaited) return
            const silent = () => this.#broken('its response ended without a result')
            this.#unlinger = this.#world.after(LINGER_MS, silent)
          },
          (error: unknown) => {
            stream.error(error)
            this.#fail(error)
          },
        )
      },
      cancel: () => reply.abort(),
    })
  }

  #broken(why: string): Fault {
    const fault = garbled(why)
    this.#fail(fault)
    return fault
  }
}

function garbled(why: string): Fault {
  return new Fault('upstream_garbled', { internal: { phase: 'body', sent: true, why } })
}

function remember<T>(all: Map<string, T>, key: string, value: T, max: number): void {
  all.delete(key)
  all.set(key, value)
  const [oldest] = all.keys()
  if (all.size > max && oldest !== undefined) all.delete(oldest)
}

/** The HTTP status with which a server refused; the library keeps it beside its own code. */
export function statusOf(error: unknown): number | undefined {
  const { status } = (error as { data?: { status?: unknown } } | undefined)?.data ?? {} // Of the library's own class, or of any other error.
  return typeof status === 'number' ? status : undefined
}

/** A refusal is a reply of its own. What the protocol calls an error stands in a reply; everything else is thrown. */
function refusalOf(error: unknown, { aborted }: AbortSignal): UpstreamReply {
  if (aborted || error instanceof Fault) throw error
  const status = statusOf(error)
  const { name, message, code, data } = error as Error & { code?: unknown; data?: { text?: unknown } } // The library throws errors only.
  if (status !== undefined && status >= 300) return replyOf(status, String(data?.text ?? ''))
  if (name === 'ProtocolError' || typeof code === 'number')
    return replyOf(200, JSON.stringify({ error: { code, message } }))
  throw new Fault('upstream_garbled', {
    internal: { phase: 'body', sent: true, why: asFault(error).message },
    cause: error,
  })
}

function replyOf(status: number, text: string): UpstreamReply {
  const body = Buffer.from(text)
  return {
    status,
    headers: { 'content-type': 'application/json' },
    read: async () => body,
    pipe: async (onData) => onData(body),
    letGo: () => undefined,
    abort: () => undefined,
  }
}
