// The caller's end of a call: what the path needs of it, whatever the server.
import { CLIENT_CLOSED } from '../kernel/fault.ts'
import { bytesOf } from '../upstream/sse.ts'

export interface ResponseSink {
  /** Aborts when the caller has disconnected, with CLIENT_CLOSED as the reason. */
  readonly signal: AbortSignal
  /** The headers were sent: from here on an error can only be part of the body. */
  readonly started: boolean
  /** A whole answer at once. */
  send(status: number, headers: Record<string, string>, body: string | Buffer): void
  startStream(headers: Record<string, string>): void
  /**
   * Undefined while the caller reads fast enough; otherwise a promise that resolves when it has read more, or has
   * disconnected.
   */
  write(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Promise<void> | undefined
  end(piece: string | Buffer): void
  /** Cuts the connection: for a caller that does not read. */
  destroy(): void
}

// The sink of a call without a connection: it collects the whole answer, for a tool or for background work.

export class BufferedSink implements ResponseSink {
  readonly signal: AbortSignal
  readonly #full = new AbortController()
  readonly #pieces: Buffer[] = []
  readonly #bytesMax: number
  #bytes = 0
  started = false
  status = 200
  headers: Readonly<Record<string, string>> = {}

  constructor(signal: AbortSignal, bytesMax: number) {
    this.#bytesMax = bytesMax
    this.signal = AbortSignal.any([signal, this.#full.signal])
    // This reason tells the path that the caller has left.
    if (signal.aborted) this.#full.abort(CLIENT_CLOSED)
  }

  /** The answer exceeded the limit, so it is incomplete. */
  get overflowed(): boolean {
    return this.#bytes > this.#bytesMax
  }

  get body(): Buffer {
    return Buffer.concat(this.#pieces)
  }

  send(status: number, headers: Record<string, string>, body: string | Buffer): void {
    this.status = status
    this.startStream(headers)
    void this.write(body)
  }

  startStream(headers: Record<string, string>): void {
    this.started = true
    this.headers = headers
  }

  write(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Promise<void> | undefined {
    const bytes = bytesOf(piece, encoding)
    this.#bytes += bytes.length
    if (this.overflowed) this.destroy()
    else this.#pieces.push(bytes)
    return undefined
  }

  end(piece: string | Buffer): void {
    void this.write(piece)
  }

  destroy(): void {
    this.#full.abort(CLIENT_CLOSED)
  }
}
