// Reads the answer to one request at a time from the bytes of a connection, strictly as RFC 9112 has it: what a lenient
// reader would guess at is an error here, and the connection ends. Pure: no socket and no clock.
import { SLAB_BYTES } from './pieces.ts'

/** How large the head of an answer may be, or the trailers of a chunked one. */
const HEAD_BYTES_MAX = 16_384
/** What may follow the size of a chunk. It is passed over. */
const EXTENSION_BYTES_MAX = 4_096
/** 2^48 bytes. */
const SIZE_DIGITS_MAX = 12

const HEAD_END = '\r\n\r\n'
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?=[ \r]|$)/
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** A control character, or half of a line's end. */
const ILLEGAL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/
const LENGTH = /^\d{1,15}$/
const CLOSE = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i
const KEEP_ALIVE = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i

const TAB = 9
const LF = 10
const CR = 13
const SPACE = 32
const SEMICOLON = 59

/** What is wrong with an answer. Its code begins with HPE_, as those of Node's own parser do. */
class WireError extends Error {
  readonly code: string

  constructor(message: string, code = 'HPE_INVALID') {
    super(message)
    this.code = code
  }
}

export interface AnswerReceiver {
  onHead(status: number, headers: Readonly<Record<string, string>>): void
  /** All that one read brought of the body, in memory of its own or in a slab (`pieces.ts`). */
  onPiece(piece: Buffer): void
  onEnd(): void
}

interface Head {
  /** 0 or 1. */
  readonly minor: number
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

type Chunked = 'size' | 'extension' | 'size-end' | 'data' | 'data-end' | 'data-end-lf'
type Trailers = 'trailer-start' | 'trailer' | 'trailer-lf' | 'last-lf'

export class AnswerParser {
  /** Once an answer has ended: whether the connection may be used again. */
  keepsAlive = false
  #state: 'idle' | 'head' | 'length' | 'close' | Chunked | Trailers = 'idle'
  /** The request was HEAD, whose answer has no body. */
  #isBodiless = false
  /** The beginning of a head whose end has not come. */
  #carry: Buffer | undefined
  /** What is to come of the body, or of its chunk. */
  #left = 0
  /** Digits of a chunk's size, bytes of its extension, or of all trailers. */
  #passed = 0
  /** What the current read has brought. */
  #head: Head | undefined
  #room: Buffer | undefined
  #used = 0

  get isIdle(): boolean {
    return this.#state === 'idle'
  }

  /** What comes next answers a request. */
  begin(method: string): void {
    this.#state = 'head'
    this.#isBodiless = method === 'HEAD'
  }

  /**
   * Takes what one read of the socket brought. The receiver hears of it when all of it has been read, so `bytes` may be
   * overwritten by then. Throws a `WireError` after the receiver has had what came before it.
   */
  take(bytes: Buffer, receiver: AnswerReceiver): void {
    let error: unknown
    try {
      this.#read(bytes)
    } catch (caught) {
      error = caught
      this.keepsAlive = false
    }
    const head = this.#head
    const room = this.#room
    this.#head = undefined
    this.#room = undefined
    if (head) receiver.onHead(head.status, head.headers)
    if (room) receiver.onPiece(keep(room, this.#used))
    if (this.#state === 'idle') receiver.onEnd()
    if (error !== undefined) throw error
  }

  /** The vendor has closed the connection: that ends an answer that has no length. */
  close(receiver: AnswerReceiver): void {
    if (this.#state !== 'close') return
    this.#state = 'idle'
    receiver.onEnd()
  }

  #read(read: Buffer): void {
    let bytes = read
    let at = 0
    while (this.#state === 'head') {
      const carried = this.#carry?.length ?? 0
      if (this.#carry) bytes = Buffer.concat([this.#carry, bytes])
      this.#carry = undefined
      const end = bytes.indexOf(HEAD_END, Math.max(at, carried - HEAD_END.length), 'latin1')
      if ((end < 0 ? bytes.length : end) - at > HEAD_BYTES_MAX)
        throw new WireError('The head of the answer is too large.', 'HPE_HEADER_OVERFLOW')
      if (end < 0) {
        this.#carry = Buffer.from(bytes.subarray(at))
        return
      }
      const head = parseHead(bytes.toString('latin1', at, end))
      at = end + HEAD_END.length
      // An interim answer: another one follows.
      if (head.status < 200) continue
      this.#head = head
      this.#frame(head)
    }
    at = this.#state === 'length' || this.#state === 'close' ? this.#readPlain(bytes, at) : this.#readChunks(bytes, at)
    if (at < bytes.length) throw new WireError('More bytes came than the answer has.')
  }

  /** Decides how the body ends. */
  #frame({ minor, status, headers }: Head): void {
    const { connection = '', 'content-length': length, 'transfer-encoding': coding } = headers
    this.keepsAlive = minor === 1 ? !CLOSE.test(connection) : KEEP_ALIVE.test(connection)
    if (length !== undefined && (coding !== undefined || !LENGTH.test(length)))
      throw new WireError('The length of the answer is not one number.')
    if (coding !== undefined && (minor === 0 || coding.toLowerCase() !== 'chunked'))
      throw new WireError('The transfer encoding of the answer is not known.')
    const isBodiless = status === 204 || status === 304
    const bytes = Number(length ?? 0)
    // Whoever announces a body where none can be may send it.
    if (isBodiless && (bytes > 0 || coding !== undefined)) this.keepsAlive = false
    this.#left = 0
    this.#passed = 0
    if (this.#isBodiless || isBodiless) this.#state = 'idle'
    else if (coding !== undefined) this.#state = 'size'
    else if (length === undefined) {
      this.#state = 'close'
      this.keepsAlive = false
    } else {
      this.#left = bytes
      this.#state = bytes === 0 ? 'idle' : 'length'
    }
  }

  #readPlain(bytes: Buffer, from: number): number {
    if (this.#state === 'close') {
      this.#copy(bytes, from, bytes.length)
      return bytes.length
    }
    const to = Math.min(bytes.length, from + this.#left)
    this.#copy(bytes, from, to)
    this.#left -= to - from
    if (this.#left === 0) this.#state = 'idle'
    return to
  }

  #readChunks(bytes: Buffer, from: number): number {
    let at = from
    while (at < bytes.length && this.#state !== 'idle') {
      if (this.#state !== 'data') {
        this.#step(bytes[at++]!) // It is before the end.
        continue
      }
      const to = Math.min(bytes.length, at + this.#left)
      this.#copy(bytes, at, to)
      this.#left -= to - at
      at = to
      if (this.#left === 0) this.#state = 'data-end'
    }
    return at
  }

  /** A byte that is not of the body. */
  #step(byte: number): void {
    switch (this.#state) {
      case 'size':
        this.#size(byte)
        return
      case 'extension':
        if (byte === CR) this.#state = 'size-end'
        else this.#pass(byte, EXTENSION_BYTES_MAX)
        return
      case 'size-end':
        this.#state = byte === LF ? (this.#left > 0 ? 'data' : 'trailer-start') : wrong('size of a chunk')
        this.#passed = 0
        return
      case 'data-end':
        this.#state = byte === CR ? 'data-end-lf' : wrong('end of a chunk')
        return
      case 'data-end-lf':
        this.#state = byte === LF ? 'size' : wrong('end of a chunk')
        return
      case 'trailer-start':
      case 'trailer':
        if (byte === CR) this.#state = this.#state === 'trailer' ? 'trailer-lf' : 'last-lf'
        else {
          this.#pass(byte, HEAD_BYTES_MAX)
          this.#state = 'trailer'
        }
        return
      case 'trailer-lf':
        this.#state = byte === LF ? 'trailer-start' : wrong('trailers')
        return
      case 'last-lf':
        this.#state = byte === LF ? 'idle' : wrong('trailers')
    }
  }

  #size(byte: number): void {
    const digit = hexOf(byte)
    if (digit >= 0 && ++this.#passed <= SIZE_DIGITS_MAX) {
      this.#left = this.#left * 16 + digit
      return
    }
    if (this.#passed === 0 || digit >= 0) wrong('size of a chunk')
    this.#passed = 0
    if (byte === CR) this.#state = 'size-end'
    else if (byte === SEMICOLON) this.#state = 'extension'
    else wrong('size of a chunk')
  }

  #pass(byte: number, bytesMax: number): void {
    if (++this.#passed > bytesMax || (byte < SPACE && byte !== TAB)) wrong('chunk')
  }

  #copy(bytes: Buffer, from: number, to: number): void {
    if (from === to) return
    if (!this.#room) {
      this.#room = roomFor(bytes.length - from)
      this.#used = 0
    }
    bytes.copy(this.#room, this.#used, from, to)
    this.#used += to - from
  }
}

const SMALL_BYTES_MAX = 2_048

let slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
let slabUsed = 0

/** Room for so many bytes. Once it is filled, `keep` says how much of it is needed. */
function roomFor(bytes: number): Buffer {
  if (bytes > SMALL_BYTES_MAX) return Buffer.allocUnsafeSlow(bytes)
  if (slabUsed + bytes > SLAB_BYTES) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
    slabUsed = 0
  }
  return slab.subarray(slabUsed, slabUsed + bytes)
}

function keep(room: Buffer, bytes: number): Buffer {
  if (room.buffer === slab.buffer) slabUsed += bytes
  return bytes === room.length ? room : room.subarray(0, bytes)
}

function wrong(what: string): never {
  throw new WireError(`The ${what} of the answer cannot be read.`)
}

function hexOf(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48
  const letter = byte | 32
  return letter >= 97 && letter <= 102 ? letter - 87 : -1
}

function parseHead(text: string): Head {
  const [, minor, status] = STATUS_LINE.exec(text) ?? []
  if (status === undefined || status === '101' || ILLEGAL.test(text))
    throw new WireError('This is no answer in HTTP/1.1.')
  // Of no prototype: any name may come.
  const headers: Record<string, string> = Object.create(null)
  const lines = text.split('\r\n')
  for (let place = 1; place < lines.length; place++) {
    const line = lines[place]! // It is below the length.
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon)).toLowerCase()
    if (!TOKEN.test(name)) throw new WireError('A header of the answer cannot be read.')
    const value = line.slice(colon + 1).trim()
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  return { minor: Number(minor), status: Number(status), headers }
}
