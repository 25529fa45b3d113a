// A multipart form of a media endpoint: some files and some fields, in any order. It is read completely before credits
// are held or anything is sent, because SDKs put the model after the files. So a slow upload occupies neither credits
// nor a vendor's slot, and a retry at a second vendor is possible.
import { createHash } from 'node:crypto'
import { type Fault, invalid } from '../../kernel/fault.ts'
import { FormError, FormReader, type PartHead, type PartSink } from '../../kernel/parsers/multipart.ts'

export interface FormFile {
  readonly head: PartHead
  /** Never concatenated: the pieces are sent one after the other. */
  readonly pieces: readonly Buffer[]
  readonly bytes: number
}

interface Form {
  readonly fields: Readonly<Record<string, string | string[]>>
  /** In the order of the form. */
  readonly files: readonly FormFile[]
  /** A digest of the form's content, not of its bytes: a client that retries chooses another boundary. */
  readonly digest: string
}

/** What an endpoint's form may contain. */
export interface FormRules {
  /** For a body of another type: what to send, as a sentence. */
  readonly takes: string
  /** Includes the boundaries between the parts. */
  readonly bodyBytesMax: number
  /** Limit for everything except the files. */
  readonly fieldsBytesMax: number
  tooLarge(): Fault
  /**
   * Called for each part with a file name, or with the name of a file that must not be a field. Throws if the form
   * takes no such file, or not so many.
   */
  checkFile(head: PartHead, before: readonly FormFile[]): void
  /** Called with each piece. Throws if the file, or all files together, are too large. */
  checkBytes(head: PartHead, bytes: number, bytesBefore: number): void
  /** The parts that are files even if they come without a file name. */
  readonly fileNames: readonly string[]
}

export interface FormHeaders {
  readonly contentType: string | undefined
  /** From the header; undefined for a chunked body. */
  readonly contentLength: number | undefined
}

/** Rejects as soon as a limit is exceeded, and leaves the rest of the stream unread. */
export async function readForm(
  stream: AsyncIterable<Buffer>,
  { contentType, contentLength }: FormHeaders,
  rules: FormRules,
): Promise<Form> {
  if (contentType === undefined || !/^multipart\/form-data/i.test(contentType)) throw invalid(rules.takes)
  if ((contentLength ?? 0) > rules.bodyBytesMax) throw rules.tooLarge()
  const parts = new Parts(rules)
  try {
    const reader = new FormReader(contentType, (head) => parts.open(head))
    let bytes = 0
    for await (const chunk of stream) {
      bytes += chunk.length
      if (bytes > rules.bodyBytesMax) throw rules.tooLarge()
      reader.push(chunk)
    }
    reader.end()
  } catch (error) {
    if (!(error instanceof FormError)) throw error
    throw invalid(`The form in the body is incomplete: ${error.message}.`)
  }
  return parts.form()
}

class Parts {
  private readonly rules: FormRules
  private readonly fields = new Map<string, string | string[]>()
  private readonly files: FormFile[] = []
  private readonly hash = createHash('sha256')
  private fieldBytes = 0
  private fileBytes = 0

  constructor(rules: FormRules) {
    this.rules = rules
  }

  open(head: PartHead): PartSink {
    return head.filename !== undefined || this.rules.fileNames.includes(head.name)
      ? this.openFile(head)
      : this.openField(head.name)
  }

  form(): Form {
    const fields = Object.fromEntries([...this.fields].sort(([a], [b]) => (a < b ? -1 : 1)))
    const heads = this.files.map(({ head, bytes }) => [head.name, head.filename ?? '', bytes])
    const digest = this.hash.update(`\n${JSON.stringify([heads, fields])}`).digest('hex')
    return { fields, files: this.files, digest }
  }

  private openFile(head: PartHead): PartSink {
    this.rules.checkFile(head, this.files)
    const gathered = new Gathered()
    return {
      push: (piece) => {
        this.rules.checkBytes(head, gathered.bytes + piece.length, this.fileBytes)
        this.hash.update(piece)
        gathered.push(piece)
      },
      end: () => {
        if (gathered.bytes === 0) throw invalid(`"${shortName(head.name)}" must not be empty.`, shortName(head.name))
        this.fileBytes += gathered.bytes
        this.files.push({ head, pieces: gathered.pieces, bytes: gathered.bytes })
      },
    }
  }

  private openField(name: string): PartSink {
    const gathered = new Gathered()
    return {
      push: (piece) => {
        this.fieldBytes += piece.length
        if (this.fieldBytes > this.rules.fieldsBytesMax) throw this.rules.tooLarge()
        gathered.push(piece)
      },
      end: () => {
        const value = Buffer.concat(gathered.pieces).toString('utf8')
        const before = this.fields.get(name)
        // Fields such as `timestamp_granularities[]` may be repeated; others may not.
        if (before === undefined) this.fields.set(name, name.endsWith('[]') ? [value] : value)
        else if (Array.isArray(before)) before.push(value)
        else throw givenTwice(name)
      },
    }
  }
}

/** For a form with one file. */
export function onlyFile(name: string): FormRules['checkFile'] {
  return (head, before) => {
    if (head.name !== name)
      throw invalid(`"${shortName(head.name)}" is a file; the form takes one, as "${name}".`, shortName(head.name))
    if (before.length > 0) throw givenTwice(name)
  }
}

/** The form of a vendor in pieces: the files' own buffers with short texts between them, so nothing is copied. */
export function writeForm(
  boundary: string,
  fields: Iterable<readonly [name: string, value: unknown]>,
  files: Iterable<{ name: string; fileName: string; type: string; pieces: readonly Buffer[] }>,
): (string | Buffer)[] {
  const pieces: (string | Buffer)[] = []
  const head = (name: string, more = '') =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n`
  for (const [name, value] of fields) pieces.push(`${head(name)}${value}\r\n`)
  for (const { name, fileName, type, pieces: file } of files)
    pieces.push(head(name, `; filename="${fileName}"\r\ncontent-type: ${type}`), ...file, '\r\n')
  return [...pieces, `--${boundary}--\r\n`]
}

export function givenTwice(name: string): Fault {
  return invalid(`"${shortName(name)}" may be given once.`, shortName(name))
}

/** The name of a stranger's part, short enough for an error message. */
export const shortName = (name: string) => name.slice(0, 60)

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
