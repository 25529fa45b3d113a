// What is done on the path when nobody waits for it, put together.
import type { ApiKeys } from '../admission/api-key.ts'
import type { AssetStore } from '../assets/store.ts'
import { type BatchDeps, startBatches } from './batches.ts'
import { createFiles } from './files.ts'

type Parts = Omit<BatchDeps, 'files' | 'keys'> & { readonly apiKeys: ApiKeys; readonly store: AssetStore }

export function openDeferred({ store, apiKeys: keys, path: real, ...parts }: Parts) {
  // Whoever waits for a limit was not refused.
  const path = { ...real, refusals: { note: () => undefined } }
  const files = createFiles({ database: path.database, store, world: path.world })
  const batches = startBatches({ ...parts, path, files, keys })
  return { files, batches, stop: (forMs: number) => batches.stop(forMs) }
}
