// The one HTTP client. Vendors' addresses come from the operator's catalogue and are trusted; addresses that callers give
// go through guard.ts. Proxy variables of the environment are ignored, because a proxy would see every credential.
import type { Dispatcher } from 'undici'
import Pool from 'undici/lib/dispatcher/pool.js'
import type { World } from '../kernel/world.ts'
import { ARRIVAL } from './arrival.ts'
import type { Deadlines, HttpCall, Upstream, UpstreamReply } from './call.ts'
import { createDeadlineWatch, type DeadlineWatch } from './deadline.ts'
import { Transfer } from './transfer.ts'

/** Long enough to save most handshakes, short enough to stay below the idle limit of the usual front doors (60 s). */
const KEEP_ALIVE_MS = 20_000
/** Only tidies up: each call has its own, usually shorter, limit for the connection. */
const CONNECT_CLEANUP_MS = 15_000
const ENCODING = 'accept-encoding'
/** Pieces are cut to this size on their way out, so that a slow upload shows that it moves. */
const PIECE_BYTES = 262_144

export function createUpstream(options: { world: World }): Upstream {
  const watch = createDeadlineWatch(options.world)
  const pools = new Map<string, Pool>()

  function poolOf(origin: string): Pool {
    let pool = pools.get(origin)
    if (!pool) {
      pool = new Pool(origin, {
        pipelining: 1,
        allowH2: false,
        keepAliveTimeout: KEEP_ALIVE_MS,
        connectTimeout: CONNECT_CLEANUP_MS,
        connect: ARRIVAL,
        // The deadlines of each call are kept by `watch`.
        headersTimeout: 0,
        bodyTimeout: 0,
      })
      pools.set(origin, pool)
    }
    return pool
  }

  return {
    send(call, { deadlines, signal }) {
      const slash = call.url.indexOf('/', 8)
      const origin = slash < 0 ? call.url : call.url.slice(0, slash)
      const path = slash < 0 ? '/' : call.url.slice(slash)
      return exchange(poolOf(origin), path, call, { world: options.world, watch, deadlines, signal })
    },
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()))
      pools.clear()
    },
  }
}

/** Sends one call over a dispatcher, and resolves at the answer's headers. */
export function exchange(
  dispatcher: Dispatcher,
  path: string,
  call: HttpCall,
  options: { world: World; watch: DeadlineWatch; deadlines: Deadlines; signal: AbortSignal },
): Promise<UpstreamReply> {
  return new Promise((resolve, reject) => {
    if (options.signal.aborted) {
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
