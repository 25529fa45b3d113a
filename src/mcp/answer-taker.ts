// The caller's end of a call that a tool makes: the answer is taken whole, and becomes the tool's.
import { GONE } from '../pipeline/call.ts'
import type { Out } from '../pipeline/out.ts'

/** What a model could never read, and no client wants in one message. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024

export class AnswerTaker implements Out {
  readonly signal: AbortSignal
  readonly #full = new AbortController()
  readonly #pieces: Buffer[] = []
  #bytes = 0
  started = false
  headers: Readonly<Record<string, string>> = {}

  constructor(signal: AbortSignal) {
    this.signal = AbortSignal.any([signal, this.#full.signal])
    // The path knows a caller who has gone by this reason.
    if (signal.aborted) this.#full.abort(GONE)
  }

  /** There was more than an answer may have; what is there is not all of it. */
  get overflowed(): boolean {
    return this.#bytes > ANSWER_BYTES_MAX
  }

  get body(): Buffer {
    return Buffer.concat(this.#pieces)
  }

  send(_status: number, headers: Record<string, string>, body: string | Buffer): void {
    this.startStream(headers)
    this.write(body)
  }

  startStream(headers: Record<string, string>): void {
    this.started = true
    this.headers = headers
  }

  write(piece: string | Buffer): undefined {
    const bytes = Buffer.from(piece)
    this.#bytes += bytes.length
    if (this.overflowed) this.destroy()
    else this.#pieces.push(bytes)
  }

  end(piece: string | Buffer): void {
    this.write(piece)
  }

  destroy(): void {
    this.#full.abort(GONE)
  }
}
