// The body of a request as it arrives: what is large is counted piece by piece as its account's, and whoever sends too slowly is cut off.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { KeyMemory } from '../admission/api-key.ts'
import { CLIENT_CLOSED, Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { type ByteLease, SMALL_BODY_BYTES } from '../upstream/budget.ts'
import { isReadInPieces, whenLastIsWritten } from '../upstream/internals.ts'

export interface BodyRules {
  readonly world: World
  readonly bytesPerSecondMin: number
}

/** How long a body may take beside what its bytes may. */
const GRACE_MS = 15_000

/** It takes no more from the socket while there is no room for what came; only the time that the sender takes counts against it. */
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
      // A caller who hangs up before the body is read makes reading fail, even if all of it arrived. That is no error of the gateway.
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

/** Both are called once, with what was read or why it was not. */
interface BodyTaker {
  whole(body: Buffer): void
  failed(error: unknown): void
}

interface WholeBodyRules extends BodyRules {
  readonly bytesMax: number
}

/** Reads a body of at most so many bytes, whole. One that is small and says so costs no promises. */
export function takeWhole(
  request: IncomingMessage,
  rules: WholeBodyRules,
  lease: ByteLease | null,
  taker: BodyTaker,
): void {
  const { 'transfer-encoding': encoding, 'content-length': length } = request.headers
  const bytes = Number(length ?? 0)
  if (encoding !== undefined || bytes > SMALL_BODY_BYTES)
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
  const sinceMs = world.elapsedMs()
  let isOver = false
  let cancel: () => void = () => {}
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
    cancel()
    // All that was announced is here: there is no need to wait until the end is told.
    taker.whole(pieces.length === 1 ? piece : Buffer.concat(pieces, bytes))
  }
  request.on('data', take)
  request.on('error', () => {
    if (isOver) return
    isOver = true
    cancel()
    // The caller has left: no answer is sent.
    taker.failed(CLIENT_CLOSED)
  })
  // Nearly always it came with the headers, and is taken before this: a timer would cost more than the body.
  process.nextTick(() => {
    if (!isOver) cancel = world.after(GRACE_MS, late)
  })
}

/** A body of at most so many bytes, whole. */
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
 * To be called before an answer is written: what its request's body still holds must not stand before the next request. A
 * short rest is read and thrown away, which `true` says; a long one, or one that nobody can read any more, ends with the
 * connection.
 */
export function drainBody(response: ServerResponse): boolean {
  const { req: request, socket } = response
  if (request.readableEnded || !hasBody(request)) return false
  // What somebody began to read piece by piece, and left, nobody else can throw away.
  const isLeft = request.destroyed || isReadInPieces(request) || linkOf(request.socket).isCut
  if (!isLeft && (request.complete || !mayBeLong(request))) {
    response.once('finish', () => request.resume())
    return true
  }
  response.shouldKeepAlive = false
  if (socket) whenLastIsWritten(socket, () => linger(socket))
  return false
}

/** To close at once what is still being written to resets the connection, and a reset can overtake the answer. */
function linger(socket: Socket): void {
  socket.end()
  socket.setTimeout(LINGER_MS, () => socket.destroy())
  // Node is about to read what is left and throw it away.
  setImmediate(() => socket.pause())
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Nothing more is read of a long body until it is known whose it is. */
export function holdBack(request: IncomingMessage): void {
  if (mayBeLong(request)) request.socket.pause()
}

/** Whether it is worth counting, or may be. */
export function mayBeLong(request: IncomingMessage): boolean {
  const length = Number(request.headers['content-length'] ?? 0)
  return length > SMALL_BODY_BYTES || request.headers['transfer-encoding'] !== undefined
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json *(?:;.*)?$/i

/** Bodies are JSON: other types are refused, a missing type is forgiven. */
export function jsonBody(request: { readonly headers: IncomingHttpHeaders; readonly body: unknown }): Buffer {
  const type = request.headers['content-type']
  if (type !== undefined && !JSON_TYPE.test(type))
    throw new Fault('request_invalid', {
      message: `Send the body as JSON with Content-Type: application/json; ${JSON.stringify(type.slice(0, 60))} is not accepted.`,
    })
  const body = request.body
  if (!Buffer.isBuffer(body) || body.length === 0)
    throw new Fault('request_invalid', { message: 'The request has no body; send a JSON object.' })
  return body
}

// What is known of a caller's connection beyond one request. It is kept on the socket itself: a map from sockets would be looked into several
// times for every call.

const LINK: unique symbol = Symbol('link')

declare module 'node:net' {
  interface Socket {
    [LINK]?: Link
  }
}

interface Link {
  /** The calls of a connection share one: whoever closes the connection has left all of them. */
  readonly signal: AbortSignal
  /** The last one that was begun. */
  response: ServerResponse | undefined
  readonly key: KeyMemory
  /** A body came too slowly: nothing more is read from it. */
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
