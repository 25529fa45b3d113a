// A vendor that tells only at the end what it bills is listened to after its caller has left, for as long as the catalog says.
import { type Follower, follow, unfollow } from '../kernel/slot-set.ts'
import type { World } from '../kernel/world.ts'

/** From when the signal aborts, `stop` is called after so long, unless the function that it returns is called before. */
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
