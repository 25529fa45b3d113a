// One slow timer for all open streams: it sends keep-alives on quiet ones and ends streams whose callers do not read.
import { SlotSet } from '../kernel/slot-set.ts'
import type { World } from '../kernel/world.ts'

interface Watched {
  /** Checks since the last write to the caller. The writer resets it to 0, which is cheaper than reading the clock for every piece. */
  quietLooks: number
  /** Since when the caller's socket has been full; 0 while it is not. */
  fullMs: number
  quiet(): void
  stuck(): void
}

export interface StreamWatch {
  add(stream: Watched): () => void
  readonly open: number
  stop(): void
}

const LOOK_EVERY_MS = 2_000
const LATE_MS = 1_000
const QUIET_LOOKS = 6
const STUCK_MS = 30_000

export function createStreamWatch(world: World): StreamWatch {
  const streams = new SlotSet<Watched>()
  let cancel: (() => void) | undefined

  let lookedMs = 0

  function look(): void {
    const nowMs = world.elapsedMs()
    // Time in which this process was suspended must not count against its callers.
    const lateMs = nowMs - lookedMs - LOOK_EVERY_MS
    lookedMs = nowMs
    for (const stream of streams) {
      if (lateMs > LATE_MS && stream.fullMs > 0) stream.fullMs += lateMs
      if (stream.fullMs > 0 && nowMs - stream.fullMs > STUCK_MS) stream.stuck()
      else if (stream.fullMs === 0 && ++stream.quietLooks >= QUIET_LOOKS) {
        stream.quietLooks = 1
        stream.quiet()
      }
    }
    cancel = streams.size > 0 ? world.after(LOOK_EVERY_MS, look) : undefined
  }

  return {
    add(stream) {
      const place = streams.add(stream)
      if (!cancel) {
        lookedMs = world.elapsedMs()
        cancel = world.after(LOOK_EVERY_MS, look)
      }
      return () => {
        streams.remove(place, stream)
      }
    },
    get open() {
      return streams.size
    },
    stop() {
      cancel?.()
    },
  }
}
