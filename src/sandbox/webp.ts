// Lossless WebP (VP8L): a palette, prefix codes of fixed lengths, and runs that copy the pixel to the left or the row above.
import type { Canvas } from './canvas.ts'

const LITERALS = 256
const LENGTH_CODES = 24
const DISTANCE_ABOVE = 0
const DISTANCE_LEFT = 1
const RUN_MIN = 3
const RUN_MAX = 4096

/** Bits from the lowest upwards. */
class Bits {
  #bytes: Buffer
  #length = 0
  #current = 0
  #filled = 0

  constructor(bytesExpected: number) {
    this.#bytes = Buffer.allocUnsafe(bytesExpected + 4096)
  }

  put(value: number, count: number): this {
    this.#current |= value << this.#filled
    this.#filled += count
    while (this.#filled >= 8) {
      if (this.#length === this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], this.#bytes.length * 2)
      this.#bytes[this.#length++] = this.#current & 0xff
      this.#current >>>= 8
      this.#filled -= 8
    }
    return this
  }

  end(): Buffer {
    while (this.#filled > 0) this.put(0, 8 - this.#filled)
    return this.#bytes.subarray(0, this.#length)
  }
}

export function encodeWebp(canvas: Canvas): Buffer {
  const bits = new Bits(canvas.pixels.length >> 5)
  bits
    .put(0x2f, 8)
    .put(canvas.width - 1, 14)
    .put(canvas.height - 1, 14)
  // Opaque, version 0.
  bits.put(0, 1).put(0, 3)
  writePalette(bits, canvas)
  bits.put(0, 1)
  writePixels(bits, canvas)
  const data = bits.end()
  const padded = data.length % 2 === 0 ? data : Buffer.concat([data, Buffer.alloc(1)])
  const head = Buffer.alloc(20)
  head.write('RIFF', 0, 'latin1')
  head.writeUInt32LE(padded.length + 12, 4)
  head.write('WEBPVP8L', 8, 'latin1')
  head.writeUInt32LE(data.length, 16)
  return Buffer.concat([head, padded])
}

/** The colour indexing transform: a picture of 256 by 1 pixels, each the difference from the one before. */
function writePalette(bits: Bits, { palette }: Canvas): void {
  bits
    .put(1, 1)
    .put(3, 2)
    .put(palette.length - 1, 8)
  bits.put(0, 1)
  writeFlatCode(bits, LITERALS + LENGTH_CODES)
  writeFlatCode(bits, LITERALS)
  writeFlatCode(bits, LITERALS)
  writeFlatCode(bits, LITERALS)
  writeOneSymbol(bits, 0)
  let before: readonly number[] = [0, 0, 0, 0]
  for (const [red, green, blue] of palette) {
    const own = [green, red, blue, 255]
    own.forEach((value, i) => {
      bits.put(reversed((value - (before[i] ?? 0)) & 0xff, 8), 8)
    })
    before = own
  }
}

/** The order in which the lengths of the code length code are written. */
const LENGTHS_ORDER = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]

/** A prefix code given by the length of each symbol's code; `coding` codes the lengths themselves. */
function writeCode(
  bits: Bits,
  lengths: readonly number[],
  coding: ReadonlyMap<number, readonly [code: number, length: number]>,
): void {
  bits.put(0, 1)
  const last = LENGTHS_ORDER.findLastIndex((length) => coding.has(length))
  bits.put(last + 1 - 4, 4)
  for (const length of LENGTHS_ORDER.slice(0, last + 1)) bits.put(coding.get(length)?.[1] ?? 0, 3)
  // The lengths of all symbols follow.
  bits.put(0, 1)
  for (const length of lengths) {
    const [code = 0, count = 0] = coding.get(length) ?? []
    bits.put(reversed(code, count), count)
  }
}

/** The first 256 symbols have eight bits each, the others none. */
function writeFlatCode(bits: Bits, symbols: number): void {
  const lengths = Array.from({ length: symbols }, (_, i) => (i < LITERALS ? 8 : 0))
  writeCode(
    bits,
    lengths,
    new Map([
      [0, [0, 1] as const],
      [8, [1, 1] as const],
    ]),
  )
}

function writeOneSymbol(bits: Bits, symbol: 0 | 1): void {
  bits.put(1, 1).put(0, 1).put(0, 1).put(symbol, 1)
}

/** Literals take nine bits; the codes of run lengths five and six, so that all codes together are complete. */
const SHORT_CODES = 8
const LENGTHS = Array.from({ length: LITERALS + LENGTH_CODES }, (_, i) =>
  i < LITERALS ? 9 : i < LITERALS + SHORT_CODES ? 5 : 6,
)
const CODES = canonical(LENGTHS)

/** Codes in the order of their lengths and then of their symbols, turned round for this bit order. */
function canonical(lengths: readonly number[]): Uint16Array {
  const codes = new Uint16Array(lengths.length)
  let next = 0
  for (let length = 1; length <= 15; length++) {
    next <<= 1
    lengths.forEach((own, symbol) => {
      if (own === length) codes[symbol] = reversed(next++, length)
    })
  }
  return codes
}

function reversed(code: number, length: number): number {
  let turned = 0
  for (let i = 0; i < length; i++) turned |= ((code >> i) & 1) << (length - 1 - i)
  return turned
}

function writePixels(bits: Bits, { width, pixels }: Canvas): void {
  // No colour cache, one group of codes.
  bits.put(0, 1).put(0, 1)
  writeCode(
    bits,
    LENGTHS,
    new Map([
      [5, [2, 2] as const],
      [6, [3, 2] as const],
      [9, [0, 1] as const],
    ]),
  )
  writeOneSymbol(bits, 0)
  writeOneSymbol(bits, 0)
  writeOneSymbol(bits, 0)
  // Two symbols of one bit each.
  bits.put(1, 1).put(1, 1).put(0, 1).put(DISTANCE_ABOVE, 1).put(DISTANCE_LEFT, 8)

  for (let at = 0; at < pixels.length; ) {
    const above = runLength(pixels, at, width)
    const left = above >= RUN_MAX ? 0 : runLength(pixels, at, 1)
    const run = Math.max(above, left)
    if (run < RUN_MIN) {
      const colour = pixels[at++] ?? 0
      bits.put(CODES[colour] ?? 0, 9)
      continue
    }
    writeLength(bits, run)
    bits.put(above >= left ? DISTANCE_ABOVE : DISTANCE_LEFT, 1)
    at += run
  }
}

/** How many pixels from here on equal those so far back. */
function runLength(pixels: Uint8Array, at: number, back: number): number {
  if (at < back) return 0
  const most = Math.min(RUN_MAX, pixels.length - at)
  let run = 0
  while (run < most && pixels[at + run] === pixels[at + run - back]) run++
  return run
}

function writeLength(bits: Bits, run: number): void {
  const value = run - 1
  const high = value < 4 ? 0 : 31 - Math.clz32(value)
  const extra = value < 4 ? 0 : high - 1
  const prefix = value < 4 ? value : 2 * high + ((value >> extra) & 1)
  const symbol = LITERALS + prefix
  bits.put(CODES[symbol] ?? 0, LENGTHS[symbol] ?? 0)
  bits.put(value & ((1 << extra) - 1), extra)
}
