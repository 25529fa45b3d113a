// The recording of one call: collects the bytes as they were sent, up to a limit, and truncates longer ones.

import type { ContentView, RecordingPolicy } from '../admission/views.ts'
import { withoutFiles } from '../kernel/redact.ts'

export interface Call {
  /** `req_<id>`. */
  readonly requestId: string
  readonly account: string
  readonly key: string
  readonly rule: RecordingPolicy
  readonly method: string
  readonly path: string
}

/** The bytes collected of each body. Files and secrets are removed from them before the rest is truncated to the policy's size. */
const GATHERED_BYTES_MAX = 524_288
/** A secret that is cut in two at the end of a text would not be recognized, so the last characters before a cut are never stored. */
const TAIL_CHARS = 256
/** The overhead of a call besides its bytes. Without it, many small bodies would use far more memory than the limit. */
const CALL_BYTES = 1_024

class Body {
  readonly #pieces: Buffer[] = []
  size = 0
  isCut = false

  /** Returns the number of bytes stored. It copies them, because a small piece may be part of a large buffer. */
  push(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): number {
    const room = GATHERED_BYTES_MAX - this.size
    const bytes = typeof piece === 'string' ? Buffer.from(piece.slice(0, room), encoding) : piece
    const taken = Buffer.from(bytes.subarray(0, room))
    if (taken.length < (typeof piece === 'string' ? Buffer.byteLength(piece, encoding) : piece.length))
      this.isCut = true
    if (taken.length > 0) this.#pieces.push(taken)
    this.size += taken.length
    return taken.length
  }

  text(clean: (text: string) => string, charsMax: number): { body: string; cut: boolean } {
    const whole = Buffer.concat(this.#pieces).toString('utf8')
    const words = withoutFiles(this.isCut ? whole.slice(0, -TAIL_CHARS) : whole)
    // Secrets are searched only in the part that is stored, because the search is slow in long texts.
    const seen = clean(words.slice(0, charsMax + TAIL_CHARS))
    const cut = this.isCut || words.length > charsMax + TAIL_CHARS || seen.length > charsMax
    return { body: seen.slice(0, charsMax).toWellFormed(), cut }
  }

  clear(): void {
    this.#pieces.length = 0
  }
}

const TEXT = /^(?:text\/|application\/(?:json|[\w.-]{1,60}\+json|x-ndjson))/

export class Recording {
  readonly call: Call
  readonly #room: { left: number }
  readonly #done: (recording: Recording) => void
  readonly #request = new Body()
  readonly #answer = new Body()
  #status = 0
  #contentType = ''
  #taken = 0
  /** The length of an answer that is not text. */
  #unread = 0
  fits = true

  constructor(call: Call, room: { left: number }, done: (recording: Recording) => void) {
    this.call = call
    this.#room = room
    this.#done = done
    this.#taken = CALL_BYTES + call.path.length
    room.left -= this.#taken
  }

  asked(body: string | Buffer): void {
    this.#take(this.#request, body)
  }

  answers(status: number, contentType: string): void {
    this.#status = status
    this.#contentType = contentType
  }

  sent(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): void {
    if (TEXT.test(this.#contentType)) this.#take(this.#answer, piece, encoding)
    else this.#unread += piece.length
  }

  end(): void {
    this.#done(this)
  }

  stored(clean: (text: string) => string): Pick<ContentView, 'request' | 'answer'> {
    const { method, path, rule } = this.call
    const unread = { body: `[${this.#unread} bytes of ${this.#contentType || 'an unknown type'}]`, cut: true }
    const answer = this.#unread > 0 ? unread : this.#answer.text(clean, rule.maxBytes)
    return {
      request: { method, path: clean(path), ...this.#request.text(clean, rule.maxBytes) },
      answer: this.#status === 0 ? null : { status: this.#status, contentType: this.#contentType, ...answer },
    }
  }

  /** Returns its bytes to the shared limit. */
  free(): void {
    this.#room.left += this.#taken
    this.#taken = 0
    this.#request.clear()
    this.#answer.clear()
  }

  #take(into: Body, piece: string | Buffer, encoding?: 'latin1' | 'utf8'): void {
    if (!this.fits) return
    const taken = into.push(piece, encoding)
    this.#taken += taken
    this.#room.left -= taken
    if (this.#room.left >= 0) return
    this.fits = false
    this.free()
  }
}
