// The `serve` command: starts the database, the simulated vendors and the gateway, and prints what a new user needs.
import { spawn } from 'node:child_process'
import cluster from 'node:cluster'
import { existsSync } from 'node:fs'
import { setPriority, constants as system } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { startSandbox } from '../../sandbox/server.ts'
import { faultBody, faultHeaders } from '../api/server/envelope.ts'
import { readDocumentFile } from '../catalog/document.ts'
import { isSandbox } from '../catalog/simulated.ts'
import type { Gateway, GatewayOptions } from '../compose.ts'
import type { Config } from '../config.ts'
import { isUnknownThere, isUnprepared, sql } from '../database/database.ts'
import { setupLink } from '../identity/people.ts'
import { openInstallation } from '../installation.ts'
import { Fault } from '../kernel/fault.ts'
import { createLog, type Log } from '../kernel/log.ts'
import { sleep } from '../kernel/timers.ts'
import { newId, realWorld } from '../kernel/world.ts'
import { type DataDirectory, openDataDirectory, readServerFile, writeServerFile } from './data-directory.ts'
import { type Stop, watchForStop } from './stop.ts'
import { createWorkers, joinParent, type Shared } from './workers.ts'

// Not imported: an import of node:http by name also loads Node's fetch and WebSocket.
const { createServer: createHttpServer } = process.getBuiltinModule('node:http')
const RETRY_MS = 1_000
/**
 * Extra time for a worker's shutdown after its calls: settlements may wait for the database, and the machine may be
 * busy.
 */
const LEAVE_MS = 60_000

/** How long a startup may take to react to a stop request. */
const CUT_SHORT_MS = 10_000

/** A database server that this process starts where no other is configured. */
interface OwnStore {
  readonly connection: pg.PoolConfig
  readonly version: string
  stop(): Promise<void>
}
type StartStore = (of: {
  readonly dataDirectory: string
  readonly log: (line: string) => void
  readonly stop: AbortSignal
}) => Promise<OwnStore>

export async function serve(config: Config, startStore: StartStore): Promise<void> {
  if (cluster.isWorker) return serveAsWorker(config)
  const stop = watchForStop({ keepsHangup: config.TOLLGATE_WORKERS > 1 })
  const opened = new AsyncDisposableStack()
  try {
    await Promise.race([start({ config, stop, startStore }, opened), cutShort(stop)])
    say(`\n${await stop.asked}: finishing running calls (up to ${config.TOLLGATE_DRAIN_SECONDS} s) …`)
  } catch (error) {
    // After a stop request, any step of the startup may fail.
    if (!stop.signal.aborted) throw error
  } finally {
    await opened.disposeAsync()
  }
  say('Stopped.')
  process.exit() // Pending work of an aborted startup must not keep the process alive.
}

const say = (line: string) => process.stdout.write(`${line}\n`)

async function cutShort({ asked }: Stop): Promise<never> {
  await asked
  await new Promise<void>((resolve) => realWorld.after(CUT_SHORT_MS, resolve))
  throw new Error('The start did not end.')
}

/** Opens one resource after the other. They are closed in reverse order, also when the next one fails to open. */
async function start(
  { config, stop, startStore }: { readonly config: Config; readonly stop: Stop; readonly startStore: StartStore },
  opened: AsyncDisposableStack,
): Promise<void> {
  const world = realWorld
  const startedMs = world.elapsedMs()
  const log = createLog({
    level: config.TOLLGATE_LOG_LEVEL,
    format: config.TOLLGATE_LOG_FORMAT ?? (process.stderr.isTTY ? 'text' : 'json'),
  })
  await checkPort(config)
  const directory = await openDataDirectory(config, world)
  const { dataDirectory } = config
  const embedded = config.DATABASE_URL
    ? undefined
    : await startStore({ dataDirectory, log: (line) => say(`  ${line}`), stop: stop.signal })
  opened.defer(() => embedded?.stop())
  const sandbox = opened.adopt(await startSandbox({ world, speed: config.TOLLGATE_SANDBOX_SPEED }), (it) => it.close())
  const shared: Shared = { ...directory, connection: connectionOf(config, embedded), sandboxUrl: sandbox.url }
  const waiting = opened.adopt(createWaitingRoom(config), (it) => it.close())
  const gateway = await untilStoreAnswers(() => openGateway(config, shared, log), {
    log,
    stop: stop.signal,
    onWait: waiting.open,
  })
  opened.defer(() => gateway.close())
  stop.signal.throwIfAborted()
  await applyGivenCatalog(config, gateway)
  await waiting.close()
  const address = await listen(config, { gateway, shared, log }, opened)
  const seconds = (world.elapsedMs() - startedMs) / 1000
  opened.defer(buildConsole(gateway, log))
  await whileServing({ log, stop: stop.signal }, async () => {
    opened.defer(await writeServerFile(config.dataDirectory, { url: address, pid: process.pid }))
  })
  await whileServing({ log, stop: stop.signal }, () =>
    firstMinute({
      gateway,
      config,
      directory,
      say,
      seconds,
      url: config.PUBLIC_URL?.replace(/(?<!\/)\/+$/, '') ?? address,
      store: embedded
        ? `Postgres ${embedded.version} (built in), in ${config.dataDirectory}`
        : 'Postgres at DATABASE_URL',
    }),
  )
}

/** The process serves already: nothing that fails from now on may end it. */
async function whileServing({ log, stop }: { log: Log; stop: AbortSignal }, run: () => Promise<void>): Promise<void> {
  while (!stop.aborted) {
    try {
      return await run()
    } catch (error) {
      log.warn({ error }, 'a step after the start failed; it is tried again, and calls are served meanwhile')
      await sleep(realWorld, RETRY_MS)
    }
  }
}

/**
 * Fails early if the port is taken, before a database is started. The port is released again until the gateway is ready
 * to serve.
 */
async function checkPort({ PORT: port, HOST: host, dataDirectory }: Config): Promise<void> {
  if (port === 0) return
  const probe = createHttpServer()
  const failed = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    probe.once('error', resolve)
    probe.listen(port, host, () => probe.close(() => resolve(undefined)))
  })
  if (!failed) return
  const other = 'Set PORT to another one, such as PORT=8081, or to 0 for any that is free.'
  if (failed.code === 'EACCES') throw new Error(`This user may not listen on port ${port}. ${other}`)
  if (failed.code === 'EADDRNOTAVAIL') throw new Error(`This machine has no address ${host}: correct HOST.`)
  if (failed.code !== 'EADDRINUSE') throw failed
  const server = await readServerFile(dataDirectory)
  const who = server
    ? ` (a gateway with process id ${server.pid} uses this data directory, and serves ${server.url})`
    : ''
  throw new Error(
    `Port ${port} of ${host} is taken by another program${who}. Stop that program, or use another port. ${other}`,
  )
}

interface Listening {
  readonly gateway: Gateway
  readonly shared: Shared
  readonly log: Log
}

/** Listens with this process alone, or with several workers. */
async function listen(
  config: Config,
  { gateway, shared, log }: Listening,
  opened: AsyncDisposableStack,
): Promise<string> {
  if (config.TOLLGATE_WORKERS === 1) return gateway.app.listen({ port: config.PORT, host: config.HOST })
  const workers = createWorkers({
    count: config.TOLLGATE_WORKERS,
    leaveMs: config.TOLLGATE_DRAIN_SECONDS * 1000 + LEAVE_MS,
    figures: gateway.figures,
    shared,
    log,
    world: realWorld,
  })
  opened.defer(() => workers.stop())
  return workers.start()
}

/** Builds the console if its sources changed; the API does not wait for it. The returned function aborts the build. */
function buildConsole(gateway: Gateway, log: Log): () => void {
  const script = join(import.meta.dirname, '..', '..', 'console', 'build.ts')
  // The npm package has it built.
  if (!existsSync(script)) return () => undefined
  const build = spawn(process.execPath, [script, '--if-stale'], { stdio: ['ignore', 'inherit', 'pipe'] })
  // Calls have priority over the build, also on a single core.
  if (build.pid !== undefined) setPriority(build.pid, system.priority.PRIORITY_LOW)
  let problem = ''
  build.stderr.on('data', (bytes: Buffer) => {
    problem += bytes.toString()
  })
  let givenUp = false
  build.once('close', (code) => {
    if (givenUp) return
    if (code !== 0)
      log.warn(
        { problem: problem.slice(-500) },
        'the console could not be built; an earlier build is served, if there is one',
      )
    gateway.office.consoleFiles.forget()
  })
  return () => {
    givenUp = true
    build.kill()
  }
}

async function openGateway(
  config: Config,
  shared: Shared,
  log: Log,
  rest: Pick<GatewayOptions, 'groupMetrics'> = {},
): Promise<Gateway> {
  const { gateway } = await openInstallation({
    ...rest,
    config,
    world: realWorld,
    log,
    connection: shared.connection,
    secret: shared.secret,
    operatorToken: shared.operatorToken,
    sandboxUrl: () => shared.sandboxUrl,
  })
  return gateway
}

/** Runs as one of several processes on one port. The parent runs the database and the simulated vendors. */
async function serveAsWorker(config: Config): Promise<void> {
  const parent = joinParent(realWorld)
  const shared = await parent.shared
  const log = createLog({
    level: config.TOLLGATE_LOG_LEVEL,
    format: config.TOLLGATE_LOG_FORMAT ?? (process.stderr.isTTY ? 'text' : 'json'),
  })
  const gateway = await openGateway(config, shared, log, { groupMetrics: parent.readGroup })
  parent.answerWith(gateway.figures)
  if (!parent.isStopping) await gateway.app.listen({ port: config.PORT, host: config.HOST })
  await parent.stopping
  await gateway.close()
  await parent.leave(await gateway.figures())
}

function connectionOf(config: Config, embedded: OwnStore | undefined): pg.PoolConfig {
  if (embedded) return { ...embedded.connection }
  // Without the embedded server there is an address. The driver finds the password; ledgers' servers are told it.
  return { connectionString: config.DATABASE_URL!, password: config.environment('PGPASSWORD') }
}

/** Waits for a database that is not up yet. A wrong database or password is an error. */
async function untilStoreAnswers<T>(
  make: () => Promise<T>,
  options: { log: Log; onWait: () => Promise<void>; stop: AbortSignal },
): Promise<T> {
  for (;;) {
    options.stop.throwIfAborted()
    try {
      return await make()
    } catch (error) {
      if (!(error instanceof Fault) || error.kind !== 'unavailable') throw error
      const problem = startProblem(error)
      if (problem !== undefined) throw new Error(problem, { cause: error })
      options.log.warn(
        { cause: (error.cause as Error | undefined)?.message },
        'the database does not answer; trying again every second',
      )
      await options.onWait()
      await sleep(realWorld, RETRY_MS)
    }
  }
}

/**
 * Why no waiting helps. A running gateway waits while a password or a pooler is being changed, but a start with wrong
 * settings fails.
 */
export function startProblem(error: Fault): string | undefined {
  const said = (error.cause as Error | undefined)?.message // What the driver threw.
  if (isUnknownThere(error))
    return `DATABASE_URL: the server says: ${said}. Correct the name of the database, the user or the password.`
  if (isUnprepared(error))
    return `DATABASE_URL: a pooler there does not keep prepared statements (${said}). Set TOLLGATE_DATABASE_PREPARE=0, or max_prepared_statements in pgbouncer 1.21 or newer.`
  return undefined
}

/** While the database is down, the process answers that it is alive but not ready. */
function createWaitingRoom(config: Config) {
  const server = createHttpServer((request, response) => {
    const requestId = `req_${newId(realWorld)}`
    if (request.url === '/healthz')
      return response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
    if (request.url === '/readyz')
      return response.writeHead(503, { 'content-type': 'application/json' }).end('{"ready":false}')
    const fault = new Fault('unavailable')
    response
      .writeHead(fault.status, { ...faultHeaders(fault), 'x-request-id': requestId })
      .end(faultBody(fault, 'native', { requestId, sdk: false }))
  })
  return {
    open: () =>
      server.listening
        ? Promise.resolve()
        : new Promise<void>((resolve) => server.listen(config.PORT, config.HOST, resolve)),
    close: () =>
      new Promise<void>((resolve) => {
        if (!server.listening) return resolve()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function applyGivenCatalog({ TOLLGATE_CATALOG: file }: Config, gateway: Gateway): Promise<void> {
  if (!file) return
  const given = await readDocumentFile(file).catch((error: Error) => {
    throw new Error(`TOLLGATE_CATALOG: ${error.message}`)
  })
  const by = { actor: 'system', ip: null, requestId: null }
  const { version, changes } = await gateway.catalog
    .apply(given, by, `from ${file} at start`)
    .catch((error: unknown) => {
      if (!(error instanceof Fault) || error.kind !== 'request_invalid') throw error
      throw new Error(`TOLLGATE_CATALOG: ${file}: ${error.message}`)
    })
  if (changes.length > 0)
    say(`  Applied the catalog of TOLLGATE_CATALOG as version ${version} (${changes.length} changes).`)
}

// What `npm start` prints: the address, an account with credits, a key that is shown once, and a call that works.

/** Exactly one of several processes that start on an empty database creates the first account. */
const FIRST = sql('first_account')`
  insert into setting (name, value) select 'first_account', 'made' where not exists (select 1 from account)
   on conflict (name) do nothing returning name`
const NOT_FIRST = sql('first_account_undone')`delete from setting where name = 'first_account'`
const FIRST_CREDITS = 1_000_000_000n

interface FirstMinuteOptions {
  readonly gateway: Gateway
  readonly config: Config
  readonly directory: DataDirectory
  readonly url: string
  readonly store: string
  readonly seconds: number
  readonly say: (line: string) => void
}

export async function firstMinute({ gateway, directory, url, store, seconds, say }: FirstMinuteOptions): Promise<void> {
  const { database, catalog } = gateway
  const simulated = Object.entries(catalog.current.document.vendors).filter(([, vendor]) => isSandbox(vendor.baseUrl))
  const [mine] = await database.query(FIRST)
  const first = mine
    ? await createFirstAccount(gateway).catch(async (error: unknown) => {
        await database.query(NOT_FIRST)
        throw error
      })
    : undefined
  const setup = await gateway.people.openSetup()

  say('')
  say(`  Tollgate is ready after ${seconds.toFixed(1)} s.`)
  say('')
  say(`  API       ${url}`)
  say(`  Console   ${url}/console`)
  say(`  Docs      ${url}/docs`)
  say(`  Database  ${store}`)
  if (simulated.length > 0)
    say(
      `  Vendors   ${simulated.length} of ${Object.keys(catalog.current.document.vendors).length} are simulated (${simulated.map(([name]) => name).join(', ')}): no vendor key needed, answers are not real.`,
    )
  if (directory.tokenIsNew) {
    say('')
    say(`  Operator token, for /admin/v1 and the command line; stored in the data directory, shown once:`)
    say(`    ${directory.operatorToken}`)
  }
  if (setup !== undefined) {
    say('')
    say('  Create your console login with this link, which works once:')
    say(`    ${setupLink(url, setup)}`)
  }
  if (first) {
    say('')
    say('  An account with 1000 credits was created for you. Its key, shown once:')
    say(`    ${first.key}`)
    say('')
    say('  Try it:')
    say(`    curl ${url}/v1/chat-completions \\`)
    say(`      -H "Authorization: Bearer ${first.key}" \\`)
    say(`      -H "Content-Type: application/json" \\`)
    say(`      -d '{"model":"alpha-5.4","messages":[{"role":"user","content":"Hello!"}]}'`)
  }
  if (simulated.length > 0) {
    say('')
    say(
      '  To connect a real vendor: npx tollgate connect openai --key-env OPENAI_API_KEY --markup 1.2, or “Add vendor” in the console.',
    )
  }
  say('')
}

async function createFirstAccount({ accounts, keys }: Gateway): Promise<{ key: string }> {
  const by = { actor: 'system', ip: null, requestId: null }
  const account = await accounts.create({ name: 'First account', credits: FIRST_CREDITS }, by)
  return keys.create(account, { name: 'First key' }, by)
}
