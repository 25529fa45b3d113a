// `npm run bench -- cold [--rounds 5] [--node=…]`: what a fresh process costs beside one that has run for a while, and
// for how long its event loop stands still when it is called from its first second on; and how soon a second start is
// ready, with how much memory, and what it does when nobody calls. Each round has two processes that start on a compile
// cache of an earlier one: the first serves 10,000 calls, 60,000 that are not counted, and 10,000 more; the second is
// called 300 times a second as soon as it says that it is ready.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Bed, openBed } from './bed.ts'
import { listCases } from './cases.ts'
import type { Shape } from './load.ts'
import { measure, median } from './measure.ts'
import { cpuMicros, family, rssMegabytes } from './process.ts'
import { aimAt } from './target.ts'
import { startTollgate, type Tollgate } from './tollgate.ts'

const FEW = 10_000
const MANY = 60_000
const CALLERS = 64
const STARTS = 3
const REST_MS = 5_000
const IDLE_MS = 30_000
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const RATE = { connections: 8, rate: 300, seconds: 8, warmSeconds: 0 }

/**
 * Inside the process: each moment at which a timer of a few milliseconds came late, with the time of day, written when
 * it ends.
 */
const watchOf = (file: string) =>
  `--import=data:text/javascript,${encodeURIComponent(`
    import { writeFileSync } from 'node:fs'
    const stops = []
    let before = performance.now()
    setInterval(() => {
      const now = performance.now()
      if (now - before > 15) stops.push([Date.now() - (now - before) + 5, now - before - 5])
      before = now
    }, 5).unref()
    process.on('exit', () => writeFileSync(${JSON.stringify(file)}, JSON.stringify(stops)))`)}`

export interface Cold {
  /** The first calls beside later ones, in processor time of each. */
  readonly ratio: number
  readonly ratios: readonly number[]
  readonly firstMicros: number
  readonly steadyMicros: number
  readonly stopMs: number
  readonly stopsMs: readonly number[]
  readonly readyMs: number
  /** Megabytes, a few seconds after the start. */
  readonly rss: number
  readonly idlePercent: number
}

/** `say`: for those who wait. */
export async function measureCold(
  { tools, store, options }: Bed,
  { rounds, flags = [], say }: { rounds: number; flags?: readonly string[]; say: (line: string) => void },
): Promise<Cold> {
  const chat = listCases(true).find(({ id }) => id === 'chat-64')
  if (!chat) throw new Error('There is no such case.')
  // Under one name: the second of them finds what the first has compiled, and its database.
  const open = (nodeOptions: readonly string[], databaseName?: string) =>
    startTollgate({ ...options, store, name: 'cold', nodeOptions: [...flags, ...nodeOptions], databaseName })
  const load = (tollgate: Tollgate, shape: Shape) =>
    measure(tools, { gateway: tollgate.pid, store: store.pid }, aimAt(tollgate, chat.body, chat.path), shape)
  const served = (tollgate: Tollgate, total: number) =>
    load(tollgate, { connections: CALLERS, seconds: 120, warmSeconds: 0, total })
  const earlier = await open([])
  await earlier.stop()
  const found = { ratios: [] as number[], first: [] as number[], steady: [] as number[], stops: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    const fresh = await open([])
    const first = (await served(fresh, FEW)).cpu
    await served(fresh, MANY)
    const steady = (await served(fresh, FEW)).cpu
    await fresh.stop()
    found.first.push(first)
    found.steady.push(steady)
    found.ratios.push(first / steady)

    const file = join(options.directory, `stops-${round}.json`)
    const second = await open([watchOf(file)])
    const readyMs = Date.now()
    await load(second, RATE)
    await second.stop()
    const stops = JSON.parse(await readFile(file, 'utf8')) as Array<[number, number]>
    const within = stops.filter(([atMs]) => atMs >= readyMs && atMs < readyMs + RATE.seconds * 1000)
    found.stops.push(Math.max(0, ...within.map(([, ms]) => ms)))
    const longest = within.toSorted(([, a], [, b]) => b - a).slice(0, 5)
    const told = longest.map(([atMs, ms]) => `${ms.toFixed(0)} ms after ${((atMs - readyMs) / 1000).toFixed(1)} s`)
    say(
      `  cold, round ${round + 1}: ${first.toFixed(0)} and ${steady.toFixed(0)} µs a call; longest stops: ${told.join(', ')}`,
    )
  }
  return {
    ratio: median(found.ratios),
    ratios: found.ratios,
    firstMicros: median(found.first),
    steadyMicros: median(found.steady),
    stopMs: median(found.stops),
    stopsMs: found.stops,
    ...(await rest(() => open([], earlier.databaseName))),
  }
}

/**
 * Of a second start, on a database that is there: how soon it is ready, what it takes, and what it does when nobody
 * calls.
 */
async function rest(open: () => Promise<Tollgate>): Promise<Pick<Cold, 'readyMs' | 'rss' | 'idlePercent'>> {
  const starts: number[] = []
  for (let start = 0; start < STARTS; start++) {
    const tollgate = await open()
    starts.push(tollgate.readyMs)
    if (start < STARTS - 1) {
      await tollgate.stop()
      continue
    }
    await sleep(REST_MS)
    const pids = family(tollgate.pid)
    const rss = rssMegabytes(pids)
    const before = cpuMicros(pids)
    await sleep(IDLE_MS)
    const idlePercent = (cpuMicros(pids) - before) / 10 / IDLE_MS
    await tollgate.stop()
    return { readyMs: median(starts), rss, idlePercent }
  }
  throw new Error('There was no start.')
}

async function main(): Promise<void> {
  const { values: args } = parseArgs({
    args: process.argv.slice(3),
    options: { rounds: { type: 'string', default: '5' }, node: { type: 'string', default: '' } },
  })
  const bed = await openBed('cold')
  try {
    const cold = await measureCold(bed, {
      rounds: Number(args.rounds),
      flags: args.node.split(' ').filter(Boolean),
      say: (line) => console.error(line),
    })
    console.log(coldWords(cold))
  } finally {
    await bed.close()
  }
}

export function coldWords(cold: Cold): string {
  const { ratio, ratios, firstMicros, steadyMicros, stopMs, stopsMs, readyMs, rss, idlePercent } = cold
  return [
    `The first ${FEW} calls take ${ratio.toFixed(2)} × the processor time of as many after ${MANY} more (${firstMicros.toFixed(0)} and ${steadyMicros.toFixed(0)} µs a call; rounds: ${ratios.map((one) => one.toFixed(2)).join(', ')}).`,
    `Called ${RATE.rate} times a second from readiness on, the event loop stands still for ${stopMs.toFixed(0)} ms at most (rounds: ${stopsMs.map((ms) => ms.toFixed(0)).join(', ')}).`,
    `A second start is ready after ${(readyMs / 1000).toFixed(2)} s, has ${rss.toFixed(0)} MB ${REST_MS / 1000} s later, and takes ${idlePercent.toFixed(2)} % of a core while nobody calls (${IDLE_MS / 1000} s).`,
  ].join('\n')
}

if (process.argv[2] === 'cold') await main()
