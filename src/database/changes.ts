// How a process learns what another one changed: it polls a few counters once a second. Unlike notifications this works through every pooler,
// and a process that could not poll knows that it may be behind.
import type { World } from '../kernel/world.ts'
import { type Database, type Queryable, SHORT_MS, statement } from './database.ts'

type Topic =
  | 'catalog'
  | 'keys'
  | 'credentials'
  | 'byok-keys'
  | 'branding'
  | 'reports'
  | 'tool-servers'
  | 'tool-connections'

export interface Changes {
  watch(topic: Topic, changed: () => Promise<void> | void): void
  /** Call it in the transaction of the change; after the commit `notice` informs the watchers of this process at once. */
  bump(tx: Queryable, topic: Topic): Promise<void>
  /** Call it after the commit: this process then does not wait for its next poll. */
  notice(topic: Topic): Promise<void>
  /** Milliseconds since the counters were last known to be current. */
  ageMs(): number
  start(): Promise<void>
  stop(): void
}

const ASK_EVERY_MS = 1_000
const ASK = statement('changes', 'select topic, version from cache_version', SHORT_MS)
const BUMP = statement(
  'bump',
  'insert into cache_version (topic) values ($1) on conflict (topic) do update set version = cache_version.version + 1',
)

export function createChanges(database: Database, world: World): Changes {
  const watchers = new Map<Topic, Array<() => Promise<void> | void>>()
  const seen = new Map<string, bigint>()
  let lastMs = Number.NEGATIVE_INFINITY
  let cancel: (() => void) | undefined
  let stopped = false

  async function tell(topic: Topic): Promise<void> {
    for (const changed of watchers.get(topic) ?? []) await changed()
  }

  async function ask(first: boolean): Promise<void> {
    const askedMs = world.elapsedMs()
    const rows = await database.query<{ topic: Topic; version: bigint }>(ASK)
    for (const { topic, version } of rows) {
      const news = seen.get(topic) !== version
      if (news && !first) await tell(topic)
      seen.set(topic, version)
    }
    lastMs = askedMs
  }

  function schedule(): void {
    if (stopped) return
    cancel = world.after(ASK_EVERY_MS, () => {
      // A failed poll is retried; meanwhile `ageMs` grows, so readers see that they may be behind.
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
    ageMs: () => world.elapsedMs() - lastMs,
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
