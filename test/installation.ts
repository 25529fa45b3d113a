// Several Postgres servers, the control database and its ledgers, behind one gateway. Between the gateway and each
// server, and between the servers, lies a cable that tests cut.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSandbox } from '../sandbox/server.ts'
import { readConfig } from '../src/config.ts'
import { type Database, openDatabase } from '../src/database/database.ts'
import { LEDGER_SCHEMAS } from '../src/database/tables.ts'
import { type Embedded, startEmbedded } from '../src/extensions/postgres/embedded.ts'
import { openInstallation } from '../src/installation.ts'
import { silentLog } from '../src/kernel/log.ts'
import { realWorld } from '../src/kernel/world.ts'
import { type ChaosProxy, startProxy } from './chaos/proxy.ts'
import { CHEAP, OPERATOR_TOKEN, SECRET } from './gateway.ts'
import { FAST } from './job-pace.ts'
import type { JobProcessOptions } from './job-process.ts'
import { closing } from './started.ts'

export interface Customer {
  readonly id: string
  readonly key: string
  /** The database that has it. */
  readonly home: string
}

const CHART = readFileSync(join(import.meta.dirname, '../deploy/helm/tollgate/templates/ledgers.yaml'), 'utf8')
/** A gateway needs no more: what only a superuser may do is done before, as the chart has it done. */
const ordinaryRole = (password: string, database: string) =>
  [
    `create role gateway login password '${password}'`,
    `alter database ${database} owner to gateway`,
    ...Array.from(CHART.matchAll(/^ {8}- (.+ postgres_fdw\b.*)$/gm), ([, statement]) => statement),
  ]
    .join(';')
    .replace('to tollgate', 'to gateway')

export type Installation = Awaited<ReturnType<typeof startInstallation>>
export type Servers = Awaited<ReturnType<typeof startServers>>

/** The servers without a gateway. Ledgers by name, such as `east`; `east@eu` lies in a region. */
export async function startServers(ledgers: readonly string[]) {
  const opened = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-ledgers-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const servers = new Map<string, Embedded>()
  const cables = new Map<string, ChaosProxy>()
  const addresses = new Map<string, string>()
  const databases = new Map<string, Database>()
  for (const name of ['control', ...ledgers.map((ledger) => ledger.replace(/@.*/, ''))]) {
    const dataDirectory = join(folder, name)
    const server = await startEmbedded({ dataDirectory, log: () => undefined, loopback: true })
    opened.defer(() => server.stop())
    servers.set(name, server)
    const { host, port, password = '', database } = server.connection
    const cable = await startProxy({ host, port })
    opened.defer(() => cable.close())
    cables.set(name, cable)
    addresses.set(name, `postgres://gateway:${password}@127.0.0.1:${cable.port}/${database}`)
    // As the tests look into it: past the cable.
    const looking = openDatabase({ connection: server.connection, connectionsMax: 2, schemas: 'public, control' })
    opened.defer(() => looking.close())
    await looking.query({ text: ordinaryRole(password, database) })
    databases.set(name, looking)
  }
  const addressOf = (name: string) => addresses.get(name)! // All were started.
  const databaseOf = (name: string) => databases.get(name)! // As above.
  const environment = {
    PORT: '0',
    TOLLGATE_DATA: join(folder, 'data'),
    TOLLGATE_SECRET: SECRET,
    TOLLGATE_DRAIN_SECONDS: '2',
    TOLLGATE_OVERLOAD_LAG_MS: '60000',
    DATABASE_URL: addressOf('control'),
    TOLLGATE_LEDGERS: ledgers.map((name) => `${name}=${addressOf(name.replace(/@.*/, ''))}`).join(' '),
  }
  /** Which ledgers have it, by their own tables. */
  async function homesOf(account: string): Promise<string[]> {
    const found: string[] = []
    for (const [name, database] of databases) {
      // One that is no ledger yet.
      const [is] = await database.query<{ made: boolean }>({
        text: `select to_regclass('public.account') is not null as made`,
      })
      if (!is?.made) continue
      const text = 'select 1 from public.account where id = $1 and ledger is null'
      if ((await database.query({ text }, [account])).length > 0) found.push(name)
    }
    return found
  }
  return {
    folder,
    environment,
    /** Of a gateway in a process of its own (killable.ts). */
    processOf: (sandboxUrl: string): JobProcessOptions => {
      const { DATABASE_URL, TOLLGATE_LEDGERS } = environment
      const connection = { connectionString: DATABASE_URL }
      return { connection, sandboxUrl, data: join(folder, 'data'), environment: { DATABASE_URL, TOLLGATE_LEDGERS } }
    },
    addressOf,
    databaseOf,
    homesOf,
    /** Of the process that serves it, which is started again when it ends. */
    pidOf: (name: string) => servers.get(name)!.pid, // As above.
    /** As a gateway sees it: by its own role, through the cable. */
    open: (name: string) =>
      closing(
        openDatabase({
          connection: { connectionString: addressOf(name) },
          connectionsMax: 4,
          schemas: name === 'control' ? undefined : LEDGER_SCHEMAS,
        }),
      ),
    cut(name: string): void {
      cables.get(name)?.refuse()
      cables.get(name)?.reset()
    },
    heal: (name: string) => cables.get(name)?.heal(),
    close: () => opened.disposeAsync(),
  }
}

/** What operators and customers do at whichever gateway this is the address of now. */
export function visitorOf({ homesOf }: Pick<Servers, 'homesOf'>, url: () => string) {
  const call = (path: string, key: string, body?: unknown, method = body === undefined ? 'GET' : 'POST') =>
    fetch(url() + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  async function ask<T>(path: string, body?: unknown, method?: string): Promise<T> {
    const response = await call(`/admin/v1${path}`, OPERATOR_TOKEN, body, method)
    const text = await response.text()
    assert.equal(response.status, 200, `${path}: ${text}`)
    return JSON.parse(text).data
  }
  const visitor = {
    call,
    ask,
    chat: (key: string) =>
      call('/v1/chat-completions', key, {
        model: 'alpha-5.4',
        max_tokens: 20,
        messages: [{ role: 'user', content: 'Hello.' }],
      }),
    /** In the ledger with most room. */
    async customer(more: object = {}): Promise<Customer> {
      const { id } = await ask<{ id: string }>('/accounts', { name: 'Customer', credits: '10', ...more })
      const { key } = await ask<{ key: string }>(`/accounts/${id}/keys`, { name: 'app' })
      const homes = await homesOf(id)
      assert.equal(homes.length, 1, 'it is in one ledger')
      return { id, key, home: homes[0]! } // It has one.
    },
    /** One in each of these ledgers. */
    async customers(ledgers: readonly string[], more: object = {}): Promise<Map<string, Customer>> {
      const made = new Map<string, Customer>()
      for (let tries = 0; made.size < ledgers.length && tries < 20; tries++) {
        const one = await visitor.customer(more)
        made.set(one.home, one)
      }
      assert.deepEqual([...made.keys()].sort(), [...ledgers].sort())
      return made
    },
  }
  return visitor
}

export async function startInstallation(ledgers: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const servers = await startServers(ledgers)
  const opened = await openOn(servers, more).catch(async (error: unknown) => {
    await servers.close()
    throw error
  })
  return { ...servers, ...opened, close: () => opened.close().finally(servers.close) }
}

/** A gateway of its own on these servers. */
export async function openOn(servers: Servers, more: Readonly<Record<string, string>> = {}) {
  const opened = new AsyncDisposableStack()
  const sandbox = await startSandbox({ world: realWorld, speed: 1000 })
  opened.defer(() => sandbox.close())
  const environment = { ...servers.environment, ...more }
  const { gateway, ledgers: cells } = await openInstallation({
    config: readConfig(environment),
    world: realWorld,
    log: silentLog,
    connection: { connectionString: servers.addressOf('control') },
    secret: SECRET,
    operatorToken: OPERATOR_TOKEN,
    sandboxUrl: () => sandbox.url,
    jobs: FAST,
    passwordCost: CHEAP,
  }).catch(async (error: unknown) => {
    await opened.disposeAsync()
    throw error
  })
  opened.defer(() => gateway.close())
  const url = await gateway.app.listen({ port: 0, host: '127.0.0.1' })
  const close = () => opened.disposeAsync()
  return { ...visitorOf(servers, () => url), gateway, cells, url, environment, close, [Symbol.asyncDispose]: close }
}
