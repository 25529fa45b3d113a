// Status changes for listeners. One query a second serves all listeners of a process, so it does not matter which process works on a job.

import type { JobStatus } from '../catalog/generation-answers.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import type { JobRow, Jobs } from './job.ts'

export interface JobEvents {
  /** Calls `onChange` with each new status. The returned function ends the subscription. */
  listen(job: JobRow, onChange: (job: JobRow) => void): () => void
  stop(): void
}

interface Listener {
  readonly id: string
  seen: JobStatus
  readonly onChange: (job: JobRow) => void
}

export function createJobEvents(options: { jobs: Jobs; world: World; log: Log; everyMs: number }): JobEvents {
  const { jobs, world, log, everyMs } = options
  const listeners = new Set<Listener>()
  let cancel: (() => void) | undefined
  let asking = false

  async function ask(): Promise<void> {
    const asked = [...listeners]
    // Many listeners may follow the same job: the query names it once for each status that they last saw.
    const once = [...new Map(asked.map((one) => [`${one.id} ${one.seen}`, one])).values()]
    const rows = await jobs.changed(
      once.map(({ id }) => id),
      once.map(({ seen }) => seen),
    )
    const byId = new Map(rows.map((row) => [row.id, row]))
    for (const listener of asked) {
      const row = byId.get(listener.id)
      if (!row || row.status === listener.seen) continue
      listener.seen = row.status
      if (listeners.has(listener)) listener.onChange(row)
    }
  }

  function schedule(): void {
    if (cancel || asking || listeners.size === 0) return
    cancel = world.after(everyMs, () => {
      cancel = undefined
      asking = true
      ask()
        .catch((error: unknown) =>
          log.warn({ error }, 'events of jobs could not be read; they will be asked for again'),
        )
        .finally(() => {
          asking = false
          schedule()
        })
    })
  }

  return {
    listen(job, onChange) {
      const listener: Listener = { id: job.id, seen: job.status, onChange }
      listeners.add(listener)
      schedule()
      return () => listeners.delete(listener)
    },
    stop() {
      listeners.clear()
      cancel?.()
    },
  }
}
