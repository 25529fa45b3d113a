// Local files in and out. Paths work where there is a file system; bytes and blobs work everywhere.
import { TollgateError } from './errors.ts'

/** An address, a data URI, the path of a local file, or the bytes themselves. */
export type Reference = string | URL | Blob | Uint8Array

interface Files {
  readFile(path: string): Promise<Uint8Array>
  writeFile(path: string, bytes: Uint8Array): Promise<void>
}

const NODE_FILES: string = 'node:fs/promises'

// A name that is not written out, so that bundlers for browsers leave it alone.
const files = async (): Promise<Files> => await import(/* @vite-ignore */ /* webpackIgnore: true */ NODE_FILES)

export async function save(path: string, bytes: Uint8Array): Promise<void> {
  await (await files()).writeFile(path, bytes)
}

/** As the gateway takes it: an address or a data URI. */
export async function asAddress(reference: Reference): Promise<string> {
  if (reference instanceof URL) return reference.href
  if (typeof reference === 'string') {
    if (/^(?:https?|asset):\/\/|^data:/i.test(reference)) return reference
    return dataUri(await (await files()).readFile(reference))
  }
  return dataUri(reference instanceof Uint8Array ? reference : new Uint8Array(await reference.arrayBuffer()))
}

/** By their first bytes; the name of a file may lie. */
const TYPES: readonly (readonly [type: string, begins: RegExp])[] = [
  ['png', /^\x89PNG/],
  ['jpeg', /^\xff\xd8\xff/],
  ['gif', /^GIF8/],
  ['webp', /^RIFF[\s\S]{4}WEBP/],
]

function dataUri(bytes: Uint8Array): string {
  const head = String.fromCharCode(...bytes.subarray(0, 12))
  const type = TYPES.find(([, begins]) => begins.test(head))?.[0]
  if (!type) throw new TollgateError('A reference must be a PNG, JPEG, GIF or WebP image.')
  let text = ''
  // In pieces: a call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 32_766)
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + 32_766)))
  return `data:image/${type};base64,${text}`
}
