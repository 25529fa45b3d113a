// Reading and checking what the video vendor is asked to make.
import { isRecord, type Json, list, number, record, string } from './json.ts'
import { RATIOS } from './media.ts'
import { invalid } from './refusal.ts'
import { hash } from './seed.ts'

export interface ClipOrder {
  readonly prompt: string
  readonly ratio: string
  readonly resolution: string
  readonly seconds: number
  readonly seed: number
}

const ROLES: Readonly<Record<string, readonly string[]>> = {
  image_url: ['first_frame', 'last_frame', 'reference_image'],
  video_url: ['reference_video'],
  audio_url: ['reference_audio'],
}

interface Limits {
  readonly seconds: readonly [number, number]
  readonly resolutions: readonly string[]
  readonly images: number
  readonly clips: number
}

function limitsOf(model: string): Limits {
  return /2[.-]5/.test(model)
    ? { seconds: [4, 30], resolutions: ['480p', '720p'], images: 30, clips: 10 }
    : { seconds: [4, 15], resolutions: ['480p', '720p', '1080p', '4k'], images: 9, clips: 3 }
}

export function promptOf(body: Json): string {
  return list(body.content)
    .map(record)
    .filter((part) => part.type === 'text')
    .map((part) => string(part.text))
    .join('\n')
}

/** Throws the vendor's refusal. */
export function readOrder(body: Json): ClipOrder {
  const model = string(body.model)
  if (model === '') throw missing('model')
  const parts = list(body.content)
  if (parts.length === 0) throw missing('content')
  const limits = limitsOf(model)
  checkParts(parts, limits)

  const resolution = body.resolution === undefined ? '720p' : string(body.resolution)
  if (!limits.resolutions.includes(resolution)) throw wrong('resolution', limits.resolutions.join(', '))
  const ratio = body.ratio === undefined ? 'adaptive' : string(body.ratio)
  if (ratio !== 'adaptive' && !RATIOS.includes(ratio)) throw wrong('ratio', [...RATIOS, 'adaptive'].join(', '))
  const seconds = body.duration === undefined ? 5 : number(body.duration)
  const [least, most] = limits.seconds
  if (seconds === undefined || !Number.isInteger(seconds) || seconds < least || seconds > most) {
    throw wrong('duration', `an integer between ${least} and ${most}`)
  }
  const seed = body.seed === undefined ? -1 : number(body.seed)
  if (seed === undefined || !Number.isInteger(seed) || seed < -1 || seed >= 2 ** 32) {
    throw wrong('seed', 'an integer between -1 and 4294967295')
  }
  const prompt = promptOf(body)
  return {
    prompt,
    resolution,
    ratio: ratio === 'adaptive' ? '16:9' : ratio,
    seconds,
    seed: seed === -1 ? hash(prompt) : seed,
  }
}

function checkParts(parts: readonly unknown[], limits: Limits): void {
  const roles: string[] = []
  for (const [i, given] of parts.entries()) {
    if (!isRecord(given)) throw wrong(`content[${i}]`, 'an object')
    const type = string(given.type)
    if (type === 'text') {
      if (string(given.text).trim() === '') throw missing(`content[${i}].text`)
      continue
    }
    const allowed = ROLES[type]
    if (!allowed) throw wrong(`content[${i}].type`, `text, ${Object.keys(ROLES).join(', ')}`)
    const { url } = record(given[type])
    if (string(url) === '') throw missing(`content[${i}].${type}.url`)
    const role = string(given.role) || (type === 'image_url' ? 'first_frame' : '')
    if (!allowed.includes(role)) throw wrong(`content[${i}].role`, allowed.join(', '))
    roles.push(role)
  }
  const count = (role: string) => roles.filter((own) => own === role).length
  const references = roles.some((role) => role.startsWith('reference_'))
  if (references && (count('first_frame') > 0 || count('last_frame') > 0)) {
    const mixed = 'first/last frame content cannot be mixed with reference media content'
    throw invalid(mixed, 'content', 'InvalidParameter')
  }
  if (count('first_frame') > 1 || count('last_frame') > 1)
    throw wrong('content', 'one first_frame and one last_frame at most')
  if (count('last_frame') === 1 && count('first_frame') === 0)
    throw wrong('content', 'a last_frame only with a first_frame')
  if (count('reference_image') > limits.images) throw wrong('content', `at most ${limits.images} reference images`)
  if (count('reference_video') > limits.clips) throw wrong('content', `at most ${limits.clips} reference videos`)
  if (count('reference_audio') > limits.clips) throw wrong('content', `at most ${limits.clips} reference audios`)
  if (count('reference_audio') === roles.length && roles.length > 0)
    throw wrong('content', 'audio only with an image or a video')
}

const missing = (param: string) =>
  invalid(`The request failed because it is missing the \`${param}\` parameter.`, param, 'MissingParameter')

function wrong(param: string, allowed: string) {
  const message = `The parameter \`${param}\` specified in the request is not valid: expected ${allowed}.`
  return invalid(message, param, 'InvalidParameter')
}
