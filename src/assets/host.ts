// Stores results and makes the URLs that callers get.

import type { World } from '../kernel/world.ts'
import type { ImageType } from '../parsers/image-file.ts'
import { type AssetExtension, type AssetSigner, type AssetStore, putAsset } from './store.ts'

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
