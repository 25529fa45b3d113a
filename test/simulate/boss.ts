// A stand-in for pg-boss in virtual time, with its rules for our two queues: one waiting item for each key, tries again with
// doubling pauses, and items let go of that a process has held for too long.

import { type Boss, WEBHOOK_RETRIES } from '../../src/jobs/queue.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { asMortal, type Mortal } from './faulty-database.ts'
import type { VirtualWorld } from './virtual-world.ts'

interface Item {
  readonly id: string
  readonly key: string
  state: 'created' | 'active' | 'retry'
  retryCount: number
  dueMs: number
  takenMs: number
}

const LIMITS = {
  'job-step': { retries: 0, expireMs: 900_000 },
  webhook: { retries: WEBHOOK_RETRIES, expireMs: 60_000 },
} as const
type Name = keyof typeof LIMITS

export class SimulatedBoss {
  readonly #world: VirtualWorld
  readonly #retryMs: number
  readonly #lost: number
  readonly #queues: Record<Name, Item[]> = { 'job-step': [], webhook: [] }
  #count = 0
  calm = false

  constructor(world: VirtualWorld, options: { retryMs: number; lost: number }) {
    this.#world = world
    this.#retryMs = options.retryMs
    this.#lost = options.lost
  }

  waiting(name: Name): number {
    return this.#queues[name].length
  }

  /** As one process sees it. */
  for(mortal: Mortal): Boss {
    const reach = <T>(run: () => T): Promise<T> =>
      asMortal(mortal, async () => {
        const { chance } = this.#world
        if (!this.calm && chance.is(this.#lost)) throw new Fault('unavailable')
        const result = run()
        if (!this.calm && chance.is(this.#lost)) throw new Fault('unavailable')
        return result
      })
    return {
      insert: (name: Name, items: Array<{ singletonKey: string; startAfter: number }>) =>
        reach(() => {
          for (const { singletonKey, startAfter } of items) this.#insert(name, singletonKey, startAfter * 1000)
        }),
      fetch: (name: Name, { batchSize }: { batchSize: number }) => reach(() => this.#fetch(name, batchSize)),
      deleteJob: (name: Name, taken: ReadonlyArray<{ id: string; retryCount: number }>) =>
        reach(() => {
          for (const { id, retryCount } of taken) if (this.#find(name, id, retryCount)) this.#remove(name, id)
        }),
      fail: (name: Name, { id, retryCount }: { id: string; retryCount: number }) =>
        reach(() => {
          const item = this.#find(name, id, retryCount)
          if (item) this.#failed(name, item)
        }),
      stop: async () => {},
    } as unknown as Boss
  }

  #insert(name: Name, key: string, afterMs: number): void {
    const queue = this.#queues[name]
    if (queue.some((item) => item.key === key && item.state === 'created')) return
    const dueMs = this.#world.elapsedMs() + afterMs
    queue.push({ id: `item_${this.#count++}`, key, state: 'created', retryCount: 0, dueMs, takenMs: 0 })
  }

  #fetch(name: Name, most: number) {
    const nowMs = this.#world.elapsedMs()
    for (const item of [...this.#queues[name]])
      if (item.state === 'active' && nowMs - item.takenMs > LIMITS[name].expireMs) this.#failed(name, item)
    const due = this.#queues[name]
      .filter((item) => item.state !== 'active' && item.dueMs <= nowMs)
      .sort((a, b) => a.dueMs - b.dueMs || (a.key < b.key ? -1 : 1))
      .slice(0, most)
    for (const item of due) Object.assign(item, { state: 'active', takenMs: nowMs })
    if (due.length > 0) this.#world.note(`${name}: ${due.map(({ key }) => key).join(' ')}`)
    return due.map(({ id, key, retryCount }) => ({ id, data: { key }, retryCount }))
  }

  #find(name: Name, id: string, retryCount: number): Item | undefined {
    return this.#queues[name].find(
      (item) => item.id === id && item.state === 'active' && item.retryCount === retryCount,
    )
  }

  #failed(name: Name, item: Item): void {
    if (item.retryCount >= LIMITS[name].retries) {
      this.#remove(name, item.id)
      return
    }
    item.dueMs = this.#world.elapsedMs() + this.#retryMs * 2 ** item.retryCount
    item.state = 'retry'
    item.retryCount += 1
  }

  #remove(name: Name, id: string): void {
    this.#queues[name] = this.#queues[name].filter((item) => item.id !== id)
  }
}
