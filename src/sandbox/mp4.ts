// An MP4 file around H.264 samples: one video track, its index before its data so that players can start at once.
import type { Encoded } from './h264.ts'

function box(type: string, ...contents: readonly (Buffer | readonly number[])[]): Buffer {
  const body = Buffer.concat(contents.map((content) => (Buffer.isBuffer(content) ? content : Buffer.from(content))))
  const head = Buffer.alloc(8)
  head.writeUInt32BE(body.length + 8)
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, body])
}

/** A box with a version and flags before its fields. */
function fullBox(type: string, flags: number, ...contents: readonly Buffer[]): Buffer {
  return box(type, u32(flags), ...contents)
}

function u32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, i) => {
    bytes.writeUInt32BE(value >>> 0, i * 4)
  })
  return bytes
}

function u16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2)
  values.forEach((value, i) => {
    bytes.writeUInt16BE(value, i * 2)
  })
  return bytes
}

const MATRIX = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
/** 55c4 packs the letters "und": no language. */
const LANGUAGE = 0x55c4

export function wrapMp4(video: Encoded, framesPerSecond: number): Buffer {
  const { samples } = video
  const ftyp = box('ftyp', Buffer.from('isom'), u32(0x200), Buffer.from('isomiso2avc1mp41'))
  // The index holds the data's position, and so must be made twice: its size does not depend on it.
  const size = index(video, framesPerSecond, 0).length
  const moov = index(video, framesPerSecond, ftyp.length + size + 8)
  return Buffer.concat([ftyp, moov, box('mdat', ...samples)])
}

function index(video: Encoded, framesPerSecond: number, dataAt: number): Buffer {
  const { width, height, samples } = video
  const ticks = samples.length
  const mvhd = fullBox(
    'mvhd',
    0,
    u32(0, 0, framesPerSecond, ticks, 0x10000),
    u16(0x0100, 0),
    u32(0, 0),
    MATRIX,
    u32(0, 0, 0, 0, 0, 0),
    u32(2),
  )
  const tkhd = fullBox(
    'tkhd',
    3,
    u32(0, 0, 1, 0, ticks),
    u32(0, 0),
    u16(0, 0, 0, 0),
    MATRIX,
    u32(width << 16, height << 16),
  )
  const mdhd = fullBox('mdhd', 0, u32(0, 0, framesPerSecond, ticks), u16(LANGUAGE, 0))
  const hdlr = fullBox('hdlr', 0, u32(0), Buffer.from('vide'), u32(0, 0, 0), Buffer.from('Tollgate sandbox\0'))
  const dinf = box('dinf', fullBox('dref', 0, u32(1), fullBox('url ', 1)))
  const minf = box('minf', fullBox('vmhd', 1, u16(0, 0, 0, 0)), dinf, sampleTable(video, dataAt))
  return box('moov', mvhd, box('trak', tkhd, box('mdia', mdhd, hdlr, minf)))
}

function sampleTable({ width, height, sps, pps, samples }: Encoded, dataAt: number): Buffer {
  const avcC = box(
    'avcC',
    [1, sps[1] ?? 0, sps[2] ?? 0, sps[3] ?? 0, 0xff, 0xe1],
    u16(sps.length),
    sps,
    [1],
    u16(pps.length),
    pps,
  )
  const name = Buffer.alloc(32)
  name.write('\x08Tollgate', 'latin1')
  const avc1 = box(
    'avc1',
    Buffer.alloc(6),
    u16(1),
    Buffer.alloc(16),
    u16(width, height),
    u32(0x480000, 0x480000, 0),
    u16(1),
    name,
    u16(24, 0xffff),
    avcC,
  )
  return box(
    'stbl',
    fullBox('stsd', 0, u32(1), avc1),
    fullBox('stts', 0, u32(1, samples.length, 1)),
    fullBox('stss', 0, u32(1, 1)),
    fullBox('stsc', 0, u32(1, 1, samples.length, 1)),
    fullBox('stsz', 0, u32(0, samples.length, ...samples.map((sample) => sample.length))),
    fullBox('stco', 0, u32(1, dataAt)),
  )
}
