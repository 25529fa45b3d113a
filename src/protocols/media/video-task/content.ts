// What a video is made from: a prompt, and pictures, clips and sounds in roles that do not mix freely.

import type { VideoTraits } from '../../../catalog/traits.ts'
import { invalid } from '../../../kernel/fault.ts'
import { type Fields, isObject, type Json, mustBe } from '../../check.ts'

type MediaKind = 'image' | 'video' | 'audio'

interface MediaPart {
  readonly type: `${MediaKind}_url`
  readonly role: string
  readonly [url: string]: unknown
}

export type ContentPart = { readonly type: 'text'; readonly text: string } | MediaPart

const ROLES: Readonly<Record<MediaKind, readonly string[]>> = {
  image: ['first_frame', 'last_frame', 'reference_image'],
  video: ['reference_video'],
  audio: ['reference_audio'],
}

const URL_CHARS_MAX = 8_192
/** Of the prompt and the texts of `content` together. */
const TEXT_CHARS_MAX = 32_000
/** The most references that any model takes, and some texts. */
const CONTENT_PARTS_MAX = 64
const IMAGE_BYTES_MAX = 30_000_000

/** Names under which callers send single frames and lists of references. */
export const FRAME_NAMES = {
  first_frame: ['first_frame', 'first_frame_url', 'image', 'image_url'],
  last_frame: ['last_frame', 'last_frame_url', 'end_image', 'end_image_url'],
} as const
export const REFERENCE_NAMES = {
  image: ['reference_images', 'images', 'image_urls'],
  video: ['reference_videos', 'videos', 'video_urls'],
  audio: ['reference_audios', 'audios', 'audio_urls'],
} as const

/** The vendor's content parts, from whatever names the caller used. */
export function readContent(fields: Fields, prompt: string | undefined, rules: VideoTraits): ContentPart[] {
  const parts: ContentPart[] = []
  const spoken = prompt?.trim() ? prompt : undefined
  if (spoken !== undefined) parts.push({ type: 'text', text: spoken })
  for (const [role, names] of Object.entries(FRAME_NAMES)) {
    const frame = readOne(fields, names)
    if (frame) parts.push(media('image', frame.url, role, frame.name))
  }
  for (const [kind, names] of Object.entries(REFERENCE_NAMES) as [MediaKind, readonly string[]][])
    for (const { url, name } of readMany(fields, names)) parts.push(media(kind, url, `reference_${kind}`, name))
  const content = fields.list('content') ?? []
  if (content.length > CONTENT_PARTS_MAX)
    throw invalid(`"content" may have at most ${CONTENT_PARTS_MAX} parts, not ${content.length}.`, 'content')
  for (const [index, part] of content.entries()) parts.push(readPart(part, `content[${index}]`))
  checkTexts([prompt, ...content.map((part) => part.text)], prompt === undefined ? 'content' : 'prompt')
  const given = withRoles(parts)
  checkTogether(given, rules)
  return given
}

function checkTexts(texts: readonly unknown[], at: string): void {
  const chars = texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0)
  if (chars > TEXT_CHARS_MAX)
    throw invalid(
      `The texts of "prompt" and "content" may have at most ${TEXT_CHARS_MAX} characters, not ${chars}.`,
      at,
    )
}

function readOne(fields: Fields, names: readonly string[]): { url: string; name: string } | undefined {
  const given = names.filter((name) => fields.get(name) !== undefined)
  const [name, ...others] = given
  if (name === undefined) return undefined
  if (others.length > 0) throw invalid(`Give only one of ${quoted(given)}: they mean the same.`, others[0])
  return { url: readUrl(fields.get(name), name), name }
}

function readMany(fields: Fields, names: readonly string[]): { url: string; name: string }[] {
  const given = names.filter((name) => fields.get(name) !== undefined)
  const [name, ...others] = given
  if (name === undefined) return []
  if (others.length > 0) throw invalid(`Give only one of ${quoted(given)}: they mean the same.`, others[0])
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

/** A native part of `content`, checked and passed on as it is. */
function readPart(part: Json, at: string): ContentPart {
  if (part.type === 'text') {
    if (typeof part.text !== 'string' || part.text.trim() === '')
      throw invalid(`"${at}.text" must be a text that is not empty.`, `${at}.text`)
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
    if (kind !== 'image') throw invalid(`"${at}" must be an https address; only images may be data URIs.`, at)
    if (!/^data:image\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]/i.test(url.slice(0, 100)))
      throw invalid(`"${at}" must be a data URI of the form data:image/<type>;base64,<data>.`, at)
    if (((url.length - url.indexOf(',')) * 3) / 4 > IMAGE_BYTES_MAX)
      throw invalid(`"${at}" is larger than ${IMAGE_BYTES_MAX / 1_000_000} MB.`, at)
  } else if (!/^(https?|asset):\/\/[^\s]+$/i.test(url) || url.length > URL_CHARS_MAX)
    throw invalid(`"${at}" must be an http(s) address${kind === 'image' ? ' or a data URI' : ''}.`, at)
  const type = `${kind}_url` as const
  return { type, [type]: { url }, role }
}

/** A single picture without a role is the first frame; several need their roles said. */
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
  if (parts.length === 0) throw invalid('"prompt" or "content" is required and must not be empty.', 'prompt')
  const count = (role: string) => parts.filter((part) => part.type !== 'text' && part.role === role).length
  const [first, last] = [count('first_frame'), count('last_frame')]
  const [images, videos, audios] = [count('reference_image'), count('reference_video'), count('reference_audio')]
  if (first > 1 || last > 1) throw invalid('There can be only one first frame and one last frame.', 'content')
  if (last > 0 && first === 0) throw invalid('"last_frame" needs a "first_frame" as well.', 'last_frame')
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
