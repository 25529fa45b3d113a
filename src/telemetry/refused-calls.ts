// Refused calls in the live list. Those of one kind (key, fault, product, endpoint) in the same minute are one line with a count, and there
// are so many lines: a client that is refused thousands of times a second pushes nobody else's calls out of sight.
import type { World } from '../kernel/world.ts'
import type { LiveCall } from './monitor.ts'

export const REFUSED_KEPT = 50
/** As the list of refusals counts them: the first of a kind, to which the line leads, has a row there. */
const MINUTE_MS = 60_000

export class RefusedCalls {
  readonly #world: Pick<World, 'elapsedMs'>
  readonly #kinds = new Map<string, LiveCall>()

  constructor(world: Pick<World, 'elapsedMs'>) {
    this.#world = world
  }

  note(call: LiveCall): void {
    const minute = Math.floor(this.#world.elapsedMs() / MINUTE_MS)
    const kind = `${minute} ${call.key} ${call.fault} ${call.product} ${call.endpoint}`
    const first = this.#kinds.get(kind) ?? call
    if (first !== call) {
      first.calls += 1
      first.atMs = call.atMs
      first.durationMs = call.durationMs
    }
    // The one that was last refused stays longest.
    this.#kinds.delete(kind)
    this.#kinds.set(kind, first)
    if (this.#kinds.size <= REFUSED_KEPT) return
    for (const oldest of this.#kinds.keys()) {
      this.#kinds.delete(oldest)
      break
    }
  }

  list(): LiveCall[] {
    return [...this.#kinds.values()]
  }
}
