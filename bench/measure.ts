// One measurement: the load against one gateway, and what the gateway used meanwhile.
import { type Aim, type LoadResult, type LoadTools, runLoad, type Shape } from './load.ts'
import { cpuMicros, family, rssMegabytes } from './process.ts'

export interface Measured extends LoadResult {
  /** Processor time of the gateway's processes for each call that was begun. */
  readonly cpu: number
  /** The same of the store. */
  readonly storeCpu: number
  /** Megabytes: the most that was seen, and how it went. */
  readonly rss: number
  readonly rssSeen: readonly number[]
  /** Of Tollgate: what a call waited for its hold, on average, in microseconds. */
  readonly hold?: number
}

const LOOK_EVERY_MS = 1_000

export async function measure(
  tools: LoadTools,
  pids: { readonly gateway: number | undefined; readonly store: number },
  aim: Aim,
  shape: Shape,
): Promise<Measured> {
  const gateway = pids.gateway === undefined ? [] : family(pids.gateway)
  const store = family(pids.store)
  const before = { gateway: cpuMicros(gateway), store: cpuMicros(store) }
  const rssSeen = [rssMegabytes(gateway)]
  const looking = setInterval(() => rssSeen.push(rssMegabytes(gateway)), LOOK_EVERY_MS)
  try {
    const result = await runLoad(tools, aim, shape)
    const calls = Math.max(1, result.started)
    return {
      ...result,
      cpu: (cpuMicros(gateway) - before.gateway) / calls,
      storeCpu: (cpuMicros(store) - before.store) / calls,
      rss: Math.max(...rssSeen),
      rssSeen,
    }
  } finally {
    clearInterval(looking)
  }
}

/** Each figure's median over the rounds. */
export function medians(rounds: readonly Measured[]): Measured {
  const last = rounds.at(-1)
  if (!last) throw new Error('There is no round to take the median of.')
  const figures = Object.entries(last).map(([name, value]) => [
    name,
    typeof value === 'number' ? median(rounds.map((round) => round[name as 'rps'])) : value,
  ])
  return Object.fromEntries(figures) as Measured
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
