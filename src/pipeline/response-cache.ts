// The response cache, an LRU cache: answers of data endpoints, and of models with a `cache` entry. A hit is charged
// like any other answer (at the price of the cache, if it has one). Identical calls at the same time are sent to the
// vendor once (single flight).
import type { World } from '../kernel/world.ts'
import type { Pricing } from '../meter/price.ts'
import type { Answer } from '../protocols/protocol.ts'

export interface CacheRule {
  readonly key: string
  readonly ttlSeconds: number
  /** The price of a cached response; absent: the product's own. */
  readonly pricing?: Pricing | undefined
}

export interface CachedResponse extends Answer {
  /** The route that gave it. */
  readonly route: number
}

/** The call that others wait for. */
export interface SingleFlight {
  /** A larger answer is not cached, and is relayed as it arrives. */
  readonly bytesMax: number
  /** Reserves memory for bytes that arrived and are kept until the answer is complete; false: there is no room. */
  carry(bytes: number): boolean
  /** Ends the flight with the answer, or with undefined if there is none to share. Only the first call counts. */
  complete(answer?: CachedResponse): void
}

export type ResponseCache = ReturnType<typeof createResponseCache>

export function isCached(found: CachedResponse | SingleFlight): found is CachedResponse {
  return 'body' in found
}

const BYTES_MAX = 64 * 1024 * 1024
const ANSWER_BYTES_MAX = BYTES_MAX / 8
/** Maximum bytes of all answers in progress that may be cached. */
const FLYING_BYTES_MAX = BYTES_MAX
/** What an entry takes beside its key and its body, generously. */
const ENTRY_BYTES = 1024
const WAITS_MAX = 2
const WAIT_MS_MAX = 10_000

export function createResponseCache(world: World) {
  /** Least recently used first. */
  const entries = new Map<string, { answer: CachedResponse; untilMs: number; bytes: number }>()
  const flights = new Map<string, Promise<void>>()
  let bytes = 0
  let flyingBytes = 0
  const drop = (key: string) => {
    bytes -= entries.get(key)?.bytes ?? 0
    entries.delete(key)
  }

  function find(key: string): CachedResponse | undefined {
    const entry = entries.get(key)
    if (!entry) return undefined
    entries.delete(key)
    if (world.elapsedMs() >= entry.untilMs) {
      bytes -= entry.bytes
      return undefined
    }
    entries.set(key, entry)
    return entry.answer
  }

  function store({ key, ttlSeconds }: CacheRule, answer: CachedResponse): void {
    drop(key)
    const bodyBytes = Buffer.byteLength(answer.body)
    if (bodyBytes > ANSWER_BYTES_MAX) return
    // A small buffer may be a view of a larger one, which would stay in memory with it.
    const body = Buffer.allocUnsafeSlow(bodyBytes)
    if (typeof answer.body === 'string') body.write(answer.body)
    else answer.body.copy(body)
    const { contentType, usage, route } = answer
    const size = bodyBytes + key.length + ENTRY_BYTES
    const untilMs = world.elapsedMs() + ttlSeconds * 1000
    entries.set(key, { answer: { body, contentType, usage, route }, untilMs, bytes: size })
    bytes += size
    for (const oldest of entries.keys()) {
      if (bytes <= BYTES_MAX) break
      drop(oldest)
    }
  }

  function takeOff(rule: CacheRule): SingleFlight {
    const { promise, resolve } = Promise.withResolvers<void>()
    flights.set(rule.key, promise)
    let carried = 0
    return {
      bytesMax: ANSWER_BYTES_MAX,
      carry(more) {
        if (flyingBytes + more > FLYING_BYTES_MAX || flights.get(rule.key) !== promise) return false
        carried += more
        flyingBytes += more
        return true
      },
      complete(answer) {
        if (flights.get(rule.key) !== promise) return
        flights.delete(rule.key)
        flyingBytes -= carried
        if (answer) store(rule, answer)
        resolve()
      },
    }
  }

  /** Whether the flight has ended; false if it takes too long, or the caller has disconnected. */
  function landing(flight: Promise<void>, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (landed: boolean) => {
        cancel()
        signal.removeEventListener('abort', left)
        resolve(landed)
      }
      const left = () => done(false)
      const cancel = world.after(WAIT_MS_MAX, left)
      signal.addEventListener('abort', left)
      void flight.then(() => done(true))
    })
  }

  return {
    /**
     * A cached answer, or a new flight for the first caller. Waits once, for a limited time, for the flight of another
     * caller. Undefined: that flight gave no answer, so the caller has disconnected or calls the vendor alone.
     */
    async enter(rule: CacheRule, signal: AbortSignal): Promise<CachedResponse | SingleFlight | undefined> {
      // If the first call failed because of its caller, the next one becomes the first. A call that has waited for two
      // flights calls the vendor alone.
      for (let waits = 0; ; waits++) {
        const fresh = find(rule.key)
        if (fresh) return fresh
        const flight = flights.get(rule.key)
        if (!flight) return takeOff(rule)
        if (waits === WAITS_MAX || signal.aborted) return undefined
        if (!(await landing(flight, signal))) return undefined
      }
    },
  }
}
