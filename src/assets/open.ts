// Opens the store for results as configured: the data directory or S3.
import { join } from 'node:path'
import { DAY_MS } from '../kernel/calendar.ts'
import type { Secrets } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'
import type { Upstream } from '../upstream/call.ts'
import { openDiskStore } from './disk.ts'
import { createAssetHost } from './host.ts'
import { createS3Store } from './s3.ts'
import { createAssetSigner } from './store.ts'

interface AssetParts {
  readonly config: {
    readonly dataDirectory: string
    readonly TOLLGATE_S3_BUCKET?: string | undefined
    readonly TOLLGATE_S3_ENDPOINT?: string | undefined
    readonly TOLLGATE_S3_REGION: string
    readonly TOLLGATE_S3_ACCESS_KEY_ID?: string | undefined
    readonly TOLLGATE_S3_SECRET_ACCESS_KEY?: string | undefined
    readonly TOLLGATE_RETENTION_ASSET_DAYS: number
  }
  readonly world: World
  readonly secrets: Secrets
  readonly upstream: Upstream
  readonly publicUrl: () => string
}

export async function openAssets({ config, world, secrets, upstream, publicUrl }: AssetParts) {
  // The S3 settings are all set or all absent: config.ts rejects one without the others.
  const store = config.TOLLGATE_S3_BUCKET
    ? createS3Store({
        ...{ world, upstream, endpoint: config.TOLLGATE_S3_ENDPOINT!, bucket: config.TOLLGATE_S3_BUCKET }, // As above.
        credentials: {
          region: config.TOLLGATE_S3_REGION,
          accessKeyId: config.TOLLGATE_S3_ACCESS_KEY_ID!, // As above.
          secretAccessKey: config.TOLLGATE_S3_SECRET_ACCESS_KEY!, // As above.
        },
      })
    : await openDiskStore({ world, directory: join(config.dataDirectory, 'assets') })
  const signer = createAssetSigner({ key: secrets.key('asset-url'), publicUrl })
  const assets = createAssetHost({ store, signer, world, lifetimeMs: config.TOLLGATE_RETENTION_ASSET_DAYS * DAY_MS })
  return { files: store, signer, assets }
}
