// A form, read as it arrives: whoever takes a part gets its bytes piece by piece, and is waited for.
import { invalid } from '../kernel/fault.ts'
import { FormError, FormReader, type PartHead } from '../parsers/multipart.ts'

export interface PartTaker {
  write(piece: Buffer): Promise<void> | void
}

/** Throws request_invalid for what is no form; what `take` throws ends it. */
export async function readForm(
  pieces: AsyncIterable<Buffer>,
  contentType: string | undefined,
  take: (head: PartHead) => Promise<PartTaker> | PartTaker,
): Promise<void> {
  let taker: PartTaker | undefined
  // What the reader has found in a piece, worked off before the next one is asked for.
  const found: Array<() => Promise<void> | void> = []
  try {
    const reader = new FormReader(contentType ?? '', (head) => {
      found.push(async () => {
        taker = await take(head)
      })
      return { push: (bytes) => void found.push(() => taker?.write(bytes)), end: () => undefined }
    })
    for await (const piece of pieces) {
      reader.push(piece)
      for (const next of found.splice(0)) await next()
    }
    reader.end()
  } catch (error) {
    if (!(error instanceof FormError)) throw error
    throw invalid(`The body is no whole form: ${error.message}.`)
  }
}
