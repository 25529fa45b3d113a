// The HTTP client for vendors. Their addresses come from the operator's catalog and are trusted; callers' addresses go
// through guard.ts. Proxy variables of the environment are ignored, because a proxy would see every credential.
import { lookup } from 'node:dns'
import net, { type LookupFunction } from 'node:net'
import tls from 'node:tls'
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { isMetadataAddress, isMetadataHost } from './address.ts'
import type { Upstream, UpstreamReply } from './call.ts'
import { type Connect, Connection, type OutgoingRequest, requestOf } from './connection.ts'
import { createDeadlineWatch } from './deadline.ts'
import { Transfer, type TransferOptions } from './transfer.ts'

// The connections to one vendor, each for one call at a time. The most recently used one is taken first, so that few
// connections stay busy and the idle ones time out.

/** Beyond this many free ones, the oldest is dropped if it is not open any more. */
const FREE_KEPT = 64

class Connections {
  readonly host: string
  readonly #connect: Connect
  readonly #all = new Set<Connection>()
  readonly #free: Connection[] = []

  constructor(address: URL, lookup: LookupFunction) {
    this.host = address.host
    this.#connect = connectorTo(address, lookup)
  }

  take(): Connection {
    const free = this.#free.pop()
    if (free) return free
    const made = new Connection(this.#connect)
    this.#all.add(made)
    return made
  }

  give(connection: Connection): void {
    this.#free.push(connection)
    const [oldest] = this.#free
    if (this.#free.length <= FREE_KEPT || !oldest || oldest.isOpen) return
    this.#free.shift()
    this.#all.delete(oldest)
  }

  close(): void {
    for (const connection of this.#all) connection.close()
  }
}

/** Only cleans up: each call has its own, usually shorter, connect deadline. */
const CONNECT_CLEANUP_MS = 15_000
const PROBE_AFTER_MS = 60_000

/** Connections of one vendor resume its TLS session. */
function connectorTo({ protocol, hostname, port }: URL, lookup: LookupFunction): Connect {
  const host = hostname.replace(/^\[|\]$/g, '')
  const isSecure = protocol === 'https:'
  const place = { host, port: Number(port || (isSecure ? 443 : 80)), lookup }
  const name = { servername: net.isIP(host) ? '' : host, ALPNProtocols: ['http/1.1'] }
  let session: Buffer | undefined
  return (onread, opened) => {
    const at = { ...place, onread }
    const socket = isSecure ? tls.connect({ ...at, ...name, ...(session && { session }) }) : net.connect(at)
    socket.setNoDelay(true)
    socket.setKeepAlive(true, PROBE_AFTER_MS)
    socket.setTimeout(CONNECT_CLEANUP_MS, () => socket.destroy(new ConnectTimeout()))
    socket.on('session', (made: Buffer) => {
      session = made
    })
    const onError = (error: Error) => opened(isTimeout(error) ? new ConnectTimeout(error) : error)
    socket.once('error', onError)
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      socket.off('error', onError)
      socket.removeAllListeners('timeout')
      opened(undefined, socket)
    })
    return () => {
      socket.off('error', onError)
      socket.on('error', () => undefined).destroy()
    }
  }
}

class ConnectTimeout extends Error {
  readonly code = 'ETIMEDOUT'

  constructor(cause?: Error) {
    super('No connection was made in time.', { cause })
  }
}

/** Of a name with several addresses each was tried. */
function isTimeout(error: Error): boolean {
  const tried = error instanceof AggregateError ? error.errors : [error]
  return tried.some(({ code }) => code === 'ETIMEDOUT')
}

/** `metadata`: may reach the metadata of the machine, for logins that its administrator allows. */
export function createUpstream({ world, metadata = false }: { world: World; metadata?: boolean }): Upstream {
  const watch = createDeadlineWatch(world)
  const vendors = new Map<string, Connections>()

  function connectionsTo(origin: string): Connections {
    let connections = vendors.get(origin)
    if (!connections) {
      const address = URL.parse(origin)
      if (!address) throw new Fault('internal', { internal: { why: 'an address without a host' } })
      if (!metadata && isMetadataHost(address.hostname))
        throw new Fault('upstream_failed', { internal: { why: 'a metadata address', host: address.hostname } })
      connections = new Connections(address, metadata ? lookup : lookUpVendor)
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
      const request = requestOf(connections.host, path, call)
      if (request instanceof Fault) return Promise.reject(request)
      return exchange(connections.take(), request, { world, watch, deadlines, signal, connections })
    },
    async close() {
      for (const connections of vendors.values()) connections.close()
      vendors.clear()
    },
  }
}

/** The system's name lookup, but a name that resolves to a metadata address is refused. */
export const lookUpVendor: LookupFunction = (host, options, done) => {
  lookup(host, options, (error, address, family) => {
    const found = Array.isArray(address) ? address.map((one) => one.address) : [address]
    if (!error && found.some(isMetadataAddress)) done(new Error('a metadata address'), '', 4)
    else done(error, address, family)
  })
}

/** Sends one call on a free connection, and resolves when the answer's headers arrive. */
export function exchange(
  connection: Connection,
  request: OutgoingRequest,
  options: TransferOptions,
): Promise<UpstreamReply> {
  const { connections, signal } = options
  if (signal.aborted) {
    connections?.give(connection)
    return Promise.reject(signal.reason)
  }
  const answer = Promise.withResolvers<UpstreamReply>()
  connection.send(request, new Transfer(connection, options, answer))
  return answer.promise
}
