// The memory of pieces of answers: what a read of a socket brought is copied once, small pieces into a shared slab
// (answer-parser.ts), which is freed when the last of them is.

export const SLAB_BYTES = 16_384
/** Pieces that waited are handed over as one, up to this size. */
const GATHERED_BYTES_MAX = 16_384

/** Copies a piece that has to wait out of its slab, so that a few bytes do not keep the whole slab alive. */
export function ownMemory(piece: Buffer): Buffer {
  return piece.buffer.byteLength === SLAB_BYTES ? copied(piece) : piece
}

/** Removes the first small pieces, joined into one, or the first large piece. */
export function gather(waiting: Buffer[]): Buffer {
  let count = 0
  let bytes = 0
  for (const { length } of waiting) {
    if (count > 0 && bytes + length > GATHERED_BYTES_MAX) break
    count++
    bytes += length
  }
  const only = count === 1 ? waiting.shift() : undefined
  return only ?? Buffer.concat(waiting.splice(0, count), bytes)
}

function copied(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}
