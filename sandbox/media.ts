// Small real files in place of encoders. What a caller orders of them is a size or a length, and both can be written
// into a picture of one colour, or into a film of 24 frames, without encoding anything.
import { readFileSync } from 'node:fs'

export const RATIOS = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9']

const read = (name: string) => readFileSync(new URL(`./media/${name}`, import.meta.url))
const JPEG = read('flat.jpg')
const WEBP = read('flat.webp')
const CLIPS = new Map(RATIOS.map((ratio) => [ratio, read(`${ratio.replace(':', 'x')}.mp4`)]))

/** The sides are multiples of 16. In the code of this file three zero bytes mean one more square of 16 by 16 pixels. */
export function flatJpeg(width: number, height: number): Buffer {
  const end = JPEG.length - 2
  const squares = (width * height) / 256
  const made = Buffer.concat([JPEG.subarray(0, end), Buffer.alloc(3 * (squares - 1)), JPEG.subarray(end)])
  const frame = made.indexOf('ffc0', 'hex')
  made.writeUInt16BE(height, frame + 5)
  made.writeUInt16BE(width, frame + 7)
  return made
}

/**
 * Lossless, with one symbol in each prefix code, so that a pixel takes no bits; the size stands in two fields of 14.
 */
export function flatWebp(width: number, height: number): Buffer {
  const made = Buffer.from(WEBP)
  made.writeUInt32LE((width - 1) | ((height - 1) << 14), 21)
  return made
}

/** The 24 frames of the file, spread over so many seconds: its clock ticks 24 times a second. */
export function clip(ratio: string, seconds: number): Buffer {
  const made = Buffer.from(CLIPS.get(ratio) ?? CLIPS.get('16:9') ?? '')
  const ticks = 24 * seconds
  made.writeUInt32BE(ticks, made.indexOf('mvhd') + 20)
  made.writeUInt32BE(ticks, made.indexOf('tkhd') + 24)
  made.writeUInt32BE(ticks, made.indexOf('mdhd') + 20)
  made.writeUInt32BE(seconds, made.indexOf('stts') + 16)
  return made
}
