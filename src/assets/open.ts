// Opens the store for results: the data directory, or the one that is given.

import { mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { DAY_MS } from '../kernel/calendar.ts'
import { Fault } from '../kernel/fault.ts'
import type { Secrets } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'
import { type AssetStore, createAssetHost, createAssetSigner, isOver, newAssetName, placeOf } from './store.ts'

// Assets on a local disk: written to a temporary file, synced, and renamed into place atomically.

const UNFINISHED = 'unfinished'
/** No upload takes this long, so an older temporary file was left by a crash. */
const UNFINISHED_MS_MAX = 3_600_000
const DIRECTORY_MODE = 0o700
const FILE_MODE = 0o600

export async function openDiskStore(options: { world: World; directory: string }): Promise<AssetStore> {
  const { world, directory } = options
  await mkdir(join(directory, UNFINISHED), { recursive: true, mode: DIRECTORY_MODE })

  function pathOf(name: string): string | undefined {
    const place = placeOf(name)
    return place && join(directory, place.hour, place.shard, place.hash)
  }

  return {
    create: (facts) =>
      onDisk(async () => {
        const name = newAssetName(world, facts)
        const temporary = join(directory, UNFINISHED, world.bytes(16).toString('hex'))
        const file = await open(temporary, 'wx', FILE_MODE)
        let bytes = 0
        let closed = false
        const close = async () => {
          if (closed) return
          closed = true
          await file.close()
        }
        return {
          bytesInMemory: 0,
          write: (chunk) =>
            onDisk(async () => {
              // A write may be partial when the disk is nearly full.
              for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten
              bytes += chunk.length
            }),
          commit: () =>
            onDisk(async () => {
              await file.sync()
              await close()
              const { hour, shard, hash } = placeOf(name)!
              const home = join(directory, hour, shard)
              await mkdir(home, { recursive: true, mode: DIRECTORY_MODE })
              await rename(temporary, join(home, hash))
              // The file is durable only when its parent directories are synced too.
              for (const parent of [home, join(directory, hour), directory]) await syncDirectory(parent)
              return { ...facts, name, bytes }
            }),
          async abort() {
            await close().catch(() => undefined)
            await unlink(temporary).catch(ignoreMissing)
          },
        }
      }),

    async open(name) {
      const path = pathOf(name)
      if (path === undefined) return undefined
      const file = await open(path, 'r').catch(ignoreMissing)
      if (!file) return undefined
      const { size } = await file.stat()
      return {
        bytes: size,
        read: (start, end) => file.createReadStream({ start, end, highWaterMark: 65_536 }),
        close: () => file.close(),
      }
    },

    async remove(name) {
      const path = pathOf(name)
      if (path !== undefined) await unlink(path).catch(ignoreMissing)
    },

    async sweep() {
      const nowMs = world.nowMs()
      let cleared = 0
      for (const hour of await readdir(directory)) {
        if (!isOver(hour, nowMs)) continue
        await rm(join(directory, hour), { recursive: true, force: true })
        cleared++
      }
      for (const name of await readdir(join(directory, UNFINISHED))) {
        const path = join(directory, UNFINISHED, name)
        const facts = await stat(path).catch(ignoreMissing)
        if (!facts || nowMs - facts.mtimeMs < UNFINISHED_MS_MAX) continue
        await unlink(path).catch(ignoreMissing)
        cleared++
      }
      return cleared
    },
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

function ignoreMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
  throw error
}

/** A full or broken disk is the gateway's fault, so the caller is not charged. */
async function onDisk<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new Fault('unavailable', {
      internal: { why: 'asset not stored', code: (cause as NodeJS.ErrnoException).code },
      cause,
    })
  }
}

interface AssetParts {
  readonly config: { readonly dataDirectory: string; readonly TOLLGATE_RETENTION_ASSET_DAYS: number }
  readonly world: World
  readonly secrets: Secrets
  /** Absent: the data directory. */
  readonly elsewhere: AssetStore | undefined
  readonly publicUrl: () => string
}

export async function openAssets({ config, world, secrets, elsewhere, publicUrl }: AssetParts) {
  const files = elsewhere ?? (await openDiskStore({ world, directory: join(config.dataDirectory, 'assets') }))
  const signer = createAssetSigner({ key: secrets.key('asset-url'), publicUrl })
  const lifetimeMs = config.TOLLGATE_RETENTION_ASSET_DAYS * DAY_MS
  return { files, signer, assets: createAssetHost({ store: files, signer, world, lifetimeMs }) }
}
