// How many pages a PDF has: the largest count in the tree of its pages. Reads a stranger's bytes in linear time, and
// unpacks a bounded part of them, where newer files keep the tree.
import { inflateSync } from 'node:zlib'

/** Of all that is unpacked of one file. */
const UNPACKED_BYTES_MAX = 8 * 1024 * 1024
/** What a stream counts at least: to unpack even an empty one takes its time. */
const STREAM_BYTES_MIN = 8 * 1024
/** Of a file, with those in its streams. */
const OBJECTS_MAX = 200_000
const HEADER_BYTES = 1024

/** Undefined: it is no PDF, or its tree cannot be read (encrypted, damaged, too large). */
export function countPdfPages(file: Buffer): number | undefined {
  if (file.subarray(0, HEADER_BYTES).indexOf('%PDF-') < 0) return undefined
  const text = file.toString('latin1')
  let pages: number | undefined
  let unpacked = 0
  let objects = 0
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf('endobj', start)
    const end = found < 0 ? text.length : found
    const part = text.slice(start, end)
    const stream = part.indexOf('stream')
    const dictionary = stream < 0 ? part : part.slice(0, stream)
    if (/\/Type\s{0,20}\/ObjStm\b/.test(dictionary)) {
      const inside = unpack(file.subarray(start + stream, end), UNPACKED_BYTES_MAX - unpacked)
      if (!inside) return undefined
      unpacked += Math.max(inside.length, STREAM_BYTES_MIN)
      const packed = objectsOf(inside.toString('latin1'), dictionary)
      objects += packed.length
      for (const object of packed) pages = larger(pages, countIn(object))
    } else pages = larger(pages, countIn(dictionary))
    objects += 1
    if (objects > OBJECTS_MAX) return undefined
    start = end + 'endobj'.length
  }
  return pages
}

const larger = (a: number | undefined, b: number | undefined) => (a !== undefined && (b ?? 0) <= a ? a : b)

/** What follows the word `stream` and its line end. */
function unpack(packed: Buffer, bytesMax: number): Buffer | undefined {
  const lineEnd = packed.indexOf('\n')
  if (lineEnd < 0 || bytesMax <= 0) return undefined
  try {
    return inflateSync(packed.subarray(lineEnd + 1), { maxOutputLength: bytesMax })
  } catch {
    return undefined
  }
}

/**
 * The objects of a stream of objects; their places stand before them, and are sorted here so that no byte is read
 * twice.
 */
function objectsOf(text: string, dictionary: string): string[] {
  const first = Number(/\/First\s{1,20}(\d{1,10})/.exec(dictionary)?.[1])
  if (!Number.isSafeInteger(first)) return []
  const places: number[] = []
  for (const [, place] of text.slice(0, first).matchAll(/\d{1,10}\s{1,20}(\d{1,10})/g)) {
    places.push(Number(place))
    if (places.length > OBJECTS_MAX) break
  }
  places.sort((a, b) => a - b)
  return places.map((place, index) => text.slice(first + place, first + (places[index + 1] ?? text.length)))
}

/** Of a node of the tree; a page itself is one. */
function countIn(object: string): number | undefined {
  if (/\/Type\s{0,20}\/Page\b/.test(object)) return 1
  if (!/\/Type\s{0,20}\/Pages\b/.test(object)) return undefined
  const counted = /\/Count\s{1,20}(\d{1,9})(?!\d|\s{1,20}\d{1,9}\s{1,20}R)/.exec(object)
  return counted ? Number(counted[1]) : undefined
}
