// A multipart form, read as it arrives: whoever takes a part gets its bytes piece by piece, and is waited for.
import { Fault, invalid } from '../kernel/fault.ts'

interface PartHead {
  readonly name: string
  readonly filename: string | undefined
}

export interface PartTaker {
  write(piece: Buffer): Promise<void> | void
}

const HEADERS_BYTES_MAX = 8_192
const PARTS_MAX = 20
/** RFC 2046. */
const BOUNDARY_CHARS_MAX = 70

/** Throws request_invalid for what is no form; what `take` throws ends it. */
export async function readForm(
  pieces: AsyncIterable<Buffer>,
  contentType: string | undefined,
  take: (head: PartHead) => Promise<PartTaker> | PartTaker,
): Promise<void> {
  const reader = new FormReader(boundaryOf(contentType), take)
  for await (const piece of pieces) await reader.push(piece)
  reader.end()
}

function boundaryOf(contentType = ''): string {
  const [, quoted, plain] = /^multipart\/form-data *;.*\bboundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined || boundary.length > BOUNDARY_CHARS_MAX)
    throw invalid('Send a form: Content-Type: multipart/form-data with a boundary.')
  return boundary
}

class FormReader {
  readonly #delimiter: Buffer
  readonly #take: (head: PartHead) => Promise<PartTaker> | PartTaker
  /** A line break before the first delimiter makes it like the others. */
  #pending: Buffer = Buffer.from('\r\n')
  #state: 'preamble' | 'headers' | 'data' | 'end' = 'preamble'
  #part: PartTaker | undefined
  #parts = 0

  constructor(boundary: string, take: (head: PartHead) => Promise<PartTaker> | PartTaker) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
    this.#take = take
  }

  async push(piece: Buffer): Promise<void> {
    this.#pending = this.#pending.length === 0 ? piece : Buffer.concat([this.#pending, piece])
    while (await this.#step());
  }

  end(): void {
    if (this.#state !== 'end') throw invalid('The form ends before its last boundary.')
  }

  /** False when more bytes are needed. */
  async #step(): Promise<boolean> {
    if (this.#state === 'headers') return this.#readHeaders()
    if (this.#state !== 'end') return this.#readData()
    this.#pending = Buffer.alloc(0)
    return false
  }

  async #readData(): Promise<boolean> {
    const at = this.#pending.indexOf(this.#delimiter)
    if (at < 0) {
      // The end may be the beginning of a delimiter.
      const safe = this.#pending.length - this.#delimiter.length
      if (safe <= 0) return false
      await this.#part?.write(this.#pending.subarray(0, safe))
      this.#pending = this.#pending.subarray(safe)
      return false
    }
    const after = at + this.#delimiter.length
    if (this.#pending.length < after + 2) return false
    if (at > 0) await this.#part?.write(this.#pending.subarray(0, at))
    this.#part = undefined
    this.#state = this.#pending.toString('latin1', after, after + 2) === '--' ? 'end' : 'headers'
    this.#pending = this.#pending.subarray(after)
    return true
  }

  async #readHeaders(): Promise<boolean> {
    const at = this.#pending.indexOf('\r\n\r\n')
    if (at < 0 ? this.#pending.length > HEADERS_BYTES_MAX : at > HEADERS_BYTES_MAX)
      throw invalid('The headers of a part of the form are too long.')
    if (at < 0) return false
    this.#parts += 1
    if (this.#parts > PARTS_MAX) throw new Fault('request_too_large', { message: 'The form has too many parts.' })
    const headers = this.#pending.toString('utf8', 0, at)
    const disposition = /^content-disposition:(.*)$/im.exec(headers)?.[1] ?? ''
    const name = /[;\s]name="([^"]*)"/i.exec(disposition)?.[1]
    if (name === undefined) throw invalid('A part of the form has no name.')
    this.#pending = this.#pending.subarray(at + 4)
    this.#part = await this.#take({ name, filename: /[;\s]filename="([^"]*)"/i.exec(disposition)?.[1] })
    this.#state = 'data'
    return true
  }
}
