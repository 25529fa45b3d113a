// Baseline JPEG without subsampling. The Huffman tables are the sandbox's own and nearly flat: its pictures are mostly even
// areas, which cost a few bits a block under any table.
import type { Canvas } from './canvas.ts'

const ZIGZAG = zigzag()

function zigzag(): number[] {
  const order: number[] = []
  for (let sum = 0; sum < 15; sum++) {
    for (let i = 0; i <= sum; i++) {
      const [row, column] = sum % 2 === 0 ? [sum - i, i] : [i, sum - i]
      if (row < 8 && column < 8) order.push(row * 8 + column)
    }
  }
  return order
}

/** cos((2x+1)uπ/16), with the scale of the transform. */
const COSINES = Float64Array.from({ length: 64 }, (_, i) => {
  const [u, x] = [i >> 3, i & 7]
  return (u === 0 ? Math.SQRT1_2 : 1) * 0.5 * Math.cos(((2 * x + 1) * u * Math.PI) / 16)
})

/** By symbol: the code's bits, and above them, from bit 16 on, its length. */
type Codes = Uint32Array

/** Canonical codes: one symbol of one bit, the others all of one length. */
function codesOf(first: number, others: readonly number[], length: number): Codes {
  const codes = new Uint32Array(256)
  codes[first] = 1 << 16
  others.forEach((symbol, i) => {
    codes[symbol] = (length << 16) | ((1 << (length - 1)) + i)
  })
  return codes
}

const DC_SIZES = Array.from({ length: 11 }, (_, i) => i + 1)
/** High four bits: zeros before the value; low four: bits of the value. F0 stands for sixteen zeros, 00 for "no more". */
const AC_SYMBOLS = [...Array.from({ length: 160 }, (_, i) => (Math.floor(i / 10) << 4) | ((i % 10) + 1)), 0xf0]
const DC_CODES = codesOf(0, DC_SIZES, 5)
const AC_CODES = codesOf(0, AC_SYMBOLS, 9)

export function encodeJpeg(canvas: Canvas, quality: number): Buffer {
  const { width, height, palette } = canvas
  const steps = quantiser(quality)
  const planes = [
    Float64Array.from(palette, ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b - 128),
    Float64Array.from(palette, ([r, g, b]) => -0.168736 * r - 0.331264 * g + 0.5 * b),
    Float64Array.from(palette, ([r, g, b]) => 0.5 * r - 0.418688 * g - 0.081312 * b),
  ]
  const out = new BitWriter((width * height) >> 3)
  const before = [0, 0, 0]
  const block = new Uint8Array(64)
  const known = new Map<string, Int16Array[]>()
  for (let top = 0; top < height; top += 8) {
    for (let left = 0; left < width; left += 8) {
      const even = readBlock(canvas, left, top, block)
      const coefficients = even
        ? evenBlock(block, planes, steps, known)
        : planes.map((plane) => transform(block, plane, steps))
      for (let c = 0; c < 3; c++) {
        const own = coefficients[c]
        if (!own) continue
        writeBlock(out, own, before[c] ?? 0)
        before[c] = own[0] ?? 0
      }
    }
  }
  return Buffer.concat([headers(width, height, steps), out.end(), Buffer.from([0xff, 0xd9])])
}

/** Fills the block; true when each of its rows is of one colour. */
function readBlock({ width, height, pixels }: Canvas, left: number, top: number, block: Uint8Array): boolean {
  let even = true
  for (let y = 0; y < 8; y++) {
    const row = Math.min(top + y, height - 1) * width
    const first = pixels[row + left] ?? 0
    for (let x = 0; x < 8; x++) {
      const colour = pixels[row + Math.min(left + x, width - 1)]!
      block[y * 8 + x] = colour
      if (colour !== first) even = false
    }
  }
  return even
}

/** The ground is the same across a whole row of blocks, so its transform is made once. */
function evenBlock(
  block: Uint8Array,
  planes: readonly Float64Array[],
  steps: Uint8Array,
  known: Map<string, Int16Array[]>,
): Int16Array[] {
  const key = `${block[0]},${block[8]},${block[16]},${block[24]},${block[32]},${block[40]},${block[48]},${block[56]}`
  let made = known.get(key)
  if (!made) {
    made = planes.map((plane) => transform(block, plane, steps))
    known.set(key, made)
  }
  return made
}

const scratch = new Float64Array(64)
const samples = new Float64Array(64)

/** The cosine transform, first of the rows and then of the columns, divided by the quantiser's steps. */
function transform(block: Uint8Array, plane: Float64Array, steps: Uint8Array): Int16Array {
  for (let i = 0; i < 64; i++) samples[i] = plane[block[i]!]!
  for (let y = 0; y < 64; y += 8) {
    for (let u = 0; u < 64; u += 8) {
      let sum = 0
      for (let x = 0; x < 8; x++) sum += samples[y + x]! * COSINES[u + x]!
      scratch[y + (u >> 3)] = sum
    }
  }
  const made = new Int16Array(64)
  for (let k = 0; k < 64; k++) {
    const at = ZIGZAG[k]!
    const v = at & 0x38
    const u = at & 7
    let sum = 0
    for (let y = 0; y < 8; y++) sum += scratch[y * 8 + u]! * COSINES[v + y]!
    made[k] = Math.round(sum / steps[k]!)
  }
  return made
}

function writeBlock(out: BitWriter, own: Int16Array, before: number): void {
  const difference = (own[0] ?? 0) - before
  const size = bitsOf(difference)
  out.code(DC_CODES, size)
  out.value(difference, size)
  let zeros = 0
  for (let k = 1; k < 64; k++) {
    const value = own[k]!
    if (value === 0) {
      zeros++
      continue
    }
    for (; zeros >= 16; zeros -= 16) out.code(AC_CODES, 0xf0)
    const length = bitsOf(value)
    out.code(AC_CODES, (zeros << 4) | length)
    out.value(value, length)
    zeros = 0
  }
  if (zeros > 0) out.code(AC_CODES, 0)
}

function bitsOf(value: number): number {
  return 32 - Math.clz32(Math.abs(value))
}

class BitWriter {
  #bytes: Buffer
  #length = 0
  #current = 0
  #filled = 0

  constructor(bytesExpected: number) {
    this.#bytes = Buffer.allocUnsafe(bytesExpected + 4096)
  }

  code(codes: Codes, symbol: number): void {
    const code = codes[symbol]!
    this.#bits(code & 0xffff, code >>> 16)
  }

  /** Negative numbers are written as their ones' complement. */
  value(value: number, bits: number): void {
    if (bits > 0) this.#bits(value < 0 ? value + (1 << bits) - 1 : value, bits)
  }

  end(): Buffer {
    while (this.#filled > 0) this.#bits(1, 1)
    return this.#bytes.subarray(0, this.#length)
  }

  #bits(bits: number, count: number): void {
    this.#current = (this.#current << count) | bits
    this.#filled += count
    while (this.#filled >= 8) {
      this.#filled -= 8
      const byte = (this.#current >>> this.#filled) & 0xff
      this.#push(byte)
      // A marker starts with FF, so data that looks like one is told apart by a zero.
      if (byte === 0xff) this.#push(0)
    }
    this.#current &= (1 << this.#filled) - 1
  }

  #push(byte: number): void {
    if (this.#length === this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], this.#bytes.length * 2)
    this.#bytes[this.#length++] = byte
  }
}

/** Coarser for finer detail; in zigzag order. */
function quantiser(quality: number): Uint8Array {
  const coarse = Math.max(0.15, (100 - Math.min(100, Math.max(1, quality))) / 12)
  return Uint8Array.from(ZIGZAG, (at) => Math.min(255, Math.max(1, Math.round(coarse * (1.5 + (at >> 3) + (at & 7))))))
}

function headers(width: number, height: number, steps: Uint8Array): Buffer {
  const segment = (marker: number, body: readonly number[]) => [
    0xff,
    marker,
    (body.length + 2) >> 8,
    (body.length + 2) & 0xff,
    ...body,
  ]
  const components = [1, 2, 3].flatMap((id) => [id, 0x11, 0])
  return Buffer.from([
    ...[0xff, 0xd8],
    ...segment(0xe0, [...Buffer.from('JFIF\0'), 1, 1, 0, 0, 1, 0, 1, 0, 0]),
    ...segment(0xfe, [...Buffer.from('Tollgate sandbox (simulated)')]),
    ...segment(0xdb, [0, ...steps]),
    ...segment(0xc0, [8, height >> 8, height & 0xff, width >> 8, width & 0xff, 3, ...components]),
    ...segment(0xc4, [0x00, ...table(DC_SIZES, 5)]),
    ...segment(0xc4, [0x10, ...table(AC_SYMBOLS, 9)]),
    ...segment(0xda, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0]),
  ])
}

/** How many codes there are of each length, and then the symbols in their order. */
function table(others: readonly number[], length: number): number[] {
  const counts = Array.from({ length: 16 }, (_, i) => (i === 0 ? 1 : i === length - 1 ? others.length : 0))
  return [...counts, 0, ...others]
}
