// The form of a transcription: one recording and some fields.
import { Fault, invalid } from '../../../kernel/fault.ts'
import { type JsonText, readJson } from '../../../kernel/json.ts'
import { AUDIO_EDGE_BYTES, type AudioFacts, readAudioFacts } from '../../../parsers/audio-file.ts'
import { type FormRules, givenTwice, readForm, shortName } from '../form.ts'

const MB = 1_048_576
const AUDIO_BYTES_MAX = 25 * MB
/** Limit for everything except the file. */
const FIELDS_BYTES_MAX = MB
/** Includes the boundaries between the parts. */
const BODY_BYTES_MAX = AUDIO_BYTES_MAX + FIELDS_BYTES_MAX + 262_144
const NAME_CHARS_MAX = 200

export interface AudioFile {
  /** Never concatenated: the pieces are sent one after the other. */
  readonly pieces: readonly Buffer[]
  readonly bytes: number
  readonly name: string
  readonly type: string
  readonly facts: AudioFacts
}

interface AudioForm {
  /** The fields, each a text or a list of texts. */
  readonly json: JsonText
  readonly file: AudioFile
  /** A digest of the form's content, not of its bytes: a client that retries chooses another boundary. */
  readonly digest: string
}

export async function readAudioForm(
  stream: AsyncIterable<Buffer>,
  headers: { readonly contentType: string | undefined; readonly contentLength: number | undefined },
): Promise<AudioForm> {
  const { fields, files, digest } = await readForm(stream, headers, RULES)
  const [file] = files
  if (!file) throw invalid('"file" is required: the recording, as a file of the form.', 'file')
  const { head, pieces, bytes } = file
  const edge = Math.min(bytes, AUDIO_EDGE_BYTES)
  const facts = readAudioFacts(sliceOf(pieces, 0, edge), sliceOf(pieces, bytes - edge, bytes), bytes)
  if (!facts)
    throw invalid(
      '"file" must be a recording that can be read: wav, mp3 (mpga, mpeg), flac, ogg (oga, opus), mp4 (m4a) or webm.',
      'file',
    )
  return {
    json: readJson(Buffer.from(JSON.stringify(fields))),
    file: {
      pieces,
      bytes,
      name: fileName(head.filename ?? '', facts),
      type: TYPE.test(head.type) ? head.type : `audio/${facts.type}`,
      facts,
    },
    digest,
  }
}

const RULES: FormRules = {
  takes: 'Send a form with "Content-Type: multipart/form-data": the recording as "file", and "model".',
  bodyBytesMax: BODY_BYTES_MAX,
  fieldsBytesMax: FIELDS_BYTES_MAX,
  fileNames: ['file'],
  tooLarge,
  checkFile({ name }, before) {
    if (name !== 'file')
      throw invalid(`"${shortName(name)}" is a file; the form takes one, as "file".`, shortName(name))
    if (before.length > 0) throw givenTwice('file')
  },
  checkBytes(_head, bytes) {
    if (bytes > AUDIO_BYTES_MAX) throw tooLarge()
  },
}

const TYPE = /^[a-z]{1,20}\/[a-z0-9.+-]{1,60}$/

/** Vendors detect the format by the file extension, so a file without one gets it. */
function fileName(name: string, { type }: AudioFacts): string {
  const plain = name
    .replaceAll(/[^\x20-\x7e]|["\\/]/g, '_')
    .slice(-NAME_CHARS_MAX)
    .trim()
  return /\.[a-z0-9]{2,5}$/i.test(plain) ? plain : `${plain || 'audio'}.${type}`
}

function sliceOf(pieces: readonly Buffer[], from: number, to: number): Buffer {
  const found: Buffer[] = []
  let at = 0
  for (const piece of pieces) {
    if (at + piece.length > from && at < to) found.push(piece.subarray(Math.max(0, from - at), to - at))
    at += piece.length
  }
  return Buffer.concat(found)
}

function tooLarge(): Fault {
  return new Fault('request_too_large', {
    message: `The form is too large: at most ${AUDIO_BYTES_MAX / MB} MB of audio and ${FIELDS_BYTES_MAX / MB} MB of everything else.`,
  })
}
