// Opens the store for results as configured: the data directory or S3.
import { join } from 'node:path'
import { DAY_MS } from '../kernel/calendar.ts'
import type { Secrets } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'
import type { Upstream } from '../upstream/call.ts'
import type { Logins } from '../upstream/login.ts'
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
    readonly TOLLGATE_S3_SESSION_TOKEN?: string | undefined
    readonly TOLLGATE_S3_ROLE?: string | undefined
    readonly TOLLGATE_RETENTION_ASSET_DAYS: number
  }
  readonly world: World
  readonly secrets: Secrets
  readonly upstream: Upstream
  readonly logins: Logins
  readonly publicUrl: () => string
}

/** The keys themselves, or those of a role: one that the keys may assume, or that of the machine. */
function credentialsOf({ config, logins }: Pick<AssetParts, 'config' | 'logins'>) {
  const { TOLLGATE_S3_REGION: region, TOLLGATE_S3_ROLE: role, TOLLGATE_S3_SESSION_TOKEN: sessionToken } = config
  const { TOLLGATE_S3_ACCESS_KEY_ID: accessKeyId, TOLLGATE_S3_SECRET_ACCESS_KEY: secretAccessKey } = config
  const hasKeys = accessKeyId !== undefined && secretAccessKey !== undefined
  if (hasKeys && role === undefined) return { region, accessKeyId, secretAccessKey, sessionToken }
  const secret = hasKeys ? [accessKeyId, secretAccessKey, sessionToken].filter(Boolean).join(':') : undefined
  const login = { region, service: 's3', ...(role ? { role } : {}), ...(hasKeys ? {} : { workload: true as const }) }
  return async () => {
    const given = await logins.open({ sigv4: login }, { secret, baseUrl: config.TOLLGATE_S3_ENDPOINT ?? '' })
    if ('token' in given) throw new TypeError('a signature was asked for')
    return given.aws
  }
}

export async function openAssets({ config, world, secrets, upstream, logins, publicUrl }: AssetParts) {
  // The S3 settings are all set or all absent: config.ts rejects one without the others.
  const store = config.TOLLGATE_S3_BUCKET
    ? createS3Store({
        ...{ world, upstream, endpoint: config.TOLLGATE_S3_ENDPOINT!, bucket: config.TOLLGATE_S3_BUCKET }, // As above.
        credentials: credentialsOf({ config, logins }),
      })
    : await openDiskStore({ world, directory: join(config.dataDirectory, 'assets') })
  const signer = createAssetSigner({ key: secrets.key('asset-url'), publicUrl })
  const assets = createAssetHost({ store, signer, world, lifetimeMs: config.TOLLGATE_RETENTION_ASSET_DAYS * DAY_MS })
  return { files: store, signer, assets }
}
