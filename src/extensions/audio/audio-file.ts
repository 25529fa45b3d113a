// How long a recording is, told from its container without decoding it: what its header says, and what so many bytes
// can hold at most. A header may lie, so that the most never rests on a claim that costs its author nothing.

type AudioType = 'wav' | 'mp3' | 'flac' | 'ogg' | 'mp4' | 'webm'

export interface AudioFacts {
  readonly type: AudioType
  /** What the file says of itself, or what such files usually hold. */
  readonly secondsLikely: number
  /** What so many bytes can hold, at the lowest rate that such files have; more only where the file itself says so. */
  readonly secondsMost: number
  /** Beyond it no decoder gets, whatever the file is: only samples of a fixed size have such a bound. */
  readonly secondsPossible: number
}

/** So much of the beginning, and of the end, is looked at. */
export const AUDIO_EDGE_BYTES = 64 * 1024
/** Enough to tell the type. */
const AUDIO_MAGIC_BYTES = 12

/**
 * Bytes a second: the least that an encoder of speech writes, and what is usual. MP3 has nothing below 8 kbit/s; Opus,
 * AAC and FLAC can go lower in silence, and are taken for what telephones use.
 */
const RATES: Record<Exclude<AudioType, 'wav'>, { readonly least: number; readonly usual: number }> = {
  mp3: { least: 1_000, usual: 8_000 },
  flac: { least: 2_000, usual: 32_000 },
  ogg: { least: 750, usual: 4_000 },
  mp4: { least: 1_000, usual: 8_000 },
  webm: { least: 750, usual: 4_000 },
}

function audioTypeOf(head: Buffer): AudioType | undefined {
  if (head.length < AUDIO_MAGIC_BYTES) return undefined
  const word = head.toString('latin1', 0, 4)
  if (word === 'RIFF' && head.toString('latin1', 8, 12) === 'WAVE') return 'wav'
  if (word === 'fLaC') return 'flac'
  if (word === 'OggS') return 'ogg'
  if (head.toString('latin1', 4, 8) === 'ftyp') return 'mp4'
  if (head.readUInt32BE(0) === 0x1a45dfa3) return 'webm'
  if (word.startsWith('ID3') || mp3BytesPerSecond(head, 0) !== undefined) return 'mp3'
  return undefined
}

/**
 * Undefined when it is none of the types above, or its header makes no sense. `head` and `tail` are the edges of the
 * file.
 */
export function readAudioFacts(head: Buffer, tail: Buffer, bytes: number): AudioFacts | undefined {
  const type = audioTypeOf(head)
  if (type === undefined) return undefined
  if (type === 'wav') return wavFacts(head, bytes)
  const { least, usual } = RATES[type]
  const said = SAID[type](head, tail, bytes)
  const isSaid = said !== undefined && Number.isFinite(said) && said > 0
  // Whoever says that there is more in it is believed.
  return {
    type,
    secondsLikely: isSaid ? said : bytes / usual,
    secondsMost: Math.max(bytes / least, isSaid ? said : 0),
    secondsPossible: Number.POSITIVE_INFINITY,
  }
}

/** Samples of a fixed size: the least of what the header says in three ways is what a decoder can make of it. */
function wavFacts(head: Buffer, bytes: number): AudioFacts | undefined {
  const at = wavFormatAt(head)
  if (at === undefined) return undefined
  const byteRate = head.readUInt32LE(at + 16)
  const sampleBytes = wavSampleBytes(head, at)
  const samples = head.readUInt32LE(at + 12)
  const channels = head.readUInt16LE(at + 10)
  const frame = head.readUInt16LE(at + 20)
  // What is compressed in it says its own rate, and nobody looks at the header's.
  const rate =
    sampleBytes === undefined ? byteRate : Math.min(byteRate, samples * Math.min(frame, channels * sampleBytes))
  // Below, there is no speech that anybody could understand; above, no microphone.
  if (rate < WAV_BYTES_PER_SECOND_MIN || rate > WAV_BYTES_PER_SECOND_MAX) return undefined
  const secondsLikely = Math.max(0, bytes - at - 32) / rate
  if (sampleBytes === undefined)
    return {
      type: 'wav',
      secondsLikely,
      secondsMost: bytes / WAV_BYTES_PER_SECOND_MIN,
      secondsPossible: Number.POSITIVE_INFINITY,
    }
  return { type: 'wav', secondsLikely, secondsMost: bytes / rate, secondsPossible: bytes / rate }
}

/** Where the format stands. Chunk by chunk, as decoders go: its name may stand in the text of an earlier one too. */
function wavFormatAt(head: Buffer): number | undefined {
  let at = AUDIO_MAGIC_BYTES
  while (head.length >= at + 24) {
    if (head.toString('latin1', at, at + 4) === 'fmt ') return at
    const bytes = head.readUInt32LE(at + 4)
    at += 8 + bytes + (bytes % 2)
  }
  return undefined
}

/** Undefined where samples have no fixed size. */
function wavSampleBytes(head: Buffer, at: number): number | undefined {
  const said = head.readUInt16LE(at + 8)
  const format = said === WAV_EXTENSIBLE && head.length >= at + 34 ? head.readUInt16LE(at + 32) : said
  if (format === WAV_A_LAW || format === WAV_MU_LAW) return 1
  return format === WAV_INTEGERS || format === WAV_FLOATS ? Math.ceil(head.readUInt16LE(at + 22) / 8) : undefined
}

const WAV_INTEGERS = 1
const WAV_FLOATS = 3
const WAV_A_LAW = 6
const WAV_MU_LAW = 7
/** The format stands further behind. */
const WAV_EXTENSIBLE = 0xfffe
const WAV_BYTES_PER_SECOND_MIN = 500
/** Eight channels of 192 kHz in 32 bits. */
const WAV_BYTES_PER_SECOND_MAX = 6_144_000

type Said = (head: Buffer, tail: Buffer, bytes: number) => number | undefined

/** What each container says of its length. */
const SAID: Record<Exclude<AudioType, 'wav'>, Said> = {
  mp3(head, _tail, bytes) {
    const start = head.toString('latin1', 0, 3) === 'ID3' ? 10 + id3Bytes(head) : 0
    const rate = mp3BytesPerSecond(head, start)
    return rate === undefined ? undefined : (bytes - start) / rate
  },

  flac(head) {
    if (head.length < 26) return undefined
    const samplesPerSecond = head.readUIntBE(18, 3) >> 4
    const samples = (head.readUInt8(21) & 0x0f) * 2 ** 32 + head.readUInt32BE(22)
    return samplesPerSecond > 0 ? samples / samplesPerSecond : undefined
  },

  ogg(head, tail) {
    const last = tail.lastIndexOf('OggS')
    if (last < 0 || tail.length < last + 14) return undefined
    const samples = Number(tail.readBigUInt64LE(last + 6))
    const vorbis = head.indexOf('\x01vorbis', 0, 'latin1')
    // Opus counts in 48 kHz, whatever it was recorded in.
    const samplesPerSecond = vorbis >= 0 && head.length >= vorbis + 16 ? head.readUInt32LE(vorbis + 12) : 48_000
    return samples / samplesPerSecond
  },

  mp4: (head, tail) => mvhdSeconds(head) ?? mvhdSeconds(tail),

  // What a browser records has no length in it.
  webm: () => undefined,
}

function mvhdSeconds(part: Buffer): number | undefined {
  const at = part.indexOf('mvhd', 0, 'latin1')
  if (at < 0 || part.length < at + 36) return undefined
  const isLong = part.readUInt8(at + 4) === 1
  const perSecond = part.readUInt32BE(at + (isLong ? 24 : 16))
  const length = isLong ? Number(part.readBigUInt64BE(at + 28)) : part.readUInt32BE(at + 20)
  return perSecond > 0 ? length / perSecond : undefined
}

function id3Bytes(head: Buffer): number {
  return head.length < 10
    ? 0
    : ((head.readUInt8(6) & 0x7f) << 21) |
        ((head.readUInt8(7) & 0x7f) << 14) |
        ((head.readUInt8(8) & 0x7f) << 7) |
        (head.readUInt8(9) & 0x7f)
}

const KILOBITS_1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const KILOBITS_2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]

/** Of the frame at this place; undefined when there is none of layer III. */
function mp3BytesPerSecond(head: Buffer, at: number): number | undefined {
  if (head.length < at + 3) return undefined
  const [first, second, third] = head.subarray(at, at + 3)
  if (first !== 0xff || second === undefined || third === undefined || (second & 0xe6) !== 0xe2) return undefined
  const version = (second >> 3) & 3
  const kilobits = (version === 3 ? KILOBITS_1 : KILOBITS_2)[third >> 4]
  return version === 1 || !kilobits ? undefined : kilobits * 125
}
