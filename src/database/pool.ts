// Connections to Postgres that end when they are dead. A server that vanishes sends nothing, so a timeout is the only
// sign. After one, idle connections are dropped at once, and the primary is looked up again among all hosts before
// anything else is sent. Session limits are set by the first statement, because poolers reject them as startup options.
import { Socket } from 'node:net'
import pg from 'pg'
import { Fault } from '../kernel/fault.ts'
import { SlotSet } from '../kernel/slot-set.ts'
import { splitAddress } from './address.ts'

const CONNECT_MS_MAX = 3_000
const CHECKOUT_MS_MAX = 5_000
const KEEP_ALIVE_MS = 5_000
/** Timeout of a statement that has none of its own. */
const QUERY_MS_MAX = 30_000
const LOOK_EVERY_MS = 100
const WAITING_MAX = 1_000

/**
 * For statements outside of transactions, which set their own limits. The server's keep-alives detect a vanished client
 * within 15 s and free its locks.
 */
const SESSION = {
  idle_in_transaction_session_timeout: '10s',
  lock_timeout: '5s',
  tcp_keepalives_idle: '5',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '5',
  tcp_user_timeout: '15s',
}
const beginSessionWith = (settings: Readonly<Record<string, string>>) =>
  `select ${Object.entries(settings)
    .map(([NAME, VALUE]) => `set_config('${NAME}', '${VALUE}', false)`)
    .join(', ')}, pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as read_only`

/** The driver supports a timeout for a single query, but its types do not have it. */
export interface TimedQuery extends pg.QueryConfig {
  query_timeout?: number
}

interface PoolOptions {
  readonly connection: pg.PoolConfig
  readonly connectionsMax: number
  readonly name?: string
  /** How many times as long as usual it waits for the server. */
  readonly waitFactor?: number
  /** Where names of tables are looked up; without it, as the server says. */
  readonly schemas?: string | undefined
}

interface Pool {
  /** The caller must release the connection, with the error if there was one. */
  take(): Promise<pg.PoolClient>
  /** `withinMs` is the timeout; `queryMs` by default. A fault when too many wait for a connection. */
  query(query: pg.QueryConfig, withinMs?: number): Promise<pg.QueryResult>
  /** The timeout for statements on a taken connection. 0: none. */
  readonly queryMs: number
  /** Reports that a statement on a taken connection failed. Returns whether that connection is lost. */
  failed(error: unknown): boolean
  waiting(): number
  close(): Promise<void>
}

export function openPool(options: PoolOptions): Pool {
  const { connection, connectionsMax, name = 'tollgate', waitFactor = 1, schemas } = options
  const beginning = beginSessionWith(schemas === undefined ? SESSION : { ...SESSION, search_path: schemas })
  const connectMs = waitFactor * CONNECT_MS_MAX
  const settings: pg.PoolConfig = { application_name: name, ...connection, connectionTimeoutMillis: connectMs }
  const queryMs = Number(connection.query_timeout ?? QUERY_MS_MAX)
  const hosts = hostsOf(connection)
  /** The primary, once it is found; a single host is used without a search. */
  let [host] = hosts.length === 1 ? hosts : []
  let finding: Promise<void> | undefined
  let closed: Promise<void> | undefined
  const open = new Set<HostClient>()

  class PooledClient extends HostClient {
    constructor() {
      super(settings, host ?? hosts[0]!) // An address has at least one host.
      open.add(this)
      this.once('end', () => open.delete(this))
    }
  }

  const pool = new pg.Pool({
    ...settings,
    max: connectionsMax,
    connectionTimeoutMillis: waitFactor * CHECKOUT_MS_MAX,
    idleTimeoutMillis: 300_000,
    Client: PooledClient,
    onConnect: (client) => beginSession(client, beginning, connectMs),
  })
  // Without an error listener, an idle connection that the server closes would crash the process.
  pool.on('error', (_, client) => setIdle(client, false))
  pool.on('acquire', (client) => setIdle(client, false))
  pool.on('release', (_, client) => setIdle(client, true))
  pool.on('remove', (client) => setIdle(client, false))

  async function find(): Promise<void> {
    const found = await Promise.any(hosts.map(tryHost)).catch(({ errors }: AggregateError) => {
      // No host answers, so pending statements will get no answer either.
      if (errors.every(isLost)) cut(() => true)
      throw errors.find((error) => !isLost(error)) ?? errors[0]
    })
    host = found
    cut((client) => client.at !== found)
  }

  function cut(which: (client: HostClient) => boolean): void {
    for (const client of open) if (which(client)) client.cut()
  }

  /** Tries all hosts at once, so that a silent one causes no delay. */
  async function tryHost(at: pg.ClientConfig): Promise<pg.ClientConfig> {
    const client = new HostClient(settings, at)
    client.on('error', ignore)
    try {
      await client.connect()
      await beginSession(client, beginning, connectMs)
      return at
    } finally {
      client.cut()
    }
  }

  function whenFound(): Promise<void> {
    finding ??= find().finally(() => {
      finding = undefined
    })
    return finding
  }

  function failed(error: unknown): boolean {
    const lost = isLost(error)
    if (!lost && !isElsewhere(error)) return false
    // With a single host, one connection that it ended says nothing about the others, and there is no other host to
    // search.
    if (hosts.length === 1 && !isSilence(error) && codeOf(error) !== READ_ONLY) return lost
    cut((client) => client.idle)
    if (!finding) {
      host = undefined
      // The next caller waits for the search and gets its error.
      whenFound().catch(ignore)
    }
    return lost
  }

  const waiting = new SlotSet<Answer>()
  let looking = false
  function look(): void {
    for (const answer of waiting) answer.look()
    looking = waiting.size > 0
    if (looking) setTimeout(look, LOOK_EVERY_MS)
  }

  function ask(query: pg.QueryConfig, withinMs: number): Promise<pg.QueryResult> {
    if (pool.waitingCount > WAITING_MAX)
      throw new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'pool is full' } })
    const { promise, resolve, reject: tell } = Promise.withResolvers<pg.QueryResult>()
    const reject = (error: unknown) => {
      failed(error)
      tell(error)
    }
    pool.connect((error, client, release) => {
      if (error || !client) return reject(error)
      new Answer(waiting, withinMs, { client, release, resolve, reject }).to(query)
      if (looking) return
      looking = true
      setTimeout(look, LOOK_EVERY_MS)
    })
    return promise
  }

  async function noticing<T>(result: Promise<T>): Promise<T> {
    try {
      return await result
    } catch (error) {
      failed(error)
      throw error
    }
  }

  return {
    take: () => noticing(host ? pool.connect() : whenFound().then(() => pool.connect())),
    query: (query, withinMs = queryMs) =>
      host ? ask(query, withinMs) : noticing(whenFound()).then(() => ask(query, withinMs)),
    queryMs,
    failed,
    waiting: () => pool.waitingCount,
    close() {
      closed ??= (finding ?? Promise.resolve()).catch(ignore).then(() => pool.end())
      return closed
    },
  }
}

function ignore(): void {}

function setIdle(client: pg.PoolClient, idle: boolean): void {
  if (client instanceof HostClient) client.idle = idle
}

/** A client with a socket of ours, which can be destroyed without waiting for an unresponsive server. */
class HostClient extends pg.Client {
  readonly at: pg.ClientConfig
  readonly #socket: Socket
  /** Whether it is idle in the pool. */
  idle = false
  constructor(settings: pg.ClientConfig, at: pg.ClientConfig) {
    const socket = new Socket()
    super({
      ...settings,
      ...at,
      query_timeout: 0,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      stream: () => socket,
    })
    this.at = at
    this.#socket = socket
  }
  cut(): void {
    this.#socket.destroy()
  }
}

interface Asker {
  readonly client: pg.PoolClient
  readonly release: (error?: Error) => void
  readonly resolve: (result: pg.QueryResult) => void
  readonly reject: (error: unknown) => void
}

/**
 * Waits for the answer to one statement, up to its timeout. The driver's own timeouts use timers through which each
 * statement keeps the next one alive in memory until a full garbage collection (2.3 KB per call, see
 * bench/notes/call-path.md). Here one timer checks all statements, a few times a second.
 */
class Answer {
  readonly #waiting: SlotSet<Answer>
  readonly #place: number
  readonly #asker: Asker
  #looks: number

  constructor(waiting: SlotSet<Answer>, withinMs: number, asker: Asker) {
    this.#waiting = waiting
    this.#asker = asker
    this.#looks = withinMs > 0 ? Math.ceil(withinMs / LOOK_EVERY_MS) : Number.POSITIVE_INFINITY
    this.#place = waiting.add(this)
    asker.client.on('error', this.#end)
  }

  to(query: pg.QueryConfig): void {
    try {
      this.#asker.client.query(query, this.#end)
    } catch (error) {
      this.#end(error as Error) // nothing else is thrown
    }
  }

  look(): void {
    this.#looks -= 1
    if (this.#looks < 0) this.#end(new Error('Query read timeout'))
  }

  /** Runs once, although both the connection and its statement report a lost connection. */
  #end = (error: Error | null | undefined, result?: pg.QueryResult): void => {
    if (!this.#waiting.remove(this.#place, this)) return
    const { client, release, resolve, reject } = this.#asker
    client.off('error', this.#end)
    // A connection with an error is not reused.
    release(error ?? undefined)
    if (result && !error) resolve(result)
    else reject(error)
  }
}

/** The connection settings of each host. They include the password, which a pool hides from its own copy. */
function hostsOf(connection: pg.PoolConfig): pg.ClientConfig[] {
  const { connectionString: url } = connection
  if (url === undefined) return [connection]
  return splitAddress(url).map((connectionString) => ({ ...connection, connectionString }))
}

async function beginSession(client: pg.ClientBase, text: string, withinMs: number): Promise<void> {
  const query: TimedQuery = { text, query_timeout: withinMs }
  const { rows } = await client.query<{ read_only: boolean }>(query)
  if (rows[0]?.read_only) throw Object.assign(new Error('The server takes no writes.'), { code: READ_ONLY })
}

const READ_ONLY = '25006'

/** The server did not answer, or the connection ended. */
function isLost(error: unknown): boolean {
  if (!(error instanceof Error) || 'severity' in error) return false
  // All connections are in use, which says nothing about the server.
  if (error.message === 'timeout exceeded when trying to connect') return false
  return /^E[A-Z_]+$/.test(codeOf(error)) || /timeout|terminated|not queryable/i.test(error.message)
}

function isSilence(error: unknown): boolean {
  return error instanceof Error && /timeout/i.test(error.message)
}

/** The server is shutting down, or does not accept writes (any more). */
function isElsewhere(error: unknown): boolean {
  return /^(25006|57P0[123])$/.test(codeOf(error))
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
