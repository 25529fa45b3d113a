// Connections to Postgres that end when they are dead. A server that vanishes says nothing: who waited for it in vain
// says so here, what is idle is dropped at once, and the server is looked for anew, among all hosts of the address, before
// anything else is sent. Limits of a session are set by its first statement, since poolers refuse them as startup options.
import { Socket } from 'node:net'
import pg from 'pg'
import { SlotSet } from '../kernel/slot-set.ts'
import { splitAddress } from './address.ts'

const CONNECT_MS_MAX = 3_000
const CHECKOUT_MS_MAX = 5_000
const KEEP_ALIVE_MS = 5_000
/** What has neither a deadline of its own nor an answer by then is given up. */
const QUERY_MS_MAX = 30_000
const LOOK_EVERY_MS = 100

/**
 * For what runs outside of our transactions, which bring their own. The server's side of keep-alives: a client whose machine
 * has vanished is noticed within 15 s, and its locks are free.
 */
const SESSION = {
  idle_in_transaction_session_timeout: '10s',
  lock_timeout: '5s',
  tcp_keepalives_idle: '5',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '5',
  tcp_user_timeout: '15s',
}
const BEGIN_SESSION = {
  text: `select ${Object.entries(SESSION)
    .map(([NAME, VALUE]) => `set_config('${NAME}', '${VALUE}', false)`)
    .join(', ')}, pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as read_only`,
  query_timeout: CONNECT_MS_MAX,
}

/** The driver knows the deadline of a single query, its types do not. */
export interface TimedQuery extends pg.QueryConfig {
  query_timeout?: number
}

interface PoolOptions {
  readonly connection: pg.PoolConfig
  readonly connectionsMax: number
  readonly name?: string
}

interface Pool {
  /** The connection is given back by whoever took it, with its failure if it had one. */
  take(): Promise<pg.PoolClient>
  /** `withinMs`: how long its answer is waited for; as long as `queryMs` where it says nothing. */
  query(query: pg.QueryConfig, withinMs?: number): Promise<pg.QueryResult>
  /** For statements on a connection that was taken, which has no deadline of its own. 0: none. */
  readonly queryMs: number
  /** A statement on a connection that was taken failed so. Answers whether that connection is lost. */
  failed(error: unknown): boolean
  readonly waiting: number
  close(): Promise<void>
}

export function openPool({ connection, connectionsMax, name = 'tollgate' }: PoolOptions): Pool {
  const settings: pg.PoolConfig = { application_name: name, ...connection }
  const queryMs = Number(connection.query_timeout ?? QUERY_MS_MAX)
  const hosts = hostsOf(connection)
  /** Where the server was found that takes writes; with one host there is nothing to find. */
  let [host] = hosts.length === 1 ? hosts : []
  let finding: Promise<void> | undefined
  let closed: Promise<void> | undefined
  const open = new Set<HostClient>()

  class PooledClient extends HostClient {
    constructor() {
      super(settings, host ?? hosts[0]!) // An address has a host at least.
      open.add(this)
      this.once('end', () => open.delete(this))
    }
  }

  const pool = new pg.Pool({
    ...settings,
    ...{ max: connectionsMax, connectionTimeoutMillis: CHECKOUT_MS_MAX, idleTimeoutMillis: 300_000 },
    Client: PooledClient,
    onConnect: beginSession,
  })
  // Without a listener an idle connection that the server closes would end the process.
  pool.on('error', (_, client) => setIdle(client, false))
  pool.on('acquire', (client) => setIdle(client, false))
  pool.on('release', (_, client) => setIdle(client, true))
  pool.on('remove', (client) => setIdle(client, false))

  async function find(): Promise<void> {
    const found = await Promise.any(hosts.map(tryHost)).catch(({ errors }: AggregateError) => {
      // Nobody is there: whoever still waits for an answer waits in vain.
      if (errors.every(isLost)) cut(() => true)
      throw errors.find((error) => !isLost(error)) ?? errors[0]
    })
    host = found
    cut((client) => client.at !== found)
  }

  function cut(which: (client: HostClient) => boolean): void {
    for (const client of open) if (which(client)) client.cut()
  }

  /** All hosts are asked at once, so that one that is silent costs nobody its time. */
  async function tryHost(at: pg.ClientConfig): Promise<pg.ClientConfig> {
    const client = new HostClient(settings, at)
    client.on('error', ignore)
    try {
      await client.connect()
      await beginSession(client)
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
    // A connection that the only server ended says nothing of the others, and there is nothing to look for.
    if (hosts.length === 1 && !isSilence(error) && codeOf(error) !== READ_ONLY) return lost
    cut((client) => client.idle)
    if (!finding) {
      host = undefined
      // Whoever comes next waits for it, and is told.
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
    return new Promise((resolve, reject) => {
      pool.connect((error, client, release) => {
        if (error || !client) return reject(error)
        new Answer(waiting, withinMs, { client, release, resolve, reject }).to(query)
        if (looking) return
        looking = true
        setTimeout(look, LOOK_EVERY_MS)
      })
    })
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
      noticing(host ? ask(query, withinMs) : whenFound().then(() => ask(query, withinMs))),
    queryMs,
    failed,
    get waiting() {
      return pool.waitingCount
    },
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

/** One whose socket is ours, so that it can be cut without a word to a server that does not listen. */
class HostClient extends pg.Client {
  readonly at: pg.ClientConfig
  readonly #socket: Socket
  /** In the pool, and nobody uses it. */
  idle = false
  constructor(settings: pg.ClientConfig, at: pg.ClientConfig) {
    const socket = new Socket()
    super({
      ...settings,
      ...at,
      ...{
        query_timeout: 0,
        connectionTimeoutMillis: CONNECT_MS_MAX,
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      },
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
 * The answer to one statement, for no longer than its deadline. The driver's own deadlines are timers that let each statement keep the next one alive in
 * memory until a full collection (2.3 KB of every call, see bench/notes/call-path.md); these are counted together, a few times a second.
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

  /** Once: a connection that ends says so, and so does its statement. */
  #end = (error: Error | null | undefined, result?: pg.QueryResult): void => {
    if (!this.#waiting.remove(this.#place, this)) return
    const { client, release, resolve, reject } = this.#asker
    client.off('error', this.#end)
    // One on which something failed is not used again.
    release(error ?? undefined)
    if (result && !error) resolve(result)
    else reject(error)
  }
}

/** What is to be said of each, the password included, which a pool hides from its own copy. */
function hostsOf(connection: pg.PoolConfig): pg.ClientConfig[] {
  const { connectionString: url } = connection
  if (url === undefined) return [connection]
  return splitAddress(url).map((connectionString) => ({ ...connection, connectionString }))
}

async function beginSession(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ read_only: boolean }>(BEGIN_SESSION)
  if (rows[0]?.read_only) throw Object.assign(new Error('The server takes no writes.'), { code: READ_ONLY })
}

const READ_ONLY = '25006'

/** No word from the server, or the end of the connection. */
function isLost(error: unknown): boolean {
  if (!(error instanceof Error) || 'severity' in error) return false
  // All connections are in use: that says nothing of the server.
  if (error.message === 'timeout exceeded when trying to connect') return false
  return /^E[A-Z_]+$/.test(codeOf(error)) || /timeout|terminated|not queryable/i.test(error.message)
}

function isSilence(error: unknown): boolean {
  return error instanceof Error && /timeout/i.test(error.message)
}

/** The server says that it goes, or takes no writes (any more). */
function isElsewhere(error: unknown): boolean {
  return /^(25006|57P0[123])$/.test(codeOf(error))
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
