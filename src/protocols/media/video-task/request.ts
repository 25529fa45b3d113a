// Validates a caller's video request. All parameter names in use are accepted. The vendor's request is fixed here,
// including the duration and the resolution that decide the price.

import type { VideoTraits } from '../../../catalog/traits.ts'
import { VIDEO_LIMITS, VIDEO_RATIOS, VIDEO_SIZE_DEFAULT, VIDEO_SIZES } from '../../../catalog/video-bodies.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { given, isObject, type Json, type JsonText, readJson } from '../../../kernel/json.ts'
import { imageTypeOf } from '../../../kernel/parsers/image-file.ts'
import { words } from '../../../kernel/words.ts'
import type { Usage } from '../../../meter/usage.ts'
import { Fields, mustBe, wrong } from '../../check.ts'
import type { PriceAttributes } from '../../protocol.ts'
import { type FormFile, type FormHeaders, type FormRules, onlyFile, readForm } from '../form.ts'

// The inputs of a video: a prompt, and images, clips and audio in roles that cannot be mixed freely.

type MediaKind = 'image' | 'video' | 'audio'

interface MediaPart {
  readonly type: `${MediaKind}_url`
  readonly role: string
  readonly [url: string]: unknown
}

type ContentPart = { readonly type: 'text'; readonly text: string } | MediaPart

const ROLES: Readonly<Record<MediaKind, readonly string[]>> = {
  image: ['first_frame', 'last_frame', 'reference_image'],
  video: ['reference_video'],
  audio: ['reference_audio'],
}

const URL_CHARS_MAX = 8_192
const IMAGE_BYTES_MAX = 30_000_000

/** The names under which callers send single frames and lists of references. */
const FRAME_NAMES = {
  first_frame: ['first_frame', 'first_frame_url', 'image', 'image_url'],
  last_frame: ['last_frame', 'last_frame_url', 'end_image', 'end_image_url'],
} as const
const REFERENCE_NAMES = {
  image: ['reference_images', 'images', 'image_urls'],
  video: ['reference_videos', 'videos', 'video_urls'],
  audio: ['reference_audios', 'audios', 'audio_urls'],
} as const

/** Builds the vendor's content parts from the caller's parameters. */
function readContent(fields: Fields, prompt: string | undefined, rules: VideoTraits): ContentPart[] {
  const parts: ContentPart[] = []
  const spoken = prompt?.trim() ? prompt : undefined
  if (spoken !== undefined) parts.push({ type: 'text', text: spoken })
  for (const [role, names] of Object.entries(FRAME_NAMES)) {
    const name = onlyOne(fields, names)
    if (name !== undefined) parts.push(media('image', readUrl(fields.get(name), name), role, name))
  }
  for (const [kind, names] of Object.entries(REFERENCE_NAMES) as [MediaKind, readonly string[]][])
    for (const { url, name } of readMany(fields, names)) parts.push(media(kind, url, `reference_${kind}`, name))
  const content = fields.list('content') ?? []
  if (content.length > VIDEO_LIMITS.parts)
    throw wrong('content', `may have at most ${VIDEO_LIMITS.parts} parts, not ${content.length}.`)
  for (const [index, part] of content.entries()) parts.push(readPart(part, `content[${index}]`))
  checkTexts([prompt, ...content.map((part) => part.text)], prompt === undefined ? 'content' : 'prompt')
  const given = withRoles(parts)
  checkTogether(given, rules)
  return given
}

function checkTexts(texts: readonly unknown[], at: string): void {
  const chars = texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0)
  if (chars > VIDEO_LIMITS.textChars)
    throw invalid(
      `The texts of "prompt" and "content" may have at most ${VIDEO_LIMITS.textChars} characters, not ${chars}.`,
      at,
    )
}

function onlyOne(fields: Fields, names: readonly string[]): string | undefined {
  const given = names.filter((name) => fields.get(name) !== undefined)
  if (given.length > 1) throw invalid(`Send only one of ${quoted(given)}: they have the same meaning.`, given[1])
  return given[0]
}

function readMany(fields: Fields, names: readonly string[]): { url: string; name: string }[] {
  const name = onlyOne(fields, names)
  if (name === undefined) return []
  const value = fields.get(name)
  const list = Array.isArray(value) ? value : [value]
  return list.map((entry, index) => {
    const at = Array.isArray(value) ? `${name}[${index}]` : name
    return { url: readUrl(entry, at), name: at }
  })
}

/** `"https://…"` or `{"url": "https://…"}`. */
function readUrl(value: unknown, at: string): string {
  const url = isObject(value) ? value.url : value
  if (typeof url !== 'string' || url === '') throw mustBe(at, 'an address', value)
  return url
}

/** Validates a native part of `content`, which is forwarded unchanged. */
function readPart(part: Json, at: string): ContentPart {
  if (part.type === 'text') {
    if (typeof part.text !== 'string' || part.text.trim() === '')
      throw wrong(`${at}.text`, 'must be a text that is not empty.')
    return { type: 'text', text: part.text }
  }
  const kind = (['image', 'video', 'audio'] as const).find((name) => part.type === `${name}_url`)
  if (!kind) throw mustBe(`${at}.type`, 'text, image_url, video_url or audio_url', part.type)
  const type = `${kind}_url`
  const url = readUrl(part[type], `${at}.${type}`)
  const role = part.role ?? (kind === 'image' ? '' : `reference_${kind}`)
  if (role !== '' && !ROLES[kind].includes(role as string))
    throw mustBe(`${at}.role`, `${ROLES[kind].join(', ')}`, role)
  return media(kind, url, role as string, `${at}.${type}`)
}

function media(kind: MediaKind, url: string, role: string, at: string): MediaPart {
  if (url.startsWith('data:')) {
    if (kind !== 'image') throw wrong(at, 'must be an https address; only images may be data URIs.')
    if (!/^data:image\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]/i.test(url.slice(0, 100)))
      throw wrong(at, 'must be a data URI of the form data:image/<type>;base64,<data>.')
    if (((url.length - url.indexOf(',')) * 3) / 4 > IMAGE_BYTES_MAX)
      throw wrong(at, `is larger than ${IMAGE_BYTES_MAX / 1_000_000} MB.`)
  } else if (!/^(https?|asset):\/\/[^\s]+$/i.test(url) || url.length > URL_CHARS_MAX)
    throw wrong(at, `must be an http(s) address${kind === 'image' ? ' or a data URI' : ''}.`)
  const type = `${kind}_url` as const
  return { type, [type]: { url }, role }
}

/** A single image without a role is the first frame; several images need explicit roles. */
function withRoles(parts: ContentPart[]): ContentPart[] {
  const unnamed = parts.filter((part) => part.type !== 'text' && part.role === '')
  if (unnamed.length === 0) return parts
  const pictures = parts.filter((part) => part.type === 'image_url')
  if (pictures.length > 1)
    throw invalid(
      `Give each image of "content" a "role": ${ROLES.image.join(', ')}; only a single image may go without.`,
      'content',
    )
  return parts.map((part) => (part.type !== 'text' && part.role === '' ? { ...part, role: 'first_frame' } : part))
}

function checkTogether(parts: readonly ContentPart[], rules: VideoTraits): void {
  if (parts.length === 0) throw wrong('prompt', 'or "content" is required and must not be empty.')
  const count = (role: string) => parts.filter((part) => part.type !== 'text' && part.role === role).length
  const [first, last] = [count('first_frame'), count('last_frame')]
  const [images, videos, audios] = [count('reference_image'), count('reference_video'), count('reference_audio')]
  if (first > 1 || last > 1) throw invalid('There can be only one first frame and one last frame.', 'content')
  if (last > 0 && first === 0) throw wrong('last_frame', 'needs a "first_frame" as well.')
  if (first + last > 0 && images + videos + audios > 0)
    throw invalid('First and last frames cannot be combined with references: use one or the other.', 'content')
  checkCount('images', images, rules.imagesMax)
  checkCount('videos', videos, rules.videosMax)
  checkCount('audios', audios, rules.audiosMax)
  if (audios > 0 && images + videos === 0)
    throw invalid('Reference audios need at least one reference image or video beside them.', 'audios')
}

function checkCount(name: string, count: number, most: number): void {
  if (count > most) throw invalid(`This model takes at most ${most} reference ${name}, not ${count}.`, name)
}

const quoted = (names: readonly string[]) => names.map((name) => `"${name}"`).join(', ')

/** The vendor's request, except for the vendor's name of the model. */
export interface VideoOrder {
  readonly content: readonly ContentPart[]
  readonly duration: number
  readonly resolution: string
  readonly ratio?: string
  readonly seed?: number
  readonly generate_audio?: boolean
  readonly watermark?: boolean
  readonly return_last_frame?: boolean
}

export interface VideoRequest {
  readonly order: VideoOrder
  /** The parameters as sent, plus their canonical names; long data URIs are shortened. */
  readonly input: Readonly<Record<string, unknown>>
  readonly callbackUrl?: string
  /** The caller gets the job in the shape of the openai SDK. */
  readonly isOpenai?: true
  readonly worst: Usage
  readonly price: PriceAttributes
}

/** A longer data URI is not repeated in answers. */
const SHOWN_CHARS_MAX = 2_000

/** `byTokens`: the model is priced by tokens, so the worst case counts them. */
export function readVideoRequest(json: JsonText, rules: VideoTraits, byTokens = false): VideoRequest {
  const fields = new Fields(json)
  const content = readContent(fields, fields.string('prompt'), rules)
  const order: VideoOrder = {
    content,
    duration: readSeconds(fields, rules),
    resolution: readResolution(fields, rules),
    ...given({
      ratio: readRatio(fields),
      seed: readSeed(fields),
      generate_audio: readFlag(fields, ['generate_audio', 'with_audio', 'audio']),
      watermark: fields.boolean('watermark'),
      return_last_frame: fields.boolean('return_last_frame'),
    }),
  }
  fields.boolean('camera_fixed')
  const callbackUrl = readCallback(fields)
  const hasVideos = content.some((part) => part.type === 'video_url')
  return {
    order,
    input: shownInput(json.value, order),
    ...(callbackUrl === undefined ? {} : { callbackUrl }),
    worst: {
      second: order.duration,
      ...(byTokens ? { output: worstTokens(order.duration, order.resolution, hasVideos) } : {}),
    },
    price: { resolution: order.resolution },
  }
}

/** The value of the alias that was used. Two aliases are accepted if their values are equal. */
function readAlias(fields: Fields, names: readonly string[]): { name: string; value: unknown } | undefined {
  const [used, ...others] = names.filter((name) => fields.get(name) !== undefined)
  if (used === undefined) return undefined
  const value = fields.get(used)
  for (const other of others)
    if (String(fields.get(other)) !== String(value))
      throw invalid(
        `"${used}" and "${other}" have the same meaning but different values; send only one of them.`,
        other,
      )
  return { name: used, value }
}

function readSeconds(fields: Fields, rules: VideoTraits): number {
  const given = readAlias(fields, ['duration', 'seconds', 'duration_seconds'])
  if (!given) return SECONDS_DEFAULT
  const { name, value } = given
  const seconds = typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : value
  if (
    typeof seconds !== 'number' ||
    !Number.isInteger(seconds) ||
    seconds < rules.secondsMin ||
    seconds > rules.secondsMax
  )
    throw mustBe(name, `a whole number of seconds from ${rules.secondsMin} to ${rules.secondsMax}`, value)
  return seconds
}

function readResolution(fields: Fields, rules: VideoTraits): string {
  const given = fields.string('resolution')
  if (given === undefined) return RESOLUTION_DEFAULT
  const resolution = rules.resolutions.find((allowed) => allowed === given.toLowerCase())
  if (resolution === undefined) throw mustBe('resolution', `${rules.resolutions.join(', ')} for this model`, given)
  return resolution
}

function readRatio(fields: Fields): string | undefined {
  const given = readAlias(fields, ['ratio', 'aspect_ratio'])
  if (!given) return undefined
  if (!(VIDEO_RATIOS as readonly unknown[]).includes(given.value))
    throw mustBe(given.name, `${VIDEO_RATIOS.join(', ')}`, given.value)
  return given.value as string
}

/** -1 means any seed, like an absent one. */
function readSeed(fields: Fields): number | undefined {
  const seed = fields.integer('seed', -1)
  if (seed !== undefined && seed > VIDEO_LIMITS.seed)
    throw wrong('seed', `must be a whole number from -1 to ${VIDEO_LIMITS.seed}, not ${seed}.`)
  return seed === -1 ? undefined : seed
}

function readFlag(fields: Fields, names: readonly string[]): boolean | undefined {
  const given = readAlias(fields, names)
  if (!given) return undefined
  if (typeof given.value !== 'boolean') throw mustBe(given.name, 'true or false', given.value)
  return given.value
}

function readCallback(fields: Fields): string | undefined {
  const given = fields.string('callback_url')
  if (given === undefined) return undefined
  const url = given.length <= VIDEO_LIMITS.callbackChars && !/[\s\p{Cc}]/u.test(given) ? URL.parse(given) : null
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw wrong('callback_url', 'must be a public http(s) address without a user name.')
  return given
}

const CANONICAL: Readonly<Record<string, readonly string[]>> = {
  ...FRAME_NAMES,
  reference_images: REFERENCE_NAMES.image,
  reference_videos: REFERENCE_NAMES.video,
  reference_audios: REFERENCE_NAMES.audio,
  ratio: ['ratio', 'aspect_ratio'],
  duration: ['duration', 'seconds', 'duration_seconds'],
  generate_audio: ['generate_audio', 'with_audio', 'audio'],
}
const MEDIA = new Set<string>([...Object.values(FRAME_NAMES), ...Object.values(REFERENCE_NAMES)].flat())
const PLAIN = words('model prompt resolution seed watermark return_last_frame camera_fixed callback_url')
const KNOWN = new Set([...PLAIN, ...Object.values(CANONICAL).flat()])

/**
 * The known parameters as sent, in their order; a parameter sent under an alias or in another form also appears under
 * its canonical name. Unknown parameters are left out, because nothing reads them and they would be stored with the
 * job.
 */
function shownInput(sent: Readonly<Record<string, unknown>>, order: VideoOrder): Record<string, unknown> {
  const input: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(sent))
    if (name === 'content') input[name] = Array.isArray(value) ? value.map(shownPart) : value
    else if (KNOWN.has(name)) input[name] = MEDIA.has(name) ? shownMedia(value) : value
  for (const [canonical, names] of Object.entries(CANONICAL)) {
    const used = names.find((name) => sent[name] !== undefined && sent[name] !== null)
    if (used === undefined || used === canonical) continue
    input[canonical] = canonical in order ? (order as unknown as Record<string, unknown>)[canonical] : input[used]
  }
  return input
}

function shownPart({ type, text, role, ...media }: Record<string, unknown>): object {
  if (type === 'text') return { type, text }
  const kind = String(type)
  return { type, [kind]: shownMedia(media[kind]), ...(role === undefined ? {} : { role }) }
}

/** A URL, an object with one, or a list of these. */
function shownMedia(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shownMedia)
  if (isObject(value)) return { url: shownMedia(value.url) }
  if (typeof value !== 'string' || value.length <= SHOWN_CHARS_MAX || !value.startsWith('data:')) return value
  return `${value.slice(0, value.indexOf(',') + 1)}… (${value.length} characters)`
}

// Rules common to all video models; the differences are traits in the catalog.

const SECONDS_DEFAULT = 5
const RESOLUTION_DEFAULT = '720p'

/** The widest limits: for a request with an unknown model, so that its other mistakes can be reported first. */
export const ANY_MODEL: VideoTraits = {
  secondsMin: 1,
  secondsMax: 3600,
  resolutions: ['480p', '720p', '1080p', '2k', '4k'],
  imagesMax: 30,
  videosMax: 10,
  audiosMax: 10,
}

/** The most pixels of a frame, over all ratios. */
const PIXELS_MAX: Readonly<Record<string, number>> = {
  '480p': 480 * 1120,
  '720p': 720 * 1680,
  '1080p': 1080 * 2520,
  '2k': 1440 * 3360,
  '4k': 2160 * 5040,
}
const FRAMES_PER_SECOND = 24
const PIXELS_PER_TOKEN = 1024
/** Reference videos count as well; together they have at most this length. */
const REFERENCE_SECONDS_MAX = 30

/** The most tokens that a vendor can report: it counts the pixels of all input and output frames, plus one frame. */
export function worstTokens(seconds: number, resolution: string, hasVideos: boolean): number {
  const pixels = PIXELS_MAX[resolution] ?? PIXELS_MAX['4k']!
  const frames = (seconds + (hasVideos ? REFERENCE_SECONDS_MAX : 0)) * FRAMES_PER_SECOND + 1
  return Math.ceil((pixels * frames) / PIXELS_PER_TOKEN)
}

// The size limit of a video request. Only images may make it large; if the rest is too long, the body is rejected
// before it is parsed.

/** Limit for everything except the images: prompts, addresses, names. */
const TEXT_BYTES_MAX = 1_000_000
/** The most images that a model takes, plus two frames. */
const PICTURES_MAX = 32
const QUOTE = 0x22

export function checkVideoBody(body: Buffer): Buffer {
  let textBytes = body.length
  let at = 0
  for (let pictures = 0; textBytes > TEXT_BYTES_MAX; pictures++) {
    const start = body.indexOf('"data:', at)
    const end = start < 0 ? -1 : body.indexOf(QUOTE, start + 1)
    if (end < 0 || pictures === PICTURES_MAX)
      throw new Fault('request_too_large', {
        message: `The request is too large: at most ${TEXT_BYTES_MAX / 1_000_000} MB besides the pictures.`,
      })
    textBytes -= end - start
    at = end + 1
  }
  return body
}

// The shape in which the openai SDK orders and shows videos, over the same jobs: its form becomes the request that the
// contract's endpoint takes.

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
  checkFile: onlyFile(REFERENCE),
  checkBytes(_head, bytes) {
    if (bytes > PICTURE_BYTES_MAX)
      throw invalid(`"${REFERENCE}" is larger than ${PICTURE_BYTES_MAX / MB} MB.`, REFERENCE)
  },
}

/** SDKs send a form; others JSON. */
export async function readVideoBody(
  stream: AsyncIterable<Buffer>,
  headers: FormHeaders,
): Promise<{ readonly json: JsonText; readonly digest: string }> {
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
