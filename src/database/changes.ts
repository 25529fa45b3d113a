// How a process learns what another one changed: it polls a few counters once a second. Unlike notifications this works
// through every pooler, and a process that could not poll knows that it may be behind.
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import { type Database, type Queryable, SHORT_MS, sql } from './database.ts'

export type Topic =
  | 'catalog'
  | 'keys'
  | 'credentials'
  | 'byok-keys'
  | 'branding'
  | 'reports'
  | 'tool-servers'
  | 'tool-connections'
  | 'purse-sessions'
  | 'homes'
  | 'ledgers'

export interface Changes {
  watch(topic: Topic, changed: () => Promise<void> | void): void
  /**
   * Call it in the transaction of the change; after the commit `notice` informs the watchers of this process at once.
   */
  bump(tx: Queryable, topic: Topic): Promise<void>
  /** Call it after the commit: this process then does not wait for its next poll. */
  notice(topic: Topic): Promise<void>
  /** When the counters were last known to be current, on the clock for durations. */
  readonly current: { readonly atMs: number }
  /**
   * Changes that could not be read, by topic; each is tried again with every poll, and does not keep the other topics
   * waiting.
   */
  failures(): ReadonlyMap<string, number>
  /** Whether some change could not be read for a minute: what this process knows is too old to serve with. */
  isStuck(): boolean
  start(): Promise<void>
  stop(): void
}

interface VersionRow {
  readonly topic: Topic
  readonly version: bigint
}

const ASK_EVERY_MS = 1_000
const STUCK_MS = 60_000
const ASK = sql('changes', SHORT_MS)`select topic, version from cache_version`
const BUMP = sql('bump')`
  insert into cache_version (topic) values ($1) on conflict (topic) do update set version = cache_version.version + 1`

/** `control`: where the changes of shared tables are counted too, of which this database has none of its own. */
export function createChanges(database: Database, world: World, log?: Log, control?: Queryable): Changes {
  const watchers = new Map<Topic, Array<() => Promise<void> | void>>()
  const seen = new Map<string, bigint>()
  const failures = new Map<string, number>()
  /** Since when a topic could not be read. */
  const failingSinceMs = new Map<string, number>()
  const current = { atMs: Number.NEGATIVE_INFINITY }
  let cancel: (() => void) | undefined
  let stopped = false

  /** All watchers are told, also when one fails. */
  async function tell(topic: Topic): Promise<void> {
    const failed: unknown[] = []
    for (const changed of watchers.get(topic) ?? []) {
      try {
        await changed()
      } catch (error) {
        failed.push(error)
      }
    }
    if (failed.length > 0) throw failed[0]
  }

  async function read(topic: Topic, place: string, version: bigint): Promise<void> {
    try {
      await tell(topic)
      seen.set(place, version)
      if (failingSinceMs.delete(topic)) log?.info({ topic }, 'a change is read that could not be read before')
    } catch (error) {
      failures.set(topic, (failures.get(topic) ?? 0) + 1)
      // Said once, and then counted: it is tried again every second.
      if (!failingSinceMs.has(topic)) log?.error({ topic, error }, 'a change could not be read')
      failingSinceMs.set(topic, failingSinceMs.get(topic) ?? world.elapsedMs())
    }
  }

  async function ask(first: boolean): Promise<void> {
    const askedMs = world.elapsedMs()
    // What is known of control is used for as long as it is away.
    const far = control?.query<VersionRow>(ASK).catch((error: unknown) => {
      if (first) throw error
      return []
    })
    for (const row of await database.query<VersionRow>(ASK)) await see(row, row.topic, first)
    for (const row of (await far) ?? []) await see(row, `control ${row.topic}`, first)
    current.atMs = askedMs
  }

  async function see({ topic, version }: VersionRow, place: string, first: boolean): Promise<void> {
    if (first) seen.set(place, version)
    else if (seen.get(place) !== version) await read(topic, place, version)
  }

  function schedule(): void {
    if (stopped) return
    cancel = world.after(ASK_EVERY_MS, () => {
      // A failed poll is retried; meanwhile `current` stays, so readers see that they may be behind.
      ask(false).then(schedule, schedule)
    })
  }

  return {
    watch(topic, changed) {
      watchers.set(topic, [...(watchers.get(topic) ?? []), changed])
    },
    async bump(tx, topic) {
      await tx.query(BUMP, [topic])
    },
    notice: tell,
    current,
    failures: () => failures,
    isStuck: () => [...failingSinceMs.values()].some((sinceMs) => world.elapsedMs() - sinceMs > STUCK_MS),
    async start() {
      await ask(true)
      schedule()
    },
    stop() {
      stopped = true
      cancel?.()
    },
  }
}
