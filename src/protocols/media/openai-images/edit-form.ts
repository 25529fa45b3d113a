// The form by which SDKs ask for an edit: `images.edit()`. It becomes the request that the JSON endpoint takes, with its pictures beside it.
import { IMAGES_MAX } from '../../../catalog/images.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { readJson } from '../../../kernel/json.ts'
import { PIXELS_MAX, readImageFacts } from '../../../parsers/image-file.ts'
import { type FormFile, type FormRules, givenTwice, readForm, shortName } from '../form.ts'
import { IMAGE_BYTES_MAX, IMAGES_BYTES_MAX, type ImageRequestBody, type InlineImage } from './body.ts'

const MB = 1_048_576
const FIELDS_BYTES_MAX = 2 * MB
const BODY_BYTES_MAX = IMAGES_BYTES_MAX + FIELDS_BYTES_MAX + MB
/** SDKs send one picture as `image`, several as `image[]`. */
const PICTURES = ['image', 'image[]']
const MASK = 'mask'

const RULES: FormRules = {
  takes:
    'Send a form with "Content-Type: multipart/form-data": pictures as "image", "prompt" and "model". As JSON, send them as "image_urls" to /v1/images/generations.',
  bodyBytesMax: BODY_BYTES_MAX,
  fieldsBytesMax: FIELDS_BYTES_MAX,
  fileNames: [...PICTURES, MASK],
  tooLarge,
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
    if (bytesBefore + bytes > IMAGES_BYTES_MAX) throw tooLarge()
  },
}

export async function readEditForm(
  stream: AsyncIterable<Buffer>,
  headers: { readonly contentType: string | undefined; readonly contentLength: number | undefined },
): Promise<ImageRequestBody> {
  const { fields, files, digest } = await readForm(stream, headers, RULES)
  const pictures = files.filter(({ head }) => head.name !== MASK).map(pictureOf)
  if (pictures.length === 0) throw invalid('"image" is required: the picture to edit, as a file of the form.', 'image')
  const mask = files.find(({ head }) => head.name === MASK)
  for (const name of ['image_urls', 'resolution'])
    if (fields[name] !== undefined) throw invalid(`"${name}" is no field of this form.`, name)
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

function tooLarge(): Fault {
  return new Fault('request_too_large', {
    message: `The form is too large: at most ${IMAGES_MAX} pictures of ${IMAGE_BYTES_MAX / MB} MB each and ${IMAGES_BYTES_MAX / MB} MB in all, and ${FIELDS_BYTES_MAX / MB} MB of everything else.`,
  })
}
