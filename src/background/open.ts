// What is done on the path when nobody waits for it, put together.
import type { ApiKeys } from '../admission/api-key.ts'
import type { AssetStore } from '../assets/store.ts'
import type { JobEngine } from '../jobs/engine.ts'
import { type BatchDeps, startBatches } from './batches.ts'
import { createFiles } from './files.ts'
import { startBackground } from './responses.ts'

type Parts = Omit<BatchDeps, 'files' | 'keys' | 'work' | 'timing'> & {
  readonly jobs: Pick<JobEngine, 'work' | 'timing'>
  readonly apiKeys: ApiKeys
  /** Where their bytes are. */
  readonly files: AssetStore
}

export function openBackground({ files: store, apiKeys: keys, path: real, jobs, ...parts }: Parts) {
  const { work, timing } = jobs
  // Whoever waits for a limit was not refused.
  const path = { ...real, refusals: { note: () => undefined } }
  const files = createFiles({ database: path.database, store, world: path.world })
  const deps = { ...parts, path, files, keys, work, timing }
  return { files, batches: startBatches(deps), background: startBackground(deps) }
}
