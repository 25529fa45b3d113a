// Finished files are copied to our own store before a job is completed, because the vendor's URLs expire. The vendor
// names these URLs, so they are fetched with the same guard as all outside addresses. Only the vendor's own host may be
// private, as for the simulated vendors.

import type { AssetExtension, AssetHost, AssetSigner, AssetUpload } from '../assets/store.ts'
import { Fault } from '../kernel/fault.ts'
import { imageTypeOf } from '../kernel/parsers/image-file.ts'
import { NEVER } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { createGuardedFetch, type GuardedFetch } from '../upstream/guard.ts'

export interface ResultStore {
  /** Copies a file and returns its name in the store. `trusted` is the vendor's own base URL. */
  copy(url: string, options: { readonly type: 'video' | 'image'; readonly trusted: string }): Promise<string>
  /** A signed URL. Anyone who has it can fetch the file until the file expires. */
  url(name: string): string
}

const BYTES_MAX = { video: 1_000_000_000, image: 50_000_000 } as const
const COPIES_AT_ONCE = 8

export function createResultStore(options: {
  readonly assets: Pick<AssetHost, 'upload'>
  readonly signer: Pick<AssetSigner, 'urlOf'>
  readonly world: World
}): ResultStore {
  const { assets, signer, world } = options
  const guards = new Map<string, GuardedFetch>()
  const waiting: Array<() => void> = []
  let running = 0

  function guardFor(trusted: string): GuardedFetch {
    const { hostname, port, protocol } = new URL(trusted)
    const host = `${hostname.replace(/^\[|\]$/g, '')}:${port || (protocol === 'https:' ? 443 : 80)}`
    let guard = guards.get(host)
    if (!guard) {
      guard = createGuardedFetch({ world, allow: [host] })
      guards.set(host, guard)
    }
    return guard
  }

  async function copy(url: string, { type, trusted }: { type: 'video' | 'image'; trusted: string }): Promise<string> {
    let upload: AssetUpload | undefined
    try {
      await guardFor(trusted).download(
        url,
        async (chunk) => {
          const extension = upload ? undefined : extensionOf(chunk, type)
          await ours(async () => {
            upload ??= await assets.upload(extension!)
            await upload.write(chunk)
          })
        },
        { bytesMax: BYTES_MAX[type], signal: NEVER },
      )
      const done = upload
      if (!done) throw new Fault('upstream_garbled', { internal: { why: 'the file is empty' } })
      const { name } = await ours(() => done.commit())
      return name
    } catch (error) {
      await upload?.abort().catch(() => undefined)
      throw error
    }
  }

  return {
    async copy(url, about) {
      if (running >= COPIES_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve))
      else running += 1
      try {
        return await copy(url, about)
      } finally {
        // The slot goes to the next waiting copy.
        const next = waiting.shift()
        if (next) next()
        else running -= 1
      }
    },
    url: (name) => signer.urlOf(name),
  }
}

/**
 * Turns an error of our own store into `unavailable`: a full disk must not fail the job, which is retried until there
 * is room.
 */
async function ours<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw error instanceof Fault
      ? error
      : new Fault('unavailable', { internal: { why: 'the store of files' }, cause: error })
  }
}

/** Decided by the first bytes, not by the vendor's content type or file name. */
function extensionOf(start: Buffer, type: 'video' | 'image'): AssetExtension {
  if (type === 'image') {
    const image = imageTypeOf(start)
    if (image) return image === 'jpeg' ? 'jpg' : image
  } else if (start.toString('latin1', 4, 8) === 'ftyp')
    return start.toString('latin1', 8, 12) === 'qt  ' ? 'mov' : 'mp4'
  else if (start.length >= 4 && start.readUInt32BE() === 0x1a45dfa3) return 'webm'
  throw new Fault('upstream_garbled', { internal: { why: `the file is no ${type}` } })
}
