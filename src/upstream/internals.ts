// All that this house knows of the insides of Node and undici, beyond what their documentation promises. The tests beside this file hold each
// assumption against the versions in the lockfile: whoever changes one runs them first.
/// <reference path="./undici.d.ts" />
import type { IncomingMessage } from 'node:http'
import { Server, Socket } from 'node:net'

// Only the parts that are used are loaded: the whole of undici brings a second fetch, WebSocket and caches, 15 MB of memory.
export { default as buildConnector } from 'undici/lib/core/connect.js'
export { default as Client } from 'undici/lib/dispatcher/client.js'

/** Takes no new connections, and leaves those that are idle: `close` of an HTTP server would cut them at once. */
export function stopAccepting(server: Server): void {
  Server.prototype.close.call(server)
}

/** Runs instead of the end of a connection whose last answer has been written: Node ends it by `destroySoon`. */
export function whenLastIsWritten(socket: Socket, run: () => void): void {
  socket.destroySoon = run
}

/** Somebody reads the request piece by piece, or did and left: an iterator of it listens until it has ended. */
export function isReadInPieces(request: IncomingMessage): boolean {
  return request.listenerCount('readable') > 0
}

// How bytes arrive from a vendor's socket. Node's usual way allocates 64 KB for each read, puts what came into a queue and tells of
// it in a later step; for a stream, whose pieces come one by one, that costs more than all that is done with a piece. Here all
// sockets are read into one room, what came is copied out of it at once, and the HTTP client takes it in the same step. What the
// client does not take goes the usual way, with its queue and its limits. It builds on undici reading a socket by `read()` when that says `readable`.

/** Small pieces lie side by side in memory of this size, which is freed when the last of them is. */
const SLAB_BYTES = 16_384
const SMALL_BYTES_MAX = 2_048
/** Pieces that came with the same read of the socket are handed over as one, up to here. */
const GATHERED_BYTES_MAX = 16_384

/** What a socket needs to be read so: options of `net.connect` and `tls.connect`. */
export const ARRIVAL = { onread: { buffer: Buffer.allocUnsafeSlow(65_536), callback: arrive } } as const

let slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
let slabUsed = 0

/** Whose bytes are being taken now, and those of them that are not taken yet. One socket at a time: all of it is one step. */
let arriving: Socket | undefined
let fresh: Buffer | null = null
/** What is to be done when they are all parsed. */
let after: (() => void) | undefined

/** Runs when all that came with the current read has been parsed. */
export function afterArrival(work: () => void): void {
  if (arriving && !after) after = work
  else queueMicrotask(work)
}

/** The piece with memory of its own: for what has to wait, so that a few bytes do not keep a slab. */
export function ownMemory(piece: Buffer): Buffer {
  return piece.buffer.byteLength === SLAB_BYTES ? copied(piece) : piece
}

/** Takes the first small pieces as one, or the first large one. */
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

/** In place of a socket's `read`. */
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
