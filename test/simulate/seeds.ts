// Runs seeds, several at once, and gathers those that fail.
import type { Database } from '../../src/database/database.ts'
import { count, each } from '../faults/raw-client.ts'
import { simulate } from './simulation.ts'

export interface SeedsRun {
  readonly done: number
  readonly failures: ReadonlyArray<{ readonly seed: number; readonly error: unknown }>
}

const FAILURES_MAX = 20

export async function runSeeds(
  database: Database,
  options: { from: number; count: number; atOnce: number; stopped?: () => boolean },
): Promise<SeedsRun> {
  const failures: Array<{ seed: number; error: unknown }> = []
  let done = 0
  await each(count(options.count), options.atOnce, async (index) => {
    if (failures.length >= FAILURES_MAX || options.stopped?.()) return
    const seed = options.from + index
    try {
      await simulate(seed, database)
    } catch (error) {
      failures.push({ seed, error })
    }
    done += 1
  })
  return { done, failures }
}
