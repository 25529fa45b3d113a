// The caller's end of a call on Node's own response: no framework between the vendor's bytes and the socket.
import type { ServerResponse } from 'node:http'
import type { Out } from '../pipeline/out.ts'
import { GONE } from '../pipeline/serve.ts'

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
    this.#response.writeHead(status, {
      ...this.#headers,
      ...headers,
      'content-length': String(Buffer.byteLength(body)),
    })
    this.#response.end(body)
  }

  startStream(headers: Record<string, string>): void {
    if (this.#response.destroyed || this.#response.headersSent) return
    this.#response.writeHead(200, { ...this.#headers, ...headers })
    this.#response.flushHeaders()
    this.#response.socket?.setNoDelay(true)
  }

  write(piece: string | Buffer): Promise<void> | undefined {
    const response = this.#response
    if (response.destroyed || response.write(piece)) return undefined
    return new Promise((resolve) => {
      const on = () => {
        response.off('drain', on)
        response.off('close', on)
        resolve()
      }
      response.on('drain', on)
      response.on('close', on)
    })
  }

  end(piece: string | Buffer): void {
    if (!this.#response.destroyed) this.#response.end(piece)
  }

  destroy(): void {
    this.#response.destroy()
  }
}
