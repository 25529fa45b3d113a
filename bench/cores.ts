// Who runs where: the gateway under test alone on one core, everything else on the others.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'

export interface Cores {
  readonly gateway: string
  readonly rest: string
  readonly all: string
  readonly count: number
}

export function chooseCores(): Cores {
  const count = cpus().length
  if (count < 2) throw new Error('The bench needs two cores: one for the gateway, one for everything else.')
  return { gateway: String(count - 1), rest: count === 2 ? '0' : `0-${count - 2}`, all: `0-${count - 1}`, count }
}

/** Everything that this process starts from here on begins on these cores. */
export function moveTo(cores: string, pid: number = process.pid): void {
  execFileSync('taskset', ['-acp', cores, String(pid)], { stdio: 'ignore' })
}

export function machine(): string {
  const [first] = cpus()
  return `${cpus().length} cores of ${first?.model.trim() ?? 'an unknown processor'}, ${process.platform} ${process.arch}`
}

export function loadAverage(): number {
  return loadavg()[0] ?? 0
}

/** From now on: the share of the processors' time that the host gave to other machines. Undefined where nobody says. */
export function watchStolen(): () => number | undefined {
  const before = processorTimes()
  return () => {
    const after = processorTimes()
    if (!before || !after) return undefined
    const all = after.all - before.all
    return all > 0 ? (after.stolen - before.stolen) / all : undefined
  }
}

function processorTimes(): { all: number; stolen: number } | undefined {
  try {
    const times = readFileSync('/proc/stat', 'latin1').split('\n')[0]!.trim().split(/\s+/).slice(1, 9).map(Number)
    return { all: times.reduce((sum, time) => sum + time, 0), stolen: times[7] ?? 0 }
  } catch {
    return undefined
  }
}
