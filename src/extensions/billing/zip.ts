// Files in one ZIP, as they come: stored without compression, because PDFs are compressed already. Only one file is in
// memory at a time.
import { crc32 } from 'node:zlib'

interface ZippedFile {
  readonly name: string
  readonly body: Buffer
}

/** What the format without its 64-bit extension can hold. */
const FILES_MAX = 65_535
const BYTES_MAX = 0xffff_ffff
const VERSION = 20
/** Names are UTF-8. */
const FLAGS = 0x0800
/** 1 January 1980, the first date of the format. The files have no meaningful time. */
const DATE = 0x0021

/** As a file to download. */
export const zipped = (name: string, files: AsyncIterable<ZippedFile>) => ({ name, files, body: zip(files) })

export async function* zip(files: AsyncIterable<ZippedFile>): AsyncGenerator<Buffer> {
  const directory: Buffer[] = []
  let offset = 0
  for await (const { name, body } of files) {
    const encoded = Buffer.from(name)
    const facts = factsOf(encoded, body)
    const local = Buffer.concat([word(0x04034b50), facts, encoded])
    const end = offset + local.length + body.length
    if (directory.length === FILES_MAX || end > BYTES_MAX)
      throw new Error('These files are too many, or too large, for one ZIP.')
    yield local
    yield body
    // Made by the same version; no comment, one disk, no attributes.
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    directory.push(Buffer.concat([word(0x02014b50), short(VERSION), facts, place, encoded]))
    offset = end
  }
  const listed = Buffer.concat(directory)
  yield listed
  const counts = [short(0), short(0), short(directory.length), short(directory.length)]
  yield Buffer.concat([word(0x06054b50), ...counts, word(listed.length), word(offset), short(0)])
}

/** The part that local header and directory entry share. */
function factsOf(name: Buffer, body: Buffer): Buffer {
  return Buffer.concat([
    short(VERSION),
    short(FLAGS),
    short(0),
    short(0),
    short(DATE),
    word(crc32(body)),
    word(body.length),
    word(body.length),
    short(name.length),
    short(0),
  ])
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function short(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}
