// One coarse clock for all running exchanges. Four timers per call would cost more than the call's bookkeeping; instead what is due
// is looked at a few times a second. When that is stands in a list of numbers: 2,000 open streams would not fit into the processor's cache.
import { SlotSet } from '../kernel/slot-set.ts'
import type { World } from '../kernel/world.ts'
import type { Deadlines } from './call.ts'

const LOOK_EVERY_MS = 50
/** Nothing is left alone for longer: what runs may have come to a shorter deadline than the one that it named. */
const UNSEEN_MS_MAX = 500
/** A look that comes so late means that this process was stopped, or had no time for anything. */
const LATE_MS = 1_000

export interface Watched {
  /** Does whatever is due at this monotonic time, and answers when the next thing will be. */
  look(nowMs: number): number
  /** This process slept for so long: what came meanwhile has not been read yet, and silence was nobody's. */
  slept(ms: number): void
}

export interface DeadlineWatch {
  /** Answers the place by which it is removed. */
  add(item: Watched): number
  remove(place: number, item: Watched): void
}

export function createDeadlineWatch(world: World): DeadlineWatch {
  const items = new SlotSet<Watched>()
  /** By place. */
  const dueMs: number[] = []
  let running = false

  let lookedMs = 0

  function look() {
    const nowMs = world.elapsedMs()
    const lateMs = nowMs - lookedMs - LOOK_EVERY_MS
    if (lateMs > LATE_MS) for (const item of items) item.slept(lateMs)
    lookedMs = nowMs
    for (let place = 0; place < dueMs.length; place++) {
      if (nowMs < (dueMs[place] ?? 0)) continue
      const nextMs = items.at(place)?.look(nowMs) ?? Number.POSITIVE_INFINITY
      // Whoever has left meanwhile is not looked at again, nor is the place before it is taken.
      dueMs[place] = items.at(place) ? Math.min(nextMs, nowMs + UNSEEN_MS_MAX) : Number.POSITIVE_INFINITY
    }
    if (items.size > 0) world.after(LOOK_EVERY_MS, look)
    else running = false
  }

  return {
    add(item) {
      const place = items.add(item)
      dueMs[place] = 0
      if (running) return place
      running = true
      lookedMs = world.elapsedMs()
      world.after(LOOK_EVERY_MS, look)
      return place
    },
    remove(place, item) {
      items.remove(place, item)
    },
  }
}

/** How long one exchange may still take. The time in which this side keeps the vendor waiting is not the vendor's. */
export class Patience {
  readonly #totalMs: number
  #totalAtMs: number
  /** What may pass without a sign of life. */
  #quietMs: number
  /** The first look after the last sign of life: to read the clock at each would cost more than the sign itself. */
  #quietFromMs: number | undefined
  /** How long the vendor was kept waiting, up to the last time that something was taken. */
  #heldMs = 0
  /** Since when it is now. */
  #heldFromMs: number | undefined

  constructor({ connectMs, totalMs }: Deadlines, nowMs: number) {
    this.#totalMs = totalMs
    this.#totalAtMs = nowMs + totalMs
    this.#quietMs = connectMs
    this.#quietFromMs = nowMs
  }

  /** A sign of life; the next may take so long. */
  alive(quietMs: number): void {
    this.#quietMs = quietMs
    this.#quietFromMs = undefined
  }

  hold(nowMs: number): void {
    this.#heldFromMs = nowMs
  }

  goOn(nowMs: number): void {
    this.#heldMs = this.heldMs(nowMs)
    this.#heldFromMs = undefined
  }

  heldMs(nowMs: number): number {
    return this.#heldFromMs === undefined ? this.#heldMs : this.#heldMs + nowMs - this.#heldFromMs
  }

  slept(ms: number): void {
    this.#totalAtMs += ms
    if (this.#quietFromMs !== undefined) this.#quietFromMs += ms
    if (this.#heldFromMs !== undefined) this.#heldFromMs += ms
  }

  /** When something may be too long, as far as is known. */
  get dueMs(): number {
    return Math.min(this.#totalAtMs, (this.#quietFromMs ?? 0) + this.#quietMs)
  }

  /** What has been too long, if anything. While our own side holds the answer back, the vendor is not the slow one. */
  exceeded(nowMs: number, isHeldBack: boolean): 'held' | 'total' | 'quiet' | undefined {
    const heldMs = this.heldMs(nowMs)
    if (heldMs >= this.#totalMs) return 'held'
    if (nowMs - heldMs >= this.#totalAtMs) return 'total'
    this.#quietFromMs ??= nowMs
    return !isHeldBack && nowMs - this.#quietFromMs >= this.#quietMs ? 'quiet' : undefined
  }
}
