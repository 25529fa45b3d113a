// Reads the body of an image request as it arrives. Reference images are decoded at once: 256 MB of images are 342 MB
// of JSON, and parsing that as text would take five times its size.
import { createHash } from 'node:crypto'
import { IMAGES_MAX } from '../../../catalog/images.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { type JsonText, readJson } from '../../../kernel/json.ts'
import {
  type ImageType,
  imageTypeOf,
  MAGIC_BYTES,
  PIXELS_MAX,
  readImageFacts,
} from '../../../kernel/parsers/image-file.ts'
import { type FormFile, type FormHeaders, type FormRules, givenTwice, readForm, shortName } from '../form.ts'
import { Base64File, StreamingJsonParser, type StringSink } from './streaming-json.ts'

const MB = 1_048_576
export const IMAGE_BYTES_MAX = 20 * MB
export const IMAGES_BYTES_MAX = 256 * MB
/** Leaves room for encoders that escape characters of the base64; the exact limits apply to the decoded images. */
export const BODY_BYTES_MAX = 400 * MB
/** Limit for everything except the images. */
const TEXT_BYTES_MAX = 2 * MB

export interface InlineImage {
  /** Never concatenated: the pieces are sent one after the other. */
  readonly pieces: readonly Buffer[]
  readonly bytes: number
  readonly type: ImageType
}

export interface ImageRequestBody {
  /** The request, with null in place of each image. */
  readonly json: JsonText
  /** By position in image_urls. */
  readonly inline: ReadonlyMap<number, InlineImage>
  readonly inlineBytes: number
  /** Where the first picture may be changed. Only a form has one. */
  readonly mask?: InlineImage
  /** It came as the form by which SDKs ask for an edit, and is answered as they expect it. */
  readonly isEdit?: true
  /** SHA-256 of the body as received, if requested: an idempotency key is bound to it. */
  readonly digest: string | undefined
}

/** Reads at most BODY_BYTES_MAX; rejects as soon as a limit is exceeded, and leaves the rest of the stream unread. */
export async function readImageBody(
  stream: AsyncIterable<Buffer>,
  options: {
    /** From the header; undefined for a chunked body. */
    readonly contentLength: number | undefined
    readonly digest?: boolean
  },
): Promise<ImageRequestBody> {
  if ((options.contentLength ?? 0) > BODY_BYTES_MAX) throw bodyTooLarge()
  const hash = options.digest ? createHash('sha256') : undefined
  const album = new Album()
  const sieve = new StreamingJsonParser({
    take: (path) =>
      path.length === 2 && path[0] === 'image_urls' && typeof path[1] === 'number'
        ? { prefix: 'data:', sink: () => album.open(path[1] as number) }
        : undefined,
    textBytesMax: TEXT_BYTES_MAX,
    tooLong: bodyTooLarge,
    invalid: () => invalidUri(album.at),
  })
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes > BODY_BYTES_MAX) throw bodyTooLarge()
    hash?.update(chunk)
    sieve.push(chunk)
  }
  const json = readJson(sieve.end())
  readEscapedUris(json, album)
  return { json, inline: album.images, inlineBytes: album.bytes, digest: hash?.digest('hex') }
}

/** Rejects every content type except JSON or none. For form uploads the message says where images belong. */
export function checkImageContentType(contentType: string | undefined): void {
  if (contentType === undefined || /^application\/json(?:[ \t]*;|[ \t]*$)/i.test(contentType)) return
  if (/^multipart\//i.test(contentType))
    throw invalid(
      'Uploads as multipart/form-data are not accepted. Send JSON, with pictures in "image_urls" as public addresses or data URIs.',
    )
  throw invalid('The body must be JSON, with "Content-Type: application/json".')
}

/** The images of one request and their total size. */
class Album {
  readonly images = new Map<number, InlineImage>()
  bytes = 0
  /** The index of the image that is being read. */
  at = 0

  open(index: number): StringSink {
    this.at = index
    if (index >= IMAGES_MAX) throw tooMany()
    return new DataUri(index, IMAGES_BYTES_MAX - this.bytes, (image) => {
      this.images.set(index, image)
      this.bytes += image.bytes
    })
  }
}

/** Parses what follows "data:" in `data:image/<type>;base64,<data>`. */
class DataUri implements StringSink {
  private head = ''
  private inBody = false
  private readonly file: Base64File
  private readonly index: number
  private readonly done: (image: InlineImage) => void

  constructor(index: number, bytesLeft: number, done: (image: InlineImage) => void) {
    this.index = index
    this.done = done
    this.file = new Base64File({
      bytesMax: Math.min(IMAGE_BYTES_MAX, bytesLeft),
      tooLarge: () => (bytesLeft < IMAGE_BYTES_MAX ? tooMuch() : tooLarge(index)),
      invalid: () => invalidUri(index),
      headBytes: MAGIC_BYTES,
      head(bytes) {
        if (!imageTypeOf(bytes)) throw notAnImage(index)
      },
    })
  }

  push(ascii: Buffer): void {
    if (this.inBody) {
      this.file.push(ascii)
      return
    }
    const comma = ascii.indexOf(0x2c)
    this.head += ascii.toString('latin1', 0, Math.min(comma < 0 ? ascii.length : comma, HEAD_CHARS_MAX + 1))
    if (this.head.length > HEAD_CHARS_MAX) throw invalidUri(this.index)
    if (comma < 0) return
    if (!/^image\/[a-z0-9.+-]+;base64$/i.test(this.head)) throw invalidUri(this.index)
    this.inBody = true
    this.file.push(ascii.subarray(comma + 1))
  }

  end(): void {
    if (!this.inBody) throw invalidUri(this.index)
    this.file.end()
    const { pieces, bytes } = this.file
    const facts = readImageFacts(pieces)
    if (!facts) throw notAnImage(this.index)
    if (facts.width * facts.height > PIXELS_MAX)
      throw refused(this.index, `has more than ${PIXELS_MAX / 1_000_000} megapixels`)
    this.done({ pieces, bytes, type: facts.type })
  }
}

const HEAD_CHARS_MAX = 100

/** Handles data URIs whose first letters were escaped, so that the streaming parser left them in the text. */
function readEscapedUris(json: JsonText, album: Album): void {
  const urls = Object.hasOwn(json.value, 'image_urls') ? json.value.image_urls : undefined
  if (!Array.isArray(urls)) return
  if (urls.length > IMAGES_MAX) throw tooMany()
  urls.forEach((url, index) => {
    if (typeof url !== 'string' || !/^data:/i.test(url)) return
    const sink = album.open(index)
    // Characters beyond ASCII become bytes that are not base64, and are rejected as such.
    sink.push(Buffer.from(url.slice(5), 'utf8'))
    sink.end()
  })
}

function refused(index: number, why: string): Fault {
  return invalid(`"image_urls[${index}]" ${why}.`, `image_urls[${index}]`)
}
function tooMany(): Fault {
  return invalid(`"image_urls" may hold at most ${IMAGES_MAX} images.`, 'image_urls')
}
function tooLarge(index: number): Fault {
  return refused(index, `is larger than ${IMAGE_BYTES_MAX / MB} MB`)
}
export function tooMuch(): Fault {
  return invalid(`The images of "image_urls" are larger than ${IMAGES_BYTES_MAX / MB} MB in all.`, 'image_urls')
}
function invalidUri(index: number): Fault {
  return refused(
    index,
    'must be of the form data:image/<type>;base64,<data>, without blanks or line breaks in the data',
  )
}
function notAnImage(index: number): Fault {
  return refused(index, 'must be a PNG, JPEG, WebP or GIF file')
}
function bodyTooLarge(): Fault {
  return new Fault('request_too_large', {
    message: `The request is too large: at most ${IMAGES_MAX} images of ${IMAGE_BYTES_MAX / MB} MB each and ${IMAGES_BYTES_MAX / MB} MB in all, and ${TEXT_BYTES_MAX / MB} MB of everything else.`,
  })
}

// The form by which SDKs ask for an edit: `images.edit()`. It becomes the request that the JSON endpoint takes, with
// its pictures beside it.

const FIELDS_BYTES_MAX = 2 * MB
const FORM_BYTES_MAX = IMAGES_BYTES_MAX + FIELDS_BYTES_MAX + MB
/** SDKs send one picture as `image`, several as `image[]`. */
const PICTURES = ['image', 'image[]']
const MASK = 'mask'

const RULES: FormRules = {
  takes:
    'Send a form with "Content-Type: multipart/form-data": pictures as "image", "prompt" and "model". As JSON, send them as "image_urls" to /v1/images/generations.',
  bodyBytesMax: FORM_BYTES_MAX,
  fieldsBytesMax: FIELDS_BYTES_MAX,
  fileNames: [...PICTURES, MASK],
  tooLarge: formTooLarge,
  checkFile({ name }, before) {
    const same = (isSame: (name: string) => boolean) => before.filter(({ head }) => isSame(head.name)).length
    if (name === MASK) {
      if (same((other) => other === MASK) > 0) throw givenTwice(MASK)
    } else if (!PICTURES.includes(name)) {
      throw invalid(
        `"${shortName(name)}" is a file; the form takes pictures as "image" and one "mask".`,
        shortName(name),
      )
    } else if (same((other) => PICTURES.includes(other)) >= IMAGES_MAX) {
      throw invalid(`"image" may be given at most ${IMAGES_MAX} times.`, 'image')
    }
  },
  checkBytes({ name }, bytes, bytesBefore) {
    if (bytes > IMAGE_BYTES_MAX) throw invalid(`"${name}" is larger than ${IMAGE_BYTES_MAX / MB} MB.`, name)
    if (bytesBefore + bytes > IMAGES_BYTES_MAX) throw formTooLarge()
  },
}

export async function readEditForm(stream: AsyncIterable<Buffer>, headers: FormHeaders): Promise<ImageRequestBody> {
  const { fields, files, digest } = await readForm(stream, headers, RULES)
  const pictures = files.filter(({ head }) => head.name !== MASK).map(pictureOf)
  if (pictures.length === 0) throw invalid('"image" is required: the picture to edit, as a file of the form.', 'image')
  const mask = files.find(({ head }) => head.name === MASK)
  for (const name of ['image_urls', 'resolution'])
    if (fields[name] !== undefined) throw invalid(`"${name}" is not a field of this form.`, name)
  // The pictures themselves stand beside the request, as those of a JSON body do.
  const request = { ...Object.fromEntries(Object.entries(fields).map(typed)), image_urls: pictures.map(() => null) }
  return {
    json: readJson(Buffer.from(JSON.stringify(request))),
    inline: new Map(pictures.map((picture, index) => [index, picture])),
    inlineBytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    ...(mask ? { mask: pictureOf(mask) } : {}),
    isEdit: true,
    digest,
  }
}

/** A form has only texts. What is no number or truth value stays one, and is refused by name. */
function typed([name, value]: [string, string | string[]]): [string, unknown] {
  if (name === 'n' && typeof value === 'string' && /^\d{1,6}$/.test(value)) return [name, Number(value)]
  if (name === 'stream' && (value === 'true' || value === 'false')) return [name, value === 'true']
  return [name, value]
}

function pictureOf({ head: { name }, pieces, bytes }: FormFile): InlineImage {
  const facts = readImageFacts(pieces)
  if (!facts) throw invalid(`"${name}" must be a PNG, JPEG, WebP or GIF file.`, name)
  if (facts.width * facts.height > PIXELS_MAX)
    throw invalid(`"${name}" has more than ${PIXELS_MAX / 1_000_000} megapixels.`, name)
  return { pieces, bytes, type: facts.type }
}

function formTooLarge(): Fault {
  return new Fault('request_too_large', {
    message: `The form is too large: at most ${IMAGES_MAX} pictures of ${IMAGE_BYTES_MAX / MB} MB each and ${IMAGES_BYTES_MAX / MB} MB in all, and ${FIELDS_BYTES_MAX / MB} MB of everything else.`,
  })
}
