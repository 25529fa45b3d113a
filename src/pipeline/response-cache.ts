// An LRU cache: answers of data endpoints, and of models whose entry says so, that we keep for a while. They are paid for
// like any other answer (at the cache's own price, if it has one), and fetched once when many ask for the same at the same time.
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
  /** What is larger is not kept, and goes out as it comes. */
  readonly bytesMax: number
  /** So many more bytes of it have come and are held until it lands; false: there is no room for them. */
  carry(bytes: number): boolean
  /** The answer is there, or (undefined) nobody can be given it. Only the first time counts. */
  complete(answer?: CachedResponse): void
}

export interface ResponseCache {
  /**
   * A fresh answer, or the flight of the first who asks. Waits once for the flight of another, and not for long; undefined when
   * that brought nothing: the caller has gone, or asks for itself alone.
   */
  enter(rule: CacheRule, signal: AbortSignal): Promise<CachedResponse | SingleFlight | undefined>
}

export function isCached(found: CachedResponse | SingleFlight): found is CachedResponse {
  return 'body' in found
}

const BYTES_MAX = 64 * 1024 * 1024
const ANSWER_BYTES_MAX = BYTES_MAX / 8
/** Of all answers that are under way and may be kept. */
const FLYING_BYTES_MAX = BYTES_MAX
/** What an entry takes beside its key and its body, generously. */
const ENTRY_BYTES = 1024
const WAITS_MAX = 2
const WAIT_MS_MAX = 10_000

export function createResponseCache(world: World): ResponseCache {
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
    // A small buffer is part of a larger one, which would stay with it.
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

  /** Whether it has landed; false when it takes too long, or the caller has gone. */
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
    async enter(rule, signal) {
      // The first call may have failed because of its caller; then the next one goes first. A call that has waited for two goes on by itself.
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
