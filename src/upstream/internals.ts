// All code that relies on undocumented internals of Node and undici. The tests beside this file check each assumption
// against the versions in the lockfile: run them first when you upgrade one.
/// <reference path="./undici.d.ts" />
import type { IncomingMessage } from 'node:http'
import { Server, Socket } from 'node:net'

// Only the needed parts are loaded: the whole of undici adds a second fetch, WebSocket and caches, 15 MB of memory.
export { default as buildConnector } from 'undici/lib/core/connect.js'
export { default as Client } from 'undici/lib/dispatcher/client.js'

/** Accepts no new connections but keeps idle ones open: `close` of an HTTP server would close them at once. */
export function stopAccepting(server: Server): void {
  Server.prototype.close.call(server)
}

/** Calls `run` instead of closing a connection after its last answer was written: Node closes it by `destroySoon`. */
export function whenLastIsWritten(socket: Socket, run: () => void): void {
  socket.destroySoon = run
}

/** Whether an iterator reads the request, or did and stopped: an iterator listens until the request has ended. */
export function isReadInPieces(request: IncomingMessage): boolean {
  return request.listenerCount('readable') > 0
}

// How a request leaves. undici writes its head and its body apart, and Node hands both to the system as a list.

/** A request up to this size is copied into one string: that is cheaper than the list. */
const JOINED_BYTES_MAX = 16_384

/** Lets the head of a request leave in one string with a body that is written while the socket is corked. */
export function joinRequests(socket: Socket): void {
  const { write, uncork } = socket
  let head = ''
  socket.write = (piece: string | Uint8Array, ...how: unknown[]): boolean => {
    if (head === '' && typeof piece === 'string' && socket.writableCorked > 0) {
      head = piece
      return true
    }
    const first = head
    head = ''
    if (Buffer.isBuffer(piece) && first !== '' && piece.length <= JOINED_BYTES_MAX)
      return write.call(socket, first + piece.toString('latin1'), 'latin1')
    if (first !== '') write.call(socket, first, 'latin1')
    // Handed on as it came: an encoding, a callback, or neither.
    return write.call(socket, piece, ...(how as []))
  }
  socket.uncork = () => {
    const rest = head
    head = ''
    if (rest !== '') write.call(socket, rest, 'latin1')
    uncork.call(socket)
  }
}

// How bytes arrive from a vendor's socket. By default Node allocates 64 KB for each read, queues the data and emits it
// in a later tick. For a stream of small pieces that costs more than everything done with a piece. Here all sockets are
// read into one shared buffer; the data is copied out at once, and the HTTP client takes it in the same tick. Data that
// the client does not take goes the default way, with its queue and its limits. This relies on undici calling `read()`
// when a socket emits `readable`.

/** Small pieces share a slab of this size, which is freed when the last of them is. */
const SLAB_BYTES = 16_384
const SMALL_BYTES_MAX = 2_048
/** Pieces of the same socket read are handed over as one, up to this size. */
const GATHERED_BYTES_MAX = 16_384

/** The options of `net.connect` and `tls.connect` for this way of reading. */
export const ARRIVAL = { onread: { buffer: Buffer.allocUnsafeSlow(65_536), callback: arrive } } as const

let slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
let slabUsed = 0

/**
 * The socket whose bytes are being taken now, and the bytes not taken yet. One socket at a time, because it all happens
 * in one tick.
 */
let arriving: Socket | undefined
let fresh: Buffer | null = null
/** Runs when all of them are parsed. */
let after: (() => void) | undefined

/** Calls `work` when all data of the current read has been parsed. */
export function afterArrival(work: () => void): void {
  if (arriving && !after) after = work
  else queueMicrotask(work)
}

/** Copies a piece that has to wait out of its slab, so that a few bytes do not keep the whole slab alive. */
export function ownMemory(piece: Buffer): Buffer {
  return piece.buffer.byteLength === SLAB_BYTES ? copied(piece) : piece
}

/** Removes the first small pieces, joined into one, or the first large piece. */
export function gather(waiting: Buffer[]): Buffer {
  let count = 0
  let bytes = 0
  for (const { length } of waiting) {
    if (count > 0 && bytes + length > GATHERED_BYTES_MAX) break
    count++
    bytes += length
  }
  const only = count === 1 ? waiting.shift() : undefined
  return only ?? Buffer.concat(waiting.splice(0, count), bytes)
}

function arrive(this: Socket, bytes: number, room: Buffer): boolean {
  const came = bytes > SMALL_BYTES_MAX ? copied(room.subarray(0, bytes)) : placed(bytes, room)
  if (this.readableLength > 0) return this.push(ownMemory(came))
  if (this.read !== take) this.read = take
  arriving = this
  fresh = came
  try {
    this.emit('readable')
  } finally {
    arriving = undefined
  }
  const isTaken = fresh === null
  fresh = null
  const work = after
  after = undefined
  work?.()
  return isTaken || this.push(ownMemory(came))
}

/** Replaces a socket's `read`. */
function take(this: Socket, size?: number): unknown {
  if (this !== arriving || size !== undefined || this.readableLength > 0) return Socket.prototype.read.call(this, size)
  const came = fresh
  fresh = null
  return came
}

function placed(bytes: number, room: Buffer): Buffer {
  if (slabUsed + bytes > SLAB_BYTES) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
    slabUsed = 0
  }
  const from = slabUsed
  slabUsed += bytes
  room.copy(slab, from, 0, bytes)
  return slab.subarray(from, slabUsed)
}

function copied(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}
