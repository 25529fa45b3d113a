// The HTTP client for vendors. Their addresses come from the operator's catalog and are trusted; callers' addresses go
// through guard.ts. Proxy variables of the environment are ignored, because a proxy would see every credential.
import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { buildConnector as Connector, Dispatcher, Client as UndiciClient } from 'undici'
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { isMetadataAddress, isMetadataHost } from './address.ts'
import type { HttpCall, Upstream, UpstreamReply } from './call.ts'
import { createDeadlineWatch } from './deadline.ts'
import { ARRIVAL, buildConnector, Client, joinRequests } from './internals.ts'
import { Transfer, type TransferOptions } from './transfer.ts'

// The connections to one vendor, each for one call at a time. The most recently used one is taken first, so that few
// connections stay busy and the idle ones time out. undici's own pool instead searches its connections one by one, and
// emits an event for each that becomes free.

interface ConnectionSettings extends UndiciClient.Options {
  readonly connect: Connector.connector
}

/** Beyond this many free clients, the oldest is dropped if its connection has ended. */
const FREE_KEPT = 64

class Connections {
  readonly #origin: string
  readonly #settings: ConnectionSettings
  readonly #all = new Set<Client>()
  readonly #free: Client[] = []

  constructor(origin: string, settings: ConnectionSettings) {
    this.#origin = origin
    this.#settings = settings
  }

  take(): Client {
    return this.#free.pop() ?? this.#open()
  }

  give(client: Client): void {
    this.#free.push(client)
    if (this.#free.length > FREE_KEPT) this.#forgetOldest()
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((client) => client.destroy()))
  }

  #open(): Client {
    const client = new Client(this.#origin, this.#settings)
    this.#all.add(client)
    return client
  }

  #forgetOldest(): void {
    const [oldest] = this.#free
    if (!oldest || oldest.stats.connected) return
    this.#free.shift()
    this.#all.delete(oldest)
    oldest.destroy().catch(() => undefined)
  }
}

/**
 * Long enough to save most handshakes, short enough to stay below the usual idle timeout of a vendor's front servers
 * (60 s).
 */
const KEEP_ALIVE_MS = 20_000
/** Only cleans up: each call has its own, usually shorter, connect deadline. */
const CONNECT_CLEANUP_MS = 15_000
const ENCODING = 'accept-encoding'
/** Upload bodies are split into pieces of this size, so that progress of a slow upload is visible. */
const PIECE_BYTES = 262_144

/** `metadata`: may reach the metadata of the machine, for logins that its administrator allows. */
export function createUpstream({ world, metadata = false }: { world: World; metadata?: boolean }): Upstream {
  const watch = createDeadlineWatch(world)
  const vendors = new Map<string, Connections>()
  const settings: ConnectionSettings = {
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // One connector for all vendors: it caches TLS sessions, so that new connections can resume them.
    connect: joining(
      buildConnector({
        allowH2: false,
        timeout: CONNECT_CLEANUP_MS,
        lookup: metadata ? lookup : lookUpVendor,
        ...ARRIVAL,
      }),
    ),
    // `watch` enforces the deadlines of each call.
    headersTimeout: 0,
    bodyTimeout: 0,
  }

  function connectionsTo(origin: string): Connections {
    let connections = vendors.get(origin)
    if (!connections) {
      const host = URL.parse(origin)?.hostname ?? ''
      if (!metadata && isMetadataHost(host))
        throw new Fault('upstream_failed', { internal: { why: 'a metadata address', host } })
      connections = new Connections(origin, settings)
      vendors.set(origin, connections)
    }
    return connections
  }

  return {
    send(call, { deadlines, signal }) {
      const slash = call.url.indexOf('/', 8)
      const origin = slash < 0 ? call.url : call.url.slice(0, slash)
      const path = slash < 0 ? '/' : call.url.slice(slash)
      const connections = connectionsTo(origin)
      const client = connections.take()
      const over = () => connections.give(client)
      return exchange(client, path, call, { world, watch, deadlines, signal, over })
    },
    async close() {
      await Promise.all([...vendors.values()].map((connections) => connections.destroy()))
      vendors.clear()
    },
  }
}

function joining(connect: Connector.connector): Connector.connector {
  return (options, done) =>
    connect(options, (...[error, socket]) => {
      if (error) return done(error, null)
      joinRequests(socket)
      done(null, socket)
    })
}

/** The system's name lookup, but a name that resolves to a metadata address is refused. */
export const lookUpVendor: LookupFunction = (host, options, done) => {
  lookup(host, options, (error, address, family) => {
    const found = Array.isArray(address) ? address.map((one) => one.address) : [address]
    if (!error && found.some(isMetadataAddress)) done(new Error('a metadata address'), '', 4)
    else done(error, address, family)
  })
}

/** Sends one call over a dispatcher, and resolves when the answer's headers arrive. */
export function exchange(
  dispatcher: Dispatcher,
  path: string,
  call: HttpCall,
  options: TransferOptions,
): Promise<UpstreamReply> {
  return new Promise((resolve, reject) => {
    if (options.signal.aborted) {
      options.over?.()
      reject(options.signal.reason)
      return
    }
    const { body } = call
    const headers: string[] = []
    for (const name in call.headers) headers.push(name, name === ENCODING ? 'identity' : (call.headers[name] ?? ''))
    if (call.headers[ENCODING] === undefined) headers.push(ENCODING, 'identity')
    const pieces = typeof body === 'object' && !Buffer.isBuffer(body)
    if (pieces) headers.push('content-length', String(lengthOf(body)))
    dispatcher.dispatch(
      {
        path,
        method: call.method,
        blocking: false,
        headers,
        body: pieces ? (outgoing(body) as Iterable<Buffer> as never) : (body ?? null),
      },
      new Transfer(options, resolve, reject),
    )
  })
}

function lengthOf(pieces: ReadonlyArray<string | Buffer>): number {
  return pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0)
}

function* outgoing(pieces: ReadonlyArray<string | Buffer>): Generator<Buffer> {
  for (const piece of pieces) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
  }
}
