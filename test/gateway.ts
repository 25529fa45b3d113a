// A whole gateway for a test file: its own database, the simulated vendors, a free port.

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { inspect } from 'node:util'
import { type Sandbox, startSandbox } from '../sandbox/server.ts'
import { digestOf, makeKey } from '../src/admission/api-key.ts'
import { withAdded } from '../src/catalog/index.ts'
import { storedCatalogs } from '../src/catalog/store.ts'
import { EXTENSIONS, type Gateway, type GatewayOptions, readDefaultCatalog } from '../src/compose.ts'
import { type Config, readConfig } from '../src/config.ts'
import { createAudit } from '../src/database/audit.ts'
import type { EmbeddedConnection } from '../src/extensions/postgres/embedded.ts'
import { verifyLedger } from '../src/extensions/verify/verify.ts'
import type { Cost } from '../src/identity/password.ts'
import { openInstallation } from '../src/installation.ts'
import type { JobTiming } from '../src/jobs/job.ts'
import { Fault } from '../src/kernel/fault.ts'
import { type Log, silentLog } from '../src/kernel/log.ts'
import { createSecrets } from '../src/kernel/secret.ts'
import { newId, realWorld, type World } from '../src/kernel/world.ts'
import { checkAnswers } from './answers.ts'
import { bookedBefore, type FreshDatabase, freshDatabase, WAIT_FACTOR } from './database.ts'
import { FAST } from './job-pace.ts'
import { isOff, OFF } from './runs.ts'
import { until } from './until.ts'

export * from './kit.ts'

export const SECRET = 'a secret for tests, of more than thirty-two bytes'
export const OPERATOR_TOKEN = 'operator-token-for-tests-0123456789'

/** Who changes what tests change behind the API. */
export const BY = { actor: 'test', ip: null, requestId: null }

/** Hashes that take a millisecond. What passwords really cost is tested in src/identity/password.test.ts. */
export const CHEAP: Cost = { memoryKiB: 64, passes: 1 }

/** Each run writes the vendors' answers in other ways; a run that fails says how to repeat them. */
const VARIATION = Number(process.env.TOLLGATE_TEST_SEED ?? randomInt(2 ** 31))
process.once('exit', (code) => {
  if (code !== 0) console.error(`Answers of simulated vendors were written by TOLLGATE_TEST_SEED=${VARIATION}`)
})

/** Accounts whose calls may cost more than was held. */
const exceeding = new Set<string>()

export interface TestGateway extends AsyncDisposable {
  readonly url: string
  readonly gateway: Gateway
  /** Where people, settings and mails to people are: its own database, or before a ledger that of control. */
  readonly control: Gateway['database']
  readonly sandbox: Sandbox
  readonly config: Config
  /** A new account with credits and a key of its own. */
  account(options?: { credits?: bigint; models?: string[] | null }): Promise<{ id: string; key: string; keyId: string }>
  key(account: string, options?: { models?: string[] | null }): Promise<{ key: string; keyId: string }>
  /** Posted and held, in micro-credits. */
  balance(account: string): Promise<{ posted: bigint; held: bigint }>
  /**
   * The calls of this account may cost more than was held, because the test is about that. Any other such call fails
   * the tests.
   */
  mayExceedHold(account: string): void
  /** Waits until no hold is left, and checks the ledger's sums. */
  settled(): Promise<void>
  /** The calls of an account as the ledger has them, in their order, when all are settled. */
  calls(account: string): Promise<Call[]>
  lastCall(account: string): Promise<Call>
  /** What the verification of the ledger finds, and of the audit if it is asked for that too. */
  problems(withAudit?: boolean): Promise<readonly string[]>
  call(path: string, key: string | undefined, body?: unknown, init?: RequestInit): Promise<Response>
  /** Asks its database, where everything that was called before is booked. */
  sql<R = Record<string, unknown>>(text: string, values?: Values): Promise<R[]>
  /** Of the operator API; `data` is the fault where it refuses. */
  operator<T>(method: string, path: string, body?: unknown): Promise<{ status: number; data: T }>
  /** The same, which must answer 200: its data. */
  ask<T>(method: string, path: string, body?: unknown): Promise<T>
  close(): Promise<void>
}

/** A row of its usage. */
export interface Call {
  readonly id: string
  readonly product: string
  readonly endpoint: string
  readonly outcome: string
  readonly status: number
  readonly charged: bigint
  readonly held: bigint
  readonly loss: bigint
  readonly cost: bigint | null
  readonly estimated: boolean
  readonly vendor: string | null
  readonly lines: [unit: string, quantity: number, rate: string][]
  readonly labels: any
  readonly log: any
}

type Values = Parameters<Gateway['database']['query']>[1]

const ON = EXTENSIONS.filter(({ name }) => !isOff(name))

/** The endpoints of test gateways. */
export const OFFERED = withAdded(ON.flatMap(({ entries }) => [...entries]))
export const offers = (id: string) => OFFERED.some((one) => one.id === id)
/** For a test of an endpoint that an extension brings. */
export const whereOffered = (id: string) => ({ skip: !offers(id) && `no extension here offers ${id}` })

interface TestGatewayOptions {
  env?: Record<string, string>
  catalog?: (document: any) => void
  log?: Log
  world?: World
  /** The simulated vendors' clock. */
  vendorWorld?: World
  jobs?: Partial<JobTiming>
  /** The first catalog, if not the shipped one. */
  initialCatalog?: unknown
  passwordCost?: Cost
  /** Its vendors report what the test wants, whatever the request has. */
  mayExceedHolds?: boolean
  /** Simulated vendors write their answers in one way, as documents want them. */
  plain?: boolean
  /** Sees the server before it listens. */
  hook?: (app: Gateway['app']) => void
  /** Shared with another gateway; one of its own by default. */
  database?: Pick<FreshDatabase, 'connection'>
  /**
   * One gateway for all files of a process that ask for it with the same catalog: they may change nothing that others
   * see.
   */
  isShared?: boolean
  /** Extensions that its tests use beside their own, which --alone leaves on. */
  beside?: readonly string[]
  /** Puts something between the gateway and its database. */
  through?: (connection: EmbeddedConnection) => EmbeddedConnection
  /** How many times as long as in production it waits for its database. */
  waitFactor?: number
}

/**
 * The gateway of a test file: started before its tests; after them nothing may be left held. Options that need what is
 * started before it are a function. `then` is what else has to be there.
 */
export function testGateway(
  options: TestGatewayOptions | (() => TestGatewayOptions) = {},
  then?: () => Promise<unknown>,
): TestGateway {
  let started: TestGateway | undefined
  const given = typeof options === 'function' ? undefined : options
  const users: Users = given?.isShared ? usersOf(given) : { left: 1, gateway: undefined }
  before(async () => {
    users.gateway ??= startGateway(given ?? (options as () => TestGatewayOptions)())
    started = await users.gateway
    await then?.()
  })
  after(async () => {
    users.left -= 1
    // What is left open would keep the file from ending.
    try {
      await started?.settled()
    } finally {
      if (users.left === 0) await started?.close()
    }
  })
  return new Proxy({} as TestGateway, { get: (_, name) => Reflect.get(started!, name) })
}

/**
 * Files that share a gateway, by its catalog: all of a process are loaded before the first runs, and they run one after
 * the other.
 */
type Users = { left: number; gateway: Promise<TestGateway> | undefined }
const shared = new Map<TestGatewayOptions['catalog'], Users>()

function usersOf({ catalog }: TestGatewayOptions): Users {
  const users = shared.get(catalog) ?? { left: 0, gateway: undefined }
  shared.set(catalog, users)
  users.left += 1
  return users
}

export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const fresh = options.database ? { ...options.database, drop: async () => {} } : await freshDatabase()
  const world = options.world ?? realWorld
  const sandbox = await startSandbox({
    world: options.vendorWorld ?? realWorld,
    speed: 1000,
    variation: options.plain ? undefined : VARIATION,
  })
  const data = await mkdtemp(join(tmpdir(), 'tollgate-'))
  const config = readConfig({
    PORT: '0',
    TOLLGATE_DATA: data,
    TOLLGATE_SECRET: SECRET,
    TOLLGATE_DRAIN_SECONDS: '2',
    // All tests share one server.
    TOLLGATE_DATABASE_CONNECTIONS: '8',
    // A machine that runs many tests at once is slow, but not overloaded.
    TOLLGATE_OVERLOAD_LAG_MS: '60000',
    // Tests try what they like from one address; those of this limit set it.
    TOLLGATE_UNKNOWN_KEYS_PER_MINUTE: '100000',
    TOLLGATE_EXTENSIONS_OFF: OFF.filter((name) => !options.beside?.includes(name)).join(','),
    ...options.env,
  })
  const parts = {
    config,
    world,
    log: options.log ?? silentLog,
    secret: SECRET,
    operatorToken: OPERATOR_TOKEN,
    sandboxUrl: () => sandbox.url,
    jobs: options.jobs ?? FAST,
    passwordCost: options.passwordCost ?? CHEAP,
    initialCatalog: options.initialCatalog,
    waitFactor: options.waitFactor ?? WAIT_FACTOR,
  }
  const connection = options.through ? { ...options.through(fresh.connection) } : fresh.connection
  const behind = AS_LEDGER ? await startAsLedger(parts, connection, options.catalog) : undefined
  const gateway = behind?.gateway ?? (await openInstallation({ ...parts, connection })).gateway
  const checkAnswered = checkAnswers(gateway.app)
  options.hook?.(gateway.app)
  if (options.catalog && !behind) {
    const document = await readDefaultCatalog()
    options.catalog(document)
    await gateway.catalog.apply(document, BY, '')
  }
  const url = await (behind?.control ?? gateway).app.listen({ port: 0, host: '127.0.0.1' })
  const pepper = createSecrets(SECRET).key('api-key')
  const { accounts } = gateway
  const database = bookedBefore(gateway)

  const made: TestGateway = {
    url,
    gateway: { ...gateway, database },
    control: behind?.control.database ?? database,
    sandbox,
    config,
    async account({ credits = 1_000_000_000n, models = null } = {}) {
      const create = (): Promise<string | undefined> =>
        accounts.create({ name: 'test', credits }, BY).catch((error) => {
          // Of hundreds at once, on a busy machine, some wait too long for the audit's lock and are told to come again.
          if (error instanceof Fault && error.status === 503) return undefined
          throw error
        })
      const id = await until(create)
      return { id, ...(await made.key(id, { models })) }
    },
    async key(account, { models = null } = {}) {
      const key = makeKey(world)
      const keyId = `key_${newId(world)}`
      await database.query(
        {
          text: 'insert into api_key (id, account_id, name, digest, prefix, last4, models) values ($1, $2, $3, $4, $5, $6, $7)',
        },
        [keyId, account, 'test', digestOf(pepper, key), key.slice(0, 12), key.slice(-4), models],
      )
      return { key, keyId }
    },
    async balance(account) {
      const [row] = await database.query<{ posted: bigint; held: bigint }>(
        // What processes hold in advance is no call's.
        {
          text: 'select posted, (select coalesce(sum(amount), 0)::bigint from hold where account_id = $1) as held from account where id = $1',
        },
        [account],
      )
      return row!
    },
    // Who signs in does so at control: tests that count or forget tries mean those.
    sql: (text, values) => (text.includes('login_attempt') ? made.control : database).query({ text }, values),
    mayExceedHold: (account) => void exceeding.add(account),
    async settled() {
      await until(async () => {
        const [held] = await database.query({ text: 'select 1 from hold where not job limit 1' })
        return held === undefined
      })
      const wrong = await database.query({
        text: `select a.id, a.posted, a.held, e.sum from account a
          left join (select account, sum(amount) as sum from entry group by account) e on e.account = 'account:' || a.id
          where a.posted <> coalesce(e.sum, 0) or a.held <> coalesce((select sum(amount) from held h where h.account_id = a.id), 0)`,
      })
      if (wrong.length > 0)
        throw new Error(
          `accounts do not equal their entries: ${JSON.stringify(wrong, (_, v) => (typeof v === 'bigint' ? String(v) : v))}`,
        )
    },
    async calls(account) {
      await made.settled()
      return made.sql<Call>('select *, attempt_log as log from usage where account_id = $1 order by id', [account])
    },
    async lastCall(account) {
      return (await made.calls(account)).at(-1) ?? assert.fail('it made no call')
    },
    async problems(withAudit = false) {
      const more = withAudit ? { audit: createAudit({ database, world: realWorld }) } : {}
      return (await verifyLedger(database, storedCatalogs(database), more)).problems
    },
    call: (path, key, body, init = {}) =>
      fetch(url + path, {
        method: body === undefined ? 'GET' : 'POST',
        ...init,
        headers: {
          ...(key ? { authorization: `Bearer ${key}` } : {}),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...init.headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    async operator<T>(method: string, path: string, body?: unknown) {
      const response = await made.call(`/admin/v1${path}`, OPERATOR_TOKEN, body, { method })
      const answer = (await response.json()) as { data: T; error?: unknown }
      return { status: response.status, data: answer.data ?? (answer.error as T) }
    },
    async ask<T>(method: string, path: string, body?: unknown) {
      return (await jsonOf<{ data: T }>(made.call(`/admin/v1${path}`, OPERATOR_TOKEN, body, { method }))).data
    },
    async close() {
      // The connections of `fetch` would be waited for, as those of callers are who may still send something.
      ;(behind?.control ?? gateway).app.server.closeIdleConnections()
      const above = options.mayExceedHolds ? [] : await aboveHold(database, [...exceeding]).catch(() => [])
      await (behind ?? gateway).close()
      await sandbox.close()
      await fresh.drop()
      await rm(data, { recursive: true, force: true })
      checkAnswered()
      if (above.length > 0) throw new Error(`calls cost more than was held for them: ${inspect(above)}`)
    },
    [Symbol.asyncDispose]: () => made.close(),
  }
  return made
}

/** Every test gateway is a ledger of its own, with what is shared in another database. */
export const AS_LEDGER = process.env.TOLLGATE_TEST_AS_LEDGER !== undefined

/** By the name of the ledger: gateways that share it share control. They go with the server. */
const controls = new Map<string, Promise<FreshDatabase>>()

async function startAsLedger(
  parts: Omit<GatewayOptions, 'connection'>,
  connection: EmbeddedConnection,
  catalog: TestGatewayOptions['catalog'],
) {
  const { database } = connection
  const shared = controls.get(database) ?? freshDatabase()
  controls.set(database, shared)
  const fresh = await shared
  const one = new Map([['one', { ...connection }]])
  const initialCatalog = await readDefaultCatalog()
  catalog?.(initialCatalog)
  const { gateway: control, ledgers } = await openInstallation({
    ...parts,
    initialCatalog: parts.initialCatalog ?? initialCatalog,
    connection: fresh.connection,
    ledgers: one,
  })
  const gateway = ledgers?.of('one')
  assert.ok(gateway, 'the ledger did not open')
  return { control, gateway, close: () => control.close() }
}

/** Transactions of a test gateway, or of control before its ledger, that wait for a lock. */
export const WAITING_FOR_LOCKS = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname in (current_database(), (
  select option_value from pg_options_to_table((select srvoptions from pg_foreign_server where srvname = 'control')) where option_name = 'dbname'))`

/** A hold is the most that a call can cost. One that has expired is compared with nothing. */
function aboveHold(database: Pick<Gateway['database'], 'query'>, except: readonly string[]): Promise<unknown[]> {
  return database.query(
    {
      text: `select account_id, id, product, endpoint, charged, loss, held, lines, attempt_log -> 'aboveHold' as why from usage
        where outcome = 'settled' and charged + loss > held and id not like '%+late' and account_id <> all($1)
          -- Rows that a test wrote by hand have neither a hold nor a vendor that was asked.
          and not (held = 0 and attempt_log is null)`,
    },
    [except],
  )
}

/** What an answer says, which must have this status. */
export async function textOf(answering: Response | Promise<Response>, status = 200): Promise<string> {
  const answer = await answering
  const text = await answer.text()
  assert.equal(answer.status, status, `${answer.url} answers ${text}`)
  return text
}

/** Reads an answer until it has said this, and leaves. */
export async function leaveAfter({ body }: Response, wanted: RegExp): Promise<string> {
  let text = ''
  for await (const piece of body ?? []) {
    text += Buffer.from(piece).toString('latin1')
    if (wanted.test(text)) return text
  }
  throw new Error(`The answer ended without ${wanted}: ${text}`)
}

export const jsonOf = async <T>(answering: Response | Promise<Response>, status = 200): Promise<T> =>
  JSON.parse(await textOf(answering, status))
