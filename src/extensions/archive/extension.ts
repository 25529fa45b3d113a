// The archive of the ledger: what is over and verified leaves the database as files.
import { join } from 'node:path'
import { type CoreParts, defineExtension } from '../../extension.ts'
import type { S3Send } from '../s3/s3.ts'
import type { ArchiveStore } from './archive.ts'
import { openLedgerArchive } from './check.ts'
import { archiveResources } from './resources.ts'
import { createDiskArchive, createS3Archive } from './store.ts'

interface Core extends Pick<CoreParts, 'config' | 'world' | 'log' | 'database' | 'secrets'> {
  readonly s3: S3Send | undefined
}

const LOOK_EVERY_MS = 3_600_000

export const archive = defineExtension({
  name: 'archive',
  open(core: Core) {
    const { database, secrets } = core
    return { archive: openLedgerArchive(core, { database, store: storeOf(core), key: secrets.key('ledger') }) }
  },
  resources: archiveResources,
  work: ({ archive }) => [{ everyMs: LOOK_EVERY_MS, run: () => archive.run() }],
  close: ({ archive }) => archive.stop(),
})

/**
 * A directory that is named, the bucket, or beside the bundled database. A data directory beside another database may
 * be gone tomorrow, so nothing that is for ever is put there.
 */
function storeOf({ config, world, s3: send }: Core): ArchiveStore | undefined {
  const { TOLLGATE_LEDGER_ARCHIVE: named, TOLLGATE_S3_BUCKET: bucket, DATABASE_URL, dataDirectory } = config
  if (named !== undefined) return createDiskArchive({ world, directory: named })
  if (send && bucket !== undefined) return createS3Archive({ send, bucket })
  return DATABASE_URL ? undefined : createDiskArchive({ world, directory: join(dataDirectory, 'ledger-archive') })
}
