// Runs seeds, several at once and each in a lane of its own, and gathers those that fail.
import type { EmbeddedConnection } from '../../src/extensions/postgres/embedded.ts'
import { count } from '../faults/raw-client.ts'
import { closing } from '../started.ts'
import { makeLaneTemplate, openLane } from './lane.ts'
import { type StoryOptions, simulate } from './simulation.ts'

export interface SeedsRun {
  readonly done: number
  readonly events: number
  /** Stories in which a lease covered calls. */
  readonly leased: number
  readonly failures: ReadonlyArray<{ readonly seed: number; readonly error: unknown }>
  readonly digests: ReadonlyMap<number, string>
}

export interface SeedsOptions extends StoryOptions {
  readonly from: number
  readonly count: number
  readonly atOnce: number
  readonly stopped?: () => boolean
  readonly onDone?: (done: number, failed: number) => void
  readonly failuresMax?: number
}

const FAILURES_MAX = 20

export async function runSeeds(server: EmbeddedConnection, options: SeedsOptions): Promise<SeedsRun> {
  const failures: Array<{ seed: number; error: unknown }> = []
  const digests = new Map<number, string>()
  const indices = count(options.count)
  let done = 0
  let events = 0
  let leased = 0
  await makeLaneTemplate(server)
  await Promise.all(
    Array.from({ length: Math.min(options.atOnce, options.count) }, async (_, number) => {
      await using lane = closing(await openLane(server, `simulate_${process.pid}_${number}`))
      for (const index of indices) {
        if (failures.length >= (options.failuresMax ?? FAILURES_MAX) || options.stopped?.()) break
        const seed = options.from + index
        try {
          const told = await simulate(seed, lane, options)
          digests.set(seed, told.digest)
          events += told.events
          if (told.leased > 0) leased += 1
        } catch (error) {
          failures.push({ seed, error })
        }
        done += 1
        options.onDone?.(done, failures.length)
      }
    }),
  )
  return { done, events, leased, failures, digests }
}
