// Runs seeds, several at once and each in a lane of its own, and gathers those that fail.
import type { EmbeddedConnection } from '../../src/extensions/postgres/embedded.ts'
import { count } from '../faults/raw-client.ts'
import { closing } from '../started.ts'
import { type Lane, makeLaneTemplate, openLane } from './lane.ts'
import { type StoryOptions, simulate } from './simulation.ts'

export interface SeedsRun {
  readonly done: number
  readonly events: number
  /** Stories in which a lease covered calls. */
  readonly leased: number
  /** Accounts that came to another ledger. */
  readonly moved: number
  readonly failures: ReadonlyArray<{ readonly seed: number; readonly error: unknown }>
  readonly digests: ReadonlyMap<number, string>
}

export interface SeedsOptions extends StoryOptions {
  readonly from: number
  readonly count: number
  readonly atOnce: number
  /** In each story; absent: one. */
  readonly ledgers?: number
  readonly stopped?: () => boolean
  readonly onDone?: (done: number, failed: number) => void
  readonly failuresMax?: number
}

const FAILURES_MAX = 20

export async function openLanes(server: EmbeddedConnection, name: string, ledgers = 1) {
  const all: Lane[] = []
  for (let at = 0; at < ledgers; at++) all.push(await openLane(server, `simulate_${process.pid}_${name}_${at}`))
  return { all, close: () => Promise.all(all.map((lane) => lane.close())) }
}

export async function runSeeds(server: EmbeddedConnection, options: SeedsOptions): Promise<SeedsRun> {
  const failures: Array<{ seed: number; error: unknown }> = []
  const digests = new Map<number, string>()
  const indices = count(options.count)
  let done = 0
  let events = 0
  let leased = 0
  let moved = 0
  await makeLaneTemplate(server)
  await Promise.all(
    Array.from({ length: Math.min(options.atOnce, options.count) }, async (_, number) => {
      await using lanes = closing(await openLanes(server, `${number}`, options.ledgers))
      for (const index of indices) {
        if (failures.length >= (options.failuresMax ?? FAILURES_MAX) || options.stopped?.()) break
        const seed = options.from + index
        try {
          const told = await simulate(seed, lanes.all, options)
          digests.set(seed, told.digest)
          events += told.events
          if (told.leased > 0) leased += 1
          moved += told.moved
        } catch (error) {
          failures.push({ seed, error })
        }
        done += 1
        options.onDone?.(done, failures.length)
      }
    }),
  )
  return { done, events, leased, moved, failures, digests }
}
