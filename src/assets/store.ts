// Where results live until they expire. The name of an asset says when that is, so that neither store needs a table: what
// is over can be told, and swept, from names alone.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Readable } from 'node:stream'
import { idAtTime, timeOfId, type World } from '../kernel/world.ts'

/** What may be stored; the type that a file is served with follows from its extension and from nothing else. */
export const ASSET_TYPES = {
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  mp4: 'video/mp4',
  webm: 'video/webm',
  mov: 'video/quicktime',
  // Lines of callers' batches: never at a signed address.
  jsonl: 'application/jsonl',
} as const

export type AssetExtension = keyof typeof ASSET_TYPES

export interface AssetFacts {
  readonly extension: AssetExtension
  /** Wall clock, milliseconds. */
  readonly expiresMs: number
}

interface AssetRef extends AssetFacts {
  /** `<id>.<extension>`: what the address and the stores call it. */
  readonly name: string
  readonly bytes: number
}

/** A file that is being written. Nobody can see it before `commit` resolves, and by then it is durable. */
export interface AssetWriter {
  write(chunk: Buffer): Promise<void>
  /** Of what was written, what is not in the store yet. */
  readonly bytesInMemory: number
  commit(): Promise<AssetRef>
  /** Leaves nothing behind. Safe to call at any time before `commit`. */
  abort(): Promise<void>
}

interface OpenAsset {
  readonly bytes: number
  /** From `start` to `end`, both included. To be called at most once. */
  read(start: number, end: number): Readable
  /** For those who do not read. */
  close(): Promise<void>
}

export interface AssetStore {
  create(facts: AssetFacts): Promise<AssetWriter>
  /** Undefined when there is no such file. */
  open(name: string): Promise<OpenAsset | undefined>
  remove(name: string): Promise<void>
  /** Deletes what has expired; answers with how many places were cleared. */
  sweep(): Promise<number>
}

export async function putAsset(store: AssetStore, pieces: readonly Buffer[], facts: AssetFacts): Promise<AssetRef> {
  const writer = await store.create(facts)
  try {
    for (const piece of pieces) await writer.write(piece)
    return await writer.commit()
  } catch (error) {
    await writer.abort()
    throw error
  }
}

const NAME = /^([0-9a-hjkmnp-tv-z]{10}[0-9a-f]{32})\.([a-z0-9]{1,5})$/
const HOUR_MS = 3_600_000

/** Ten characters of the time of expiry, and 128 bits that nobody can guess. */
export function newAssetName(world: World, facts: AssetFacts): string {
  return `${idAtTime(facts.expiresMs)}${world.bytes(16).toString('hex')}.${facts.extension}`
}

/** What a name says; undefined when it is none of ours. */
export function readAssetName(name: string): AssetFacts | undefined {
  const [, id = '', extension = ''] = NAME.exec(name) ?? []
  if (!Object.hasOwn(ASSET_TYPES, extension)) return undefined
  return { extension: extension as AssetExtension, expiresMs: timeOfId(id) }
}

/** Where a store puts a file: by the hour of its expiry, and by a hash, so that no text of a caller's is ever a path. */
export function placeOf(
  name: string,
): { readonly hour: string; readonly shard: string; readonly hash: string } | undefined {
  const facts = readAssetName(name)
  if (!facts) return undefined
  const hash = createHash('sha256').update(name).digest('hex')
  return { hour: hourOf(facts.expiresMs), shard: hash.slice(0, 2), hash }
}

function hourOf(ms: number): string {
  return String(Math.floor(ms / HOUR_MS))
}

/** Whether everything that expires in this hour is over. */
export function isOver(hour: string, nowMs: number): boolean {
  return /^\d{1,12}$/.test(hour) && (Number(hour) + 1) * HOUR_MS <= nowMs
}

// Addresses that anyone who has them can open, until they expire, and that nobody can make.

export interface AssetSigner {
  /** The absolute address of an asset, good until the asset expires. */
  urlOf(name: string): string
  /** Whether this gateway made the address. Says nothing about its expiry. */
  verify(name: string, expires: string | undefined, signature: string | undefined): boolean
}

export function createAssetSigner(options: { key: Buffer; publicUrl: () => string }): AssetSigner {
  function sign(name: string, expires: string): string {
    return createHmac('sha256', options.key).update(`asset\n${name}\n${expires}`).digest('base64url')
  }

  return {
    urlOf(name) {
      const facts = readAssetName(name)
      if (!facts) throw new Error('not the name of an asset')
      const expires = String(Math.floor(facts.expiresMs / 1000))
      return `${options.publicUrl()}/assets/${name}?exp=${expires}&sig=${sign(name, expires)}`
    },
    verify(name, expires, signature) {
      if (expires === undefined || signature === undefined) return false
      const given = Buffer.from(signature)
      const right = Buffer.from(sign(name, expires))
      return given.length === right.length && timingSafeEqual(given, right)
    },
  }
}
