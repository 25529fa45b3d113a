// One coarse timer for all exchanges in flight. Four timers per call would cost more than the call's bookkeeping;
// instead the due times are checked a few times a second. They are in an array of numbers, because 2,000 open streams
// would not fit into the processor's cache.
import { SlotSet } from '../kernel/slot-set.ts'
import type { World } from '../kernel/world.ts'
import type { Deadlines } from './call.ts'

const LOOK_EVERY_MS = 50
/**
 * Each item is checked at least this often: it may have entered a phase with a shorter deadline than the one it named.
 */
const UNSEEN_MS_MAX = 500
/** A check this late means that the process was suspended or blocked. */
const LATE_MS = 1_000

export interface Watched {
  /** Handles what is due at this monotonic time, and returns when to check next. */
  look(nowMs: number): number
  /**
   * The process was suspended for `ms`. Data may be waiting unread, so this time must not count as the vendor's
   * silence.
   */
  slept(ms: number): void
}

export type DeadlineWatch = ReturnType<typeof createDeadlineWatch>

export function createDeadlineWatch(world: World) {
  const items = new SlotSet<Watched>()
  /** Indexed by slot. */
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
      // An empty slot is not checked again before it is reused.
      dueMs[place] = items.at(place) ? Math.min(nextMs, nowMs + UNSEEN_MS_MAX) : Number.POSITIVE_INFINITY
    }
    if (items.size > 0) world.after(LOOK_EVERY_MS, look)
    else running = false
  }

  return {
    /** Returns the slot for `remove`. */
    add(item: Watched): number {
      const place = items.add(item)
      dueMs[place] = 0
      if (running) return place
      running = true
      lookedMs = world.elapsedMs()
      world.after(LOOK_EVERY_MS, look)
      return place
    },
    remove(place: number, item: Watched): void {
      items.remove(place, item)
    },
  }
}

/** The deadlines of one exchange. Time in which our backpressure holds the vendor does not count against it. */
export class Patience {
  readonly #totalMs: number
  #totalAtMs: number
  /** The longest allowed silence. */
  #quietMs: number
  /**
   * The time of the first check after the last activity. Reading the clock at each activity would cost more than
   * handling it.
   */
  #quietFromMs: number | undefined
  /** How long backpressure has held the vendor, without the current hold. */
  #heldMs = 0
  /** When the current hold began. */
  #heldFromMs: number | undefined

  constructor({ connectMs, totalMs }: Deadlines, nowMs: number) {
    this.#totalMs = totalMs
    this.#totalAtMs = nowMs + totalMs
    this.#quietMs = connectMs
    this.#quietFromMs = nowMs
  }

  /** Records activity; the next may take `quietMs`. */
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

  /** The earliest time at which a deadline may be exceeded. */
  get dueMs(): number {
    return Math.min(this.#totalAtMs, (this.#quietFromMs ?? 0) + this.#quietMs)
  }

  /** The exceeded deadline, if any. While our backpressure holds the answer, silence is not the vendor's fault. */
  exceeded(nowMs: number, isHeldBack: boolean): 'held' | 'total' | 'quiet' | undefined {
    const heldMs = this.heldMs(nowMs)
    if (heldMs >= this.#totalMs) return 'held'
    if (nowMs - heldMs >= this.#totalAtMs) return 'total'
    this.#quietFromMs ??= nowMs
    return !isHeldBack && nowMs - this.#quietFromMs >= this.#quietMs ? 'quiet' : undefined
  }
}
