// The image endpoint: parameters, sizes and answers.
import * as z from 'zod'
import { schemaOf } from './body.ts'
import { type EndpointEntry, having } from './endpoint.ts'
import { imagesAnswer } from './generation-answers.ts'

const RESOLUTIONS = ['1k', '2k', '4k'] as const
export type Resolution = (typeof RESOLUTIONS)[number]

/** The pixels for a ratio and a tier, from the contract; a missing cell is an invalid combination. */
export const SIZE_TABLE: Readonly<Record<string, Readonly<Partial<Record<Resolution, string>>>>> = {
  '1:1': { '1k': '1024x1024', '2k': '2048x2048' },
  '3:2': { '1k': '1536x1024', '2k': '2048x1360' },
  '2:3': { '1k': '1024x1536', '2k': '1360x2048' },
  '4:3': { '1k': '1024x768', '2k': '2048x1536' },
  '3:4': { '1k': '768x1024', '2k': '1536x2048' },
  '16:9': { '1k': '1536x864', '2k': '2048x1152', '4k': '3840x2160' },
  '9:16': { '1k': '864x1536', '2k': '1152x2048', '4k': '2160x3840' },
  '21:9': { '1k': '2016x864', '2k': '2688x1152', '4k': '3840x1648' },
  '9:21': { '1k': '864x2016', '2k': '1152x2688', '4k': '1648x3840' },
}

export const TIER_OF = new Map<string, Resolution>(
  Object.values(SIZE_TABLE).flatMap((row) =>
    RESOLUTIONS.flatMap((tier) => (row[tier] ? [[row[tier], tier] as const] : [])),
  ),
)

const SIZES: readonly string[] = ['auto', ...Object.keys(SIZE_TABLE), ...TIER_OF.keys()]

export const PROMPT_CHARS_MAX = 32_000
export const IMAGES_MAX = 16

const choice = <const T extends readonly [string, ...string[]]>(
  values: T,
  description: string,
  fallback: string = values[0],
) =>
  z
    .enum(values, `one of ${values.join(', ')}`)
    .nullish()
    .meta({ default: fallback, description })

export const imagesBody = z
  .looseObject({
    model: z.string().describe('An image model from GET /v1/models, such as alpha-image-2.'),
    prompt: z
      .string()
      .refine((text) => text.trim() !== '', 'must not be empty.')
      .max(PROMPT_CHARS_MAX)
      .meta({
        minLength: 1,
        description: 'Subject, scene, composition, style, material, lighting, colors, and whether text appears.',
      }),
    n: z.int('1').min(1, '1').max(1, '1').nullish().meta({ default: 1, description: 'Only 1.' }),
    size: z
      .string()
      .refine((size) => SIZES.includes(size), `must be one of ${SIZES.join(', ')}.`)
      .nullish()
      .meta({
        enum: [...SIZES, null],
        default: 'auto',
        description: 'A ratio, or pixels. Pixels win over `resolution`.',
      }),
    quality: choice(['low', 'medium', 'high', 'auto'], 'How much work goes into it; the price follows.', 'auto'),
    resolution: choice(RESOLUTIONS, 'The tier that goes with a ratio. 4k only with 16:9, 9:16, 21:9 and 9:21.'),
    image_urls: z
      // The reader checks the entries: a data URI is replaced by nothing here, because its bytes are stored elsewhere.
      .array(z.any().meta({ type: 'string' }), 'an array of strings')
      .max(IMAGES_MAX, `may hold at most ${IMAGES_MAX} images.`)
      .nullish()
      .describe('Reference images: public addresses or data URIs; each up to 20 MB, together up to 256 MB.'),
    output_format: choice(['png', 'jpeg', 'webp'], 'The kind of file.'),
    response_format: choice(['url', 'b64_json'], 'b64_json: the answer also contains the picture itself.'),
    stream: z.boolean().nullish().describe('true answers with server-sent events.'),
  })
  .meta({ examples: [{ model: 'alpha-image-2', prompt: 'A lighthouse at dusk, watercolor', size: '1024x1024' }] })

export const images: EndpointEntry = {
  route: 'POST /alpha/v1/images/generations',
  aliases: ['/v1/images/generations', '/alpha/images/generations'],
  tag: 'Images',
  surface: 'images',
  sells: 'image',
  streams: true,
  largeBody: true,
  hidesModels: true,
  presetModel: 'alpha-image-2',
  title: 'Image generation',
  description:
    'Makes an image from a prompt, or edits and fuses the images in `image_urls`. Masks need the form of /v1/images/edits.',
  returns:
    '`{created, data: [{url}], usage?}`, or with `stream: true` one event `image_generation.completed` and [DONE].',
  body: schemaOf(imagesBody),
  answer: imagesAnswer,
}

const picture = {
  type: 'string',
  contentMediaType: 'application/octet-stream',
  description:
    'The picture to change: PNG, JPEG, WebP or GIF, up to 20 MB. `image[]` for several, up to 16. In a quote, send `image_urls` instead.',
} as const

/** The form in which SDKs send an edit. The contract's endpoint accepts the same images as JSON. */
export const imageEdits: EndpointEntry = {
  route: 'POST /v1/images/edits',
  tag: 'Images',
  surface: 'images',
  sells: 'image',
  streams: true,
  largeBody: true,
  form: true,
  hidesModels: true,
  presetModel: 'alpha-image-2',
  title: 'Image edit by a form',
  description:
    'Changes one picture or fuses several, sent as a form, as `images.edit()` of the SDKs does. A mask says where the first may change, if the model’s vendor takes masks. The answer has the picture itself unless `response_format` is url. An extension of the contract.',
  returns: '`{created, data: [{b64_json, url}], usage?}`, or with `stream: true` one event `image_edit.completed`.',
  body: {
    ...having('image prompt model', {
      image: picture,
      prompt: { type: 'string', minLength: 1, maxLength: PROMPT_CHARS_MAX, description: 'What is to change.' },
      model: { type: 'string', description: 'An image model from GET /v1/models, such as alpha-image-2.' },
      mask: { ...picture, description: 'A PNG whose transparent parts may change, of the size of the first picture.' },
      n: { type: ['integer', 'string'], description: 'Only 1.' },
      size: { type: 'string', enum: SIZES, default: 'auto', description: 'A ratio, or pixels.' },
      quality: { type: 'string', enum: ['low', 'medium', 'high', 'auto'], default: 'auto' },
      output_format: { type: 'string', enum: ['png', 'jpeg', 'webp'], default: 'png' },
      response_format: { type: 'string', enum: ['b64_json', 'url'], default: 'b64_json' },
      stream: { type: ['boolean', 'string'], description: 'true answers with server-sent events.' },
    }),
    examples: [{ image: '@photo.png', prompt: 'Make it snow', model: 'alpha-image-2' }],
  },
  answer: imagesAnswer,
}
