// Several gateways on one Postgres under steady load, while a gateway is killed every half minute and Postgres is
// restarted twice. Only what was in flight on what was killed may fail.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { cpuMicros, family } from '../../bench/process.ts'
import { openDatabase } from '../../src/database/database.ts'
import { startEmbedded } from '../../src/extensions/postgres/embedded.ts'
import { newId, realWorld } from '../../src/kernel/world.ts'
import { SECRET } from '../gateway.ts'
import { not, until } from '../until.ts'
import { checkBooks, noHolds } from './books.ts'
import { type GatewayProcess, keyOf, startProcess } from './gateway-process.ts'
import { today, writePart } from './report.ts'
import { countBy, type Kind, percentile, startTraffic, type Told } from './traffic.ts'

export interface ClusterOptions {
  readonly minutes: number
  readonly perSecond: number
  readonly processes: number
  readonly killEverySeconds: number
}

/** After Postgres is back, connections are made anew and calls that waited are answered. */
const AFTERMATH_MS = 10_000
/**
 * Text at all three doors, whole and streamed; data; callers who leave; a vendor that fails; now and then a picture.
 */
export const MIX: readonly Kind[] = [
  ...Array.from({ length: 5 }, (): Kind[] => ['chat', 'stream', 'data', 'messages', 'leave', 'data', 'fail', 'stream']),
  ...(['chat', 'responses', 'data', 'messages', 'leave', 'responses', 'image', 'stream'] as const),
].flat()

export async function runCluster(options: ClusterOptions): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-cluster-'))
  const server = await startEmbedded({
    dataDirectory: join(directory, 'store'),
    log: (line) => console.log(`  ${line}`),
  })
  const { host, port, user, database: name } = server.connection
  const database = openDatabase({ connection: { ...server.connection }, connectionsMax: 2 })
  const url = `postgres://${user}@${encodeURIComponent(host)}:${port}/${name}`
  let number = 0
  const start = () =>
    startProcess({
      env: {
        DATABASE_URL: url,
        TOLLGATE_SECRET: SECRET,
        TOLLGATE_DATA: join(directory, `data-${number++}`),
        TOLLGATE_SANDBOX_SPEED: '100',
        TOLLGATE_DATABASE_CONNECTIONS: '8',
      },
    })
  const gateways: GatewayProcess[] = []
  try {
    const first = await start()
    gateways.push(first)
    const key = await keyOf(first)
    await database.query({ text: `select ledger_grant($1, id, 1000000000000000, 'load', 'load') from account` }, [
      newId(realWorld),
    ])
    while (gateways.length < options.processes) gateways.push(await start())

    const traffic = startTraffic({
      urls: () => gateways.map((gateway) => gateway.url),
      key,
      kinds: MIX,
      perSecond: options.perSecond,
    })
    const startedMs = performance.now()
    const shares = createShares({ gateways: () => gateways.map(({ pid }) => pid), store: () => server.pid })
    const lengthMs = options.minutes * 60_000
    const kills: Array<{ url: string; atMs: number; readyMs: number }> = []
    const outages: Array<{ fromMs: number; toMs: number }> = []
    const restarts = [lengthMs * 0.35, lengthMs * 0.7]
    let nextKillMs = options.killEverySeconds * 1_000
    while (performance.now() - startedMs < lengthMs) {
      await new Promise((resolve) => setTimeout(resolve, 200))
      const ranMs = performance.now() - startedMs
      if (ranMs >= nextKillMs) {
        nextKillMs += options.killEverySeconds * 1_000
        const victim = gateways.shift()!
        const atMs = performance.now()
        shares.leaves(victim.pid)
        victim.kill('SIGKILL')
        await victim.exited
        const next = await start()
        gateways.push(next)
        kills.push({ url: victim.url, atMs, readyMs: next.readyMs })
        console.log(
          `  ${Math.round(ranMs / 1000)} s: killed pid ${victim.pid}; the next one was ready after ${Math.round(next.readyMs)} ms`,
        )
      }
      if (restarts[0] !== undefined && ranMs >= restarts[0]) {
        restarts.shift()
        const fromMs = performance.now()
        const { pid } = server
        shares.leaves(pid)
        process.kill(pid, 'SIGINT')
        await until(() => server.pid, not(pid))
        await until(() =>
          database.query({ text: 'select 1' }).then(
            () => true,
            () => false,
          ),
        )
        outages.push({ fromMs, toMs: performance.now() })
        console.log(
          `  ${Math.round(ranMs / 1000)} s: Postgres restarted within ${Math.round(performance.now() - fromMs)} ms`,
        )
      }
    }
    const used = shares.end()
    await traffic.stop()
    const holdsMs = await noHolds(database, 120_000)
    const books = await checkBooks(database, traffic.acknowledged())

    const unexplained = traffic.told.filter(({ kind, status, url: at, sentMs, ms }) => {
      if (status === 200 || (kind === 'fail' && (status === 502 || status === 503))) return false
      const endMs = sentMs + ms
      if (status === 0)
        return !kills.some((kill) => kill.url === at && kill.atMs >= sentMs - 200 && kill.atMs <= endMs + 200)
      return status !== 503 || !outages.some(({ fromMs, toMs }) => endMs >= fromMs && sentMs <= toMs + AFTERMATH_MS)
    })
    const counts = countBy(traffic.told)
    console.log(counts, books)
    assert.equal(traffic.told.filter(({ status }) => status === 401).length, 0)
    assert.deepEqual(unexplained.slice(0, 5), [], `${unexplained.length} failures that nothing explains`)
    const good = traffic.told.filter(({ status, kind }) => status === 200 && kind !== 'leave')
    const undisturbed = good.filter(
      ({ kind, sentMs, ms }) =>
        kind !== 'image' &&
        !kills.some(({ atMs, readyMs }) => sentMs + ms >= atMs && sentMs <= atMs + readyMs + 1_000) &&
        !outages.some(({ fromMs, toMs }) => sentMs + ms >= fromMs && sentMs <= toMs + 1_000),
    )
    await writePart(
      'cluster',
      `
Last run: ${today()}. ${options.processes} processes, one Postgres, ${options.perSecond} calls a second for ${options.minutes} minutes (chat, messages and responses, streams, data, pictures, callers who leave, vendors that fail), on ${process.platform} with ${cpus().length} cores shared by load, gateways, vendors and Postgres.

| Figure | |
|---|---|
| Calls | ${traffic.told.length} |
| Killed processes (kill -9) | ${kills.length}; the next one was ready after ${Math.round(Math.max(0, ...kills.map(({ readyMs }) => readyMs)))} ms at most |
| Postgres restarts | ${outages.length}; away for ${outages.map(({ fromMs, toMs }) => `${Math.round(toMs - fromMs)} ms`).join(' and ')} |
| Answers | ${JSON.stringify(counts).replaceAll(/["{}]/g, '').replaceAll(',', ', ')} |
| Acknowledged charges | ${books.acknowledged}, all in the ledger with the amount that the caller was told |
| Lost or doubled charges | 0 |
| Holds and leases left | 0, ${Math.round(holdsMs)} ms after the load ended |
| Answers with 401 | 0 |
| Failures that neither a kill nor a restart explains | 0 |
| Median and p99 of complete answers | ${times(good)} |
| The same without pictures, and without what ran beside a kill, the start after it, a restart, and the second after each | ${times(undisturbed)} (${undisturbed.length} calls) |
| Share of the cores | gateways with their simulated vendors ${used.gateways} %, Postgres ${used.store} %, load ${used.load} % |
| \`ledger verify\` | ok |
`,
    )
  } finally {
    for (const gateway of gateways) gateway.kill('SIGTERM')
    await Promise.all(gateways.map(({ exited }) => exited))
    await database.close().catch(() => undefined)
    await server.stop()
    await rm(directory, { recursive: true, force: true, maxRetries: 10 })
  }
}

function times(told: readonly Told[]): string {
  const ms = told.map((one) => one.ms)
  return `${Math.round(percentile(ms, 0.5))} ms, ${Math.round(percentile(ms, 0.99))} ms`
}

interface Shares {
  /** What it used counts, although it is about to be killed. */
  leaves(pid: number): void
  /** In percent of all cores since the start. */
  end(): { gateways: number; store: number; load: number }
}

/** Who used the processors. What a process uses between its start and its readiness counts as well. */
function createShares(of: { gateways: () => number[]; store: () => number }): Shares {
  const startedMs = performance.now()
  const loadBefore = process.cpuUsage()
  const storePids = () => family(of.store())
  const before = new Map([...of.gateways(), ...storePids()].map((pid) => [pid, cpuMicros([pid])]))
  const micros = (pids: readonly number[]) =>
    pids.reduce((sum, pid) => sum + cpuMicros([pid]) - (before.get(pid) ?? 0), 0)
  let [gateways, store] = [0, 0]
  return {
    leaves(pid) {
      if (pid === of.store()) store += micros(storePids())
      else gateways += micros([pid])
    },
    end() {
      const { user, system } = process.cpuUsage(loadBefore)
      const percent = (used: number) => Math.round(used / (performance.now() - startedMs) / 10 / cpus().length)
      return {
        gateways: percent(gateways + micros(of.gateways())),
        store: percent(store + micros(storePids())),
        load: percent(user + system),
      }
    },
  }
}
