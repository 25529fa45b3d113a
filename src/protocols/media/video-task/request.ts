// A caller's request for a video: every name in use is understood, and what the vendor will be sent is fixed here, with the
// duration and the resolution that the price is made of.
import type { VideoTraits } from '../../../catalog/traits.ts'
import { invalid } from '../../../kernel/fault.ts'
import type { JsonText } from '../../../kernel/json.ts'
import type { Usage } from '../../../meter/usage.ts'
import { Fields, isObject, mustBe } from '../../check.ts'
import type { PriceAttributes } from '../../protocol.ts'
import { type ContentPart, FRAME_NAMES, REFERENCE_NAMES, readContent } from './content.ts'
import { RATIOS, RESOLUTION_DEFAULT, SECONDS_DEFAULT, worstTokens } from './rules.ts'

/** What the vendor is sent, except for the model's name there. */
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
  /** The parameters that were sent, and their canonical names beside the names that were used; long data URIs are shortened. */
  readonly input: Readonly<Record<string, unknown>>
  readonly callbackUrl?: string
  readonly worst: Usage
  readonly price: PriceAttributes
}

const SEED_MAX = 2 ** 32 - 1
const CALLBACK_CHARS_MAX = 2_048
/** A data URI beyond this is not repeated in answers. */
const SHOWN_CHARS_MAX = 2_000

/** `byTokens`: the model's price names tokens, so the worst case counts them. */
export function readVideoRequest(json: JsonText, rules: VideoTraits, byTokens = false): VideoRequest {
  const fields = new Fields(json)
  const content = readContent(fields, fields.string('prompt'), rules)
  const order: VideoOrder = {
    content,
    duration: readSeconds(fields, rules),
    resolution: readResolution(fields, rules),
    ...present('ratio', readRatio(fields)),
    ...present('seed', readSeed(fields)),
    ...present('generate_audio', readFlag(fields, ['generate_audio', 'with_audio', 'audio'])),
    ...present('watermark', fields.boolean('watermark')),
    ...present('return_last_frame', fields.boolean('return_last_frame')),
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

const present = <K extends string, V>(name: K, value: V | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [name in K]?: V }

/** The value of the one name that was used; the same value under two names is forgiven. */
function readAlias(fields: Fields, names: readonly string[]): { name: string; value: unknown } | undefined {
  const [used, ...others] = names.filter((name) => fields.get(name) !== undefined)
  if (used === undefined) return undefined
  const value = fields.get(used)
  for (const other of others)
    if (String(fields.get(other)) !== String(value))
      throw invalid(`"${used}" and "${other}" mean the same but have different values; give one.`, other)
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
  if (!(RATIOS as readonly unknown[]).includes(given.value))
    throw mustBe(given.name, `${RATIOS.join(', ')}`, given.value)
  return given.value as string
}

/** -1 asks for any seed, as does leaving it out. */
function readSeed(fields: Fields): number | undefined {
  const seed = fields.integer('seed', -1)
  if (seed !== undefined && seed > SEED_MAX)
    throw invalid(`"seed" must be a whole number from -1 to ${SEED_MAX}, not ${seed}.`, 'seed')
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
  const url = given.length <= CALLBACK_CHARS_MAX && !/[\s\p{Cc}]/u.test(given) ? URL.parse(given) : null
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw invalid('"callback_url" must be a public http(s) address without a user name.', 'callback_url')
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
const PLAIN = [
  'model',
  'prompt',
  'resolution',
  'seed',
  'watermark',
  'return_last_frame',
  'camera_fixed',
  'callback_url',
]
const KNOWN = new Set([...PLAIN, ...Object.values(CANONICAL).flat()])

/**
 * The known parameters as they were sent, in their order; what came by another name, or in another form, stands under its
 * own name as well. Whatever else was sent is read by nobody, and would be stored and repeated for as long as the job is.
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

/** An address, an object with one, or a list of these. */
function shownMedia(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shownMedia)
  if (isObject(value)) return { url: shownMedia(value.url) }
  if (typeof value !== 'string' || value.length <= SHOWN_CHARS_MAX || !value.startsWith('data:')) return value
  return `${value.slice(0, value.indexOf(',') + 1)}… (${value.length} characters)`
}
