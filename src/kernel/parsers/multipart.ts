// A multipart form, read as it arrives: pieces in, parts out. What is kept is bounded whatever a stranger sends,
// however it is cut into pieces.

export interface PartHead {
  readonly name: string
  /** Undefined: a field and no file. */
  readonly filename: string | undefined
  /** In lower case, without parameters; empty when the part says none. */
  readonly type: string
}

export interface PartSink {
  /** A piece of the part, which is a view of what was pushed: whoever keeps it keeps that too. */
  push(bytes: Buffer): void
  end(): void
}

/** What is not a form, in words that a caller may read. */
export class FormError extends Error {}

/** Small, because headers that come byte by byte are looked at again with each. */
const HEADERS_BYTES_MAX = 2 * 1024
/** Before the first part, where nobody puts anything. */
const PREAMBLE_BYTES_MAX = 1024
const PARTS_MAX = 100
const HEADERS_END = Buffer.from('\r\n\r\n')
const NOTHING = Buffer.alloc(0)

export class FormReader {
  readonly #open: (head: PartHead) => PartSink
  readonly #delimiter: Buffer
  /** A line break before the first delimiter makes it like the others. */
  #pending: Buffer = Buffer.from('\r\n')
  #state: 'preamble' | 'headers' | 'data' | 'end' = 'preamble'
  #sink: PartSink | undefined
  #skipped = 0
  #parts = 0

  constructor(contentType: string, open: (head: PartHead) => PartSink) {
    const boundary = boundaryOf(contentType)
    if (boundary === undefined)
      throw new FormError('the Content-Type is not multipart/form-data with a boundary of 1 to 70 characters')
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
    this.#open = open
  }

  push(piece: Buffer): void {
    // What is pending is shorter than a delimiter or than the headers of a part.
    this.#pending = this.#pending.length === 0 ? piece : Buffer.concat([this.#pending, piece])
    while (this.#step());
  }

  end(): void {
    if (this.#state !== 'end') throw new FormError('it ends before its last boundary')
  }

  /** False when more bytes are needed. */
  #step(): boolean {
    if (this.#state === 'headers') return this.#readHeaders()
    if (this.#state !== 'end') return this.#readData()
    this.#pending = NOTHING
    return false
  }

  #readData(): boolean {
    const at = this.#pending.indexOf(this.#delimiter)
    if (at < 0) {
      // Its end may be the beginning of a delimiter.
      const safe = this.#pending.length - this.#delimiter.length + 1
      if (safe > 0) {
        this.#take(this.#pending.subarray(0, safe))
        this.#pending = this.#pending.subarray(safe)
      }
      return false
    }
    const after = at + this.#delimiter.length
    if (this.#pending.length < after + 2) {
      this.#take(this.#pending.subarray(0, at))
      this.#pending = this.#pending.subarray(at)
      return false
    }
    this.#take(this.#pending.subarray(0, at))
    this.#sink?.end()
    this.#sink = undefined
    this.#state = this.#pending.toString('latin1', after, after + 2) === '--' ? 'end' : 'headers'
    this.#pending = this.#pending.subarray(after)
    return true
  }

  #readHeaders(): boolean {
    const at = this.#pending.indexOf(HEADERS_END)
    if (at > HEADERS_BYTES_MAX || (at < 0 && this.#pending.length > HEADERS_BYTES_MAX))
      throw new FormError(`the headers of a part are longer than ${HEADERS_BYTES_MAX} bytes`)
    if (at < 0) return false
    this.#parts += 1
    if (this.#parts > PARTS_MAX) throw new FormError(`it has more than ${PARTS_MAX} parts`)
    this.#sink = this.#open(headOf(this.#pending.toString('utf8', 0, at)))
    this.#pending = this.#pending.subarray(at + HEADERS_END.length)
    this.#state = 'data'
    return true
  }

  #take(bytes: Buffer): void {
    if (bytes.length === 0) return
    if (this.#sink) this.#sink.push(bytes)
    else this.#skipped += bytes.length
    if (this.#skipped > PREAMBLE_BYTES_MAX) throw new FormError('it does not begin with its boundary')
  }
}

function boundaryOf(contentType: string): string | undefined {
  if (!/^multipart\/form-data[ \t]*;/i.test(contentType)) return undefined
  const found = /;[ \t]*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70})(?=[\s;]|$))/i.exec(contentType)
  return found?.[1] ?? found?.[2]
}

function headOf(headers: string): PartHead {
  const lines = headers.split('\r\n')
  const saidOf = (wanted: string): string => {
    const line = lines.find((one) => one.slice(0, wanted.length + 1).toLowerCase() === `${wanted}:`)
    return line?.slice(wanted.length + 1).trim() ?? ''
  }
  const disposition = saidOf('content-disposition')
  const name = parameterOf(disposition, NAME)
  if (name === undefined) throw new FormError('a part has no name')
  return {
    name,
    filename: parameterOf(disposition, FILENAME),
    type: (saidOf('content-type').split(';')[0] ?? '').trim().toLowerCase(),
  }
}

const NAME = /;[ \t]*name=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))/i
const FILENAME = /;[ \t]*filename=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))/i

/** Browsers write a quote as %22, other clients with a backslash. */
function parameterOf(value: string, pattern: RegExp): string | undefined {
  const found = pattern.exec(value)
  return (found?.[1]?.replaceAll(/\\(.)/g, '$1') ?? found?.[2])?.replaceAll('%22', '"')
}
