// Base64 that arrives in slices, decoded as it comes into blocks that are never joined or copied again.

/** A multiple of three, so that a block always ends where a group of four characters ends. */
const BLOCK_BYTES = 3 * 262_144
/** Decoding goes by way of short strings; long ones would stay in memory until a full collection. */
const SLICE_CHARS = 65_536

interface Base64Rules {
  readonly bytesMax: number
  tooLarge(): Error
  invalid(): Error
  /** Sees the first bytes of the file once there are `headBytes` of them, and may throw. */
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

  /** ASCII characters of base64, cut anywhere. */
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

  /** The end of the characters. Padding may be left out. */
  end(): void {
    if (this.carry.length === 1) throw this.rules.invalid()
    if (this.carry !== '') this.write(this.carry)
    this.carry = ''
    if (this.blocks.length > 0) this.blocks.push(this.blocks.pop()!.subarray(0, this.used))
  }

  /** The file, once it has ended. All pieces but the last hold a multiple of three bytes. */
  get pieces(): readonly Buffer[] {
    return this.blocks
  }

  private write(text: string): void {
    // Padding ends the file; characters after it are a second file, or a mistake.
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
      // The decoder skips what is not base64, so a shorter result is how it shows.
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
