// After a caller has disconnected, the answer of a vendor that reports usage only at the end is read on, for the time
// in the catalog.
import { type Follower, follow, unfollow } from '../kernel/slot-set.ts'
import type { World } from '../kernel/world.ts'

/** Calls `stop` when this time has passed after the signal aborted, unless the returned function is called before. */
export function boundDrain(
  { signal, drainMs }: { readonly signal: AbortSignal; readonly drainMs: number },
  stop: () => void,
  world: Pick<World, 'after'>,
): () => void {
  let cancel: () => void = () => {}
  const caller: Follower = {
    aborted() {
      cancel = world.after(drainMs, stop)
    },
  }
  if (signal.aborted) caller.aborted(signal.reason)
  const place = signal.aborted ? undefined : follow(signal, caller)
  return () => {
    if (place !== undefined) unfollow(signal, place, caller)
    cancel()
  }
}
