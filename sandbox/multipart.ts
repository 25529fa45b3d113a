// Reading a multipart form as it arrives. Files are counted and only their beginnings kept: an upload may have 256 MB.
import { FormReader, type PartHead, type PartSink } from '../src/kernel/parsers/multipart.ts'

export { FormError } from '../src/kernel/parsers/multipart.ts'

export interface FormPart extends PartHead {
  readonly bytes: number
  /** The beginning of a file, or the whole of a short field. */
  readonly head: Buffer
}

const HEAD_BYTES_MAX = 256 * 1024

/** Throws FormError for what is not a form. */
export async function readForm(pieces: AsyncIterable<Buffer>, contentType: string): Promise<FormPart[]> {
  const parts: FormPart[] = []
  const reader = new FormReader(contentType, (head) => keeper(head, (part) => parts.push(part)))
  for await (const piece of pieces) reader.push(piece)
  reader.end()
  return parts
}

function keeper(about: PartHead, done: (part: FormPart) => void): PartSink {
  const kept: Buffer[] = []
  let room = HEAD_BYTES_MAX
  let bytes = 0
  return {
    push(piece) {
      bytes += piece.length
      if (room <= 0) return
      // Copied, so that the head does not hold on to the whole of the network's buffer.
      kept.push(Buffer.from(piece.subarray(0, room)))
      room -= Math.min(room, piece.length)
    },
    end: () => done({ ...about, bytes, head: Buffer.concat(kept) }),
  }
}
