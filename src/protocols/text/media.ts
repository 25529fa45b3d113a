// Pictures and documents inside requests: data URIs taken apart, and their types made what vendors accept.
import { invalid } from '../../kernel/fault.ts'
import type { Media } from './dialogue.ts'

const ALIASES: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'image/x-png': 'image/png',
}

/** By the first characters of the base64: what the bytes are counts more than what they are called. */
const MAGIC: readonly (readonly [string, string])[] = [
  ['/9j/', 'image/jpeg'],
  ['iVBORw0KGgo', 'image/png'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['JVBERi0', 'application/pdf'],
]

/** An address or a data URI. `param` names the field in the refusal. */
export function readMedia(url: string, param: string): Media {
  if (!/^data:/i.test(url)) {
    if (/^https?:\/\//i.test(url)) return { url }
    throw invalid(`"${param}" must be an http(s) address or a base64 data URI.`, param)
  }
  const comma = url.indexOf(',')
  const head = comma < 0 ? '' : url.slice(5, comma)
  if (!/;\s*base64\s*$/i.test(head))
    throw invalid(`"${param}" must be a base64 data URI: "data:<type>;base64,<data>".`, param)
  return fromBase64(url.slice(comma + 1), head.slice(0, head.indexOf(';')).trim())
}

export function fromBase64(data: string, declared: string): Media {
  const base64 = /\s/.test(data) ? data.replace(/\s+/g, '') : data
  const type = declared.toLowerCase()
  const sniffed = MAGIC.find(([start]) => base64.startsWith(start))?.[1]
  return { base64, type: sniffed ?? ALIASES[type] ?? type }
}

export function toDataUri(media: { readonly base64: string; readonly type: string }): string {
  return `data:${media.type};base64,${media.base64}`
}
