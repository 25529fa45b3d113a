// One coarse clock for all running exchanges. Four timers per call would cost more than the call's bookkeeping; instead
// everything that runs is looked at a few times a second: 2,000 open streams cost about 20 µs per look.
import type { World } from '../kernel/world.ts'

const LOOK_EVERY_MS = 50

export interface Watched {
  /** Called at each look with the monotonic time; does whatever is due. */
  look(nowMs: number): void
}

export interface DeadlineWatch {
  add(item: Watched): void
  remove(item: Watched): void
}

export function createDeadlineWatch(world: World): DeadlineWatch {
  const items = new Set<Watched>()
  let running = false

  function look() {
    const nowMs = world.elapsedMs()
    for (const item of items) item.look(nowMs)
    if (items.size > 0) world.after(LOOK_EVERY_MS, look)
    else running = false
  }

  return {
    add(item) {
      items.add(item)
      if (running) return
      running = true
      world.after(LOOK_EVERY_MS, look)
    },
    remove(item) {
      items.delete(item)
    },
  }
}
