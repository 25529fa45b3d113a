// Answers of data endpoints that the catalogue lets us keep for a while: shared across callers, paid for like any other
// answer (at the cache's own price, if it has one), and fetched once when many ask for the same at the same time.
import { admit, rateHeaders } from '../admission/admit.ts'
import { asFault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { Pricing } from '../meter/price.ts'
import type { Answer } from '../protocols/protocol.ts'
import type { Arrived, PathDeps } from './call.ts'
import { serve } from './serve.ts'
import { receiptHeaders, release, settle } from './settle.ts'

export interface DataCache {
  /** A fresh answer, if there is one. */
  find(key: string): Answer | undefined
  keep(key: string, answer: Answer, ttlSeconds: number): void
  /** Calls under way for a key: others wait for the first. */
  readonly flights: Map<string, Promise<void>>
}

export interface CacheRule {
  readonly key: string
  readonly ttlSeconds: number
  readonly pricing: Pricing | undefined
}

const BYTES_MAX = 64 * 1024 * 1024
const ANSWER_BYTES_MAX = BYTES_MAX / 8

export function createDataCache(world: World): DataCache {
  /** In the order of use: the first is the one that was not asked for the longest. */
  const kept = new Map<string, { answer: Answer; untilMs: number; bytes: number }>()
  let bytes = 0
  const drop = (key: string) => {
    bytes -= kept.get(key)?.bytes ?? 0
    kept.delete(key)
  }
  return {
    flights: new Map(),
    find(key) {
      const entry = kept.get(key)
      if (!entry) return undefined
      kept.delete(key)
      if (world.elapsedMs() >= entry.untilMs) {
        bytes -= entry.bytes
        return undefined
      }
      kept.set(key, entry)
      return entry.answer
    },
    keep(key, answer, ttlSeconds) {
      drop(key)
      const size = Buffer.byteLength(answer.body)
      if (size > ANSWER_BYTES_MAX) return
      kept.set(key, { answer, untilMs: world.elapsedMs() + ttlSeconds * 1000, bytes: size })
      bytes += size
      for (const oldest of kept.keys()) {
        if (bytes <= BYTES_MAX) break
        drop(oldest)
      }
    },
  }
}

export async function serveThroughCache(
  arrived: Arrived,
  rule: CacheRule,
  cache: DataCache,
  deps: PathDeps,
): Promise<void> {
  const stored = cache.find(rule.key)
  if (stored) return serveStored(arrived, rule, stored, deps)
  const flight = cache.flights.get(rule.key)
  if (flight) {
    await flight
    const landed = cache.find(rule.key)
    if (landed) return serveStored(arrived, rule, landed, deps)
    // The first one failed; its fault may have been its own caller's.
    return serve(arrived, deps)
  }
  const { promise, resolve } = Promise.withResolvers<void>()
  cache.flights.set(rule.key, promise)
  // The others wait for the vendor, not for the first one's caller, who may read slowly.
  const land = () => {
    if (cache.flights.get(rule.key) === promise) cache.flights.delete(rule.key)
    resolve()
  }
  const landed = (answer: Answer | undefined) => {
    if (answer) cache.keep(rule.key, answer, rule.ttlSeconds)
    land()
  }
  try {
    await serve(
      { ...arrived, extraHeaders: { 'x-cache': 'miss' }, share: { bytesMax: ANSWER_BYTES_MAX, landed } },
      deps,
    )
  } finally {
    land()
  }
}

async function serveStored(arrived: Arrived, rule: CacheRule, answer: Answer, deps: PathDeps): Promise<void> {
  const priced = { ...arrived, product: { ...arrived.product, pricing: rule.pricing ?? arrived.product.pricing } }
  const seen = deps.monitor.begin(priced)
  try {
    const admitted = await admit(priced, deps.ledger)
    if (admitted === 'replay') return
    const held = { ...priced, admitted }
    try {
      const receipt = await settle(
        held,
        { usage: answer.usage ?? arrived.ask.worst, estimated: false, status: 200 },
        deps,
      )
      arrived.out.send(
        200,
        {
          'content-type': answer.contentType,
          'x-cache': 'hit',
          ...receiptHeaders(receipt),
          ...(admitted.rate ? rateHeaders(admitted.rate) : {}),
        },
        answer.body,
      )
      seen.end(receipt)
    } catch (error) {
      await release(held, asFault(error).status, deps)
      throw error
    }
  } catch (error) {
    seen.end({ status: asFault(error).status, outcome: 'refused', charged: 0n })
    throw error
  }
}
