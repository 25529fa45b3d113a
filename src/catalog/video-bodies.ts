// Request bodies of videos as JSON Schema for OpenAPI: what is checked and what is common; unknown members may be
// passed on.
import { Body, boolean, list, noted, required, text, wholeNumber } from './described.ts'
import { object as describe } from './endpoint.ts'

const withUrl = describe({ url: { type: 'string' } })
const address = (description: string) => noted({ ...withUrl, type: ['string', 'object', 'null'], description })
const addresses = (description: string) =>
  noted({
    ...withUrl,
    type: ['string', 'object', 'array', 'null'],
    items: { ...withUrl, type: ['string', 'object'] },
    description,
  })
/** A part: its other members depend on its type. */
const typed = noted(describe({ type: { type: 'string' } }))
const model = (description: string) => required(text(description))
const limited = (maxLength: number, description: string) => noted({ ...text(description).schema, maxLength })

/** The maximum for one video request; the texts of the prompt and of `content` count together. */
export const VIDEO_LIMITS = { textChars: 32_000, parts: 64, seed: 2 ** 32 - 1, callbackChars: 2_048 } as const
export const VIDEO_RATIOS = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9', 'adaptive'] as const

/** The sizes of the shape, as the resolution and ratio that a job has. */
export const VIDEO_SIZES: Readonly<Record<string, { readonly resolution: string; readonly ratio: string }>> = {
  '1280x720': { resolution: '720p', ratio: '16:9' },
  '720x1280': { resolution: '720p', ratio: '9:16' },
  '720x720': { resolution: '720p', ratio: '1:1' },
  '1920x1080': { resolution: '1080p', ratio: '16:9' },
  '1080x1920': { resolution: '1080p', ratio: '9:16' },
  '1080x1080': { resolution: '1080p', ratio: '1:1' },
  '854x480': { resolution: '480p', ratio: '16:9' },
  '480x854': { resolution: '480p', ratio: '9:16' },
}
export const VIDEO_SIZE_DEFAULT = '720x1280'

/** As `videos.create()` of the openai SDK sends it. */
export const openaiVideoBody = new Body(
  { model: 'videogen-2.0', prompt: 'A paper boat drifts down a stream', seconds: '4' },
  {
    model: model('A video model from GET /v1/models: videogen-2.0 or videogen-2.5.'),
    prompt: {
      ...limited(VIDEO_LIMITS.textChars, 'What the video shows: at most 32,000 characters.'),
      isRequired: true,
    },
    seconds: noted({ type: ['string', 'integer'], default: '4', description: 'How long it is: from 4 on.' }),
    size: noted({ type: 'string', enum: Object.keys(VIDEO_SIZES), default: VIDEO_SIZE_DEFAULT }),
    input_reference: noted({
      type: ['string', 'object'],
      properties: { image_url: { type: 'string' } },
      additionalProperties: true,
      description: 'The first frame: a picture of up to 20 MB as a file, or its address or data URI as `image_url`.',
    }),
  },
)

export const videoBody = new Body(
  { model: 'videogen-2.0', prompt: 'A paper boat drifts down a stream', duration: 5 },
  {
    model: model('A video model from GET /v1/models: videogen-2.0 or videogen-2.5.'),
    prompt: limited(
      VIDEO_LIMITS.textChars,
      'What the video shows: at most 32,000 characters, together with the texts of content.',
    ),
    first_frame: address('Address or data URI of the first frame. Also: image, image_url, first_frame_url.'),
    last_frame: address('Address or data URI of the last frame. Needs a first one. Also: last_frame_url, end_image.'),
    image_urls: addresses('Reference images: addresses or data URIs. Also: images, reference_images.'),
    video_urls: addresses('Addresses of reference videos. Also: videos, reference_videos.'),
    audio_urls: addresses(
      'Addresses of reference sounds, beside at least one image or video. Also: audios, reference_audios.',
    ),
    content: noted({
      ...list(typed, "The vendor's own parts, instead of the fields above: text, image_url, video_url, audio_url.")
        .schema,
      maxItems: VIDEO_LIMITS.parts,
    }),
    ratio: noted({ type: ['string', 'null'], enum: [...VIDEO_RATIOS, null], description: 'Also: aspect_ratio.' }),
    duration: noted({
      type: ['integer', 'string', 'null'],
      default: 5,
      minimum: 1,
      pattern: '^[0-9]{1,4}$',
      description: 'Seconds: 4 to 15 for videogen-2.0, 4 to 30 for videogen-2.5. Also: seconds, duration_seconds.',
    }),
    resolution: noted({
      type: ['string', 'null'],
      pattern: '^(480|720|1080)[pP]$',
      default: '720p',
      examples: ['480p', '720p', '1080p'],
      description: '480p, 720p or 1080p, which is only for videogen-2.0.',
    }),
    seed: wholeNumber(-1, 'For repeatable results; -1 for any.', VIDEO_LIMITS.seed),
    generate_audio: boolean('Whether the video has sound. Also: with_audio, audio.'),
    watermark: boolean('Whether the vendor marks the video.'),
    return_last_frame: boolean('Whether the last frame is stored as a picture as well.'),
    callback_url: limited(
      VIDEO_LIMITS.callbackChars,
      'A public address to which a signed notice is sent when the job has ended.',
    ),
  },
)
