// The letters of every PDF that customers get: one family for all of them, embedded as far as they are used. PDF/A
// allows no others. They know Latin, Greek and Cyrillic letters, and more.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { inflateSync } from 'node:zlib'
import type PDFDocument from 'pdfkit'

const WEIGHTS = { regular: 400, bold: 700 } as const
let fonts: Promise<[name: string, font: Buffer][]> | undefined

function loadFonts() {
  const folder = join(dirname(createRequire(import.meta.url).resolve('@fontsource/dejavu-sans/package.json')), 'files')
  const read = async (weight: number) => unpack(await readFile(join(folder, `dejavu-sans-latin-${weight}-normal.woff`)))
  fonts ??= Promise.all(
    Object.entries(WEIGHTS).map(async ([name, weight]): Promise<[string, Buffer]> => [name, await read(weight)]),
  )
  return fonts
}

/** `regular` and `bold`, of which the first is in use. */
export async function addFonts(pdf: PDFDocument): Promise<void> {
  for (const [name, font] of await loadFonts()) pdf.registerFont(name, font)
  pdf.font('regular')
}

/** Letters that the font in use does not have, which PDF/A forbids, become question marks. */
export function lettersOf({ _font: { font } }: PDFDocument, text: string): string {
  return [...text].map((char) => (font.hasGlyphForCodePoint(char.codePointAt(0) ?? 0) ? char : '?')).join('')
}

/**
 * WOFF to OpenType. The library reads both, but inflates a table of WOFF anew for each glyph: 10 seconds an invoice.
 */
function unpack(woff: Buffer): Buffer {
  const count = woff.readUInt16BE(12)
  const tables = Array.from({ length: count }, (_, at) => {
    const entry = woff.subarray(44 + 20 * at, 64 + 20 * at)
    const [offset, packedBytes, bytes] = [entry.readUInt32BE(4), entry.readUInt32BE(8), entry.readUInt32BE(12)]
    const packed = woff.subarray(offset, offset + packedBytes)
    const body = packedBytes < bytes ? inflateSync(packed) : packed
    return { tag: entry.subarray(0, 4), checksum: entry.subarray(16, 20), body }
  })
  const head = Buffer.alloc(12 + 16 * count)
  woff.copy(head, 0, 4, 8)
  head.writeUInt16BE(count, 4)
  const bodies: Buffer[] = []
  let offset = head.length
  tables.forEach(({ tag, checksum, body }, at) => {
    const entry = head.subarray(12 + 16 * at)
    tag.copy(entry, 0)
    checksum.copy(entry, 4)
    entry.writeUInt32BE(offset, 8)
    entry.writeUInt32BE(body.length, 12)
    const padding = Buffer.alloc(-body.length & 3)
    bodies.push(body, padding)
    offset += body.length + padding.length
  })
  return Buffer.concat([head, ...bodies])
}
