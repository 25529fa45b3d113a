// Parses JSON as it arrives and extracts long strings on the way, so that hundreds of megabytes of base64 never become
// a string. The rest is small and is parsed by the usual strict parser, so this one needs to be right only for valid
// JSON.

/** Receives the characters of one string. They are ASCII, or the sink rejects them. */
export interface StringSink {
  push(ascii: Buffer): void
  end(): void
}

interface SieveRules {
  /**
   * Called for each string value: returns a sink if the string should be extracted. It is, if it begins with `prefix`
   * (in either case).
   */
  take(path: Path): { readonly prefix: string; readonly sink: () => StringSink } | undefined
  /** The limit for the remaining text. */
  readonly textBytesMax: number
  tooLong(): Error
  /** The error for escapes that no sink can use. */
  invalid(): Error
}

/** Keys and indexes from the top; values nested deeper than this are never extracted. */
export type Path = readonly (string | number)[]
const PATH_DEPTH_MAX = 3

const QUOTE = 0x22
const COMMA = 0x2c
const ARRAY_OPEN = 0x5b
const BACKSLASH = 0x5c
const ARRAY_CLOSE = 0x5d
const OBJECT_OPEN = 0x7b
const OBJECT_CLOSE = 0x7d
const UNICODE = 0x75
const KEY_CHARS_MAX = 64
const NULL = Buffer.from('null')

type State = 'structure' | 'string' | 'probe' | 'taken' | 'escape'

export class StreamingJsonParser {
  private readonly rules: SieveRules
  private readonly text: Buffer[] = []
  private textBytes = 0
  private state: State = 'structure'
  private depth = 0
  private readonly isArray: boolean[] = []
  private readonly path: (string | number)[] = []
  private keyNext = false
  private key: string | undefined
  private escaped = false
  private probed = ''
  private wanted: ReturnType<SieveRules['take']>
  private sink: StringSink | undefined
  private escape = ''

  constructor(rules: SieveRules) {
    this.rules = rules
  }

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      switch (this.state) {
        case 'structure':
          at = this.structure(chunk, at)
          break
        case 'string':
          at = this.string(chunk, at)
          break
        case 'probe':
          at = this.probe(chunk, at)
          break
        case 'taken':
          at = this.taken(chunk, at)
          break
        case 'escape':
          at = this.finishEscape(chunk, at)
          break
      }
    }
  }

  /** The remaining JSON, with null in place of each extracted string. */
  end(): Buffer {
    return Buffer.concat(this.text)
  }

  private structure(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      switch (chunk[at]) {
        case QUOTE:
          return this.openString(chunk, from, at)
        case OBJECT_OPEN:
        case ARRAY_OPEN:
          this.depth++
          this.keyNext = chunk[at] === OBJECT_OPEN
          if (this.depth <= PATH_DEPTH_MAX) {
            this.isArray[this.depth] = !this.keyNext
            this.path.length = this.depth
            this.path[this.depth - 1] = this.keyNext ? '' : 0
          }
          break
        case OBJECT_CLOSE:
        case ARRAY_CLOSE:
          this.depth--
          this.keyNext = false
          if (this.depth >= 0 && this.depth < PATH_DEPTH_MAX) this.path.length = this.depth
          break
        case COMMA:
          if (this.depth > PATH_DEPTH_MAX || this.depth < 1) break
          this.keyNext = this.isArray[this.depth] === false
          if (!this.keyNext) this.path[this.depth - 1] = Number(this.path[this.depth - 1]) + 1
          break
      }
    }
    this.keep(chunk, from, chunk.length)
    return chunk.length
  }

  private openString(chunk: Buffer, from: number, at: number): number {
    this.wanted = this.keyNext || this.depth > PATH_DEPTH_MAX ? undefined : this.rules.take(this.path)
    this.keep(chunk, from, this.wanted ? at : at + 1)
    this.key = this.keyNext && this.depth <= PATH_DEPTH_MAX ? '' : undefined
    this.probed = ''
    this.state = this.wanted ? 'probe' : 'string'
    if (this.wanted?.prefix === '') this.startSink(this.wanted)
    return at + 1
  }

  private string(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (this.escaped) this.escaped = false
      else if (byte === BACKSLASH) this.escaped = true
      else if (byte === QUOTE) {
        this.keep(chunk, from, at + 1)
        if (this.key !== undefined && this.depth > 0) this.path[this.depth - 1] = this.key
        this.keyNext = false
        this.state = 'structure'
        return at + 1
      }
      // A key with escapes is not recognised here; the reader handles it later in the remaining text.
      if (this.key !== undefined && this.key.length < KEY_CHARS_MAX) this.key += String.fromCharCode(byte)
    }
    this.keep(chunk, from, chunk.length)
    return chunk.length
  }

  private probe(chunk: Buffer, at: number): number {
    const { wanted } = this
    const char = String.fromCharCode(chunk[at]!)
    if (wanted && char.toLowerCase() === wanted.prefix[this.probed.length]) {
      this.probed += char
      if (this.probed.length === wanted.prefix.length) this.startSink(wanted)
      return at + 1
    }
    const seen = Buffer.from(`"${this.probed}`, 'latin1')
    this.keep(seen, 0, seen.length)
    this.state = 'string'
    return at
  }

  private startSink(wanted: NonNullable<typeof this.wanted>): void {
    this.sink = wanted.sink()
    this.state = 'taken'
  }

  private taken(chunk: Buffer, from: number): number {
    const quote = chunk.indexOf(QUOTE, from)
    const end = quote < 0 ? chunk.length : quote
    const run = chunk.subarray(from, end)
    if (run.includes(BACKSLASH)) {
      this.takeEscaped(run)
      if (this.state === 'escape' && quote >= 0) throw this.rules.invalid() // An escaped quote.
    } else if (run.length > 0) this.sink?.push(run)
    if (quote < 0) return end
    this.sink?.end()
    this.sink = undefined
    this.keep(NULL, 0, NULL.length)
    this.state = 'structure'
    return quote + 1
  }

  /** Some encoders write "/" as "\/" and "+" as "\u002B" in all their base64. */
  private takeEscaped(run: Buffer): void {
    const plain = Buffer.allocUnsafe(run.length)
    let length = 0
    for (let at = 0; at < run.length; ) {
      const found = run.indexOf(BACKSLASH, at)
      const slash = found < 0 ? run.length : found
      length += run.copy(plain, length, at, slash)
      at = slash + 1
      if (found < 0) break
      const size = run[at] === UNICODE ? 5 : 1
      if (at + size > run.length) {
        this.escape = run.toString('latin1', at)
        this.state = 'escape'
        break
      }
      plain[length++] = this.charOf(run.toString('latin1', at, at + size))
      at += size
    }
    if (length > 0) this.sink?.push(plain.subarray(0, length))
  }

  /** Completes an escape that was split between two chunks. */
  private finishEscape(chunk: Buffer, at: number): number {
    this.escape += String.fromCharCode(chunk[at]!)
    if (this.escape.length === (this.escape[0] === 'u' ? 5 : 1)) {
      this.sink?.push(Buffer.of(this.charOf(this.escape)))
      this.state = 'taken'
    }
    return at + 1
  }

  private charOf(escaped: string): number {
    if (escaped === '/') return 0x2f
    const code = /^u00[0-7][0-9a-f]$/i.test(escaped) ? Number.parseInt(escaped.slice(1), 16) : -1
    if (code < 0) throw this.rules.invalid()
    return code
  }

  private keep(chunk: Buffer, from: number, to: number): void {
    if (from === to) return
    this.textBytes += to - from
    if (this.textBytes > this.rules.textBytesMax) throw this.rules.tooLong()
    // A copy, so that a few bytes do not keep a whole network chunk alive.
    this.text.push(Buffer.from(chunk.subarray(from, to)))
  }
}

// Decodes base64 that arrives in slices, into blocks that are never joined or copied again.

/** A multiple of three, so that a block always ends at a group of four characters. */
const BLOCK_BYTES = 3 * 262_144
/** Decoding uses short strings; long ones would stay in memory until a full garbage collection. */
const SLICE_CHARS = 65_536

interface Base64Rules {
  readonly bytesMax: number
  tooLarge(): Error
  invalid(): Error
  /** Called with the first bytes of the file once there are `headBytes` of them; may throw. */
  readonly headBytes: number
  head(bytes: Buffer): void
}

export class Base64File {
  bytes = 0
  private readonly blocks: Buffer[] = []
  private used = BLOCK_BYTES
  private carry = ''
  private closed = false
  private seen = false
  private readonly rules: Base64Rules

  constructor(rules: Base64Rules) {
    this.rules = rules
  }

  /** Takes ASCII characters of base64, split anywhere. */
  push(ascii: Buffer): void {
    let from = 0
    if (this.carry !== '') {
      from = Math.min(4 - this.carry.length, ascii.length)
      this.carry += ascii.toString('latin1', 0, from)
      if (this.carry.length < 4) return
      this.write(this.carry)
      this.carry = ''
    }
    const end = ascii.length - ((ascii.length - from) & 3)
    for (let at = from; at < end; at += SLICE_CHARS)
      this.write(ascii.toString('latin1', at, Math.min(end, at + SLICE_CHARS)))
    if (end < ascii.length) this.carry = ascii.toString('latin1', end)
  }

  /** Called at the end of the characters. Padding is optional. */
  end(): void {
    if (this.carry.length === 1) throw this.rules.invalid()
    if (this.carry !== '') this.write(this.carry)
    this.carry = ''
    if (this.blocks.length > 0) this.blocks.push(this.blocks.pop()!.subarray(0, this.used))
  }

  /** The file, once it has ended. All pieces but the last have a multiple of three bytes. */
  get pieces(): readonly Buffer[] {
    return this.blocks
  }

  private write(text: string): void {
    // Padding ends the file; further characters are an error.
    if (this.closed) throw this.rules.invalid()
    const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
    this.closed = padding > 0 || text.length % 4 !== 0
    const total = Math.floor(((text.length - padding) * 3) / 4)
    if (this.bytes + total > this.rules.bytesMax) throw this.rules.tooLarge()
    for (let at = 0, left = total; left > 0; ) {
      if (this.used === BLOCK_BYTES) {
        this.blocks.push(Buffer.allocUnsafeSlow(BLOCK_BYTES))
        this.used = 0
      }
      const room = BLOCK_BYTES - this.used
      const chars = (room / 3) * 4
      const part = at === 0 && text.length <= chars ? text : text.slice(at, at + chars)
      const wanted = Math.min(left, room)
      // The decoder skips characters that are not base64, so a shorter result reveals them.
      if (this.blocks.at(-1)!.write(part, this.used, 'base64') !== wanted) throw this.rules.invalid()
      this.used += wanted
      this.bytes += wanted
      at += part.length
      left -= wanted
    }
    if (!this.seen && this.bytes >= this.rules.headBytes) {
      this.seen = true
      this.rules.head(this.blocks[0]!.subarray(0, this.blocks.length === 1 ? this.used : BLOCK_BYTES))
    }
  }
}
