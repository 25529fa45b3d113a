// The form of a transcription: one file and some fields, in any order. It is read completely before credits are held or anything is sent,
// because SDKs put the model after the file. So a slow upload occupies neither credits nor a vendor's slot, and a retry at a second vendor is
// possible.
import { createHash } from 'node:crypto'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { type JsonText, readJson } from '../../../kernel/json.ts'
import { AUDIO_EDGE_BYTES, type AudioFacts, readAudioFacts } from '../../../parsers/audio-file.ts'
import { FormError, FormReader, type PartHead, type PartSink } from '../../../parsers/multipart.ts'

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

interface AudioFormOptions {
  readonly contentType: string | undefined
  /** From the header; undefined for a chunked body. */
  readonly contentLength: number | undefined
}

/** Rejects as soon as a limit is exceeded, and leaves the rest of the stream unread. */
export async function readAudioForm(
  stream: AsyncIterable<Buffer>,
  { contentType, contentLength }: AudioFormOptions,
): Promise<AudioForm> {
  checkFormType(contentType)
  if ((contentLength ?? 0) > BODY_BYTES_MAX) throw tooLarge()
  const parts = new Parts()
  try {
    const reader = new FormReader(contentType ?? '', (head) => parts.open(head))
    let bytes = 0
    for await (const chunk of stream) {
      bytes += chunk.length
      if (bytes > BODY_BYTES_MAX) throw tooLarge()
      reader.push(chunk)
    }
    reader.end()
  } catch (error) {
    if (!(error instanceof FormError)) throw error
    throw invalid(`The body is no whole form: ${error.message}.`)
  }
  return parts.form()
}

function checkFormType(contentType: string | undefined): void {
  if (contentType !== undefined && /^multipart\/form-data/i.test(contentType)) return
  throw invalid('Send a form with "Content-Type: multipart/form-data": the recording as "file", and "model".')
}

class Parts {
  private readonly fields = new Map<string, string | string[]>()
  private fieldBytes = 0
  private readonly recording = new Gathered()
  private head: PartHead | undefined
  private readonly hash = createHash('sha256')

  open(head: PartHead): PartSink {
    if (head.name === 'file') return this.openFile(head)
    if (head.filename !== undefined)
      throw invalid(`"${shortName(head.name)}" is a file; the form takes one, as "file".`, shortName(head.name))
    return this.openField(head.name)
  }

  form(): AudioForm {
    const { head } = this
    const { pieces, bytes } = this.recording
    if (!head) throw invalid('"file" is required: the recording, as a file of the form.', 'file')
    const edge = Math.min(bytes, AUDIO_EDGE_BYTES)
    const facts = readAudioFacts(sliceOf(pieces, 0, edge), sliceOf(pieces, bytes - edge, bytes), bytes)
    if (!facts)
      throw invalid(
        '"file" must be a recording that can be read: wav, mp3 (mpga, mpeg), flac, ogg (oga, opus), mp4 (m4a) or webm.',
        'file',
      )
    const said = JSON.stringify(Object.fromEntries([...this.fields].sort(([a], [b]) => (a < b ? -1 : 1))))
    const name = head.filename ?? ''
    return {
      json: readJson(Buffer.from(said)),
      file: {
        pieces,
        bytes,
        name: fileName(name, facts),
        type: TYPE.test(head.type) ? head.type : `audio/${facts.type}`,
        facts,
      },
      digest: this.hash.update(`\n${name}\n${said}`).digest('hex'),
    }
  }

  private openFile(head: PartHead): PartSink {
    if (this.head) throw invalid('"file" may be given once.', 'file')
    this.head = head
    return {
      push: (piece) => {
        if (this.recording.bytes + piece.length > AUDIO_BYTES_MAX) throw tooLarge()
        this.hash.update(piece)
        this.recording.push(piece)
      },
      end: () => {
        if (this.recording.bytes === 0) throw invalid('"file" must not be empty.', 'file')
      },
    }
  }

  private openField(name: string): PartSink {
    const gathered = new Gathered()
    return {
      push: (piece) => {
        this.fieldBytes += piece.length
        if (this.fieldBytes > FIELDS_BYTES_MAX) throw tooLarge()
        gathered.push(piece)
      },
      end: () => {
        const value = Buffer.concat(gathered.pieces).toString('utf8')
        const before = this.fields.get(name)
        // Fields such as `timestamp_granularities[]` may be repeated; others may not.
        if (before === undefined) this.fields.set(name, name.endsWith('[]') ? [value] : value)
        else if (Array.isArray(before)) before.push(value)
        else throw invalid(`"${shortName(name)}" may be given once.`, shortName(name))
      },
    }
  }
}

const BLOCK_BYTES = 65_536

/** Copies bytes into blocks of a fixed size: a body that arrives byte by byte must not become millions of buffers. */
class Gathered {
  bytes = 0
  private readonly blocks: Buffer[] = []

  get pieces(): readonly Buffer[] {
    const over = this.blocks.length * BLOCK_BYTES - this.bytes
    return this.blocks.map((block, index) =>
      index === this.blocks.length - 1 ? block.subarray(0, BLOCK_BYTES - over) : block,
    )
  }

  push(piece: Buffer): void {
    for (let from = 0; from < piece.length; ) {
      const at = this.bytes % BLOCK_BYTES
      if (at === 0) this.blocks.push(Buffer.allocUnsafeSlow(BLOCK_BYTES))
      const copied = piece.copy(this.blocks[this.blocks.length - 1] ?? piece, at, from)
      from += copied
      this.bytes += copied
    }
  }
}

const TYPE = /^[a-z]{1,20}\/[a-z0-9.+-]{1,60}$/

const shortName = (name: string) => name.slice(0, 60)

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
