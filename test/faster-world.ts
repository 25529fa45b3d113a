import { realWorld, type World } from '../src/kernel/world.ts'

/** A world whose clock runs faster, so that limits of seconds are over in a moment. */
export function fasterWorld(times: number): World {
  return {
    ...realWorld,
    elapsedMs: () => realWorld.elapsedMs() * times,
    after: (delayMs, run) => realWorld.after(delayMs / times, run),
  }
}
