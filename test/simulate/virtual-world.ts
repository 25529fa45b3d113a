// Time that passes only when nothing else can happen, and chance that comes from a seed.
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

export class VirtualWorld implements World {
  readonly chance: Chance
  #nowMs = 0
  #order = 0
  #timers: Timer[] = []
  /** Work that real time does: while there is any, virtual time stands still. */
  busy = 0
  static readonly #EPOCH_MS = Date.UTC(2026, 10, 15)

  constructor(chance: Chance) {
    this.chance = chance
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

  /** Lets time pass until the condition holds. */
  async runUntil(done: () => boolean, untilMs: number): Promise<void> {
    for (;;) {
      await this.#quiet()
      if (done()) return
      const next = this.#timers.shift()
      if (!next) throw new Error('everything has come to a standstill, and something still waits')
      if (next.atMs > untilMs) throw new Error(`something still waits after ${untilMs} ms`)
      this.#nowMs = next.atMs
      next.run()
    }
  }

  /** Resolves when no promise, immediate or query has anything left to do. */
  async #quiet(): Promise<void> {
    for (let still = 0; still < 3; ) {
      await new Promise((resolve) => setImmediate(resolve))
      still = this.busy === 0 ? still + 1 : 0
    }
  }
}

function isLater(a: Timer, b: Timer): boolean {
  return a.atMs > b.atMs || (a.atMs === b.atMs && a.order > b.order)
}
