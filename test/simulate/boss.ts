// A stand-in for pg-boss in virtual time, with its rules for our two queues: one waiting item for each key, and items forgotten
// that a process has held for too long.

import type { Boss } from '../../src/jobs/queue.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { asMortal, type Mortal } from './faulty-database.ts'
import type { VirtualWorld } from './virtual-world.ts'

interface Item {
  readonly id: string
  readonly key: string
  state: 'created' | 'active'
  readonly dueMs: number
  takenMs: number
}

const EXPIRE_MS = 900_000
type Name = 'job-step' | 'delivery'

export class SimulatedBoss {
  readonly #world: VirtualWorld
  readonly #lost: number
  readonly #queues: Record<Name, Item[]> = { 'job-step': [], delivery: [] }
  #count = 0
  calm = false

  constructor(world: VirtualWorld, options: { lost: number }) {
    this.#world = world
    this.#lost = options.lost
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
      deleteJob: (name: Name, taken: ReadonlyArray<{ id: string }>) =>
        reach(() => {
          for (const { id } of taken) this.#remove(name, id)
        }),
      stop: async () => {},
    } as unknown as Boss
  }

  #insert(name: Name, key: string, afterMs: number): void {
    const queue = this.#queues[name]
    if (queue.some((item) => item.key === key && item.state === 'created')) return
    const dueMs = this.#world.elapsedMs() + afterMs
    queue.push({ id: `item_${this.#count++}`, key, state: 'created', dueMs, takenMs: 0 })
  }

  #fetch(name: Name, most: number) {
    const nowMs = this.#world.elapsedMs()
    for (const item of [...this.#queues[name]])
      if (item.state === 'active' && nowMs - item.takenMs > EXPIRE_MS) this.#remove(name, item.id)
    const due = this.#queues[name]
      .filter((item) => item.state !== 'active' && item.dueMs <= nowMs)
      .sort((a, b) => a.dueMs - b.dueMs || (a.key < b.key ? -1 : 1))
      .slice(0, most)
    for (const item of due) Object.assign(item, { state: 'active', takenMs: nowMs })
    if (due.length > 0) this.#world.note(`${name}: ${due.map(({ key }) => key).join(' ')}`)
    return due.map(({ id, key }) => ({ id, data: { key }, retryCount: 0 }))
  }

  #remove(name: Name, id: string): void {
    this.#queues[name] = this.#queues[name].filter((item) => item.id !== id)
  }
}
