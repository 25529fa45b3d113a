// What is under way now: members come and go with every call. Not a `Set`: V8 makes the table of one anew every few
// members and lets the old table point to the new one. Once the first of them has grown old in memory, each keeps the
// next alive, with all that was in it, until a full collection: every call was carried through two young ones.

export class SlotSet<T> implements Iterable<T> {
  readonly #places: Array<T | undefined> = []
  readonly #free: number[] = []

  get size(): number {
    return this.#places.length - this.#free.length
  }

  /** Returns the member's place, which `remove` takes. */
  add(member: T & {}): number {
    const place = this.#free.pop() ?? this.#places.length
    this.#places[place] = member
    return place
  }

  /**
   * Returns whether the member was there. Removing it twice is harmless: the place may belong to another member by
   * then.
   */
  remove(place: number, member: T & {}): boolean {
    if (this.#places[place] !== member) return false
    this.#places[place] = undefined
    this.#free.push(place)
    return true
  }

  at(place: number): T | undefined {
    return this.#places[place]
  }

  /** Members removed during the iteration are skipped; members added during it may be skipped. */
  *[Symbol.iterator](): Generator<T> {
    for (let place = 0; place < this.#places.length; place++) {
      const member = this.#places[place]
      if (member !== undefined) yield member
    }
  }
}

// Hearing of an abort, for those of whom there are many: the calls of a connection share one signal, which has one
// listener for all of them. A listener for each would cost a call more than its deadline does, and a signal without any
// makes its table of events anew (kernel/slot-set.ts).

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
