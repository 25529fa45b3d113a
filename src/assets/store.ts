// The store for results until they expire. An asset's name contains its expiry, so neither store needs a table: expired
// assets are recognized and swept by their names alone.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { ImageType } from '../kernel/parsers/image-file.ts'
import { idAtTime, timeOfId, type World } from '../kernel/world.ts'

/** The types that may be stored. The extension alone decides the content type of a file. */
export const ASSET_TYPES = {
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  mp4: 'video/mp4',
  webm: 'video/webm',
  mov: 'video/quicktime',
  // Callers' batch files, which never get a signed URL.
  jsonl: 'application/jsonl',
} as const

export type AssetExtension = keyof typeof ASSET_TYPES

export interface AssetFacts {
  readonly extension: AssetExtension
  /** Wall clock, milliseconds. */
  readonly expiresMs: number
}

interface AssetRef extends AssetFacts {
  /** `<id>.<extension>`: the name in URLs and stores. */
  readonly name: string
  readonly bytes: number
}

/** A file that is being written. It becomes visible only with `commit`, and is durable when `commit` resolves. */
export interface AssetWriter {
  write(chunk: Buffer): Promise<void>
  /** Written bytes that are not in the store yet. */
  readonly bytesInMemory: number
  commit(): Promise<AssetRef>
  /** Leaves nothing behind. Safe to call at any time before `commit`. */
  abort(): Promise<void>
}

interface OpenAsset {
  readonly bytes: number
  /** Reads from `start` to `end`, both included. Call it at most once. */
  read(start: number, end: number): Readable
  /** Closes an asset that is not read. */
  close(): Promise<void>
}

export interface AssetStore {
  create(facts: AssetFacts): Promise<AssetWriter>
  /** Undefined when there is no such file. */
  open(name: string): Promise<OpenAsset | undefined>
  remove(name: string): Promise<void>
  /**
   * Deletes expired assets, on disk also files left by a crash. Returns the number of hours and leftover files removed.
   */
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

/** Ten characters for the expiry time, and 128 random bits. */
export function newAssetName(world: World, facts: AssetFacts): string {
  return `${idAtTime(facts.expiresMs)}${world.bytes(16).toString('hex')}.${facts.extension}`
}

/** Parses an asset's name; undefined when it is not a valid one. */
export function readAssetName(name: string): AssetFacts | undefined {
  const [, id = '', extension = ''] = NAME.exec(name) ?? []
  if (!Object.hasOwn(ASSET_TYPES, extension)) return undefined
  return { extension: extension as AssetExtension, expiresMs: timeOfId(id) }
}

/**
 * The location of a file: the hour of its expiry and a hash of its name, so that a caller's text never becomes a path.
 */
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

/** Whether all assets that expire in this hour have expired. */
export function isOver(hour: string, nowMs: number): boolean {
  return /^\d{1,12}$/.test(hour) && (Number(hour) + 1) * HOUR_MS <= nowMs
}

// Signed URLs: anyone who has one can open it until it expires, and only the gateway can make one.

export type AssetSigner = ReturnType<typeof createAssetSigner>

export function createAssetSigner(options: { key: Buffer; publicUrl: () => string }) {
  function sign(name: string, expires: string): string {
    return createHmac('sha256', options.key).update(`asset\n${name}\n${expires}`).digest('base64url')
  }

  return {
    /** The absolute URL of an asset, valid until the asset expires. */
    urlOf(name: string): string {
      const facts = readAssetName(name)
      if (!facts) throw new Error('not the name of an asset')
      const expires = String(Math.floor(facts.expiresMs / 1000))
      return `${options.publicUrl()}/assets/${name}?exp=${expires}&sig=${sign(name, expires)}`
    },
    /** Whether this gateway signed the URL. It does not check the expiry. */
    verify(name: string, expires: string | undefined, signature: string | undefined): boolean {
      if (expires === undefined || signature === undefined) return false
      const given = Buffer.from(signature)
      const right = Buffer.from(sign(name, expires))
      return given.length === right.length && timingSafeEqual(given, right)
    },
  }
}

// Stores results and makes the URLs that callers get.

export interface HostedAsset {
  readonly name: string
  readonly url: string
  readonly expiresMs: number
  remove(): Promise<void>
}

export interface AssetUpload {
  write(chunk: Buffer): Promise<void>
  commit(): Promise<HostedAsset>
  abort(): Promise<void>
}

export interface AssetHost {
  /** Stores a whole image. */
  store(pieces: readonly Buffer[], type: ImageType): Promise<HostedAsset>
  /** Stores a file piece by piece, such as a video. */
  upload(extension: AssetExtension): Promise<AssetUpload>
}

export function createAssetHost(options: {
  readonly store: AssetStore
  readonly signer: AssetSigner
  readonly world: World
  readonly lifetimeMs: number
}): AssetHost {
  const { store, signer, world } = options

  const factsOf = (extension: AssetExtension) => ({ extension, expiresMs: world.nowMs() + options.lifetimeMs })
  const hosted = ({ name, expiresMs }: { name: string; expiresMs: number }): HostedAsset => ({
    name,
    url: signer.urlOf(name),
    expiresMs,
    remove: () => store.remove(name),
  })

  return {
    async store(pieces, type) {
      return hosted(await putAsset(store, pieces, factsOf(type === 'jpeg' ? 'jpg' : type)))
    },
    async upload(extension) {
      const writer = await store.create(factsOf(extension))
      return {
        write: (chunk) => writer.write(chunk),
        abort: () => writer.abort(),
        commit: async () => hosted(await writer.commit()),
      }
    },
  }
}
