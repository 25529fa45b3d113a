// One exchange with a vendor of the image format: JSON without reference images, a multipart upload with them. The
// vendor answers with base64; callers get a URL.

import type { Fault } from '../../../kernel/fault.ts'
import { isObject, type Json, text } from '../../../kernel/json.ts'
import { type ImageType, MAGIC_BYTES, readImageFacts } from '../../../kernel/parsers/image-file.ts'
import { inputTokensOf, outputTokensOf, readCount, tokensOf, type Usage } from '../../../meter/usage.ts'
import type { HttpCall } from '../../../upstream/call.ts'
import { encodeComment, encodeEvent, encodeJson } from '../../../upstream/sse.ts'
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
import { writeForm } from '../form.ts'
import type { InlineImage } from './body.ts'
import type { CheckedImages, ImageRequestDeps, StoredImage } from './request.ts'
import { Base64File, type Path, StreamingJsonParser } from './streaming-json.ts'

/** `worst` is charged if the vendor reports no usage. */
export function openImages(
  { checked, images, worst }: { checked: CheckedImages; images: readonly InlineImage[]; worst: Usage },
  storeFile: ImageRequestDeps['store'],
  target: Target,
  options: OpenOptions,
): Exchange {
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
    body: writeForm(boundary, Object.entries(fields), filesOf(images, checked.mask)),
  }
}

function filesOf(images: readonly InlineImage[], mask: InlineImage | undefined) {
  const named = ({ pieces, type }: InlineImage, name: string, fileName: string) => ({
    name,
    pieces,
    type: `image/${type}`,
    fileName: `${fileName}.${type === 'jpeg' ? 'jpg' : type}`,
  })
  const files = images.map((image, index) => named(image, 'image[]', `image-${index + 1}`))
  return mask ? [...files, named(mask, 'mask', 'mask')] : files
}

// Relays a vendor's image stream to the caller. Partial images are dropped, because callers are promised a single
// event.

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

// The vendor's image: read from its JSON without ever holding the base64 as a string, and written for callers.

/** The largest image has 8 megapixels: 25 MB uncompressed. */
const RESULT_BYTES_MAX = 48 * 1_048_576
const TEXT_BYTES_MAX = 1_048_576

interface Drawn {
  readonly pieces: readonly Buffer[]
  readonly type: ImageType
  readonly createdSeconds: number | undefined
  /** The vendor's usage report, for the caller; undefined if there is none. */
  readonly reported: Json | undefined
  readonly usage: Usage | undefined
  /** The quality that the vendor reports. */
  readonly quality: string | undefined
}

/**
 * The price attributes if the request left the quality to the vendor: the reported quality, or else the price of
 * `auto`.
 */
function priceOf(checked: CheckedImages, quality: string | undefined): PriceAttributes | undefined {
  return checked.quality === 'auto' ? { quality: quality ?? 'auto' } : undefined
}

/** Parses a vendor's JSON piece by piece: a whole answer, or the data of one event. */
class DrawnReader {
  private file: Base64File | undefined
  private readonly sieve: StreamingJsonParser

  constructor() {
    this.sieve = new StreamingJsonParser({
      take: (path) => (isPicture(path) ? { prefix: '', sink: () => this.openFile() } : undefined),
      textBytesMax: TEXT_BYTES_MAX,
      tooLong: () => garbled('the answer is too large'),
      invalid: () => garbled('the picture is not base64'),
    })
  }

  push(chunk: Buffer): void {
    this.sieve.push(chunk)
  }

  /** The received JSON without its image. */
  get text(): string {
    return this.sieve.end().toString('utf8')
  }

  end(): Json {
    try {
      const value: unknown = JSON.parse(this.text)
      if (isObject(value)) return value
    } catch (cause) {
      throw garbled('the answer is not JSON', cause)
    }
    throw garbled('the answer is not an object')
  }

  drawn(value: Json): Drawn {
    const pieces = this.file?.pieces ?? []
    const facts = readImageFacts(pieces)
    if (!facts) throw garbled('the answer holds no picture')
    const reported = isObject(value.usage) ? value.usage : undefined
    return {
      pieces,
      type: facts.type,
      createdSeconds: readCount(value.created ?? value.created_at),
      reported,
      usage: usageOf(reported),
      quality: text(value.quality),
    }
  }

  private openFile(): Base64File {
    // If the vendor sends several images although one was requested, the last one counts.
    this.file = new Base64File({
      bytesMax: RESULT_BYTES_MAX,
      tooLarge: () => garbled('the picture is too large'),
      invalid: () => garbled('the picture is not base64'),
      headBytes: MAGIC_BYTES,
      head: () => undefined,
    })
    return this.file
  }
}

/** `data[0].b64_json` in a whole answer, `b64_json` in an event. */
function isPicture(path: Path): boolean {
  return path.at(-1) === 'b64_json' && (path.length === 1 || (path.length === 3 && path[0] === 'data' && path[1] === 0))
}

function readDrawn(body: Buffer): Drawn {
  const reader = new DrawnReader()
  reader.push(body)
  const value = reader.end()
  if (value.error !== undefined && value.error !== null) throw vendorFault(value.error)
  return reader.drawn(value)
}

function usageOf(reported: Json | undefined): Usage | undefined {
  const input = readCount(reported?.input_tokens)
  const output = readCount(reported?.output_tokens)
  if (input === undefined || output === undefined) return undefined
  const pictures = Math.min(countOf(reported?.input_tokens_details, 'image_tokens') ?? 0, input)
  // Image-only models do not report how much of the output is the image: all of it is.
  const words = Math.min(countOf(reported?.output_tokens_details, 'text_tokens') ?? 0, output)
  return {
    image: 1,
    input: input - pictures,
    ...(pictures > 0 ? { inputImage: pictures } : {}),
    ...(words > 0 ? { output: words } : {}),
    outputImage: output - words,
  }
}

/** The vendor's counts and their details, without any other members. */
function callersUsage(reported: Json | undefined): Json | undefined {
  const usage = usageOf(reported)
  if (!reported || !usage) return undefined
  return {
    input_tokens: inputTokensOf(usage),
    output_tokens: outputTokensOf(usage),
    total_tokens: readCount(reported.total_tokens) ?? tokensOf(usage),
    ...(isObject(reported.input_tokens_details) ? { input_tokens_details: reported.input_tokens_details } : {}),
    ...(isObject(reported.output_tokens_details) ? { output_tokens_details: reported.output_tokens_details } : {}),
  }
}

function writeAnswer(drawn: Drawn, url: string, checked: CheckedImages, createdSeconds: number): string {
  return JSON.stringify({
    created: drawn.createdSeconds ?? createdSeconds,
    data: [{ url, ...inline(drawn, checked) }],
    usage: callersUsage(drawn.reported),
  })
}

/** The name of a stream's one event. */
function eventName({ isEdit }: CheckedImages): string {
  return isEdit ? 'image_edit.completed' : 'image_generation.completed'
}

function writeEvent(drawn: Drawn, url: string, checked: CheckedImages): string {
  const type = eventName(checked)
  // SDKs that edit look for the image beside the type.
  if (checked.isEdit)
    return JSON.stringify({
      type,
      created_at: drawn.createdSeconds,
      url,
      ...inline(drawn, checked),
      output_format: drawn.type,
      quality: drawn.quality,
      size: checked.size,
      usage: callersUsage(drawn.reported),
    })
  return JSON.stringify({
    type,
    data: [{ index: 0, url, ...inline(drawn, checked) }],
    usage: callersUsage(drawn.reported),
  })
}

/** Every piece but the last has a multiple of three bytes, so their base64 can be concatenated. */
function inline(drawn: Drawn, checked: CheckedImages): Json {
  return checked.inlineAnswer ? { b64_json: drawn.pieces.map((piece) => piece.toString('base64')).join('') } : {}
}

function countOf(details: unknown, name: string): number | undefined {
  return isObject(details) ? readCount(details[name]) : undefined
}
