// Hearing of an abort, for those of whom there are many: the calls of a connection share one signal, which has one listener for all of
// them. A listener for each would cost a call more than its deadline does, and a signal without any makes its table of events anew (kernel/slot-set.ts).
import { SlotSet } from './slot-set.ts'

export interface Follower {
  aborted(reason: unknown): void
}

const followed = new WeakMap<AbortSignal, SlotSet<Follower>>()

/** Of a signal that has not been aborted yet. Answers the place by which the follower leaves. */
export function follow(signal: AbortSignal, follower: Follower): number {
  let followers = followed.get(signal)
  if (!followers) {
    const all = new SlotSet<Follower>()
    signal.addEventListener('abort', () => {
      for (const one of all) one.aborted(signal.reason)
    })
    followed.set(signal, all)
    followers = all
  }
  return followers.add(follower)
}

export function unfollow(signal: AbortSignal, place: number, follower: Follower): void {
  followed.get(signal)?.remove(place, follower)
}
