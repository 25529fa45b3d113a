// One exchange with a vendor of the image format: JSON without reference images, a multipart upload with them. The vendor answers with base64;
// callers get a URL.
import type { Usage } from '../../../meter/usage.ts'
import type { HttpCall } from '../../../upstream/call.ts'
import { type Exchange, garbled, type OpenOptions, type Target } from '../../protocol.ts'
import { readErrorBody } from '../../vendor-words.ts'
import type { InlineImage } from './body.ts'
import { ImageRelay } from './relay.ts'
import type { CheckedImages, ImageRequestDeps, StoredImage } from './request.ts'
import { type Drawn, priceOf, readDrawn, writeAnswer } from './result.ts'

interface ImagesOpening {
  readonly checked: CheckedImages
  readonly images: readonly InlineImage[]
  /** Charged if the vendor reports no usage. */
  readonly worst: Usage
  readonly target: Target
  readonly options: OpenOptions
  readonly store: ImageRequestDeps['store']
}

export function openImages({ checked, images, worst, target, options, store: storeFile }: ImagesOpening): Exchange {
  let storing: Promise<StoredImage> | undefined

  /** From here on there is a stored file, which is removed if the call fails. */
  function store(drawn: Drawn): Promise<StoredImage> {
    storing = storeFile(drawn.pieces, drawn.type)
    return storing
  }

  return {
    call: callOf(checked, images, target, options.requestId),
    async answer(body) {
      const drawn = readDrawn(body)
      const { url } = await store(drawn)
      return {
        body: writeAnswer(drawn, url, checked, options.createdSeconds),
        contentType: 'application/json; charset=utf-8',
        usage: drawn.usage ?? worst,
        price: priceOf(checked, drawn.quality),
      }
    },
    drains: 'call',
    ...(checked.stream
      ? {
          stream: (headers: Readonly<Record<string, string>>) => {
            if (/json/.test(headers['content-type'] ?? '')) throw garbled('JSON in answer to a streaming request')
            return new ImageRelay({ checked, unreported: worst, store })
          },
        }
      : {}),
    vendorError: readErrorBody,
    async discard() {
      const stored = await storing?.catch(() => undefined)
      await stored?.remove()
    },
  }
}

function callOf(checked: CheckedImages, images: readonly InlineImage[], target: Target, requestId: string): HttpCall {
  const fields: Record<string, string | number | boolean> = {
    model: target.model,
    prompt: checked.prompt,
    n: 1,
    size: checked.size,
    quality: checked.quality,
    output_format: checked.format,
    ...(checked.stream ? { stream: true } : {}),
  }
  const headers = { accept: checked.stream ? 'text/event-stream' : 'application/json' }
  if (images.length === 0)
    return {
      method: 'POST',
      url: `${target.baseUrl}/images/generations`,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(fields),
    }
  // The request id was created after the images arrived, so no image can contain the boundary on purpose.
  const boundary = `tollgate-${requestId}`
  return {
    method: 'POST',
    url: `${target.baseUrl}/images/edits`,
    headers: { ...headers, 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: formPieces(fields, filesOf(images, checked.mask), boundary),
  }
}

interface NamedFile extends InlineImage {
  /** Of the form's field. */
  readonly name: string
  /** Without its ending. */
  readonly fileName: string
}

function filesOf(images: readonly InlineImage[], mask: InlineImage | undefined): NamedFile[] {
  const files = images.map((image, index) => ({ ...image, name: 'image[]', fileName: `image-${index + 1}` }))
  return mask ? [...files, { ...mask, name: 'mask', fileName: 'mask' }] : files
}

/** The form in pieces: the files' own buffers with short texts between them, so nothing is copied. */
function formPieces(
  fields: Readonly<Record<string, string | number | boolean>>,
  files: readonly NamedFile[],
  boundary: string,
): (string | Buffer)[] {
  const pieces: (string | Buffer)[] = []
  for (const [name, value] of Object.entries(fields))
    pieces.push(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
  for (const { pieces: file, type, name, fileName } of files)
    pieces.push(
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"; filename="${fileName}.${type === 'jpeg' ? 'jpg' : type}"\r\ncontent-type: image/${type}\r\n\r\n`,
      ...file,
      '\r\n',
    )
  pieces.push(`--${boundary}--\r\n`)
  return pieces
}
