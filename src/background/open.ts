// Assembles background work: files, batches and background responses.
import type { ApiKeys } from '../admission/api-key.ts'
import type { AssetStore } from '../assets/store.ts'
import type { JobEngine } from '../jobs/engine.ts'
import { type BatchDeps, startBatches } from './batches.ts'
import { createFiles } from './files.ts'
import { startBackground } from './responses.ts'

type Parts = Omit<BatchDeps, 'files' | 'keys' | 'work' | 'timing'> & {
  readonly jobs: Pick<JobEngine, 'work' | 'timing'>
  readonly apiKeys: ApiKeys
  /** The store of the files' bytes. */
  readonly files: AssetStore
}

export function openBackground({ files: store, apiKeys: keys, path: real, jobs, ...parts }: Parts) {
  const { work, timing } = jobs
  // A background call that waits for a limit is not a rejected call, so it is not recorded as one.
  const path = { ...real, refusals: { note: () => undefined } }
  const files = createFiles({ database: path.database, store, world: path.world })
  const deps = { ...parts, path, files, keys, work, timing }
  return { files, batches: startBatches(deps), background: startBackground(deps) }
}
