// The least of H.264 that shows a moving picture: constrained baseline, every changed macroblock sent as raw samples (I_PCM)
// and every other one skipped. Nothing is predicted or transformed, so there is nothing to get subtly wrong.
import type { Canvas } from './canvas.ts'

const BLOCK = 16
/** Bits of frame_num. */
const FRAME_NUM_BITS = 16

class Bits {
  readonly #bytes: number[] = []
  #current = 0
  #free = 8

  u(value: number, bits: number): this {
    for (let i = bits - 1; i >= 0; i--) {
      this.#current = (this.#current << 1) | ((value >>> i) & 1)
      if (--this.#free === 0) this.#flush()
    }
    return this
  }

  /** Exp-Golomb code. */
  ue(value: number): this {
    const length = 31 - Math.clz32(value + 1)
    return this.u(0, length).u(value + 1, length + 1)
  }

  align(): this {
    while (this.#free < 8) this.u(0, 1)
    return this
  }

  raw(bytes: Uint8Array): this {
    for (const byte of bytes) this.#bytes.push(byte)
    return this
  }

  /** The stop bit, zeros to the byte, and the escape that keeps start codes out of the data. */
  nal(header: number): Buffer {
    this.u(1, 1).align()
    const escaped = [header]
    let zeros = 0
    for (const byte of this.#bytes) {
      if (zeros >= 2 && byte <= 3) {
        escaped.push(3)
        zeros = 0
      }
      escaped.push(byte)
      zeros = byte === 0 ? zeros + 1 : 0
    }
    return Buffer.from(escaped)
  }

  #flush(): void {
    this.#bytes.push(this.#current)
    this.#current = 0
    this.#free = 8
  }
}

export interface Encoded {
  readonly width: number
  readonly height: number
  readonly sps: Buffer
  readonly pps: Buffer
  /** One a frame, each with its length before it as MP4 wants it. The first stands alone, the others change it. */
  readonly samples: readonly Buffer[]
}

/** All frames have the size of the first; its sides must be even. `same` repeats the frame before. */
export function encodeH264(frames: Iterable<Canvas | 'same'>): Encoded {
  const samples: Buffer[] = []
  let before: Planes | undefined
  let size = { width: 0, height: 0 }
  for (const frame of frames) {
    const planes = frame === 'same' ? before : toPlanes(frame)
    if (!planes) continue
    if (frame !== 'same') size = { width: frame.width, height: frame.height }
    const nal = before ? changedSlice(planes, before, samples.length) : wholeSlice(planes)
    const length = Buffer.alloc(4)
    length.writeUInt32BE(nal.length)
    samples.push(Buffer.concat([length, nal]))
    before = planes
  }
  return { ...size, sps: sequenceParameters(size.width, size.height), pps: pictureParameters(), samples }
}

const PROFILE = 66
const CONSTRAINTS = 0xc0
const LEVEL = 30

function sequenceParameters(width: number, height: number): Buffer {
  const columns = Math.ceil(width / BLOCK)
  const rows = Math.ceil(height / BLOCK)
  const bits = new Bits().u(PROFILE, 8).u(CONSTRAINTS, 8).u(LEVEL, 8)
  bits.ue(0).ue(FRAME_NUM_BITS - 4)
  // Pictures are shown in the order in which they are decoded, with one reference picture.
  bits.ue(2).ue(1).u(0, 1)
  bits.ue(columns - 1).ue(rows - 1)
  bits.u(1, 1).u(1, 1)
  const cropRight = (columns * BLOCK - width) / 2
  const cropBottom = (rows * BLOCK - height) / 2
  bits.u(1, 1).ue(0).ue(cropRight).ue(0).ue(cropBottom)
  return bits.u(0, 1).nal(0x67)
}

function pictureParameters(): Buffer {
  const bits = new Bits().ue(0).ue(0).u(0, 1).u(0, 1).ue(0).ue(0).ue(0).u(0, 1).u(0, 2)
  // Three quantiser offsets of zero; the deblocking filter can be switched off by the slices.
  return bits.ue(0).ue(0).ue(0).u(1, 1).u(0, 1).u(0, 1).nal(0x68)
}

const I_PCM = 25
/** The same in a slice where macroblocks of its own kind come first. */
const I_PCM_IN_P = 5 + I_PCM

function wholeSlice(planes: Planes): Buffer {
  const bits = new Bits().ue(0).ue(7).ue(0).u(0, FRAME_NUM_BITS).ue(0)
  bits.u(0, 1).u(0, 1)
  bits.ue(0).ue(1)
  for (const block of planes.blocks) bits.ue(I_PCM).align().raw(block)
  return bits.nal(0x65)
}

function changedSlice(planes: Planes, before: Planes, frameNum: number): Buffer {
  const bits = new Bits()
    .ue(0)
    .ue(5)
    .ue(0)
    .u(frameNum % 2 ** FRAME_NUM_BITS, FRAME_NUM_BITS)
  bits.u(0, 1).u(0, 1).u(0, 1)
  bits.ue(0).ue(1)
  let skipped = 0
  for (const [i, block] of planes.blocks.entries()) {
    if (planes === before || block.equals(before.blocks[i] ?? block)) {
      skipped++
      continue
    }
    bits.ue(skipped).ue(I_PCM_IN_P).align().raw(block)
    skipped = 0
  }
  if (skipped > 0) bits.ue(skipped)
  return bits.nal(0x61)
}

interface Planes {
  /** The 384 samples of each macroblock: luma, then the two chroma planes at half size. */
  readonly blocks: readonly Buffer[]
}

function toPlanes({ width, height, pixels, palette }: Canvas): Planes {
  const luma = Uint8Array.from(palette, ([r, g, b]) => Math.round(16 + (65.7 * r + 129.1 * g + 25.1 * b) / 256))
  const blue = Uint8Array.from(palette, ([r, g, b]) => Math.round(128 + (-37.9 * r - 74.5 * g + 112.4 * b) / 256))
  const red = Uint8Array.from(palette, ([r, g, b]) => Math.round(128 + (112.4 * r - 94.2 * g - 18.3 * b) / 256))
  const blocks: Buffer[] = []
  for (let top = 0; top < height; top += BLOCK) {
    for (let left = 0; left < width; left += BLOCK) {
      const block = Buffer.allocUnsafe(384)
      for (let y = 0; y < BLOCK; y++) {
        // Beyond the edge the last row and column go on; players crop them.
        const row = Math.min(top + y, height - 1) * width
        for (let x = 0; x < BLOCK; x++) {
          const colour = pixels[row + Math.min(left + x, width - 1)] ?? 0
          block[y * BLOCK + x] = luma[colour] ?? 16
          if (((x | y) & 1) !== 0) continue
          const half = (y >> 1) * 8 + (x >> 1)
          block[256 + half] = blue[colour] ?? 128
          block[320 + half] = red[colour] ?? 128
        }
      }
      blocks.push(block)
    }
  }
  return { blocks }
}
