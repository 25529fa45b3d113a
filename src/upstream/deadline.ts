// One coarse clock for all running exchanges. Four timers per call would cost more than the call's bookkeeping; instead
// everything that runs is looked at a few times a second: 2,000 open streams cost about 20 µs per look.
import { Roster } from '../kernel/roster.ts'
import type { World } from '../kernel/world.ts'

const LOOK_EVERY_MS = 50
/** A look that comes so late means that this process was stopped, or had no time for anything. */
const LATE_MS = 1_000

export interface Watched {
  /** Called at each look with the monotonic time; does whatever is due. */
  look(nowMs: number): void
  /** This process slept for so long: what came meanwhile has not been read yet, and silence was nobody's. */
  slept(ms: number): void
}

export interface DeadlineWatch {
  /** Answers the place by which it is removed. */
  add(item: Watched): number
  remove(place: number, item: Watched): void
}

export function createDeadlineWatch(world: World): DeadlineWatch {
  const items = new Roster<Watched>()
  let running = false

  let lookedMs = 0

  function look() {
    const nowMs = world.elapsedMs()
    const lateMs = nowMs - lookedMs - LOOK_EVERY_MS
    if (lateMs > LATE_MS) for (const item of items) item.slept(lateMs)
    lookedMs = nowMs
    for (const item of items) item.look(nowMs)
    if (items.size > 0) world.after(LOOK_EVERY_MS, look)
    else running = false
  }

  return {
    add(item) {
      const place = items.add(item)
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
