// Each stage of the path alone: `npm run bench -- stages [--calls 8000] [--rounds 25] [--only whole]`. The ledger and
// the database are stood in for by what answers at once, so that the figures are those of the path itself; the vendor
// is the bench's upstream. Each figure is the least of several rounds, in processor time of this process, with what its
// collector took.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { getHeapStatistics } from 'node:v8'
import { Pool } from 'undici'
import { admit } from '../src/admission/admit.ts'
import { createApiKeys, makeKey } from '../src/admission/api-key.ts'
import { createUsualOutput } from '../src/admission/usual-output.ts'
import { createApi, mountApi } from '../src/api/api.ts'
import { paidHandler } from '../src/api/paid.ts'
import { createServer } from '../src/api/server/server.ts'
import { checkDocument } from '../src/catalog/document.ts'
import { ENDPOINTS } from '../src/catalog/index.ts'
import type { Catalog } from '../src/catalog/store.ts'
import { readJson } from '../src/kernel/json.ts'
import { createLog } from '../src/kernel/log.ts'
import { createContentSealer, createSecrets } from '../src/kernel/secret.ts'
import { realWorld as world } from '../src/kernel/world.ts'
import type { Answered, Arrived, Held, PathDeps } from '../src/pipeline/call.ts'
import { type PaidSpec, read } from '../src/pipeline/read.ts'
import { relayAnswer } from '../src/pipeline/relay.ts'
import { createResponseCache } from '../src/pipeline/response-cache.ts'
import type { ResponseSink } from '../src/pipeline/response-sink.ts'
import { serve } from '../src/pipeline/serve.ts'
import { vendorCall } from '../src/protocols/vendor-call.ts'
import { routeRequest } from '../src/routing/route.ts'
import { createVendors } from '../src/routing/vendor.ts'
import { createMetrics } from '../src/telemetry/metrics.ts'
import { createMonitor, createStreamWatch } from '../src/telemetry/monitor.ts'
import { createByteBudget } from '../src/upstream/budget.ts'
import type { UpstreamReply } from '../src/upstream/call.ts'
import { createUpstream } from '../src/upstream/exchange.ts'
import { listCases } from './cases.ts'
import { benchCatalog } from './catalog.ts'
import { bareExchange } from './floor.ts'
import { compileTools, type LoadTools, runLoad } from './load.ts'
import { freePort } from './process.ts'

const { values: args } = parseArgs({
  args: process.argv.slice(3),
  options: {
    calls: { type: 'string', default: '8000' },
    rounds: { type: 'string', default: '25' },
    only: { type: 'string', default: '' },
  },
})
const CALLS = Number(args.calls)
const ROUNDS = Number(args.rounds)
const CONNECTIONS = 64
/** Until the compilers have little left to do. */
const WARM_CALLS = 40_000

interface Cost {
  readonly nanos: number
  readonly bytes: number
}

/** The least of several rounds: whatever else the machine does can only add to it. */
async function cost(run: (calls: number) => Promise<number> | number): Promise<Cost> {
  const seen: Cost[] = []
  for (let warm = 0; warm < WARM_CALLS; warm += CALLS) await run(CALLS)
  for (let round = 0; round < ROUNDS; round++) {
    const [cpu, heap] = [process.cpuUsage(), getHeapStatistics().total_allocated_bytes]
    const calls = await run(CALLS)
    const used = process.cpuUsage(cpu)
    const bytes = getHeapStatistics().total_allocated_bytes - heap
    seen.push({ nanos: ((used.user + used.system) * 1000) / calls, bytes: bytes / calls })
  }
  return { nanos: Math.min(...seen.map(({ nanos }) => nanos)), bytes: Math.min(...seen.map(({ bytes }) => bytes)) }
}

/** One after the other, in this process. */
const inTurn = (one: () => unknown) => async (calls: number) => {
  for (let i = 0; i < calls; i++) {
    const got = one()
    if (got instanceof Promise) await got
  }
  return calls
}

/** Many at a time, in this process. */
const atOnce = (one: () => Promise<unknown>) => async (calls: number) => {
  const lane = async () => {
    for (let i = 0; i < calls / CONNECTIONS; i++) await one()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, lane))
  return calls
}

const bodyOf = (id: string) => listCases(false).find((one) => one.id === id)!.body
const body = bodyOf('chat-64')
/** A stream is some ten times the work of an answer. */
const STREAM_PART = 0.1
const spec = ENDPOINTS.find(({ id }) => id === 'chat') as PaidSpec
const KEY = makeKey(world)
const PEPPER = Buffer.alloc(32, 7)

function setUp(upstreamPort: number) {
  const input = benchCatalog({ upstreamPort, slowPort: upstreamPort })
  const checked = checkDocument(input)
  if (!checked.ok) throw new Error(checked.problems.join('; '))
  const catalog: Catalog = {
    setAside: [],
    version: 1,
    document: checked.document,
    input,
    simulated: false,
    isGuarded: false,
    added: [],
    sockets: [],
  }
  const log = createLog({ level: 'info', stream: { write: () => true } as unknown as NodeJS.WritableStream })
  const vendors = createVendors(world)
  const watch = createStreamWatch(world)
  const none = async () => 0
  const metrics = createMetrics({
    vendors: () => [],
    probes: () => [],
    running: () => 0,
    ledgerPending: () => 0,
    ledgerIsolated: () => 0,
    store: { read: async () => undefined },
    databaseWaiting: () => 0,
    loopLagMs: () => 0,
    shed: () => 0,
    refusalsDropped: () => 0,
    contentsDropped: () => 0,
    openStreams: () => 0,
    changeFailures: () => new Map(),
    holds: none,
    queue: async () => ({ active: 0, created: 0, failed: 0 }),
    databaseUp: async () => true,
    ledger: { trouble: () => undefined, waiting: { settlements: 0, oldestMs: 0 } },
  })
  const row = {
    id: 'key_bench',
    account_id: 'acc_bench',
    models: null,
    endpoints: null,
    ip_ranges: null,
    expires_at: null,
    left_ms: null,
    status: 'open',
  }
  const database = { query: async () => [row] } as unknown as PathDeps['database']
  const posted = 1_000_000_000n
  const ledger = {
    reserve: async ({ want }: { want: bigint }) => ({ outcome: 'held', amount: want, rate: null }),
    resolve: async ({ charge }: { charge: bigint }) => ({
      outcome: 'resolved',
      paid: charge,
      hold: charge,
      loss: 0n,
      posted,
    }),
    pending: 0,
  } as unknown as PathDeps['ledger']
  const path: PathDeps = {
    database,
    ledger,
    vendors,
    watch,
    world,
    log,
    cache: createResponseCache(world),
    unbilled: { count() {} },
    usualOutput: createUsualOutput(),
    sealer: createContentSealer(createSecrets('of a bench'), world),
    upstream: createUpstream({ world }),
    logins: { open: () => Promise.reject(new Error('no logins')) },
    routes: { world, sandboxUrl: () => undefined, credential: () => undefined },
    monitor: createMonitor({ world, log, meters: metrics }),
    jobs: { open: () => Promise.reject(new Error('no jobs')) },
    refusals: { note() {} },
    shadows: { copy() {} },
    labelNames: { check: () => undefined },
  }
  const keys = createApiKeys({
    database,
    world,
    pepper: PEPPER,
    unknownPerMinute: 60,
    changes: { watch() {}, current: { atMs: Number.POSITIVE_INFINITY } } as unknown as Parameters<
      typeof createApiKeys
    >[0]['changes'],
  })
  const pool = new Pool(`http://127.0.0.1:${upstreamPort}`, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
  return { catalog, path, keys, log, pool }
}

type SetUp = ReturnType<typeof setUp>

/** A caller that takes everything. */
function listener(): ResponseSink {
  const gone = new AbortController()
  return {
    signal: gone.signal,
    started: false,
    send() {},
    startStream() {},
    end() {},
    destroy() {},
    write: () => undefined,
  }
}

/** A turn of the event loop later, as a vendor's answer comes. */
const answerAtOnce: ReturnType<ReturnType<typeof paidHandler>> = (_, out) =>
  new Promise((resolve) => {
    setImmediate(() => {
      out.send(200, { 'content-type': 'application/json' }, body)
      resolve()
    })
  })

/** The stages that need no socket, each with what the ones before it made. */
async function measureInside({ catalog, path, keys, pool }: SetUp) {
  const headers = { authorization: `Bearer ${KEY}`, xApiKey: undefined }
  const from = { ip: '127.0.0.1' }
  const principal = await keys.authenticate(headers, from)
  const bytes = Buffer.from(body)
  const byokKeys = { of: () => undefined, having: new Set<string>() }
  const deps = {
    world,
    presets: false,
    byokKeys,
    pictures: () => Promise.reject(new Error('no pictures')) as never,
    pageTokens: () => Promise.reject(new Error('no pages')) as never,
  }
  const paidRequest = () =>
    read({ spec, catalog, principal, brought: {}, params: {}, query: '', body: { json: readJson(bytes) } }, deps)
  const { paidRequest: asked, product } = paidRequest()
  const make = (): Arrived => ({
    requestId: 'req_01JCXM4QF8ZB3S1T7VW9YKE2RH',
    principal,
    paidRequest: asked,
    product,
    catalog,
    endpoint: spec.id,
    routes: product.routes,
    startedMs: world.elapsedMs(),
    out: listener(),
    callerHeaders: {},
  })
  const arrived = make()
  const admitted = await admit(arrived, path.ledger)
  if (admitted === 'replay' || 'order' in asked) throw new Error('This is no plain chat call.')
  const held: Held = { ...arrived, admitted, seen: path.monitor.begin(arrived) }
  const open = () => {
    const [candidate] = routeRequest(asked, { ...product, pool: product.routes }, catalog.document, path.routes)
    const exchange = asked.open(candidate!.target, { requestId: '', createdSeconds: 0, signal: arrived.out.signal })
    if (exchange instanceof Promise) throw new Error('A chat opens at once.')
    return { candidate: candidate!, exchange, call: vendorCall(exchange.call, candidate!.target) }
  }
  const { candidate, exchange, call } = open()
  const sending = { deadlines: candidate.vendor.timeouts, signal: arrived.out.signal }
  const answer = await (await path.upstream.send(call, sending)).read(1_000_000)
  const reply: UpstreamReply = {
    status: 200,
    headers: { 'content-type': 'application/json' },
    abort() {},
    letGo() {},
    read: async () => answer,
    pipe: () => Promise.reject(new Error('This is no stream.')),
  }
  const attempted = {
    candidate,
    exchange,
    reply,
    attempts: 1,
    startMs: 0,
    drains: undefined,
    firstByteMs: 1,
    leave() {},
  }
  const answered: Answered = { ...held, paidRequest: asked, attempted }
  return {
    'key: found by its hash': () => cost(inTurn(() => keys.authenticate(headers, from))),
    'read: JSON, checks, price facts': () => cost(inTurn(paidRequest)),
    'admit: worst case, hold asked for': () => cost(inTurn(() => admit(arrived, path.ledger))),
    'open: route, request to the vendor': () => cost(inTurn(open)),
    'exchange: sent and read over HTTP': () =>
      cost(atOnce(async () => (await path.upstream.send(open().call, sending)).read(1_000_000))),
    'floor: the same exchange by undici alone': () => cost(atOnce(() => bareExchange(pool, bytes))),
    'relay and settle: answer read, priced, charged': () => cost(inTurn(() => relayAnswer(answered, path))),
    'whole path, without the door': () => cost(atOnce(() => serve(make(), path))),
  }
}

/** What a call costs from socket to socket, by a load generator in a process of its own. */
function measureDoor(tools: LoadTools, { catalog, path, keys, log, pool }: SetUp) {
  const budget = createByteBudget({ world, bytesMax: 1_000_000_000, queueMax: 1 })
  const byokKeys = { of: () => undefined, having: new Set<string>() }
  const deps = {
    world,
    presets: false,
    byokKeys,
    pictures: () => Promise.reject(new Error('no pictures')) as never,
    pageTokens: () => Promise.reject(new Error('no pages')) as never,
  }
  const paid = paidHandler({
    catalog: { current: catalog } as never,
    background: { accept: () => Promise.reject(new Error('nothing in the background')) } as never,
    path,
    read: deps,
    bodies: { world, bytesPerSecondMin: 1 },
  })
  const driven = async (port: number, sent = body, part = 1) => {
    const aim = { port, path: spec.path, headers: { Authorization: `Bearer ${KEY}` }, body: sent }
    return cost(async (calls) => {
      const { n, non200, err } = await runLoad(tools, aim, {
        connections: CONNECTIONS,
        seconds: 60,
        warmSeconds: 0,
        total: Math.ceil(calls * part),
      })
      if (non200 > 0 || err > 0) throw new Error(`${non200} calls were refused and ${err} failed.`)
      return n
    })
  }
  return {
    async 'floor: a bare node:http server'() {
      const bare = createHttpServer((request, response) => {
        request.on('data', () => {}).on('end', () => response.end('{}'))
      })
      await new Promise<void>((resolve) => bare.listen(0, '127.0.0.1', resolve))
      const floor = await driven((bare.address() as { port: number }).port)
      bare.close()
      return floor
    },
    async 'floor: a bare proxy of node:http and undici'() {
      const proxy = createHttpServer((request, response) => {
        request.on('data', (bytes: Buffer) => {
          bareExchange(pool, bytes).then((answer) => response.end(answer))
        })
      })
      await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
      const floor = await driven((proxy.address() as { port: number }).port)
      proxy.close()
      return floor
    },
    'door: a call from socket to socket that is answered without the path': () => whole(() => answerAtOnce),
    'whole call, from socket to socket': () => whole(paid),
    'whole stream of 100 chunks, from socket to socket': () => whole(paid, bodyOf('stream'), STREAM_PART),
  }

  async function whole(paid: ReturnType<typeof paidHandler>, ...sent: [sent?: string, part?: number]) {
    const app = createServer({ world, log, strictErrors: false })
    const api = createApi(app, {
      keys,
      strictErrors: false,
      log,
      world,
      admit: () => undefined,
      budget,
      bodies: { world, bytesPerSecondMin: 1 },
    })
    mountApi(api, { paid, free: {} as never, catalog: { current: catalog } })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const whole = await driven((app.server.address() as { port: number }).port, ...sent)
    await app.close()
    return whole
  }
}

async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-stages-'))
  const tools = compileTools(directory)
  if (!tools) throw new Error('The bench needs a C compiler (cc, gcc or clang).')
  const port = await freePort()
  const mock = spawn(tools.mock, [String(port)], { stdio: 'ignore' })
  try {
    await new Promise((resolve) => setTimeout(resolve, 300))
    const parts = setUp(port)
    const stages = { ...(await measureInside(parts)), ...measureDoor(tools, parts) }
    console.log('| stage | µs a call | bytes a call |\n| --- | --- | --- |')
    for (const [stage, measured] of Object.entries(stages)) {
      if (!stage.includes(args.only)) continue
      const { nanos, bytes } = await measured()
      console.log(`| ${stage} | ${(nanos / 1000).toFixed(2)} | ${bytes.toFixed(0)} |`)
    }
    await parts.path.upstream.close()
    await parts.pool.destroy()
  } finally {
    mock.kill()
    rmSync(directory, { recursive: true, force: true })
  }
}

await main()
process.exit()
