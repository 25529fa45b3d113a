// A connection to a vendor, for one call at a time. It is opened when a call needs it, and again when it has ended.
import type { OnReadOpts, Socket } from 'node:net'
import { Fault } from '../kernel/fault.ts'
import { AnswerParser, type AnswerReceiver } from './answer-parser.ts'
import type { HttpCall } from './call.ts'

/**
 * Opens a socket and calls `opened` once, unless what it answers is called before. `onread` says how bytes arrive; no
 * listener stands on the socket any more when it is handed over.
 */
export type Connect = (onread: OnReadOpts, opened: (error: Error | undefined, socket?: Socket) => void) => () => void

export interface Receiver extends AnswerReceiver {
  /** The request is sent now; false: it need not be any more, and the connection is free. */
  onOpen(): boolean
  /** The socket took a piece of a long request. */
  onSent(): void
  /** The connection broke off. Nothing follows. */
  onBroken(error: unknown): void
}

interface Call extends OutgoingRequest {
  readonly receiver: Receiver
}

/** A request up to this size leaves as one string. */
const JOINED_BYTES_MAX = 16_384
/** Bodies of several pieces are written in parts of this size, so that progress of a slow upload is visible. */
const PART_BYTES = 262_144
/**
 * Long enough to save most handshakes, short enough to stay below the usual idle timeout of a vendor's front servers
 * (60 s). A vendor may name a shorter one.
 */
const KEEP_ALIVE_MS = 20_000
/** So much earlier than the vendor, which must not close a connection while a request is on its way. */
const KEEP_ALIVE_MARGIN_MS = 2_000
const KEEP_ALIVE_HINT = /(?:^|[,;\s])timeout=(\d{1,9})/i

/** All sockets are read into it, one after the other: the parser copies what is to stay. */
const READ_ROOM = Buffer.allocUnsafeSlow(65_536)

/**
 * Connections that write their request once this turn of the event loop has ended: a vendor that has closed one of
 * them, or has said more than it was asked, is heard before.
 */
const starting: Connection[] = []

export class Connection implements AnswerReceiver {
  readonly #connect: Connect
  readonly #onread: OnReadOpts
  #parser = new AnswerParser()
  #socket: Socket | undefined
  /** Gives up while the socket is being opened. */
  #cancel: (() => void) | undefined
  #idleMs = KEEP_ALIVE_MS
  #call: Call | undefined
  #state: 'closed' | 'opening' | 'idle' | 'running' | 'over' = 'closed'
  /** The socket was given the whole request. */
  #isSent = false
  #isPaused = false

  constructor(connect: Connect) {
    this.#connect = connect
    this.#onread = { buffer: READ_ROOM, callback: (count, room) => this.#arrive(room as Buffer, count) } // It is ours.
  }

  get isOpen(): boolean {
    return this.#socket !== undefined
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Only one at a time, and only after the receiver of the one before has heard that it is over. */
  send(request: OutgoingRequest, receiver: Receiver): void {
    const { method, head, isAscii, body } = request
    this.#call = { method, head, isAscii, body, receiver }
    if (this.#state === 'idle') {
      if (starting.push(this) === 1) setImmediate(startAll)
    } else if (this.#state === 'closed') this.#open()
    else if (this.#state === 'over') receiver.onBroken(new ClosedError('The connection was closed.'))
  }

  /** No more is read, until `resume`. */
  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#socket?.pause()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#socket?.resume()
  }

  /** Ends the call under way, whose receiver hears no more of it. */
  abort(): void {
    this.#call = undefined
    this.#drop()
  }

  /** For good. */
  close(): void {
    const call = this.#call
    this.#cancel?.()
    this.abort()
    this.#state = 'over'
    call?.receiver.onBroken(new ClosedError('The connection was closed.'))
  }

  // ---- What the parser has read.

  onHead(status: number, headers: Readonly<Record<string, string>>): void {
    const hint = headers['keep-alive']
    if (hint !== undefined) this.#heed(hint)
    this.#call?.receiver.onHead(status, headers)
  }

  onPiece(piece: Buffer): void {
    this.#call?.receiver.onPiece(piece)
  }

  onEnd(): void {
    const call = this.#call
    if (!call) return
    this.#call = undefined
    if (this.#parser.keepsAlive && this.#isSent) {
      this.#state = 'idle'
      this.resume()
      this.#socket?.unref()
    } else this.#drop()
    call.receiver.onEnd()
  }

  // ---- The life of the socket.

  #open(): void {
    this.#state = 'opening'
    this.#cancel = this.#connect(this.#onread, (error, socket) => {
      this.#cancel = undefined
      if (socket) this.#opened(socket)
      else this.#fail(error)
    })
  }

  #opened(socket: Socket): void {
    this.#socket = socket
    this.#state = 'idle'
    this.#idleMs = KEEP_ALIVE_MS
    const isOurs = () => this.#socket === socket
    socket.setTimeout(KEEP_ALIVE_MS, () => isOurs() && !this.#call && this.#drop())
    socket.on('error', (error) => isOurs() && this.#fail(error))
    const onClosed = () => isOurs() && this.#fail(new ClosedError('The vendor closed the connection.'))
    socket.on('end', () => {
      if (isOurs()) this.#parser.close(this)
      onClosed()
    })
    socket.on('close', onClosed)
    this.start()
  }

  /** Sends the request, if the connection is still there; otherwise another one is being opened. */
  start(): void {
    const [call, socket] = [this.#call, this.#socket]
    if (!call || !socket || this.#state !== 'idle') return
    if (!call.receiver.onOpen()) {
      this.#call = undefined
      return
    }
    this.#state = 'running'
    this.#parser.begin(call.method)
    socket.ref()
    this.#write(socket, call)
  }

  #write(socket: Socket, { head, isAscii, body }: Call): void {
    this.#isSent = true
    if (body === undefined) socket.write(head, 'latin1')
    else if (Buffer.isBuffer(body) && body.length <= JOINED_BYTES_MAX)
      socket.write(head + body.toString('latin1'), 'latin1')
    else if (typeof body === 'string' && body.length <= JOINED_BYTES_MAX && isAscii) socket.write(head + body)
    else {
      socket.cork()
      socket.write(head, 'latin1')
      if (typeof body === 'string' || Buffer.isBuffer(body)) socket.write(body)
      else {
        this.#isSent = false
        this.#writeParts(socket, partsOf(body))
      }
      socket.uncork()
    }
  }

  #writeParts(socket: Socket, parts: Iterator<Buffer>): void {
    while (this.#socket === socket) {
      const { done, value } = parts.next()
      if (done) {
        this.#isSent = true
        return
      }
      const isTaken = socket.write(value)
      this.#call?.receiver.onSent()
      if (isTaken) continue
      socket.once('drain', () => this.#writeParts(socket, parts))
      return
    }
  }

  #arrive(room: Buffer, count: number): boolean {
    if (this.#state !== 'running') {
      this.#fail(new Error('Bytes came that nobody asked for.'))
      return true
    }
    const socket = this.#socket
    try {
      this.#parser.take(room.subarray(0, count), this)
    } catch (error) {
      // An answer that ended with these bytes has ended this connection, which may be another by now.
      if (this.#socket === socket) this.#fail(error)
    }
    return true
  }

  #heed(hint: string): void {
    const seconds = KEEP_ALIVE_HINT.exec(hint)?.[1]
    const idleMs = Math.min(KEEP_ALIVE_MS, Number(seconds ?? Number.POSITIVE_INFINITY) * 1_000 - KEEP_ALIVE_MARGIN_MS)
    if (idleMs <= 0) this.#parser.keepsAlive = false
    else if (idleMs !== this.#idleMs) {
      this.#idleMs = idleMs
      this.#socket?.setTimeout(idleMs)
    }
  }

  /** A request of which nothing was sent gets another connection. */
  #fail(error: unknown): void {
    const call = this.#call
    const isUnsent = this.#state === 'idle'
    this.#drop()
    if (!call) return
    if (isUnsent) this.#open()
    else {
      this.#call = undefined
      call.receiver.onBroken(error)
    }
  }

  #drop(): void {
    const socket = this.#socket
    this.#socket = undefined
    this.#state = 'closed'
    this.#isPaused = false
    this.#parser = new AnswerParser()
    socket?.destroy()
  }
}

function startAll(): void {
  for (const connection of starting.splice(0)) connection.start()
}

class ClosedError extends Error {
  readonly code = 'ECONNRESET'
}

function* partsOf(pieces: ReadonlyArray<string | Buffer>): Generator<Buffer, undefined> {
  for (const piece of pieces) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    for (let at = 0; at < bytes.length; at += PART_BYTES) yield bytes.subarray(at, at + PART_BYTES)
  }
}

// A request as it leaves. What cannot be sent is a mistake of ours, and never reaches a vendor as another request than
// was meant.

const PATH = /^\/[\x21-\x7e\x80-\xff]*$/
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** Said here, or not at all. */
const OWN = /^(?:accept-encoding|connection|content-length|expect|keep-alive|transfer-encoding|upgrade)$/i

type Kind = 'sent' | 'own' | 'bad'
/** Names come from code and from operators: there are few. */
const names = new Map<string, Kind>()
const NAMES_MAX = 1_000

export interface OutgoingRequest {
  readonly method: HttpCall['method']
  /** In Latin-1, with the length of the body. */
  readonly head: string
  readonly isAscii: boolean
  readonly body: HttpCall['body']
}

/** What goes before the length of a body: the same for all calls with the same headers to the same address. */
interface Beginning extends Pick<HttpCall, 'method'> {
  readonly host: string
  readonly path: string
  readonly text: string
  readonly isAscii: boolean
}

const beginnings = new WeakMap<HttpCall['headers'], Beginning>()

/** `host` is that of the address. */
export function requestOf(host: string, path: string, call: HttpCall): OutgoingRequest | Fault {
  const { method, headers, body } = call
  const known = beginnings.get(headers)
  const isKnown = known?.path === path && known.host === host && known.method === method
  const beginning = isKnown ? known : beginningOf(host, path, call)
  if (beginning instanceof Fault) return beginning
  if (!isKnown) beginnings.set(headers, beginning)
  const bytes = bytesOf(body)
  const hasLength = bytes !== undefined || method === 'POST' || method === 'PUT' || method === 'PATCH'
  const length = hasLength ? `content-length: ${bytes ?? 0}\r\n` : ''
  const head = `${beginning.text}${length}accept-encoding: identity\r\nconnection: keep-alive\r\n\r\n`
  return { method, head, isAscii: beginning.isAscii, body }
}

function beginningOf(host: string, path: string, { method, headers }: HttpCall): Beginning | Fault {
  if (!PATH.test(path)) return unsendable('the path')
  let text = `${method} ${path} HTTP/1.1\r\n`
  if (headers.host === undefined) text += `host: ${host}\r\n`
  for (const name in headers) {
    const value = headers[name] ?? ''
    const kind = names.get(name) ?? kindOf(name)
    if (kind === 'bad' || !VALUE.test(value)) return unsendable(name)
    if (kind === 'sent') text += `${name}: ${value}\r\n`
  }
  return { method, host, path, text, isAscii: !/[\x80-\xff]/.test(text) }
}

function kindOf(name: string): Kind {
  if (names.size >= NAMES_MAX) names.clear()
  const kind = OWN.test(name) ? 'own' : TOKEN.test(name) ? 'sent' : 'bad'
  names.set(name, kind)
  return kind
}

function bytesOf(body: HttpCall['body']): number | undefined {
  if (body === undefined) return undefined
  if (typeof body === 'string') return Buffer.byteLength(body)
  if (Buffer.isBuffer(body)) return body.length
  return body.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0)
}

const unsendable = (what: string) =>
  new Fault('internal', { internal: { phase: 'connect', sent: false, unsendable: what } })
