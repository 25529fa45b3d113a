// The shape in which the openai SDK orders and shows videos, over the same jobs: its form becomes the request that the contract's endpoint takes.
import { VIDEO_SIZE_DEFAULT, VIDEO_SIZES } from '../../../catalog/generation-bodies.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { type JsonText, readJson } from '../../../kernel/json.ts'
import { imageTypeOf } from '../../../parsers/image-file.ts'
import { isObject } from '../../check.ts'
import { type FormFile, type FormRules, givenTwice, readForm, shortName } from '../form.ts'

const MB = 1_048_576
const PICTURE_BYTES_MAX = 20 * MB
const FIELDS_BYTES_MAX = 30 * MB
const BODY_BYTES_MAX = PICTURE_BYTES_MAX + FIELDS_BYTES_MAX
const REFERENCE = 'input_reference'

const RULES: FormRules = {
  takes: 'Send JSON, or a form with "Content-Type: multipart/form-data": "prompt", "model", "seconds" and "size".',
  bodyBytesMax: BODY_BYTES_MAX,
  fieldsBytesMax: FIELDS_BYTES_MAX,
  fileNames: [],
  tooLarge,
  checkFile({ name }, before) {
    if (name !== REFERENCE)
      throw invalid(`"${shortName(name)}" is a file; the form takes one, as "${REFERENCE}".`, shortName(name))
    if (before.length > 0) throw givenTwice(REFERENCE)
  },
  checkBytes(_head, bytes) {
    if (bytes > PICTURE_BYTES_MAX)
      throw invalid(`"${REFERENCE}" is larger than ${PICTURE_BYTES_MAX / MB} MB.`, REFERENCE)
  },
}

interface VideoBody {
  readonly json: JsonText
  readonly digest: string
}

/** SDKs send a form; others JSON. */
export async function readVideoBody(
  stream: AsyncIterable<Buffer>,
  headers: { readonly contentType: string | undefined; readonly contentLength: number | undefined },
): Promise<VideoBody> {
  if (headers.contentType !== undefined && !/^application\/json/i.test(headers.contentType)) {
    const { fields, files, digest } = await readForm(stream, headers, RULES)
    const [file] = files
    const sent = { ...fields, ...(file ? { [REFERENCE]: { image_url: dataUri(file) } } : {}) }
    return { json: readJson(Buffer.from(JSON.stringify(sent))), digest }
  }
  if ((headers.contentLength ?? 0) > BODY_BYTES_MAX) throw tooLarge()
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of stream) {
    bytes += piece.length
    if (bytes > BODY_BYTES_MAX) throw tooLarge()
    pieces.push(piece)
  }
  const json = readJson(Buffer.concat(pieces))
  return { json, digest: json.text }
}

/** The request in the names of the contract's endpoint, which checks the values. */
export function asJob({ value: sent }: JsonText): JsonText {
  const { [REFERENCE]: reference, [`${REFERENCE}[image_url]`]: flat, size = VIDEO_SIZE_DEFAULT, ...rest } = sent
  if (sent[`${REFERENCE}[file_id]`] !== undefined || (isObject(reference) && reference.file_id !== undefined))
    throw invalid(
      `"${REFERENCE}" must be a file or an "image_url": files that were uploaded before are not taken.`,
      REFERENCE,
    )
  const known = typeof size === 'string' && Object.hasOwn(VIDEO_SIZES, size) ? VIDEO_SIZES[size] : undefined
  if (!known) throw invalid(`"size" must be one of ${Object.keys(VIDEO_SIZES).join(', ')}.`, 'size')
  const first = isObject(reference) ? reference.image_url : (reference ?? flat)
  if (first !== undefined && (typeof first !== 'string' || !/^(?:https?:\/\/|data:image\/)/i.test(first)))
    throw invalid(
      `"${REFERENCE}" must be a picture: a file, or an "image_url" with its address or data URI.`,
      REFERENCE,
    )
  const { prompt, model, seconds = '4' } = rest
  const asked = { prompt, model, seconds, ...known, ...(first === undefined ? {} : { first_frame: first }) }
  return readJson(Buffer.from(JSON.stringify(asked)))
}

function dataUri({ pieces }: FormFile): string {
  const bytes = Buffer.concat(pieces)
  const type = imageTypeOf(bytes)
  if (!type) throw invalid(`"${REFERENCE}" must be a PNG, JPEG, WebP or GIF file.`, REFERENCE)
  return `data:image/${type};base64,${bytes.toString('base64')}`
}

function tooLarge(): Fault {
  return new Fault('request_too_large', {
    message: `The request is too large: at most one picture of ${PICTURE_BYTES_MAX / MB} MB and ${FIELDS_BYTES_MAX / MB} MB of everything else.`,
  })
}
