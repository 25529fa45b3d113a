import { assert, test } from '../../../test/kit.ts'
import { imageTypeOf, readImageFacts } from './image-file.ts'

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex')
}

const png = hex('89504e470d0a1a0a 0000000d 49484452 00000c80 00000870 0806000000')
const gif = hex('474946383961 4001 f000 800000')
const webpLossy = hex('52494646 24000000 57454250 56503820 18000000 300100 9d012a 4001 f000')
const webpLossless = hex('52494646 24000000 57454250 5650384c 18000000 2f 3fc13b00 000000000000')
const webpExtended = hex('52494646 24000000 57454250 56503858 0a000000 00000000 3f0100 ef0000')
/** A JPEG whose frame header comes after an application segment, fill bytes and tables. */
function jpeg(metadataBytes: number, frame = 'c2'): Buffer {
  const metadata: Buffer[] = []
  for (let left = metadataBytes; left > 0; left -= 60_000) {
    const segment = Buffer.alloc(60_002)
    segment.writeUInt16BE(0xffe1, 0)
    segment.writeUInt16BE(60_000, 2)
    metadata.push(segment)
  }
  return Buffer.concat([
    hex('ffd8 ffe0 0010 4a46494600010100000100010000 ffff ffff'),
    hex('ffdb 0004 0000'),
    ...metadata,
    hex('ffc4 0004 0000'),
    hex(`ff${frame} 0011 08 00f0 0140 03 012200 021101 031101`),
  ])
}

test('each format is known by its first bytes, and its size by its header', () => {
  assert.deepEqual(readImageFacts([png]), { type: 'png', width: 3200, height: 2160 })
  assert.deepEqual(readImageFacts([gif]), { type: 'gif', width: 320, height: 240 })
  assert.deepEqual(readImageFacts([webpLossy]), { type: 'webp', width: 320, height: 240 })
  assert.deepEqual(readImageFacts([webpLossless]), { type: 'webp', width: 320, height: 240 })
  assert.deepEqual(readImageFacts([webpExtended]), { type: 'webp', width: 320, height: 240 })
  for (const frame of ['c0', 'c1', 'c2', 'cf'])
    assert.deepEqual(readImageFacts([jpeg(0, frame)]), { type: 'jpeg', width: 320, height: 240 })
})

test('a file in pieces of any size reads the same, with megabytes of metadata before the frame too', () => {
  for (const size of [1, 2, 7, 13]) {
    for (const file of [png, gif, webpLossy, webpExtended, jpeg(0)]) {
      const pieces: Buffer[] = []
      for (let at = 0; at < file.length; at += size) pieces.push(file.subarray(at, at + size))
      assert.deepEqual(readImageFacts(pieces), readImageFacts([file]))
    }
  }
  const large = jpeg(3_000_000)
  assert.equal(readImageFacts([large.subarray(0, 1_000_000), large.subarray(1_000_000)])?.width, 320)
})

test('a header that is cut off anywhere, or lies, is no picture', () => {
  for (const file of [png.subarray(0, 24), gif.subarray(0, 10), webpLossy.subarray(0, 30), jpeg(0)])
    for (let end = 0; end < file.length - 12; end++) assert.equal(readImageFacts([file.subarray(0, end)]), undefined)
  assert.equal(readImageFacts([Buffer.concat([png.subarray(0, 16), Buffer.alloc(20)])]), undefined, 'no pixels')
  assert.equal(readImageFacts([Buffer.concat([hex('ffd8ff'), Buffer.alloc(100)])]), undefined)
  assert.equal(readImageFacts([Buffer.concat([hex('ffd8'), Buffer.alloc(100, 0xff)])]), undefined)
})

test('SVG, HTML, PDF, TIFF, BMP and noise have no type', () => {
  for (const text of [
    '<svg xmlns="http://www.w3.org/2000/svg">',
    '<!DOCTYPE html><html>',
    '%PDF-1.7 123456',
    'II*\0........',
    'BM..............',
  ])
    assert.equal(imageTypeOf(Buffer.from(text)), undefined)
  assert.equal(imageTypeOf(Buffer.alloc(0)), undefined)
})
