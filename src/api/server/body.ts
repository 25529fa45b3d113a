// Reads request bodies. A large body is counted against its account piece by piece, and a caller that sends too slowly
// is cut off.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { KeyMemory } from '../../admission/api-key.ts'
import { CLIENT_CLOSED, Fault } from '../../kernel/fault.ts'
import type { World } from '../../kernel/world.ts'
import { type ByteLease, SMALL_BODY_BYTES } from '../../upstream/budget.ts'
import { isReadInPieces, whenLastIsWritten } from '../../upstream/internals.ts'

export interface BodyRules {
  readonly world: World
  readonly bytesPerSecondMin: number
}

/** The time allowed for a body in addition to the time for its bytes at the minimum rate. */
const GRACE_MS = 15_000

/**
 * Reads no more from the socket while the byte budget has no room. Only the sender's own time counts against the
 * deadline.
 */
export async function* arriving(
  request: IncomingMessage,
  { world, bytesPerSecondMin }: BodyRules,
  lease: ByteLease | null,
): AsyncGenerator<Buffer, void> {
  const pieces: AsyncIterator<Buffer, void> = request[Symbol.asyncIterator]()
  let bytes = 0
  let counted = 0
  let waitedMs = 0
  for (;;) {
    const sinceMs = world.elapsedMs()
    const piece = pieces.next().catch((error: unknown) => {
      // A caller who hangs up before the body is read makes reading fail, even if all of it arrived. That is no error
      // of the gateway.
      throw request.destroyed ? CLIENT_CLOSED : error
    })
    const next = await inTime(world, GRACE_MS + (bytes * 1_000) / bytesPerSecondMin - waitedMs, piece)
    if (next.done) return
    waitedMs += world.elapsedMs() - sinceMs
    bytes += next.value.length
    const large = bytes > SMALL_BODY_BYTES ? bytes - counted : 0
    if (lease && large > 0) {
      await lease.grow(large, linkOf(request.socket).signal)
      counted = bytes
    }
    yield next.value
  }
}

function inTime<T>(world: World, forMs: number, next: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = world.after(Math.max(0, forMs), () => reject(new Fault('body_too_slow')))
    next.then(resolve, reject).finally(cancel)
  })
}

/** Exactly one of the two is called, once. */
interface BodyTaker {
  whole(body: Buffer): void
  failed(error: unknown): void
}

interface WholeBodyRules extends BodyRules {
  readonly bytesMax: number
}

/** Reads a whole body of at most `bytesMax`. A small body with a Content-Length needs no promises. */
export function takeWhole(
  request: IncomingMessage,
  rules: WholeBodyRules,
  lease: ByteLease | null,
  taker: BodyTaker,
): void {
  const { 'transfer-encoding': encoding, 'content-length': length } = request.headers
  const bytes = Number(length ?? 0)
  if (encoding !== undefined || bytes > SMALL_BODY_BYTES || bytes > rules.bytesMax)
    wholeBody(request, rules, lease).then(
      (body) => taker.whole(body),
      (error: unknown) => taker.failed(error),
    )
  else if (bytes === 0) taker.whole(NOTHING)
  else takeSmall(request, bytes, rules, taker)
}

const NOTHING = Buffer.alloc(0)

function takeSmall(
  request: IncomingMessage,
  bytes: number,
  { world, bytesPerSecondMin }: BodyRules,
  taker: BodyTaker,
): void {
  const pieces: Buffer[] = []
  let left = bytes
  let sinceMs = 0
  let isOver = false
  let cancel: (() => void) | undefined
  function late(): void {
    const graceMs = GRACE_MS + ((bytes - left) * 1_000) / bytesPerSecondMin - (world.elapsedMs() - sinceMs)
    if (graceMs > 0) {
      cancel = world.after(graceMs, late)
      return
    }
    isOver = true
    request.off('data', take)
    linkOf(request.socket).isCut = true
    taker.failed(new Fault('body_too_slow'))
  }
  function take(piece: Buffer): void {
    pieces.push(piece)
    left -= piece.length
    if (left > 0) return
    isOver = true
    cancel?.()
    // All announced bytes are here, so there is no need to wait for the `end` event.
    taker.whole(pieces.length === 1 ? piece : Buffer.concat(pieces, bytes))
  }
  request.on('data', take)
  request.on('error', () => {
    if (isOver) return
    isOver = true
    cancel?.()
    // The caller has disconnected, so no answer is sent.
    taker.failed(CLIENT_CLOSED)
  })
  // The body usually came with the headers and is read before this tick, which saves the timer.
  process.nextTick(() => {
    if (isOver) return
    sinceMs = world.elapsedMs()
    cancel = world.after(GRACE_MS, late)
  })
}

/** Reads a large or chunked body. */
async function wholeBody(request: IncomingMessage, rules: WholeBodyRules, lease: ByteLease | null): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > rules.bytesMax) throw tooLarge()
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of arriving(request, rules, lease)) {
    bytes += piece.length
    if (bytes > rules.bytesMax) throw tooLarge()
    pieces.push(piece)
  }
  return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces, bytes)
}

function tooLarge(): Fault {
  return new Fault('request_too_large', { message: 'The request body is larger than this endpoint takes.' })
}

const LINGER_MS = 1_000

/**
 * Call it before an answer is written: unread bytes of the request's body must not precede the next request. A short
 * rest is read and discarded, and `true` is returned. A long rest, or one that can no longer be read, closes the
 * connection after the answer.
 */
export function drainBody(response: ServerResponse): boolean {
  const { req: request, socket } = response
  if (request.readableEnded || !hasBody(request)) return false
  // A body that an iterator began to read and abandoned can no longer be discarded.
  const isLeft = request.destroyed || isReadInPieces(request) || linkOf(request.socket).isCut
  if (!isLeft && (request.complete || !mayBeLong(request))) {
    response.once('finish', () => request.resume())
    return true
  }
  response.shouldKeepAlive = false
  if (socket) whenLastIsWritten(socket, () => linger(socket))
  return false
}

/**
 * Closing a socket at once while the caller still sends would reset the connection, and the reset can overtake the
 * answer.
 */
function linger(socket: Socket): void {
  socket.end()
  socket.setTimeout(LINGER_MS, () => socket.destroy())
  // Node would read and discard the rest otherwise.
  setImmediate(() => socket.pause())
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Pauses reading a long body until the caller is authenticated. */
export function holdBack(request: IncomingMessage): void {
  if (mayBeLong(request)) request.socket.pause()
}

/** Whether the body is, or may be, too large for the small-body limit. */
export function mayBeLong(request: IncomingMessage): boolean {
  const length = Number(request.headers['content-length'] ?? 0)
  return length > SMALL_BODY_BYTES || request.headers['transfer-encoding'] !== undefined
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json *(?:;.*)?$/i

/** Bodies are JSON: other content types are rejected, a missing one is accepted. */
export function jsonBody({ headers, body }: { headers: IncomingHttpHeaders; body: Buffer | undefined }): Buffer {
  const type = headers['content-type']
  if (type !== undefined && !JSON_TYPE.test(type))
    throw new Fault('request_invalid', {
      message: `Send the body as JSON with Content-Type: application/json; ${JSON.stringify(type.slice(0, 60))} is not accepted.`,
    })
  if (!body || body.length === 0)
    throw new Fault('request_invalid', { message: 'The request has no body; send a JSON object.' })
  return body
}

// The state of a caller's connection beyond one request. It is stored on the socket itself, because a map from sockets
// would need several lookups for every call.

const LINK: unique symbol = Symbol('link')

declare module 'node:net' {
  interface Socket {
    [LINK]?: Link
  }
}

interface Link {
  /** All calls of a connection share one signal, because closing the connection aborts them all. */
  readonly signal: AbortSignal
  /** The most recent response. */
  response: ServerResponse | undefined
  readonly key: KeyMemory
  /** A body came too slowly, so nothing more is read from the connection. */
  isCut: boolean
}

export function linkOf(socket: Socket): Link {
  const known = socket[LINK]
  if (known) return known
  const gone = new AbortController()
  const link: Link = { signal: gone.signal, response: undefined, key: {}, isCut: false }
  socket[LINK] = link
  if (socket.destroyed) gone.abort(CLIENT_CLOSED)
  else socket.once('close', () => gone.abort(CLIENT_CLOSED))
  return link
}
