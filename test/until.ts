// Waiting for an event, as every test does that waits: a machine of any speed passes.

const UNTIL_MS_MAX = 180_000

/**
 * Looks again and again, more and more rarely, until it is so or something is there, and gives what it found. What has not come
 * after minutes will not: the test fails here instead of hanging.
 */
export async function until<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  everyMsMax = 50,
  withinMs = UNTIL_MS_MAX,
): Promise<T> {
  const startedMs = performance.now()
  for (let pauseMs = 2; ; pauseMs = Math.min(2 * pauseMs, everyMsMax)) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() - startedMs > withinMs)
      throw new Error(`This was waited for in vain for ${Math.round(withinMs / 1000)} s: ${look}`)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
