// Reading a multipart form as it arrives. Files are counted and only their beginnings kept: an upload may have 256 MB.

export interface FormPart {
  readonly name: string
  readonly filename: string | undefined
  readonly type: string
  readonly bytes: number
  /** The beginning of a file, or the whole of a short field. */
  readonly head: Buffer
}

const HEAD_BYTES_MAX = 256 * 1024
const HEADERS_BYTES_MAX = 16 * 1024

export class FormError extends Error {}

/** Throws FormError for what is not a form. */
export async function readForm(pieces: AsyncIterable<Buffer>, contentType: string): Promise<FormPart[]> {
  const boundary = contentType.match(/boundary=(?:"([^"]+)"|([^;\s]+))/i)
  if (!/^multipart\/form-data/i.test(contentType) || !boundary)
    throw new FormError('Content-Type is not multipart/form-data with a boundary')
  const reader = new FormReader(boundary[1] ?? boundary[2] ?? '')
  for await (const piece of pieces) reader.push(piece)
  return reader.end()
}

class FormReader {
  readonly #parts: FormPart[] = []
  readonly #delimiter: Buffer
  /** A line break before the first delimiter makes it like the others. */
  #pending: Buffer = Buffer.from('\r\n')
  #part:
    | { name: string; filename: string | undefined; type: string; bytes: number; head: Buffer[]; kept: number }
    | undefined
  #state: 'preamble' | 'headers' | 'data' | 'end' = 'preamble'

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  push(piece: Buffer): void {
    this.#pending = this.#pending.length === 0 ? piece : Buffer.concat([this.#pending, piece])
    while (this.#step());
  }

  end(): FormPart[] {
    if (this.#state !== 'end') throw new FormError('the form ends before its last boundary')
    return this.#parts
  }

  /** False when more bytes are needed. */
  #step(): boolean {
    if (this.#state === 'end') {
      this.#pending = Buffer.alloc(0)
      return false
    }
    return this.#state === 'headers' ? this.#readHeaders() : this.#readData()
  }

  #readData(): boolean {
    const at = this.#pending.indexOf(this.#delimiter)
    if (at < 0) {
      // The end may be the beginning of a delimiter.
      const safe = this.#pending.length - this.#delimiter.length
      if (safe > 0) {
        this.#keep(this.#pending.subarray(0, safe))
        this.#pending = this.#pending.subarray(safe)
      }
      return false
    }
    const after = at + this.#delimiter.length
    if (this.#pending.length < after + 2) return false
    this.#keep(this.#pending.subarray(0, at))
    this.#finishPart()
    this.#state = this.#pending.toString('latin1', after, after + 2) === '--' ? 'end' : 'headers'
    this.#pending = this.#pending.subarray(after)
    return true
  }

  #readHeaders(): boolean {
    const at = this.#pending.indexOf('\r\n\r\n')
    if (at < 0) {
      if (this.#pending.length > HEADERS_BYTES_MAX) throw new FormError('the headers of a part are too long')
      return false
    }
    const headers = this.#pending.toString('utf8', 0, at)
    const name = headers.match(/^content-disposition:.*[;\s]name="([^"]*)"/im)?.[1]
    if (name === undefined) throw new FormError('a part has no name')
    this.#part = {
      name,
      filename: headers.match(/^content-disposition:.*[;\s]filename="([^"]*)"/im)?.[1],
      type:
        headers
          .match(/^content-type:\s*([^\r\n;]+)/im)?.[1]
          ?.trim()
          .toLowerCase() ?? '',
      bytes: 0,
      head: [],
      kept: 0,
    }
    this.#pending = this.#pending.subarray(at + 4)
    this.#state = 'data'
    return true
  }

  #keep(bytes: Buffer): void {
    if (!this.#part || bytes.length === 0) return
    this.#part.bytes += bytes.length
    const room = HEAD_BYTES_MAX - this.#part.kept
    if (room <= 0) return
    // Copied, so that the head does not hold on to the whole of the network's buffer.
    const kept = Buffer.from(bytes.subarray(0, room))
    this.#part.head.push(kept)
    this.#part.kept += kept.length
  }

  #finishPart(): void {
    if (!this.#part) return
    const { head, kept: _, ...part } = this.#part
    this.#parts.push({ ...part, head: Buffer.concat(head) })
    this.#part = undefined
  }
}
