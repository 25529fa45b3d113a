// The queue: pg-boss on the same Postgres. It remembers what is due when, and hands each item to one process at a time. A
// consumer takes as many as it has room for, runs them side by side, and removes each when it is done.
import type pg from 'pg'
import { PgBoss } from 'pg-boss'
import { openPool } from '../database/pool.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import { createBatch } from '../ledger/batch.ts'

const NAMES = ['job-step', 'delivery', 'batch', 'background'] as const
export type QueueName = (typeof NAMES)[number]

export interface QueueItem {
  /** The job, the delivery, the batch that it is about. */
  readonly key: string
}

interface ConsumeOptions {
  readonly atOnceMax: number
  readonly everyMs: number
  /** Its row says when it is due again, and whoever runs it queues it anew. */
  readonly run: (item: QueueItem) => Promise<void>
}

interface Consumer {
  /** There may be something due now. */
  wake(): void
  /** Takes nothing more, and resolves when what runs has ended. */
  stop(): Promise<void>
  readonly running: number
}

export interface Queue {
  /** Queues an item for later; one that waits already is left as it is. */
  push(name: QueueName, key: string, afterMs: number): Promise<void>
  /** One that waits is due now; where none does, one is queued. */
  hasten(name: QueueName, key: string): Promise<void>
  consume(name: QueueName, options: ConsumeOptions): Consumer
  close(): Promise<void>
}

interface QueueOptions {
  readonly connection: pg.PoolConfig
  readonly world: World
  readonly log: Log
}

/** What the queue needs of pg-boss. */
export type Boss = Pick<PgBoss, 'insert' | 'update' | 'fetch' | 'deleteJob' | 'stop'>

const SCHEMA = 'pgboss'
const CONNECTIONS_MAX = 3
const FETCH_MAX = 200
/** Making its tables takes a while; what follows is short, and a server that vanished must not keep it waiting. */
const START_MS_MAX = 60_000
const QUERY_MS_MAX = 5_000
/** After so many turns without an item the queue is looked at more rarely. What is made here wakes it all the same, and so do sweeps that find something late. */
const QUIET_TURNS = 30
const QUIET_FACTOR = 10

interface Pushed {
  readonly key: string
  readonly afterMs: number
}
interface Taken {
  readonly id: string
  readonly retryCount: number
}

export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { log } = options
  const { connection } = options
  const pool = openPool({ connection, connectionsMax: CONNECTIONS_MAX, name: 'tollgate-queue' })
  let withinMs = START_MS_MAX
  const boss = new PgBoss({
    db: {
      executeSql: (text, values) => pool.query({ text, ...(values ? { values } : {}) }, withinMs),
    },
    schema: SCHEMA,
    schedule: false,
    // No item waits for others.
    flowIntervalSeconds: 3_600,
  })
  boss.on('error', (error) => log.warn({ error }, 'queue'))
  try {
    await boss.start()
    await settleQueues(boss)
  } catch (error) {
    await boss.stop({ graceful: false })
    await pool.close()
    throw error
  }
  withinMs = QUERY_MS_MAX
  const queue = createQueue(boss, options)
  return {
    ...queue,
    async close() {
      await queue.close()
      await pool.close()
    },
  }
}

/** Nearly every start finds them as they are to be: one question then, and not two changes for each. */
async function settleQueues(
  boss: Pick<PgBoss, 'getQueues' | 'createQueue' | 'updateQueue' | 'deleteQueue'>,
): Promise<void> {
  const { policy, ...settings } = STEP
  const there = new Map((await boss.getQueues()).map((queue) => [queue.name, new Map(Object.entries(queue))]))
  for (const name of NAMES) {
    const found = there.get(name)
    if (!found) await boss.createQueue(name, STEP)
    // One that an earlier version made is brought up to date.
    else if (Object.entries(settings).some(([field, value]) => found.get(field) !== value))
      await boss.updateQueue(name, settings)
  }
  // What waited there has rows that say so, and is queued anew.
  for (const name of there.keys()) if (!NAMES.some((one) => one === name)) await boss.deleteQueue(name)
}

export function createQueue(boss: Boss, { world, log }: Pick<QueueOptions, 'world' | 'log'>): Queue {
  const pushes = perQueue((name) =>
    createBatch<Pushed, void>({
      async flush(items) {
        await boss.insert(
          name,
          items.map(({ key, afterMs }) => ({ data: { key }, singletonKey: key, startAfter: afterMs / 1000 })),
        )
        return items.map(() => undefined)
      },
      flushesMax: 1,
      sizeMax: 1_000,
    }),
  )
  const removals = perQueue((name) =>
    createBatch<Taken, void>({
      async flush(items) {
        await boss.deleteJob(name, items as Taken[])
        return items.map(() => undefined)
      },
      flushesMax: 1,
      sizeMax: 1_000,
    }),
  )

  function consume(name: QueueName, { atOnceMax, everyMs, run }: ConsumeOptions): Consumer {
    const running = new Set<Promise<void>>()
    let stopping = false
    let woken = false
    /** Nobody has been busy here yet: a first look finds what was left, and makes it so. */
    let takenMs = Number.NEGATIVE_INFINITY
    let wakeUp: () => void = () => {}

    const wake = () => {
      woken = true
      wakeUp()
    }
    const pause = () =>
      new Promise<void>((resolve) => {
        if (woken || stopping) return resolve()
        const isQuiet = world.elapsedMs() - takenMs > everyMs * QUIET_TURNS
        const cancel = world.after(isQuiet ? everyMs * QUIET_FACTOR : everyMs, resolve)
        wakeUp = () => {
          cancel()
          resolve()
        }
      })

    async function handle(item: { id: string; data: { key: string }; retryCount: number }): Promise<void> {
      try {
        await run({ key: item.data.key })
        await removals[name].run({ id: item.id, retryCount: item.retryCount })
      } catch (error) {
        // The queue lets go of it by itself after its time limit.
        log.warn({ error, queue: name }, 'queue item could not be finished')
      }
    }

    async function loop(): Promise<void> {
      while (!stopping) {
        woken = false
        const room = Math.min(FETCH_MAX, atOnceMax - running.size)
        let taken = 0
        if (room > 0) {
          const items = await boss.fetch<{ key: string }>(name, { batchSize: room }).catch((error: unknown) => {
            log.warn({ error, queue: name }, 'queue could not be read')
            return []
          })
          taken = items.length
          if (taken > 0) takenMs = world.elapsedMs()
          for (const item of items) {
            const handled = handle(item).finally(() => {
              running.delete(handled)
              if (running.size === atOnceMax - 1) wake()
            })
            running.add(handled)
          }
        }
        if (room > 0 && taken === room) continue
        await pause()
      }
    }
    const ended = loop()

    return {
      wake,
      async stop() {
        stopping = true
        wakeUp()
        await ended
        await Promise.all(running)
      },
      get running() {
        return running.size
      },
    }
  }

  const push: Queue['push'] = (name, key, afterMs) => pushes[name].run({ key, afterMs })
  return {
    push,
    async hasten(name, key) {
      await push(name, key, 0)
      await boss.update(name, { key }, { singletonKey: key, startAfter: 0 })
    },
    consume,
    close: () => boss.stop({ graceful: false }),
  }
}

function perQueue<T>(make: (name: QueueName) => T): Record<QueueName, T> {
  return {
    'job-step': make('job-step'),
    delivery: make('delivery'),
    batch: make('batch'),
    background: make('background'),
  }
}

// An item is never tried again by the queue, not even one left by a dead process: the row knows better when its next step is due.
const STEP = { policy: 'short', retryLimit: 0, expireInSeconds: 900, deleteAfterSeconds: 60 } as const
