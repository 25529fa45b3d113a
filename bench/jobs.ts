// What many open jobs cost while nothing happens to them: `node bench/jobs.ts [jobs] [seconds]`. The engine runs in
// this process, at its usual pace; the simulated vendor runs in another, so that its work is not counted.
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { admit } from '../src/admission/admit.ts'
import { openCatalog } from '../src/catalog/store.ts'
import { readDefaultCatalog } from '../src/compose.ts'
import { createAudit } from '../src/database/audit.ts'
import { createChanges } from '../src/database/changes.ts'
import { openDatabase } from '../src/database/database.ts'
import { migrate } from '../src/database/migrate.ts'
import { startEmbedded } from '../src/extensions/postgres/embedded.ts'
import { startJobs } from '../src/jobs/engine.ts'
import { readJson } from '../src/kernel/json.ts'
import { silentLog } from '../src/kernel/log.ts'
import { createSecrets } from '../src/kernel/secret.ts'
import { newId, realWorld as world } from '../src/kernel/world.ts'
import { createLedger } from '../src/ledger/ledger.ts'
import { maintainUsage } from '../src/ledger/retention.ts'
import { createVendors } from '../src/routing/vendor.ts'
import { createUpstream } from '../src/upstream/exchange.ts'
import { readVideo } from '../test/job-engine.ts'
import { cpuMicros, family } from './process.ts'

const VENDOR = `
  import { startSandbox } from './sandbox/server.ts'
  import { realWorld } from './src/kernel/world.ts'
  const sandbox = await startSandbox({ world: realWorld })
  console.log(sandbox.url)
`

const root = join(import.meta.dirname, '..')
const count = Number(process.argv[2] ?? 10_000)
const seconds = Number(process.argv[3] ?? 30)

const vendor = spawn(process.execPath, ['--input-type=module-typescript', '-e', VENDOR], {
  cwd: root,
  stdio: ['ignore', 'pipe', 'inherit'],
})
const vendorUrl = await new Promise<string>((resolve) =>
  createInterface({ input: vendor.stdout }).once('line', resolve),
)
const directory = await mkdtemp(join(tmpdir(), 'tollgate-bench-'))
const embedded = await startEmbedded({ dataDirectory: directory, log: () => undefined })
const database = openDatabase({ connection: { ...embedded.connection } })
await migrate(database)
await maintainUsage(database, world, { usageMonths: 24, tries: 1 })
const changes = createChanges(database, world)
const catalog = await openCatalog({
  database,
  changes,
  audit: createAudit({ database, world }),
  initial: await readDefaultCatalog(),
})
const ledger = createLedger({ database, world, processId: newId(world) })
const upstream = createUpstream({ world })
const engine = startJobs({
  database,
  ledger,
  catalog,
  upstream,
  world,
  log: silentLog,
  vendors: createVendors(world),
  logins: { open: () => Promise.reject(new Error('no logins')) },
  byokKeys: { of: () => undefined },
  routes: { world, sandboxUrl: () => vendorUrl, credential: () => undefined },
  results: { copy: async () => newId(world), url: (name) => name },
  guard: { check: async () => undefined, post: async () => ({ status: 204, excerpt: '' }) },
  mailer: undefined,
  audit: createAudit({ database, world }),
  secrets: createSecrets('a secret for measurements, of thirty-two bytes'),
})

const account = 'acc_bench'
await database.query({ text: 'insert into account (id, name) values ($1, $1)' }, [account])
await ledger.grant({ account, amount: 10n ** 15n, note: '', actor: 'bench' })
const unrestricted = { models: null, endpoints: null, addresses: null }
const principal = { accountId: account, keyId: 'key_bench', ...unrestricted, expiresAtMs: Infinity }

const say = (name: string, value: string) => console.log(`${name.padEnd(46)} ${value}`)
const emptyBytes = process.memoryUsage().rss
const startedMs = performance.now()
const ids: string[] = []
while (ids.length < count) {
  await Promise.all(
    Array.from({ length: Math.min(500, count - ids.length) }, async () => {
      const json = readJson(Buffer.from(JSON.stringify({ model: 'videogen-2.0', prompt: 'x [[queued-ms=36000000]]' })))
      const requestId = `req_${newId(world)}`
      const asked = readVideo(json, catalog.current, principal)
      const job = await engine.open(
        asked.paidRequest.order,
        { requestId, endpoint: 'video' },
        new AbortController().signal,
      )
      await admit({ requestId, principal, catalog: catalog.current, ...asked }, ledger, job.row)
      job.begin()
      const { id } = job.row
      ids.push(id)
    }),
  )
}
say('jobs accepted per second', (count / ((performance.now() - startedMs) / 1000)).toFixed(0))
for (;;) {
  const [row] = await database.query<{ left: bigint }>({
    text: 'select count(*) as left from job where task_id is null',
  })
  if (row!.left === 0n) break
  await new Promise((resolve) => setTimeout(resolve, 200))
}
say('jobs submitted per second', (count / ((performance.now() - startedMs) / 1000)).toFixed(0))

async function commits(): Promise<number> {
  const [row] = await database.query<{ commits: bigint }>({
    text: 'select xact_commit as commits from pg_stat_database where datname = current_database()',
  })
  return Number(row!.commits)
}

async function vendorRequests(): Promise<number> {
  const response = await fetch(`${vendorUrl}/__sandbox/log`)
  return ((await response.json()) as { requests: number }).requests
}

// A whole round of polls first, so that what is measured is the steady state.
await new Promise((resolve) => setTimeout(resolve, 12_000))
const servers = family(embedded.pid)
const before = {
  cpu: process.cpuUsage(),
  server: cpuMicros(servers),
  commits: await commits(),
  requests: await vendorRequests(),
  ms: performance.now(),
}
const [{ steps: stepsBefore } = { steps: 0n }] = await database.query<{ steps: bigint }>({
  text: 'select sum(version) as steps from job',
})
const reads: number[] = []
while (performance.now() - before.ms < seconds * 1000) {
  const readMs = performance.now()
  await engine.jobs.find(ids[world.bytes(4).readUInt32BE() % ids.length]!)
  reads.push(performance.now() - readMs)
  await new Promise((resolve) => setTimeout(resolve, 20))
}
const elapsed = (performance.now() - before.ms) / 1000
const used = process.cpuUsage(before.cpu)
const [{ steps } = { steps: 0n }] = await database.query<{ steps: bigint }>({
  text: 'select sum(version) as steps from job',
})
reads.sort((a, b) => a - b)
say('open jobs', JSON.stringify((await engine.facts()).byStatus))
say('looks at tasks per second', ((Number(steps) - Number(stepsBefore)) / elapsed).toFixed(0))
say('requests to the vendor per second', (((await vendorRequests()) - before.requests) / elapsed).toFixed(1))
say('transactions per second', (((await commits()) - before.commits) / elapsed).toFixed(0))
say('engine, share of a core', `${((used.user + used.system) / 10_000 / elapsed).toFixed(1)} %`)
say('Postgres, share of a core', `${((cpuMicros(servers) - before.server) / 10_000 / elapsed).toFixed(1)} %`)
say(
  'memory, before and with the jobs',
  `${(emptyBytes / 1e6).toFixed(0)} MB, ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`,
)
say('reading a job, ms: p50, p99', `${at(0.5)}, ${at(0.99)}`)
const [planned] = await database.query<{ 'QUERY PLAN': [{ 'Execution Time': number }] }>({
  text: `explain (analyze, format json) select * from job where id = '${ids[0]}'`,
})
say('reading a job, ms at the database', planned!['QUERY PLAN'][0]['Execution Time'].toFixed(3))

function at(share: number): string {
  return (reads[Math.floor((reads.length - 1) * share)] ?? 0).toFixed(1)
}

await engine.stop(5_000)
await upstream.close()
await database.close()
await embedded.stop()
vendor.kill()
await rm(directory, { recursive: true, force: true })
