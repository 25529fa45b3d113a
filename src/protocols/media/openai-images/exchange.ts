// One exchange with a vendor of the image format: JSON without reference images, a multipart upload with them. The vendor answers with base64;
// callers get a URL.

import type { Fault } from '../../../kernel/fault.ts'
import type { Usage } from '../../../meter/usage.ts'
import type { HttpCall } from '../../../upstream/call.ts'
import { encodeComment, encodeEvent, encodeJson } from '../../../upstream/sse.ts'
import { isObject, text } from '../../check.ts'
import {
  type Exchange,
  garbled,
  type OpenOptions,
  type PriceAttributes,
  type StreamRelay,
  type StreamState,
  type Target,
} from '../../protocol.ts'
import { openaiError, vendorFault } from '../../vendor-fault.ts'
import { readErrorBody } from '../../vendor-words.ts'
import type { InlineImage } from './body.ts'
import type { CheckedImages, ImageRequestDeps, StoredImage } from './request.ts'
import { type Drawn, DrawnReader, eventName, priceOf, readDrawn, writeAnswer, writeEvent } from './result.ts'

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

// Relays a vendor's image stream to the caller. Partial images are dropped, because callers are promised a single event.

const NEWLINE = 0x0a
const COLON = 0x3a
const FIELD_CHARS_MAX = 100
const COMPLETED = new Set(['image_generation.completed', 'image_edit.completed'])
const BREAK = Buffer.from('\n')

interface ImageRelayOptions {
  readonly checked: CheckedImages
  /** The charge if the vendor reports no usage. */
  readonly unreported: Usage
  store(drawn: Drawn): Promise<StoredImage>
}

export class ImageRelay implements StreamRelay, StreamState {
  readonly encoding = 'utf8'
  readonly keepAlive = ': ping\n'
  /** A vendor always finishes an image that it has begun, so a disconnected caller is charged for all of it. */
  readonly outputTokensSeen = 1
  terminal = false
  fault: Fault | undefined
  usage: Usage | undefined
  price: PriceAttributes | undefined

  private readonly options: ImageRelayOptions
  /** The current line: the field name so far, and the part after the colon. */
  private field = ''
  private rest: 'name' | 'data' | 'other' = 'name'
  private reader: DrawnReader | undefined
  private storing: Promise<void> | undefined
  private event = ''

  constructor(options: ImageRelayOptions) {
    this.options = options
  }

  get state(): StreamState {
    return this
  }

  push(chunk: Buffer): undefined {
    for (let at = 0; at < chunk.length && !this.terminal && !this.fault; ) {
      const newline = chunk.indexOf(NEWLINE, at)
      const end = newline < 0 ? chunk.length : newline
      this.line(chunk.subarray(at, end))
      if (newline >= 0) this.endLine()
      at = end + 1
    }
    return undefined
  }

  end(): undefined {
    // Some vendors omit the last blank line. A truncated event does not count, because its JSON is incomplete.
    if (!this.terminal && !this.fault && this.reader) this.endEvent()
    return undefined
  }

  /** Resolves once the file is stored; only then may the answer end. */
  async ready(): Promise<void> {
    await this.storing
  }

  finish(comment: string): string {
    return `${encodeComment(comment)}${this.event}${encodeEvent('[DONE]')}`
  }

  fail(fault: Fault, requestId: string): string {
    const { code, message } = fault
    const data = { error: openaiError(fault), code, message, type: 'api_error', requestId }
    return encodeJson(data, 'error')
  }

  /** Handles a part of a line, never with its line end. */
  private line(part: Buffer): void {
    if (this.rest === 'data') this.reader?.push(part)
    if (this.rest !== 'name') return
    const colon = part.indexOf(COLON)
    this.field += part.toString('latin1', 0, Math.min(colon < 0 ? part.length : colon, FIELD_CHARS_MAX))
    if (this.field.length > FIELD_CHARS_MAX) this.rest = 'other'
    if (colon < 0) return
    this.rest = this.field === 'data' ? 'data' : 'other'
    if (this.rest === 'other') return
    if (this.reader) this.reader.push(BREAK)
    else this.reader = new DrawnReader()
    // A space after the colon is also valid whitespace in JSON.
    this.reader.push(part.subarray(colon + 1))
  }

  private endLine(): void {
    const blank = this.rest === 'name' && (this.field === '' || this.field === '\r')
    this.field = ''
    this.rest = 'name'
    if (blank && this.reader) this.endEvent()
  }

  private endEvent(): void {
    const reader = this.reader!
    this.reader = undefined
    if (/^\s*(?:\[DONE\]\s*)?$/.test(reader.text)) return
    const value = reader.end()
    if (value.type === 'error' || isObject(value.error)) {
      this.fault = vendorFault(isObject(value.error) ? value.error : value)
      return
    }
    this.price = priceOf(this.options.checked, text(value.quality))
    if (!COMPLETED.has(String(value.type))) return
    const drawn = reader.drawn(value)
    this.storing = this.options.store(drawn).then(({ url }) => {
      // An image that could not be stored is not charged.
      this.usage = drawn.usage ?? this.options.unreported
      this.event = encodeEvent(writeEvent(drawn, url, this.options.checked), eventName(this.options.checked))
    })
    // `ready` reports a failure; this handler only prevents an unhandled rejection until then.
    this.storing.catch(() => undefined)
    this.terminal = true
  }
}
