// Time, randomness and ids come from here and from nowhere else, so that a test can hold the clock and replay a seed.
import { hash, randomBytes } from 'node:crypto'

export interface World {
  /** Wall clock, milliseconds since 1970, UTC. */
  nowMs(): number
  /** A clock that only moves forward, for durations. */
  elapsedMs(): number
  /** Unpredictable bytes. */
  bytes(count: number): Buffer
  /** Runs once after a while; the answer cancels it. */
  after(delayMs: number, run: () => void): () => void
}

const POOL_BYTES = 4096
let pool = Buffer.alloc(0)
let used = 0

export const realWorld: World = {
  nowMs: () => Date.now(),
  elapsedMs: () => performance.now(),
  bytes(count) {
    if (count > 64) return randomBytes(count)
    // One system call for many ids.
    if (used + count > pool.length) {
      pool = randomBytes(POOL_BYTES)
      used = 0
    }
    used += count
    // A view: what was given out is never given out again.
    return pool.subarray(used - count, used)
  },
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs)
    return () => clearTimeout(timer)
  },
}

const BASE32 = '0123456789abcdefghjkmnpqrstvwxyz'
const COUNT_MAX = 32 ** 3 - 1

/** The last id of each world: one that is simulated makes the same ids whatever others do beside it. */
const lastOf = new WeakMap<World, { ms: number; time: string; count: number }>()

/**
 * 26 characters: 10 of time, 3 that count within the millisecond, 13 of randomness. Ids sort by the moment they were
 * made, those of a process in the order in which it made them, so that indexes grow at one end and a list of calls has
 * the order of the calls.
 */
export function newId(world: World): string {
  const ms = world.nowMs()
  let last = lastOf.get(world)
  if (!last) {
    last = { ms, time: idAtTime(ms), count: 0 }
    lastOf.set(world, last)
  } else if (last.ms !== ms) {
    last.ms = ms
    last.time = idAtTime(ms)
    last.count = 0
  }
  const place = Math.min(last.count++, COUNT_MAX)
  const counted = BASE32.charAt(place >> 10) + BASE32.charAt((place >> 5) & 31) + BASE32.charAt(place & 31)
  return last.time + counted + base32(world.bytes(10)).slice(3)
}

/**
 * The id that follows from a text, the same whenever it is asked for. It sorts before all that were ever made by the
 * clock.
 */
export function idFrom(text: string): string {
  return idAtTime(0) + base32(hash('sha256', text, 'buffer').subarray(0, 10))
}

/** The smallest id of a moment: the bound of a range of ids. */
export function idAtTime(ms: number): string {
  let text = ''
  let rest = ms
  for (let i = 0; i < 10; i++) {
    text = BASE32[rest % 32] + text
    rest = Math.floor(rest / 32)
  }
  return text
}

export function timeOfId(id: string): number {
  let ms = 0
  for (const char of id.slice(0, 10)) ms = ms * 32 + BASE32.indexOf(char)
  return ms
}

function base32(bytes: Buffer): string {
  let text = ''
  let bits = 0
  let value = 0
  for (let at = 0; at < bytes.length; at++) {
    value = (value << 8) | bytes[at]!
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += BASE32[(value >> bits) & 31]
    }
    value &= 255
  }
  return text
}
