// A choice of the reader for all pages, such as the zone of times: kept in this browser, and followed by whatever shows
// it.
import { useSyncExternalStore } from 'react'

/** The first value is the default. */
export function storedChoice<Value extends string>(name: string, values: readonly [Value, ...Value[]]) {
  const listeners = new Set<() => void>()
  let chosen = read()

  function read(): Value {
    try {
      const stored = localStorage.getItem(name)
      return values.find((value) => value === stored) ?? values[0]
    } catch {
      return values[0]
    }
  }

  const get = (): Value => chosen
  return {
    get,
    set(next: Value): void {
      chosen = next
      try {
        localStorage.setItem(name, next)
      } catch {
        // Without storage the choice lasts until the reload.
      }
      for (const run of listeners) run()
    },
    use: (): Value =>
      useSyncExternalStore((run) => {
        listeners.add(run)
        return () => listeners.delete(run)
      }, get),
  }
}
