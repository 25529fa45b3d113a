// Writes a call's answer to Node's own response, with nothing between the vendor's bytes and the socket.
import type { ServerResponse } from 'node:http'
import type { Readable, Writable } from 'node:stream'
import type { Recording } from '../../pipeline/hooks.ts'
import type { ResponseSink } from '../../pipeline/response-sink.ts'
import { drainBody, linkOf } from './body.ts'

/** A body or piece up to this size is copied, so that it leaves in one write with its headers or its frame. */
const JOINED_BYTES_MAX = 16_384
/** Behind the last piece of a chunked answer. */
const LAST_CHUNK = '0\r\n\r\n'

/** Headers of every API answer, for browsers on other sites. */
export const CORS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'x-request-id, request-id, retry-after, retry-after-ms, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-tollgate-charge, x-tollgate-run-cost, x-tollgate-required, x-tollgate-available, x-tollgate-held, x-tollgate-limit, x-tollgate-left, x-tollgate-model, x-should-retry, x-tollgate-route, x-tollgate-left-out, x-tollgate-json, x-tollgate-guardrail, idempotent-replayed, x-cache',
} as const

const CORS_LIST = Object.entries(CORS).flat()

/** An answer that cannot be written has no reader, so the connection is closed, which aborts the call. */
function onError(this: ServerResponse): void {
  this.req.socket.destroy()
}

export class Caller implements ResponseSink {
  readonly signal: AbortSignal
  readonly #response: ServerResponse
  readonly #requestId: string
  readonly #bodyDeadline: ((response: ServerResponse) => void) | undefined
  #onStart: (() => void) | undefined
  /** The answer is chunked, and its pieces are framed here: Node would write each in four pieces of its own. */
  #frames = false
  /** The headers wait for the first piece, to leave with it. */
  #holdsHead = false

  /** `bodyDeadline` limits the time for the rest of an unread body. */
  constructor(response: ServerResponse, requestId: string, bodyDeadline?: (response: ServerResponse) => void) {
    this.#response = response
    this.#requestId = requestId
    this.#bodyDeadline = bodyDeadline
    this.signal = linkOf(response.req.socket).signal
    response.on('error', onError)
  }

  get started(): boolean {
    return this.#response.headersSent
  }

  /** Calls `run` before the first byte of the answer is sent. */
  whenStarted(run: () => void): void {
    this.#onStart = run
  }

  #begin(): void {
    if (drainBody(this.#response)) this.#bodyDeadline?.(this.#response)
    this.#onStart?.()
  }

  /** Names and values alternate: Node uses such a list as it is, but copies an object. */
  #listed(headers: Readonly<Record<string, string>>): string[] {
    const list = ['x-request-id', this.#requestId, 'request-id', this.#requestId, ...CORS_LIST]
    for (const name in headers) list.push(name, headers[name] ?? '')
    return list
  }

  send(status: number, headers: Record<string, string>, body: string | Buffer): void {
    const response = this.#response
    if (response.destroyed || response.headersSent) return
    this.#begin()
    const list = this.#listed(headers)
    list.push('content-length', String(Buffer.byteLength(body)))
    response.writeHead(status, list)
    // Head and body leave in one write when both are strings, so a small body is copied.
    if (typeof body === 'string' || body.length > JOINED_BYTES_MAX) response.end(body)
    else response.end(body.toString('latin1'), 'latin1')
  }

  /** Sends a stream as the answer's body. */
  async sendStream(headers: Record<string, string>, stream: Readable): Promise<void> {
    this.startStream(headers)
    for await (const piece of stream) {
      if (this.signal.aborted) return
      await this.write(piece as Buffer) // Files have no encoding.
    }
    this.end('')
  }

  startStream(headers: Record<string, string>): void {
    const response = this.#response
    if (response.destroyed || response.headersSent) return
    this.#begin()
    response.writeHead(200, this.#listed(headers))
    this.#frames = response.chunkedEncoding
    response.chunkedEncoding = false
    this.#holdsHead = true
    // The headers leave at the end of this tick, together with anything written in it.
    response.cork()
    process.nextTick(() => {
      if (this.#holdsHead) response.flushHeaders()
      if (response.writableCorked > 0) response.uncork()
    })
  }

  write(piece: string | Buffer, encoding: 'latin1' | 'utf8' = 'utf8'): Promise<void> | undefined {
    if (piece.length === 0) return undefined
    this.#holdsHead = false
    if (!this.#frames) return writePiece(this.#response, piece, encoding)
    if (typeof piece === 'string') return writePiece(this.#response, framed(piece, encoding), encoding)
    if (piece.length <= JOINED_BYTES_MAX)
      return writePiece(this.#response, framed(piece.toString('latin1'), 'latin1'), 'latin1')
    writePiece(this.#response, lengthLine(piece.length), 'latin1')
    writePiece(this.#response, piece)
    return writePiece(this.#response, '\r\n', 'latin1')
  }

  end(piece: string | Buffer): void {
    const response = this.#response
    if (response.destroyed) return
    this.#holdsHead = false
    if (!this.#frames) response.end(piece)
    else if (typeof piece === 'string') response.end(piece === '' ? LAST_CHUNK : framed(piece, 'utf8') + LAST_CHUNK)
    else {
      this.write(piece)
      response.end(LAST_CHUNK)
    }
  }

  destroy(): void {
    this.#response.destroy()
  }
}

function framed(piece: string, encoding: 'latin1' | 'utf8'): string {
  return `${lengthLine(encoding === 'latin1' ? piece.length : Buffer.byteLength(piece))}${piece}\r\n`
}

function lengthLine(bytes: number): string {
  return `${bytes.toString(16)}\r\n`
}

/**
 * Always through the response: it buffers pieces until the end of the tick, so a direct write to the socket would
 * overtake them.
 */
export function writePiece(
  response: ServerResponse,
  piece: string | Buffer,
  encoding: 'latin1' | 'utf8' = 'utf8',
): Promise<void> | undefined {
  if (response.destroyed || piece.length === 0) return undefined
  return response.write(piece, encoding) ? undefined : untilDrained(response)
}

/** Resolves when the caller has read on, or has disconnected. */
function untilDrained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const on = () => {
      stream.off('drain', on)
      stream.off('close', on)
      resolve()
    }
    stream.on('drain', on)
    stream.on('close', on)
  })
}

// The same for a recorded call: it adds everything that is sent to the recording.

const OK = 200

export class RecordingCaller extends Caller {
  readonly recording: Recording

  constructor(response: ServerResponse, recording: Recording) {
    super(response, recording.call.requestId)
    this.recording = recording
  }

  override send(status: number, headers: Record<string, string>, body: string | Buffer): void {
    if (!this.started) {
      this.recording.answers(status, headers['content-type'] ?? '')
      this.recording.sent(body)
    }
    super.send(status, headers, body)
  }

  override startStream(headers: Record<string, string>): void {
    this.recording.answers(OK, headers['content-type'] ?? '')
    super.startStream(headers)
  }

  override write(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Promise<void> | undefined {
    this.recording.sent(piece, encoding)
    return super.write(piece, encoding)
  }

  override end(piece: string | Buffer): void {
    this.recording.sent(piece)
    super.end(piece)
  }
}
