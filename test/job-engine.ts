// The job engine without the web in front of it: for tests and for measurements of the engine alone.

import { text } from 'node:stream/consumers'
import { type Sandbox, startSandbox } from '../sandbox/server.ts'
import { admit } from '../src/admission/admit.ts'
import type { Principal } from '../src/admission/api-key.ts'
import type { CatalogInput } from '../src/catalog/document.ts'
import { PAID } from '../src/catalog/generation.ts'
import { type Catalog, openCatalog } from '../src/catalog/store.ts'
import { readDefaultCatalog } from '../src/compose.ts'
import { createAudit } from '../src/database/audit.ts'
import { createChanges } from '../src/database/changes.ts'
import type { Database } from '../src/database/database.ts'
import { type EngineOptions, type JobEngine, startJobs } from '../src/jobs/engine.ts'
import { JOB_TIMING, type JobTiming } from '../src/jobs/job.ts'
import type { ResultStore } from '../src/jobs/result.ts'
import { createVendorTasks } from '../src/jobs/vendor-tasks.ts'
import type { StepDeps } from '../src/jobs/video.ts'
import { type JsonText, readJson } from '../src/kernel/json.ts'
import { type Log, silentLog } from '../src/kernel/log.ts'
import { createSecrets } from '../src/kernel/secret.ts'
import { newId, realWorld, type World } from '../src/kernel/world.ts'
import { createLedger, type Ledger } from '../src/ledger/ledger.ts'
import { type PaidSpec, read } from '../src/pipeline/read.ts'
import { createVendors } from '../src/routing/vendor.ts'
import { createByteBudget } from '../src/upstream/budget.ts'
import { createUpstream } from '../src/upstream/exchange.ts'
import { createGuardedFetch } from '../src/upstream/guard.ts'
import { type FreshDatabase, freshDatabase } from './database.ts'
import { FAST } from './job-pace.ts'
import { assert, listen, until } from './kit.ts'

export interface TestEngine {
  readonly fresh: FreshDatabase
  readonly database: Database
  readonly ledger: Ledger
  readonly engine: JobEngine
  readonly sandbox: Sandbox
  readonly results: Map<string, Buffer>
  readonly deps: EngineOptions
  account(credits?: bigint): Promise<string>
  create(account: string, body: Record<string, unknown>): Promise<string>
  /** The row and its hold, without telling the engine: its first step is far off. */
  store(account: string, body: Record<string, unknown>): Promise<string>
  /** What was stored is due now. */
  begin(...ids: string[]): Promise<void>
  /** For tests that take single steps themselves. */
  readonly step: StepDeps
  /** Resolves when no job is open any more. */
  ended(forMs?: number): Promise<void>
  row(id: string): Promise<Record<string, unknown>>
  balance(account: string): Promise<{ posted: bigint; held: bigint }>
  close(): Promise<void>
}

/** What a request for a video asks for. */
export function readVideo(json: JsonText, catalog: Catalog, principal: Principal) {
  const spec: PaidSpec = { ...PAID.video, sells: 'video' }
  const byokKeys = { of: () => undefined, having: new Set<string>() }
  const pictures = () => assert.fail('a video has no pictures to keep')
  const deps = {
    world: realWorld,
    presets: false,
    byokKeys,
    pictures,
    pageTokens: () => assert.fail('a video has no pages'),
  }
  const { paidRequest, product } = read(
    { spec, catalog, principal, brought: {}, params: {}, query: '', body: { json } },
    deps,
  )
  assert.ok('order' in paidRequest)
  return { paidRequest, product }
}

export async function startTestEngine(
  options: {
    timing?: Partial<JobTiming>
    speed?: number
    /** The vendor's clock: tests that set it decide how long a task takes, however slow the machine is. */
    vendorWorld?: World
    log?: Log
    /** Several engines on one database and one vendor. */
    beside?: TestEngine
    catalog?: (document: CatalogInput) => void
    /** Private addresses that webhooks may go to. */
    allow?: string[]
  } = {},
): Promise<TestEngine> {
  const { beside, log = silentLog } = options
  const world = realWorld
  const fresh = beside?.fresh ?? (await freshDatabase())
  const sandbox =
    beside?.sandbox ?? (await startSandbox({ world: options.vendorWorld ?? world, speed: options.speed ?? 1000 }))
  const database = fresh.open({ connectionsMax: 8 })
  // A job that a test stores waits until the test says that it may begin.
  await database.query({ text: `alter table job alter column step_at set default now() + interval '1 hour'` })
  const changes = createChanges(database, world)
  const initial = (await readDefaultCatalog()) as CatalogInput
  options.catalog?.(initial)
  const catalog = await openCatalog({ database, changes, audit: createAudit({ database, world }), initial })
  const ledger = createLedger({ database, world, processId: newId(world) })
  const upstream = createUpstream({ world })
  const results = beside?.results ?? new Map<string, Buffer>()
  const store: ResultStore = {
    async copy(url, { trusted }) {
      const host = new URL(trusted).host
      const pieces: Buffer[] = []
      await createGuardedFetch({ world, allow: [host] }).download(
        url,
        (chunk) => {
          pieces.push(Buffer.from(chunk))
          return undefined
        },
        { bytesMax: 100_000_000, signal: new AbortController().signal },
      )
      const id = newId(world)
      results.set(id, Buffer.concat(pieces))
      return id
    },
    url: (id) => `https://files.example/${id}`,
  }
  const deps: EngineOptions = {
    database,
    ledger,
    catalog,
    upstream,
    logins: { open: () => assert.fail('no vendor here has a login') },
    // Faults on purpose would open the breaker, and the others would wait for it.
    vendors: { ...createVendors(world), available: () => true },
    byokKeys: { of: () => undefined },
    routes: { world, sandboxUrl: () => sandbox.url, credential: () => undefined },
    results: store,
    guard: createGuardedFetch({ world, allow: options.allow ?? [] }),
    secrets: createSecrets('a secret for tests, of more than thirty-two bytes'),
    world,
    log,
    timing: { ...FAST, ...options.timing },
    mailer: undefined,
    audit: createAudit({ database, world }),
  }
  const engine = startJobs(deps)

  const made: TestEngine = {
    fresh,
    database,
    ledger,
    engine,
    sandbox,
    results,
    deps,
    async account(credits = 1_000_000_000n) {
      const id = `acc_${newId(world)}`
      await database.query({ text: 'insert into account (id, name) values ($1, $2)' }, [id, 'test'])
      if (credits > 0n) await ledger.grant({ account: id, amount: credits, note: 'test', actor: 'test' })
      return id
    },
    step: {
      ...deps,
      jobs: engine.jobs,
      tasks: createVendorTasks(deps),
      timing: { ...JOB_TIMING, ...deps.timing },
      orders: createByteBudget({ world, bytesMax: 1_000_000, queueMax: 0 }),
      callBack: async () => {},
    },
    async create(account, body) {
      const id = await made.store(account, body)
      await made.begin(id)
      return id
    },
    async begin(...ids) {
      await database.query({ text: 'update job set step_at = now() where id = any($1)' }, [ids])
      engine.wake()
    },
    async store(account, body) {
      const principal = {
        accountId: account,
        keyId: 'key_test',
        models: null,
        endpoints: null,
        expiresAtMs: Number.POSITIVE_INFINITY,
        addresses: null,
      }
      const json = readJson(Buffer.from(JSON.stringify({ model: 'videogen-2.0', ...body })))
      const requestId = `req_${newId(world)}`
      const asked = readVideo(json, catalog.current, principal)
      const job = await engine.open(
        asked.paidRequest.order,
        { requestId, endpoint: 'video' },
        new AbortController().signal,
      )
      await admit({ requestId, principal, catalog: catalog.current, ...asked }, ledger, job.row)
      return job.row.id
    },
    async ended(forMs = 120_000) {
      const open = () => database.query<{ open: bigint }>({ text: 'select count(*) as open from job where open' })
      await until(async () => (await open())[0]!.open, 0n, forMs)
    },
    row: async (id) => (await database.query({ text: 'select * from job where id = $1' }, [id]))[0]!,
    async balance(account) {
      const [row] = await database.query<{ posted: bigint; held: bigint }>(
        { text: 'select posted, held from account where id = $1' },
        [account],
      )
      return row!
    },
    async close() {
      await engine.stop(2_000)
      await ledger.idle()
      await upstream.close()
      await database.close()
      if (beside) return
      await sandbox.close()
      await fresh.drop()
    },
  }
  return made
}

/** A receiver of webhooks, and what it got. */
export async function startReceiver(answer: (count: number) => number = () => 204) {
  const got: Array<{ headers: Record<string, string>; body: string }> = []
  const { url, host, close } = await listen(async (request, response) => {
    const body = await text(request)
    got.push({ headers: request.headers as Record<string, string>, body })
    response.writeHead(answer(got.length)).end()
  })
  return {
    url: `${url}/hook`,
    host,
    got,
    close,
    /** The first message about a job, when it comes. */
    about: (jobId: string) => until(() => got.find(({ headers }) => headers['webhook-id'] === `msg_${jobId}`)),
  }
}
