// Waiting and repeating, on the world's clock.
import type { Log } from './log.ts'
import type { World } from './world.ts'

export function sleep(world: World, ms: number): Promise<void> {
  return new Promise((resolve) => world.after(ms, resolve))
}

/** Repeats until stopped, the first time after a while. A failure is logged and does not end the repetition. */
export function every(world: World, intervalMs: number, run: () => Promise<unknown>, log: Log): () => void {
  let cancel: () => void = () => {}
  let stopped = false
  const schedule = () => {
    if (stopped) return
    cancel = world.after(intervalMs, () => {
      run()
        .catch((error: unknown) => log.warn({ error }, 'background work failed; it will be tried again'))
        .finally(schedule)
    })
  }
  schedule()
  return () => {
    stopped = true
    cancel()
  }
}

/** Whoever asks for what is on its way waits for that. */
export function joining<T>(): (name: string, run: () => Promise<T>) => Promise<T> {
  const going = new Map<string, Promise<T>>()
  return (name, run) => {
    const known = going.get(name) ?? run().finally(() => going.delete(name))
    going.set(name, known)
    return known
  }
}
