// `npm run chaos -- overload`: the most that one gateway process can serve, then four times that rate, then nothing.
// What it serves meanwhile must stay near its peak, what it refuses is told so, and afterwards it is as before.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MODEL } from '../../bench/catalog.ts'
import { chooseCores, moveTo } from '../../bench/cores.ts'
import { type Aim, compileTools, type LoadTools, runLoad, runs } from '../../bench/load.ts'
import { freePort, start } from '../../bench/process.ts'
import { startStore, startTollgate, type Tollgate } from '../../bench/tollgate.ts'
import { noHolds } from './books.ts'
import { today, writePart } from './report.ts'
import { percentile } from './traffic.ts'

export interface OverloadOptions {
  readonly seconds: number
  /** Callers who wait for an answer at once, at most. */
  readonly connections: readonly number[]
  /** The rate that is offered, in terms of the peak. */
  readonly times: number
}

export interface OverloadResult {
  readonly connections: number
  /** Calls a second. */
  readonly peak: number
  readonly peakP99Ms: number
  readonly offered: number
  /** Of what was offered, this was sent: the others found every connection waiting for an answer. */
  readonly sent: number
  readonly goodput: number
  readonly goodP50Ms: number
  readonly goodP99Ms: number
  readonly refused: number
  readonly refusedP50Ms: number
  /** Answers that are neither 200 nor 503, and connections that were cut; in all. */
  readonly wrong: number
  readonly recoveryMs: number
}

/** What the flood counts; times in microseconds. */
interface Flood {
  readonly sent: number
  readonly ok: number
  readonly ok50: number
  readonly ok99: number
  readonly refused: number
  readonly refused50: number
  readonly others: number
  readonly cut: number
}

/** The peak is the best that any of these gives. */
const PEAK_CONNECTIONS = [64, 128, 256] as const
const BODY = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'a few words' }], max_tokens: 100 })
/** Answers in a row that must be as quick as before. */
const WELL_IN_A_ROW = 10
const GOODPUT_MIN = 0.8
const RECOVERY_MS_MAX = 5_000

/** Undefined where it cannot be measured. */
export async function measureOverload(options: OverloadOptions): Promise<OverloadResult[] | undefined> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-overload-'))
  const undo: Array<() => Promise<void>> = [() => rm(directory, { recursive: true, force: true, maxRetries: 10 })]
  try {
    const tools = cpus().length > 1 && runs('taskset', ['-V']) ? compileTools(directory) : undefined
    if (!tools) return undefined
    const flood = join(directory, 'flood')
    execFileSync('cc', ['-O2', '-w', '-o', flood, join(import.meta.dirname, 'flood.c')])
    const cores = chooseCores()
    moveTo(cores.rest)
    undo.push(async () => moveTo(cores.all))
    const store = await startStore(directory)
    undo.push(() => store.stop())
    const upstreamPort = await freePort()
    const mock = await start(tools.mock, [String(upstreamPort)], {
      cores: cores.rest,
      port: upstreamPort,
      logFile: join(directory, 'mock.log'),
    })
    undo.push(() => mock.stop())
    const gateway = await startTollgate({
      directory,
      store,
      upstreamPort,
      slowPort: upstreamPort,
      cores: cores.gateway,
    })
    undo.push(() => gateway.stop())
    const results: OverloadResult[] = []
    for (const connections of options.connections)
      results.push(await measureOne({ ...options, tools, flood, gateway, connections }))
    await noHolds(gateway.database, 60_000)
    return results
  } finally {
    for (const run of undo.reverse()) await run()
  }
}

interface Round {
  readonly tools: LoadTools
  readonly flood: string
  readonly gateway: Tollgate
  readonly connections: number
  readonly seconds: number
  readonly times: number
}

async function measureOne({ tools, flood, gateway, seconds, times, ...round }: Round): Promise<OverloadResult> {
  const aim: Aim = { port: gateway.port, path: '/v1/chat/completions', headers: gateway.headers, body: BODY }
  const load = (connections: number, forSeconds: number) =>
    runLoad(tools, aim, { connections, seconds: forSeconds, warmSeconds: 0.5 })
  await load(64, Math.min(3, seconds))
  let [peak, peakP99Ms] = [0, 0]
  for (const connections of PEAK_CONNECTIONS) {
    const { rps, p99, non200, err } = await load(connections, Math.min(5, seconds))
    assert.equal(non200 + err, 0, 'a call failed although nothing was overloaded')
    if (rps > peak) [peak, peakP99Ms] = [rps, p99 / 1000]
  }
  const normalMs: number[] = []
  for (let i = 0; i < 100; i++) normalMs.push((await ask(gateway)).ms)
  const wellMs = Math.max(20, 2 * percentile(normalMs, 0.99))

  const offered = peak * times
  const run = [aim.port, tools.file('request', requestOf(aim)), round.connections, offered, seconds].map(String)
  const told = JSON.parse((await promisify(execFile)(flood, run)).stdout) as Flood
  const stoppedMs = performance.now()
  for (let well = 0; well < WELL_IN_A_ROW; ) {
    const { status, ms } = await ask(gateway)
    well = status === 200 && ms <= wellMs ? well + 1 : 0
    assert.ok(performance.now() - stoppedMs < 60_000, 'the gateway has not recovered after a minute')
  }
  const recoveryMs = performance.now() - stoppedMs
  return {
    connections: round.connections,
    peak,
    peakP99Ms,
    offered,
    sent: told.sent / seconds,
    goodput: told.ok / seconds,
    goodP50Ms: told.ok50 / 1000,
    goodP99Ms: told.ok99 / 1000,
    refused: told.refused / seconds,
    refusedP50Ms: told.refused50 / 1000,
    wrong: told.others + told.cut,
    recoveryMs,
  }
}

function requestOf({ path, headers, body }: Aim): string {
  const all = { host: 'gateway', 'content-type': 'application/json', 'content-length': String(body.length), ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

async function ask(gateway: Tollgate): Promise<{ status: number; ms: number }> {
  const sentMs = performance.now()
  const answer = await fetch(`http://127.0.0.1:${gateway.port}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...gateway.headers, 'content-type': 'application/json' },
    body: BODY,
  })
  await answer.arrayBuffer()
  return { status: answer.status, ms: performance.now() - sentMs }
}

export async function runOverload(options: OverloadOptions): Promise<number> {
  const results = await measureOverload(options)
  if (!results) {
    console.log('not done: it needs two cores, taskset and a C compiler')
    return 1
  }
  console.table(results)
  const verdict = (ok: boolean) => (ok ? 'yes' : '**no**')
  const rows = results.map((one) =>
    [
      one.connections,
      `${Math.round(one.peak)} (p99 ${Math.round(one.peakP99Ms)} ms)`,
      `${Math.round(one.offered)} / ${Math.round(one.sent)}`,
      `${Math.round(one.goodput)} (p50 ${Math.round(one.goodP50Ms)} ms, p99 ${Math.round(one.goodP99Ms)} ms)`,
      `${Math.round((100 * one.goodput) / one.peak)} %`,
      `${Math.round(one.refused)} (p50 ${Math.round(one.refusedP50Ms)} ms)`,
      one.wrong,
      `${Math.round(one.recoveryMs)} ms`,
      verdict(one.goodput >= GOODPUT_MIN * one.peak && one.recoveryMs <= RECOVERY_MS_MAX),
    ].join(' | '),
  )
  await writePart(
    'overload',
    `
Last run: ${today()}. One process pinned to one core; Postgres, the vendor and the callers share the ${cpus().length === 2 ? 'other one' : `other ${cpus().length - 1}`}. Chat calls, ${options.seconds} s of ${options.times} times the peak, the shipped settings. An arrival that finds every connection waiting for an answer is not sent. All figures are calls a second. Asked for: at least ${GOODPUT_MIN * 100} % of the peak, and well again within ${RECOVERY_MS_MAX / 1000} s, that is ${WELL_IN_A_ROW} answers in a row as quick as before.

| Connections | Peak | Offered / sent | Served | of the peak | Refused with 503 | Neither | Well again after | As asked |
|---|---|---|---|---|---|---|---|---|
${rows.map((row) => `| ${row} |`).join('\n')}
`,
  )
  return results.every(
    (one) => one.goodput >= GOODPUT_MIN * one.peak && one.recoveryMs <= RECOVERY_MS_MAX && one.wrong === 0,
  )
    ? 0
    : 1
}
