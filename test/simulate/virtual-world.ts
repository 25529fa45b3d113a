// Time that passes only when nothing else can happen, and chance that comes from a seed.
import { createHash } from 'node:crypto'
import type { World } from '../../src/kernel/world.ts'

export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = (seed ^ 0x9e3779b9) >>> 0
  }

  /** From 0 up to, but not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }

  below(most: number): number {
    return Math.floor(this.next() * most)
  }

  is(likely: number): boolean {
    return this.next() < likely
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)))
  }
}

interface Timer {
  readonly atMs: number
  readonly order: number
  readonly run: () => void
}

/** Turns of the event loop after which everything that can happen without time or database has happened. */
const QUIET_TURNS = 3

export class VirtualWorld implements World {
  readonly chance: Chance
  readonly #tell: ((line: string) => void) | undefined
  readonly #story = createHash('sha256')
  #nowMs = 0
  #order = 0
  #timers: Timer[] = []
  /** What only real time can do, waiting for its turn: one at a time, so that a seed always tells the same story. */
  #work: Array<() => Promise<void>> = []
  events = 0
  static readonly #EPOCH_MS = Date.UTC(2026, 10, 15)

  constructor(chance: Chance, tell?: (line: string) => void) {
    this.chance = chance
    this.#tell = tell
  }

  nowMs(): number {
    return VirtualWorld.#EPOCH_MS + this.#nowMs
  }

  elapsedMs(): number {
    return this.#nowMs
  }

  bytes(count: number): Buffer {
    return this.chance.bytes(count)
  }

  after(delayMs: number, run: () => void): () => void {
    const timer: Timer = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run }
    let at = this.#timers.length
    while (at > 0 && isLater(this.#timers[at - 1]!, timer)) at--
    this.#timers.splice(at, 0, timer)
    return () => {
      const index = this.#timers.indexOf(timer)
      if (index >= 0) this.#timers.splice(index, 1)
    }
  }

  pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.after(delayMs, resolve))
  }

  /** Runs it when everything else stands still; of several that wait, chance decides which comes first. */
  perform<T>(run: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#work.push(() => run().then(resolve, reject))
    })
  }

  /** A line of the story. The same seed tells the same lines, and so has the same digest. */
  note(line: string): void {
    this.#story.update(`${this.#nowMs} ${line}\n`)
    this.#tell?.(`${String(this.#nowMs).padStart(8)}  ${line}`)
  }

  /** To be asked once, at the end. */
  digest(): string {
    return this.#story.digest('hex').slice(0, 16)
  }

  /** Lets time pass until the condition holds. */
  async runUntil(done: () => boolean, untilMs: number): Promise<void> {
    for (;;) {
      await this.#quiet()
      if (done()) return
      this.events += 1
      if (this.#work.length > 0) {
        const [work] = this.#work.splice(this.chance.below(this.#work.length), 1)
        await work!()
        continue
      }
      const next = this.#timers.shift()
      if (!next) throw new Error('everything has come to a standstill, and something still waits')
      if (next.atMs > untilMs) throw new Error(`something still waits after ${untilMs} ms`)
      this.#nowMs = next.atMs
      next.run()
    }
  }

  async #quiet(): Promise<void> {
    for (let turn = 0; turn < QUIET_TURNS; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

function isLater(a: Timer, b: Timer): boolean {
  return a.atMs > b.atMs || (a.atMs === b.atMs && a.order > b.order)
}
