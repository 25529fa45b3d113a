import { type Api, mountFree } from '../../api/api.ts'
import type { BodyRules } from '../../api/server/body.ts'
import type { AssetStore } from '../../assets/store.ts'
import { type CoreParts, defineExtension } from '../../extension.ts'
import type { JobEngine } from '../../jobs/engine.ts'
import { withCommands } from '../../operator/command.ts'
import type { ArriveDeps } from '../../pipeline/arrive.ts'
import { BATCHES } from './batch-endpoints.ts'
import { batchHandlers } from './batch-routes.ts'
import { pruneBatches } from './batch-table.ts'
import { type BatchDeps, startBatches } from './batches.ts'
import { BATCH_COMMANDS } from './commands.ts'
import { createFiles, pruneFiles } from './files.ts'
import { MESSAGE_BATCHES } from './message-batch-endpoints.ts'
import { messageBatchHandlers } from './message-batch-routes.ts'
import { batchResources } from './resources.ts'
import { pruneBackground, startBackground } from './responses.ts'
import { type StoredDeps, storedHandlers } from './stored.ts'
import { STORED } from './stored-endpoints.ts'

interface Core
  extends Pick<CoreParts, 'database' | 'apiKeys'>,
    Omit<BatchDeps, 'path' | 'read' | 'files' | 'keys' | 'work' | 'timing'> {
  readonly jobs: Pick<JobEngine, 'work' | 'timing'>
  readonly byokKeys: StoredDeps['byokKeys']
  /** The store of the files' bytes. */
  readonly files: AssetStore
  /** Put together when every extension has said what calls meet. */
  readonly calls: () => Pick<ArriveDeps, 'path' | 'read'>
}

interface Place {
  readonly api: Api
  readonly bodies: BodyRules
  readonly path: StoredDeps['path']
  readonly read: StoredDeps['read']
}

const TIDY_EVERY_MS = 60_000

export const background = defineExtension({
  name: 'background',
  entries: [...Object.values(STORED), ...Object.values(BATCHES), ...Object.values(MESSAGE_BATCHES)],
  open(core: Core) {
    let started: ReturnType<typeof start> | undefined
    return {
      background() {
        started ??= start(core)
        return started
      },
    }
  },
  path: ({ background }) => ({ background: () => background().responses.hooks }),
  resources: (all) => withCommands(batchResources(all), BATCH_COMMANDS),
  endpoints({ background, catalog, byokKeys }, { api, bodies, path, read }: Place) {
    const { files, batches, responses } = background()
    mountFree(api, STORED, storedHandlers({ catalog, byokKeys, path, read }, responses))
    mountFree(api, BATCHES, batchHandlers({ files, batches, bodies, catalog }))
    mountFree(api, MESSAGE_BATCHES, messageBatchHandlers({ files, batches }))
  },
  work: ({ database }) =>
    [pruneFiles, pruneBatches, pruneBackground].map((prune) => ({
      everyMs: TIDY_EVERY_MS,
      run: () => prune(database),
    })),
})

function start({ files: store, apiKeys: keys, jobs, calls, ...core }: Core) {
  const { work, timing } = jobs
  const { path: real, read } = calls()
  // A background call that waits for a limit is not a rejected call, so it is not recorded as one.
  const path = { ...real, refusals: { note: () => undefined } }
  const files = createFiles({ database: path.database, store, world: path.world })
  const deps = { ...core, read, path, files, keys, work, timing }
  return { files, batches: startBatches(deps), responses: startBackground(deps) }
}
