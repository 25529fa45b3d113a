// What a picture is, told from its first bytes: the format by its magic numbers and the dimensions by its header.
// Nothing is decoded, because decoders of untrusted bytes are where memory and safety are lost.

const IMAGE_TYPES = ['png', 'jpeg', 'webp', 'gif'] as const
export type ImageType = (typeof IMAGE_TYPES)[number]

/** Enough of a file to tell its type. */
export const MAGIC_BYTES = 12

/** 50 million pixels: 600 KB of PNG can unpack to 800 MB in whatever opens it. */
export const PIXELS_MAX = 50_000_000

/** Undefined for everything else, SVG included: it is a program, not a picture. */
export function imageTypeOf(head: Buffer): ImageType | undefined {
  if (head.length < MAGIC_BYTES) return undefined
  if (head.readUInt32BE(0) === 0x89504e47 && head.readUInt32BE(4) === 0x0d0a1a0a) return 'png'
  if (head[0] === 0xff && head[1] === 0xd8 && head[2] === 0xff) return 'jpeg'
  if (head.toString('latin1', 0, 4) === 'RIFF' && head.toString('latin1', 8, 12) === 'WEBP') return 'webp'
  const word = head.toString('latin1', 0, 6)
  if (word === 'GIF87a' || word === 'GIF89a') return 'gif'
  return undefined
}

/** The file may lie in several pieces. Undefined when the header is not one of a picture, or is cut off. */
export function readImageFacts(
  pieces: readonly Buffer[],
): { readonly type: ImageType; readonly width: number; readonly height: number } | undefined {
  const file = new Pieces(pieces)
  const type = imageTypeOf(file.slice(0, MAGIC_BYTES))
  const size = type && SIZES[type](file)
  if (!type || !size || size[0] <= 0 || size[1] <= 0) return undefined
  return { type, width: size[0], height: size[1] }
}

type Size = readonly [width: number, height: number]

const SIZES: Record<ImageType, (file: Pieces) => Size | undefined> = {
  png(file) {
    const header = file.slice(12, 12)
    if (header.length < 12 || header.toString('latin1', 0, 4) !== 'IHDR') return undefined
    return [header.readUInt32BE(4), header.readUInt32BE(8)]
  },

  gif(file) {
    const header = file.slice(6, 4)
    return header.length < 4 ? undefined : [header.readUInt16LE(0), header.readUInt16LE(2)]
  },

  webp(file) {
    const header = file.slice(12, 18)
    if (header.length < 18) return undefined
    switch (header.toString('latin1', 0, 4)) {
      case 'VP8 ':
        if (header.readUIntBE(11, 3) !== 0x9d012a) return undefined
        return [header.readUInt16LE(14) & 0x3fff, header.readUInt16LE(16) & 0x3fff]
      case 'VP8L': {
        if (header[8] !== 0x2f) return undefined
        const bits = header.readUInt32LE(9)
        return [(bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1]
      }
      case 'VP8X':
        return [header.readUIntLE(12, 3) + 1, header.readUIntLE(15, 3) + 1]
      default:
        return undefined
    }
  },

  jpeg(file) {
    // Segments follow each other, each with its length, until the frame header; cameras put up to megabytes before it.
    for (let at = 2; ; ) {
      const segment = file.slice(at, 9)
      if (segment.length < 9 || segment[0] !== 0xff) return undefined
      const marker = segment[1]!
      if (marker === 0xff) {
        at++ // A fill byte.
        continue
      }
      const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
      if (isFrame) return [segment.readUInt16BE(7), segment.readUInt16BE(5)]
      if (marker === 0xd9 || marker === 0xda) return undefined
      const alone = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)
      at += alone ? 2 : 2 + Math.max(2, segment.readUInt16BE(2))
    }
  },
}

/** Random access to a file that lies in several buffers. */
class Pieces {
  private readonly pieces: readonly Buffer[]

  constructor(pieces: readonly Buffer[]) {
    this.pieces = pieces
  }

  /** Up to `count` bytes from `start`; fewer at the end of the file. */
  slice(start: number, count: number): Buffer {
    const found: Buffer[] = []
    let skip = start
    let left = count
    for (const piece of this.pieces) {
      if (left === 0) break
      if (skip >= piece.length) {
        skip -= piece.length
        continue
      }
      const part = piece.subarray(skip, skip + left)
      found.push(part)
      left -= part.length
      skip = 0
    }
    return found.length === 1 ? found[0]! : Buffer.concat(found)
  }
}
