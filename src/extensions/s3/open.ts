// A bucket for results, where one is configured.
import type { AssetStore } from '../../assets/store.ts'
import type { CoreParts } from '../../extension.ts'
import { createS3Client, createS3Store, type S3Send } from './s3.ts'

interface S3Parts extends Pick<CoreParts, 'world' | 'upstream' | 'logins'> {
  readonly config: {
    readonly TOLLGATE_S3_BUCKET?: string | undefined
    readonly TOLLGATE_S3_ENDPOINT?: string | undefined
    readonly TOLLGATE_S3_REGION: string
    readonly TOLLGATE_S3_ACCESS_KEY_ID?: string | undefined
    readonly TOLLGATE_S3_SECRET_ACCESS_KEY?: string | undefined
    readonly TOLLGATE_S3_SESSION_TOKEN?: string | undefined
    readonly TOLLGATE_S3_ROLE?: string | undefined
  }
}

/** The keys themselves, or those of a role: one that the keys may assume, or that of the machine. */
function credentialsOf({ config, logins }: Pick<S3Parts, 'config' | 'logins'>) {
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

/** The S3 settings are all set or all absent: config.ts rejects one without the others. */
export function openS3({ config, world, upstream, logins }: S3Parts): { store?: AssetStore; send?: S3Send } {
  const { TOLLGATE_S3_BUCKET: bucket, TOLLGATE_S3_ENDPOINT: endpoint } = config
  if (!bucket || !endpoint) return {}
  const place = { world, upstream, endpoint, bucket, credentials: credentialsOf({ config, logins }) }
  const send = createS3Client(place)
  return { send, store: createS3Store(place, send) }
}
