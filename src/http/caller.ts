// The caller's end of a call on Node's own response: no framework between the vendor's bytes and the socket.
import type { ServerResponse } from 'node:http'
import type { Writable } from 'node:stream'
import { GONE } from '../pipeline/call.ts'
import type { Out } from '../pipeline/out.ts'
import { leaveBody } from './server.ts'

const FRAMED_BYTES_MAX = 16_384

export class Caller implements Out {
  readonly #response: ServerResponse
  readonly #headers: Record<string, string>
  readonly #gone = new AbortController()

  constructor(response: ServerResponse, headers: Record<string, string>) {
    this.#response = response
    this.#headers = headers
    response.on('close', () => {
      if (!response.writableFinished) this.#gone.abort(GONE)
    })
    response.on('error', () => this.#gone.abort(GONE))
    if (response.destroyed || response.socket?.destroyed) this.#gone.abort(GONE)
  }

  get signal(): AbortSignal {
    return this.#gone.signal
  }

  get started(): boolean {
    return this.#response.headersSent
  }

  send(status: number, headers: Record<string, string>, body: string | Buffer): void {
    if (this.#response.destroyed || this.#response.headersSent) return
    leaveBody(this.#response)
    this.#response.writeHead(status, {
      ...this.#headers,
      ...headers,
      'content-length': String(Buffer.byteLength(body)),
    })
    this.#response.end(body)
  }

  startStream(headers: Record<string, string>): void {
    const response = this.#response
    if (response.destroyed || response.headersSent) return
    leaveBody(response)
    response.writeHead(200, { ...this.#headers, ...headers })
    const { socket } = response
    // The headers leave in this turn at the latest, and together with whatever is written in it.
    if (socket) {
      socket.cork()
      process.nextTick(() => socket.uncork())
    }
    response.flushHeaders()
  }

  write(piece: string | Buffer): Promise<void> | undefined {
    const response = this.#response
    if (response.destroyed || piece.length === 0) return undefined
    const { socket } = response
    // Small pieces of a chunked answer are framed here and written as one string: through the response, each would become
    // four writes, which is a third of the cost of relaying an event.
    if (socket && response.chunkedEncoding && piece.length < FRAMED_BYTES_MAX) {
      const flows =
        typeof piece === 'string'
          ? socket.write(`${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n`)
          : socket.write(`${piece.length.toString(16)}\r\n${piece.toString('latin1')}\r\n`, 'latin1')
      return flows ? undefined : untilDrained(socket)
    }
    return response.write(piece) ? undefined : untilDrained(response)
  }

  end(piece: string | Buffer): void {
    if (!this.#response.destroyed) this.#response.end(piece)
  }

  destroy(): void {
    this.#response.destroy()
  }
}

/** Until the caller has read on, or has gone. */
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
