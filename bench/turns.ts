// Two checkouts of the gateway in turns, for what a change costs or saves: `npm run bench -- turns --against
// ../before`. Both run all the time on the same core and are loaded one after the other, so that whatever else the
// machine does meets both. The case `budgets-64` loads each checkout twice, by an account without budgets and by one
// with three: `npm run bench -- turns --cases budgets-64`. Processor time for a call is the figure to look at: it is
// steadier than throughput.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parseCredits } from '../src/kernel/credits.ts'
import { openBed } from './bed.ts'
import { type Case, listCases, openStreamChunks } from './cases.ts'
import { type Measured, measure, median } from './measure.ts'
import { aimAt } from './target.ts'
import { startTollgate, type Tollgate } from './tollgate.ts'

interface Side {
  readonly name: string
  readonly tollgate: Tollgate
  readonly measured: Measured[]
  /** Of the account that calls; absent: the gateway's usual one. */
  readonly key?: string
}

const { values: args } = parseArgs({
  args: process.argv.slice(3),
  options: {
    /** Checkouts, with a comma between. */
    against: { type: 'string', default: '' },
    cases: { type: 'string', default: 'chat-64' },
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '2' },
    /** All at the same time, on the one core: on a busy machine, what disturbs one then disturbs the others as much. */
    together: { type: 'boolean', default: false },
    /** Of V8, for the side that is this checkout. */
    node: { type: 'string', default: '' },
    /** The balance of the account that calls; absent: more than any run can spend. */
    credits: { type: 'string', default: '' },
  },
})
const OPEN_STREAMS_MICROS = 100_000

export async function compareInTurns(): Promise<void> {
  const slow = { chunks: openStreamChunks(true), micros: OPEN_STREAMS_MICROS }
  const { tools, store, options, close } = await openBed('turns', slow)
  const sides: Side[] = []
  const credits = args.credits === '' ? undefined : parseCredits(args.credits)
  const open = async (name: string, root?: string, nodeOptions: readonly string[] = []) => {
    const tollgate = await startTollgate({ ...options, store, name, nodeOptions, credits, ...(root ? { root } : {}) })
    sides.push({ name, tollgate, measured: [] })
  }
  try {
    for (const root of args.against.split(',').filter(Boolean)) await open(root.split('/').at(-1)!, resolve(root))
    await open('now', undefined, args.node.split(' ').filter(Boolean))
    for (const entry of listCases(false).filter(({ id }) => args.cases.split(',').includes(id))) {
      const callers = entry.account === 'budgeted' ? await withAndWithout(sides) : sides
      for (const side of callers) await round(side, entry, 6)
      for (const side of callers) side.measured.length = 0
      for (let i = 0; i < Number(args.rounds); i++)
        if (args.together) await Promise.all(callers.map((side) => round(side, entry)))
        else for (const side of i % 2 ? [...callers].reverse() : callers) await round(side, entry)
      console.log(entry.title)
      for (const side of callers)
        console.log(`  ${side.name.padEnd(7)} ${words(side.measured)}, ${share(side, callers[0]!)}`)
    }
  } finally {
    for (const { tollgate } of sides) await tollgate.stop()
    await close()
  }

  async function round(side: Side, { body, path, shape, method, headers }: Case, seconds?: number) {
    const { tollgate, measured, key } = side
    const whose = key === undefined ? tollgate.headers : tollgate.headersOf(key)
    const to = { ...aimAt(tollgate, body, path), headers: { ...whose, ...headers } }
    const aim = { ...to, method: method ?? ('POST' as const) }
    const how = { ...shape, seconds: seconds ?? Number(args.seconds), warmSeconds: 0.2 }
    measured.push(await measure(tools, { gateway: tollgate.pid, store: store.pid }, aim, how))
  }
}

/** The same requests to the same process, by an account without budgets and by one with them. */
async function withAndWithout(sides: readonly Side[]): Promise<Side[]> {
  const all: Side[] = []
  for (const { name, tollgate } of sides) {
    const { key } = await tollgate.budgeted()
    all.push({ name: `${name}, none`, tollgate, measured: [] })
    all.push({ name: `${name}, budgets`, tollgate, measured: [], key })
  }
  return all
}

function words(rounds: readonly Measured[]): string {
  const of = (name: 'cpu' | 'storeCpu' | 'rps' | 'p50' | 'p99') => rounds.map((round) => round[name])
  const cpu = of('cpu')
  const bad = rounds.reduce((sum, { err, non200 }) => sum + err + non200, 0)
  return [
    `CPU ${median(cpu).toFixed(1)} µs a call (quarter ${quarter(cpu).toFixed(1)}, least ${Math.min(...cpu).toFixed(1)})`,
    `Postgres ${median(of('storeCpu')).toFixed(1)}`,
    `${median(of('rps')).toFixed(0)}/s`,
    `p50 ${(median(of('p50')) / 1000).toFixed(2)} ms`,
    `p99 ${(median(of('p99')) / 1000).toFixed(2)} ms`,
    `RSS ${Math.max(...rounds.map(({ rss }) => rss)).toFixed(0)} MB`,
    ...(bad > 0 ? [`${bad} FAILED`] : []),
  ].join(', ')
}

/** Round by round, compared with the first. */
function share(side: Side, first: Side): string {
  const times = (of: (one: Measured) => number) =>
    median(side.measured.map((one, i) => of(one) / of(first.measured[i]!))).toFixed(3)
  return `CPU × ${times(({ cpu }) => cpu)}, with Postgres × ${times(({ cpu, storeCpu }) => cpu + storeCpu)}`
}

/** A quarter of the rounds were cheaper: steadier than the least, and less of the neighbours' than the median. */
function quarter(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 4)] ?? Number.NaN
}

await compareInTurns()
