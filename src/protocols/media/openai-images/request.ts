// Validates a caller's image request: generation, editing and fusion are one endpoint.
import {
  IMAGES_MAX,
  imagesBody,
  PROMPT_CHARS_MAX,
  type Resolution,
  SIZE_TABLE,
  TIER_OF,
} from '../../../catalog/images.ts'
import { Fault } from '../../../kernel/fault.ts'
import type { ImageType } from '../../../kernel/parsers/image-file.ts'
import { chargeOf } from '../../../meter/charge.ts'
import type { Pricing } from '../../../meter/price.ts'
import type { Usage } from '../../../meter/usage.ts'
import type { ByteLease } from '../../../upstream/budget.ts'
import { mustBe, readBody, wrong } from '../../check.ts'
import type { PaidRequest, PriceAttributes } from '../../protocol.ts'
import { measurePrompt } from '../../text/prompt.ts'
import { IMAGE_BYTES_MAX, IMAGES_BYTES_MAX, type ImageRequestBody, type InlineImage, tooMuch } from './body.ts'
import { openImages } from './exchange.ts'

const URL_CHARS_MAX = 8_192
const MASKS = ['mask', 'mask_url', 'maskUrl'] as const

/** The most that vendors of this format charge for an image of 1024×1024; larger ones in proportion. */
const OUTPUT_TOKENS = { low: 272, medium: 1_056, high: 4_160, auto: 4_160 } as const
const OUTPUT_PIXELS = 1_048_576
const INPUT_IMAGE_TOKENS = 6_500
/**
 * Upper bounds for a plausible usage report: twice the longest prompt with all references, and twice the largest image.
 */
const INPUT_TOKENS_MOST = 2 * (PROMPT_CHARS_MAX + IMAGES_MAX * INPUT_IMAGE_TOKENS)
const OUTPUT_TOKENS_MOST = 2 * OUTPUT_TOKENS.high * 8

export interface StoredImage {
  /** Absolute, and valid as long as the store keeps the file. */
  readonly url: string
  remove(): Promise<void>
}

export interface ImageRequestDeps {
  /** Fetches an address from the caller's request, through the guard. */
  fetchImage(
    url: string,
    options: { bytesMax: number; signal: AbortSignal },
  ): Promise<{ bytes: Buffer; type: ImageType }>
  /** Stores a result durably where callers can download it. */
  store(pieces: readonly Buffer[], type: ImageType): Promise<StoredImage>
  /** This request's memory lease. It grows for references that must be fetched; its creator releases it. */
  readonly lease: ByteLease
}

export interface CheckedImages {
  readonly prompt: string
  readonly size: string
  readonly quality: keyof typeof OUTPUT_TOKENS
  readonly format: ImageType
  readonly stream: boolean
  /** Whether the answer also contains the image itself, as some SDKs require. */
  readonly inlineAnswer: boolean
  /** The names of events and the place of the image in them are those of an edit. */
  readonly isEdit: boolean
  readonly mask: InlineImage | undefined
  readonly outputTokens: number
}

export function readImageRequest(
  body: ImageRequestBody,
  model: { readonly uid: string; readonly pricing?: Pricing | undefined },
  deps: ImageRequestDeps,
): PaidRequest {
  const asked = readBody(imagesBody, body.json)
  for (const mask of MASKS)
    if (asked[mask] !== undefined && asked[mask] !== null)
      throw wrong(mask, 'is not supported here: send a form to /v1/images/edits, or say in the prompt what to change.')
  const { prompt } = asked
  const quality = asked.quality ?? 'auto'
  const drawn = drawnSize(asked.size ?? 'auto', asked.resolution ?? '1k')
  const references = readReferences(asked.image_urls ?? [], body)
  const checked: CheckedImages = {
    prompt,
    size: drawn.size,
    quality,
    format: asked.output_format ?? 'png',
    stream: asked.stream ?? false,
    // SDKs that edit expect the image itself.
    inlineAnswer: body.isEdit ? asked.response_format !== 'url' : asked.response_format === 'b64_json',
    isEdit: body.isEdit ?? false,
    mask: body.mask,
    outputTokens: Math.ceil((OUTPUT_TOKENS[quality] * drawn.pixels) / OUTPUT_PIXELS),
  }
  const input = measurePrompt([prompt], {}).most
  const pictures = (references.length + (body.mask ? 1 : 0)) * INPUT_IMAGE_TOKENS
  const worst = { image: 1, input, inputImage: pictures, outputImage: checked.outputTokens }
  const price = { resolution: drawn.resolution, quality }
  const fetched = new References(references, body.inlineBytes, deps)
  return {
    clientFormat: 'openai-images',
    ...(body.mask ? { offer: 'masks' as const } : {}),
    product: model.uid,
    stream: checked.stream,
    // If the vendor chooses the quality, the hold covers the most expensive one.
    price: quality === 'auto' ? dearest(model.pricing, worst, price) : price,
    worst,
    // A vendor always finishes an image that it has begun, so it is charged even if the caller disconnects.
    likely: () => worst,
    inputTokensMost: INPUT_TOKENS_MOST,
    outputTokensMost: OUTPUT_TOKENS_MOST,
    gather: (signal) => fetched.load(signal),
    open: (target, options) => openImages({ checked, images: fetched.images, worst }, deps.store, target, options),
  }
}

function dearest(pricing: Pricing | undefined, worst: Usage, price: PriceAttributes): PriceAttributes {
  if (!pricing) return price
  const named = pricing.tiers.flatMap(({ when }) => (when?.quality === undefined ? [] : [when.quality]))
  let most = price
  for (const quality of named) {
    const other = { ...price, quality }
    if (chargeOf(pricing, worst, other).amount > chargeOf(pricing, worst, most).amount) most = other
  }
  return most
}

function readReferences(urls: readonly unknown[], body: ImageRequestBody): readonly (string | InlineImage)[] {
  return urls.map((url, index) => {
    const inline = body.inline.get(index)
    if (inline) return inline
    const at = `image_urls[${index}]`
    if (typeof url !== 'string') throw mustBe(at, 'a string', url)
    if (!/^https?:\/\//i.test(url) || url.length > URL_CHARS_MAX)
      throw wrong(at, 'must be a public http or https address, or a data URI of an image.')
    return url
  })
}

/** The reference images of one request, including remote ones once they are fetched. */
class References {
  private readonly references: readonly (string | InlineImage)[]
  private readonly inlineBytes: number
  private readonly deps: ImageRequestDeps
  images: readonly InlineImage[] = []

  constructor(references: readonly (string | InlineImage)[], inlineBytes: number, deps: ImageRequestDeps) {
    this.references = references
    this.inlineBytes = inlineBytes
    this.deps = deps
  }

  async load(signal: AbortSignal): Promise<void> {
    const elsewhere = this.references.filter((reference) => typeof reference === 'string').length
    const { lease } = this.deps
    const before = lease.bytes
    if (elsewhere > 0)
      await lease.grow(Math.min(elsewhere * IMAGE_BYTES_MAX, IMAGES_BYTES_MAX - this.inlineBytes), signal)
    // The first failure aborts the other fetches.
    const own = new AbortController()
    let bytes = this.inlineBytes
    try {
      this.images = await Promise.all(
        this.references.map(async (reference, index) => {
          if (typeof reference !== 'string') return reference
          const image = await this.fetchOne(reference, index, AbortSignal.any([signal, own.signal]))
          bytes += image.bytes
          if (bytes > IMAGES_BYTES_MAX) throw tooMuch()
          return image
        }),
      )
      lease.shrinkTo(before + bytes - this.inlineBytes)
    } catch (error) {
      own.abort()
      throw error
    }
  }

  private async fetchOne(url: string, index: number, signal: AbortSignal): Promise<InlineImage> {
    try {
      const { bytes, type } = await this.deps.fetchImage(url, { bytesMax: IMAGE_BYTES_MAX, signal })
      return { pieces: [bytes], bytes: bytes.length, type }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const at = `image_urls[${index}]`
      throw new Fault(error.kind, { ...error.details, message: `"${at}": ${error.message}`, param: at, cause: error })
    }
  }
}

// Converts the sizes that a caller may send (a ratio, a tier, pixels) to the pixels that a vendor draws.

/** The largest size that vendors choose by themselves. */
const AUTO_PIXELS = 1536 * 1024
const AUTO_RATIO = '1:1'

interface DrawnSize {
  /** `WxH`, or `auto` for the vendor's own choice. */
  readonly size: string
  /** The resolution that decides the price. */
  readonly resolution: Resolution
  /** The maximum number of pixels. */
  readonly pixels: number
}

/** Explicit pixels take precedence over a tier; a ratio takes its pixels from the tier. */
function drawnSize(size: string, resolution: Resolution): DrawnSize {
  const tier = TIER_OF.get(size)
  if (tier) return { size, resolution: tier, pixels: pixelsOf(size) }
  if (size === 'auto' && resolution === '1k') return { size, resolution, pixels: AUTO_PIXELS }
  const found = SIZE_TABLE[size === 'auto' ? AUTO_RATIO : size]?.[resolution]
  if (!found) {
    const ratios = Object.keys(SIZE_TABLE).filter((other) => SIZE_TABLE[other]?.[resolution])
    const named = size === 'auto' ? 'without a ratio' : `with the ratio ${size}`
    throw wrong(
      'resolution',
      `${resolution} is not available ${named}; with ${resolution}, "size" must be one of ${ratios.join(', ')}.`,
    )
  }
  return { size: found, resolution, pixels: pixelsOf(found) }
}

function pixelsOf(size: string): number {
  const [width = 0, height = 0] = size.split('x').map(Number)
  return width * height
}
