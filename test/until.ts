// Waiting for an event, as every test does that waits: a machine of any speed passes.
import { inspect, isDeepStrictEqual } from 'node:util'

/**
 * For what cannot be waited for: that nothing happens, or that somebody is slow. `why` says which; everything else is
 * waited for by `until`.
 */
export function pause(ms: number, _why: string): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

const UNTIL_MS_MAX = 90_000
const PAUSE_MS_MAX = 50

type Wanted<T> = T | RegExp | ((seen: T) => unknown) | undefined

export const above = (limit: number) => (seen: number) => seen > limit
export const atLeast = (limit: number) => (seen: number) => seen >= limit
export const not = (before: unknown) => (seen: unknown) => seen !== before

/**
 * Looks again and again, more and more rarely, and gives what it found: something (neither false nor undefined), or
 * what is `wanted`: a value, or whatever the function accepts or the expression matches. What has not come after so
 * long will not: the test fails and says what was there instead.
 */
export async function until<T>(look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T>
export async function until<T>(look: () => T | Promise<T>, wanted: Wanted<NoInfer<T>>, withinMs?: number): Promise<T>
export async function until<T>(look: () => T | Promise<T>, wanted?: Wanted<T>, withinMs = UNTIL_MS_MAX): Promise<T> {
  const isIt = (seen: T) => {
    if (typeof wanted === 'function') return (wanted as (seen: T) => unknown)(seen) // Nobody waits for a function.
    if (wanted instanceof RegExp) return wanted.test(String(seen))
    return wanted === undefined ? seen !== undefined && seen !== false : isDeepStrictEqual(seen, wanted)
  }
  const startedMs = performance.now()
  for (let pauseMs = 2; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    const lookedMs = performance.now()
    const seen = await look()
    if (isIt(seen)) return seen
    const nowMs = performance.now()
    if (nowMs - startedMs > withinMs) {
      const after = `${Math.round(withinMs / 1000)} s`
      throw new Error(`Waited ${after} for ${look} to be ${inspect(wanted)}, and it is ${inspect(seen)}.`)
    }
    // What is costly to look at is not looked at all the time.
    await new Promise((resolve) => setTimeout(resolve, Math.max(pauseMs, nowMs - lookedMs)))
  }
}
