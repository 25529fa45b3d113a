// What the sandbox remembers between requests: prompts it has read (so that a repeated one is "cached") and the ids of
// triggers that fire once. Bounded, because a sandbox may run for weeks beside a gateway.

const ENTRIES_MAX = 10_000

export class Memory {
  #seen = new Set<string>()

  /** True the first time it is asked about a key. */
  firstTime(key: string): boolean {
    if (this.#seen.has(key)) return false
    this.#seen.add(key)
    if (this.#seen.size > ENTRIES_MAX) {
      const oldest = this.#seen.values().next().value
      if (oldest !== undefined) this.#seen.delete(oldest)
    }
    return true
  }

  has(key: string): boolean {
    return this.#seen.has(key)
  }
}
