// The vendor's image: read from its JSON without ever holding the base64 as a string, and written for callers.
import { inputTokensOf, outputTokensOf, readCount, tokensOf, type Usage } from '../../../meter/usage.ts'
import { type ImageType, MAGIC_BYTES, readImageFacts } from '../../../parsers/image-file.ts'
import { isObject, type Json, text } from '../../check.ts'
import { garbled, type PriceAttributes } from '../../protocol.ts'
import { vendorFault } from '../../vendor-fault.ts'
import type { CheckedImages } from './request.ts'
import { Base64File, type Path, StreamingJsonParser } from './streaming-json.ts'

/** The largest image has 8 megapixels: 25 MB uncompressed. */
const RESULT_BYTES_MAX = 48 * 1_048_576
const TEXT_BYTES_MAX = 1_048_576

export interface Drawn {
  readonly pieces: readonly Buffer[]
  readonly type: ImageType
  readonly createdSeconds: number | undefined
  /** The vendor's usage report, for the caller; undefined if there is none. */
  readonly reported: Json | undefined
  readonly usage: Usage | undefined
  /** The quality that the vendor reports. */
  readonly quality: string | undefined
}

/** The price attributes if the request left the quality to the vendor: the reported quality, or else the price of `auto`. */
export function priceOf(checked: CheckedImages, quality: string | undefined): PriceAttributes | undefined {
  return checked.quality === 'auto' ? { quality: quality ?? 'auto' } : undefined
}

/** Parses a vendor's JSON piece by piece: a whole answer, or the data of one event. */
export class DrawnReader {
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

export function readDrawn(body: Buffer): Drawn {
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

export function writeAnswer(drawn: Drawn, url: string, checked: CheckedImages, createdSeconds: number): string {
  return JSON.stringify({
    created: drawn.createdSeconds ?? createdSeconds,
    data: [{ url, ...inline(drawn, checked) }],
    usage: callersUsage(drawn.reported),
  })
}

/** The name of a stream's one event. */
export function eventName({ isEdit }: CheckedImages): string {
  return isEdit ? 'image_edit.completed' : 'image_generation.completed'
}

export function writeEvent(drawn: Drawn, url: string, checked: CheckedImages): string {
  const type = eventName(checked)
  // SDKs that edit look for the image beside the type.
  if (checked.isEdit)
    return JSON.stringify({
      ...{ type, created_at: drawn.createdSeconds, url, ...inline(drawn, checked) },
      ...{ output_format: drawn.type, quality: drawn.quality, size: checked.size },
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
