// `npm run bench -- cold [--rounds 5] [--node=…]`: what a fresh process costs beside one that has run for a while, and for how long its event loop
// stands still when it is called from its first second on. Each round has two processes that start on a compile cache of an earlier one:
// the first serves 10,000 calls, 60,000 that are not counted, and 10,000 more; the second is called 300 times a second as soon as it says that it is ready.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openBed } from './bed.ts'
import { listCases } from './cases.ts'
import { measure, median } from './measure.ts'
import { aimAt } from './target.ts'
import { startTollgate } from './tollgate.ts'

const { values: args } = parseArgs({
  args: process.argv.slice(3),
  options: { rounds: { type: 'string', default: '5' }, node: { type: 'string', default: '' } },
})
const FEW = 10_000
const MANY = 60_000
const CALLERS = 64
const RATE = { connections: 8, rate: 300, seconds: 8, warmSeconds: 0 }

/** Inside the process: each moment at which a timer of a few milliseconds came late, with the time of day, written when it ends. */
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

async function main(): Promise<void> {
  const { tools, store, options, close } = await openBed('cold')
  const chat = listCases(true).find(({ id }) => id === 'chat-64')
  if (!chat) throw new Error('There is no such case.')
  const flags = args.node.split(' ').filter(Boolean)
  // Under one name: the second of them finds what the first has compiled.
  const open = (nodeOptions: readonly string[]) =>
    startTollgate({ ...options, store, name: 'cold', nodeOptions: [...flags, ...nodeOptions] })
  const found = { ratio: [] as number[], first: [] as number[], steady: [] as number[], stop: [] as number[] }
  try {
    await (await open([])).stop()
    for (let round = 0; round < Number(args.rounds); round++) {
      const fresh = await open([])
      const served = (total: number) =>
        measure(tools, { gateway: fresh.pid, store: store.pid }, aimAt(fresh, chat.body, chat.path), {
          ...{ connections: CALLERS, seconds: 120, warmSeconds: 0, total },
        })
      const first = (await served(FEW)).cpu
      await served(MANY)
      const steady = (await served(FEW)).cpu
      await fresh.stop()
      found.first.push(first)
      found.steady.push(steady)
      found.ratio.push(first / steady)

      const file = join(options.directory, `stops-${round}.json`)
      const second = await open([watchOf(file)])
      await ready(second.port)
      const readyMs = Date.now()
      await measure(tools, { gateway: second.pid, store: store.pid }, aimAt(second, chat.body, chat.path), RATE)
      await second.stop()
      const stops = JSON.parse(await readFile(file, 'utf8')) as Array<[number, number]>
      const within = stops.filter(([atMs]) => atMs >= readyMs && atMs < readyMs + RATE.seconds * 1000)
      found.stop.push(Math.max(0, ...within.map(([, ms]) => ms)))
      const longest = within.toSorted(([, a], [, b]) => b - a).slice(0, 5)
      const told = longest.map(([atMs, ms]) => `${ms.toFixed(0)} ms after ${((atMs - readyMs) / 1000).toFixed(1)} s`)
      console.error(
        `round ${round + 1}: ${first.toFixed(0)} and ${steady.toFixed(0)} µs a call; longest stops: ${told.join(', ')}`,
      )
    }
    console.log(
      `The first ${FEW} calls take ${median(found.ratio).toFixed(2)} × the processor time of as many after ${MANY} more (${median(found.first).toFixed(0)} and ${median(found.steady).toFixed(0)} µs a call; rounds: ${found.ratio.map((ratio) => ratio.toFixed(2)).join(', ')}).`,
    )
    console.log(
      `Called ${RATE.rate} times a second from readiness on, the event loop stands still for ${median(found.stop).toFixed(0)} ms at most (rounds: ${found.stop.map((ms) => ms.toFixed(0)).join(', ')}).`,
    )
  } finally {
    await close()
  }
}

async function ready(port: number): Promise<void> {
  while (!(await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok)
    await new Promise((resolve) => setTimeout(resolve, 20))
}

await main()
