// The side-by-side run: `npm run bench -- [--short] [--rounds 5] [--cases
// chat-64,stream,growth,workers,ledger,cold,stages] [--write]`. `npm run bench -- stages` measures each stage of the
// path alone, `npm run bench -- turns` two checkouts against each other, `npm run bench -- cold` a fresh process, `npm
// run bench -- flood` a flood of refusals, `npm run bench -- functions` counts the functions of a call, `npm run bench
// -- capacity` measures what a call costs the database. A full run writes docs/performance.md; a short or partial one
// only prints, unless it is told to write as well.
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { type Bed, openBed } from './bed.ts'
import { type Case, listCases, openStreamChunks, type Side } from './cases.ts'
import { type Cold, coldWords, measureCold } from './cold.ts'
import { loadAverage, machine, watchStolen } from './cores.ts'
import { BARE, startFloor } from './floor.ts'
import { goalsTable } from './goals.ts'
import { type GrowthRow, measureGrowth } from './growth.ts'
import type { LedgerPoint } from './ledger.ts'
import type { Aim } from './load.ts'
import { type Measured, measure, median, medians } from './measure.ts'
import { page } from './page.ts'
import { growthTable, latencyTable, ledgerTable, mainTable, streamsTable, workersTable } from './report.ts'
import { aimAt, startNginx, startPortkey, type Target } from './target.ts'
import { startTollgate, type Tollgate } from './tollgate.ts'

const other = ['stages', 'turns', 'cold', 'flood', 'functions', 'capacity'].find((name) => name === process.argv[2])
const { values: args } = parseArgs({
  // What follows the name of another measurement is read there.
  args: other ? [] : process.argv.slice(2),
  options: {
    short: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    cases: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const { short } = args
const wanted = args.cases?.split(',')
const isWanted = (id: string) => wanted === undefined || wanted.includes(id)
const say = (line: string) => console.error(line)
const ROUNDS = Number(args.rounds ?? (short ? 1 : 5))
const SLOW_MICROS = 100_000
const BARE_UPDATES = 500
/** Above this, others use the cores as well, and neither throughput nor latency can be believed. */
const QUIET_LOAD_MAX = 0.7

async function measureCases(cases: readonly Case[], bench: Bed, notes: string[], versions: string[]) {
  const { tools, store, options } = bench
  const targets = new Map<Side, Target>()
  const tollgate = await startTollgate({ ...options, store })
  targets.set('Tollgate', tollgate)
  const callers = {
    poor: (await tollgate.accounts(1, { credits: 0n }))[0]!,
    limited: (await tollgate.accounts(1, { limits: { requestsPerMinute: 0 } }))[0]!,
    budgeted: await tollgate.budgeted(),
  }
  const nginx = await startNginx(options)
  if (nginx) targets.set('nginx', nginx)
  else notes.push('nginx is not installed: its columns are empty.')
  const portkey = await startPortkey(options)
  if (portkey) targets.set('Portkey', portkey)
  else notes.push('Portkey could not be installed with npm: its columns are empty.')
  targets.set('floor', await startFloor({ ...options, store }))
  for (const { name, version } of targets.values()) versions.push(`${name} ${version}`)

  const aimOf = (side: Side, entry: Case): Aim | undefined => {
    const path = side === 'Tollgate' || entry.pathForAll ? entry.path : undefined
    const method = entry.method ?? 'POST'
    if (side === 'upstream')
      return { port: options.upstreamPort, path: '/v1/chat/completions', headers: {}, body: entry.body, method }
    const target = targets.get(side)
    if (!target) return undefined
    const aim = { ...aimAt(target, entry.body, path), method }
    if (entry.slow) return { ...aim, ...target.slow }
    if (entry.tls) return options.tls && { ...aim, ...target.tls }
    return entry.account && side === 'Tollgate'
      ? { ...aim, headers: { ...tollgate.headersOf(callers[entry.account].key), ...entry.headers } }
      : aim
  }
  const one = async (side: Side, aim: Aim, shape: Case['shape']): Promise<Measured> => {
    const before = side === 'Tollgate' ? await tollgate.holds() : undefined
    const measured = await measure(tools, { gateway: targets.get(side)?.pid, store: store.pid }, aim, shape)
    if (!before) return measured
    const after = await tollgate.holds()
    const count = Math.max(1, after.count - before.count)
    return { ...measured, hold: ((after.seconds - before.seconds) / count) * 1e6 }
  }

  const results = new Map<string, Partial<Record<Side, Measured>>>()
  const bare: number[] = []
  try {
    // Until the compilers of those that run on V8 have little left to do.
    for (const id of ['chat-64', 'stream', 'converted'])
      for (const side of ['Tollgate', 'Portkey', 'floor'] as const) {
        const entry = listCases(short).find((known) => known.id === id)!
        const aim = entry.sides.includes(side) ? aimOf(side, entry) : undefined
        if (aim) await one(side, aim, { connections: 64, seconds: 0.5, warmSeconds: short ? 1 : 15 })
      }
    for (const entry of cases) {
      const rounds = new Map<Side, Measured[]>()
      for (let round = 0; round < (entry.rounds ?? ROUNDS); round++) {
        if (entry.id === 'latency') bare.push(...(await bareUpdates(tollgate)))
        for (const side of entry.sides) {
          const aim = aimOf(side, entry)
          if (!aim) continue
          if (round === 0 && entry.shape.total === undefined)
            await one(side, aim, { ...entry.shape, seconds: 0.3, warmSeconds: short ? 0.3 : 1.2 })
          const measured = await one(side, aim, entry.shape)
          rounds.set(side, [...(rounds.get(side) ?? []), measured])
        }
      }
      const sides = [...rounds].map(([side, measured]) => [side, medians(measured)] as const)
      results.set(entry.id, Object.fromEntries(sides))
      say(
        `  ${entry.id}: ${sides.map(([side, { rps, cpu }]) => `${side} ${rps.toFixed(0)}/s ${cpu.toFixed(0)} µs`).join(', ')}`,
      )
    }
  } finally {
    for (const target of targets.values()) await target.stop()
  }
  return { results, bare: bare.length > 0 ? median(bare) : undefined }
}

/** What the least that a durable ledger could do takes on this disk, in microseconds. */
async function bareUpdates({ database }: Tollgate): Promise<number[]> {
  await database.query({ text: BARE.table })
  await database.query({ text: BARE.row })
  const micros: number[] = []
  for (let i = 0; i < BARE_UPDATES; i++) {
    const beganMs = performance.now()
    await database.query(BARE.update)
    micros.push((performance.now() - beganMs) * 1000)
  }
  return micros
}

async function measureWorkers({ tools, store, options }: Bed, all: string) {
  const { body } = listCases(short).find(({ id }) => id === 'chat-64')!
  const started: { what: string; tollgate: Tollgate; measured: Measured[] }[] = []
  for (const count of [1, 2]) {
    const what = `${count} ${count === 1 ? 'process' : 'processes'}`
    const tollgate = await startTollgate({ ...options, cores: all, store, workers: count, name: what })
    started.push({ what, tollgate, measured: [] })
  }
  try {
    for (let round = -1; round < ROUNDS; round++)
      for (const { tollgate, measured } of started) {
        const shape = { connections: 64, seconds: short ? 1 : 3, warmSeconds: round < 0 && !short ? 5 : 0.5 }
        const result = await measure(tools, { gateway: tollgate.pid, store: store.pid }, aimAt(tollgate, body), shape)
        if (round >= 0) measured.push(result)
      }
  } finally {
    for (const { tollgate } of started) await tollgate.stop()
  }
  say('  workers')
  return started.map(({ what, measured }) => ({ what, measured: medians(measured) }))
}

/** In a process of its own, so that it may use all cores. */
async function measureLedgerAlone(all: string): Promise<LedgerPoint[]> {
  const program = [process.execPath, join(import.meta.dirname, 'ledger.ts'), '--json', short ? '0.5' : '2']
  const { stdout } = await promisify(execFile)('taskset', ['-c', all, ...program])
  say('  ledger')
  return JSON.parse(stdout) as LedgerPoint[]
}

/** In a process of its own, on the gateway's core: the table of bench/stages.ts. */
async function measureStagesAlone(core: string): Promise<string> {
  const program = [
    process.execPath,
    join(import.meta.dirname, 'stages.ts'),
    'stages',
    ...(short ? ['--rounds', '5'] : []),
  ]
  const { stdout } = await promisify(execFile)('taskset', ['-c', core, ...program])
  say('  stages')
  return stdout.trim()
}

async function main(): Promise<void> {
  const loadBefore = loadAverage()
  const stolen = watchStolen()
  const bench = await openBed('bench', { chunks: openStreamChunks(short), micros: SLOW_MICROS })
  const { tools, cores, store, options } = bench
  const notes: string[] = []
  const versions = [`Node ${process.versions.node}`, `Postgres ${store.version}`]
  try {
    const cases = listCases(short).filter(({ id }) => isWanted(id))
    const measured = cases.length > 0 ? await measureCases(cases, bench, notes, versions) : undefined
    const size = short ? { accounts: 10_000, usageRows: 50_000 } : { accounts: 100_000, usageRows: 10_000_000 }
    /** A part that fails is named on the page; the others have cost too much time to be lost with it. */
    const part = async <T>(id: string, run: () => Promise<T[]>): Promise<T[]> => {
      if (!isWanted(id)) return []
      return run().catch((error: unknown) => {
        notes.push(`The part "${id}" failed: ${String(error)}`)
        return []
      })
    }
    const growth: GrowthRow[] = await part('growth', () =>
      measureGrowth({
        tools,
        store,
        target: options,
        say,
        rounds: ROUNDS,
        seconds: short ? 1 : 2,
        ...size,
        jobs: short ? 1_000 : 10_000,
        models: 1_000,
      }),
    )
    const workers = await part('workers', () => measureWorkers(bench, cores.all))
    const ledger = await part('ledger', () => measureLedgerAlone(cores.all))
    const [cold] = await part('cold', async (): Promise<Cold[]> => [await measureCold(bench, { rounds: ROUNDS, say })])
    const [stages = ''] = await part('stages', async () => [await measureStagesAlone(cores.gateway)])
    const scale = short ? 'A short run: a second a round, small stores, streams of 5 s.' : ''
    notes.push(`${scale} Rounds: ${ROUNDS}; one for the open streams.`.trim())
    const findings = {
      cases,
      growth,
      workers,
      ledger,
      cold,
      stages,
      results: measured?.results ?? new Map(),
      bare: measured?.bare,
    }
    const parts = [mainTable, latencyTable, streamsTable, growthTable, workersTable, ledgerTable, goalsTable]
    console.log([...parts.map((part) => part(findings)), cold ? coldWords(cold) : '', stages].join('\n\n'))
    const share = stolen()
    if (share !== undefined)
      notes.push(
        `The host gave ${(share * 100).toFixed(1)} % of the processors' time to other machines during the run.`,
      )
    if (loadBefore > QUIET_LOAD_MAX)
      notes.unshift(
        `**The machine was not quiet**: the load average was ${loadBefore.toFixed(1)} before the run, on ${cores.count} cores, from work that had nothing to do with it. Throughput and latency are then mostly the neighbours', and processor time is inflated too. Take no goal as reached or missed from this page; run it again on a quiet machine.`,
      )
    if (notes.length > 0) say(notes.join('\n'))
    if ((wanted !== undefined || short) && !args.write) return
    const facts = {
      machine: machine(),
      command: ['npm run bench', ...(process.argv.length > 2 ? ['--'] : []), ...process.argv.slice(2)].join(' '),
      versions,
      loadBefore,
      notes,
    }
    const written = page(findings, { ...facts, date: new Date().toISOString().slice(0, 10) })
    await writeFile(join(import.meta.dirname, '..', 'docs', 'performance.md'), written)
  } finally {
    await bench.close()
  }
}

// What was started is stopped by its own listener at exit, which a signal alone does not call.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
if (other) await import(`./${other}.ts`)
else await main()
