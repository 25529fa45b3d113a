// The smallest sound file there is.
export const SAMPLES_PER_SECOND = 8_000

/** Samples of 16 bits, 8,000 a second, with the header of a file. */
export function wavFile(samples: Buffer): Buffer {
  const bytes = samples.length
  const header = Buffer.alloc(44)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(36 + bytes, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(SAMPLES_PER_SECOND, 24)
  header.writeUInt32LE(SAMPLES_PER_SECOND * 2, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(bytes, 40)
  return Buffer.concat([header, samples])
}
