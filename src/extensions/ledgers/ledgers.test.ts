// Three Postgres servers: control and two ledgers, behind one gateway. A ledger that ends is felt by its accounts only.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startSandbox } from '../../../sandbox/server.ts'
import { type ChaosProxy, startProxy } from '../../../test/chaos/proxy.ts'
import { CHEAP, OPERATOR_TOKEN, SECRET } from '../../../test/gateway.ts'
import { FAST } from '../../../test/job-pace.ts'
import { until } from '../../../test/until.ts'
import { type Gateway, openInstallation } from '../../compose.ts'
import { readConfig } from '../../config.ts'
import { openDatabase } from '../../database/database.ts'
import { type Embedded, startEmbedded } from '../../database/server/embedded.ts'
import { silentLog } from '../../kernel/log.ts'
import { realWorld } from '../../kernel/world.ts'

const NAMES = ['control', 'east', 'west'] as const
type Name = (typeof NAMES)[number]
const servers = new Map<Name, Embedded>()
/** Between the gateway and the servers, and between the servers. */
const cables = new Map<Name, ChaosProxy>()
let folder = ''
let gateway: Gateway
let url = ''
const opened = new AsyncDisposableStack()

function addressOf(name: Name): string {
  const { user, password = '', database } = servers.get(name)!.connection // All were started.
  return `postgres://${user}:${password}@127.0.0.1:${cables.get(name)!.port}/${database}`
}

function cut(name: Name): void {
  cables.get(name)?.refuse()
  cables.get(name)?.reset()
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-ledgers-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  for (const name of NAMES) {
    const dataDirectory = join(folder, name)
    const server = await startEmbedded({ dataDirectory, log: () => undefined, loopback: true })
    opened.defer(() => server.stop())
    const cable = await startProxy({ host: server.connection.host, port: server.connection.port })
    opened.defer(() => cable.close())
    servers.set(name, server)
    cables.set(name, cable)
  }
  const sandbox = await startSandbox({ world: realWorld, speed: 1000 })
  opened.defer(() => sandbox.close())
  const config = readConfig({
    PORT: '0',
    TOLLGATE_DATA: join(folder, 'data'),
    TOLLGATE_SECRET: SECRET,
    TOLLGATE_DRAIN_SECONDS: '2',
    TOLLGATE_OVERLOAD_LAG_MS: '60000',
    DATABASE_URL: addressOf('control'),
    TOLLGATE_LEDGERS: `east=${addressOf('east')} west=${addressOf('west')}`,
  })
  const opening = await openInstallation({
    config,
    world: realWorld,
    log: silentLog,
    connection: { connectionString: addressOf('control') },
    secret: SECRET,
    operatorToken: OPERATOR_TOKEN,
    sandboxUrl: () => sandbox.url,
    jobs: FAST,
    passwordCost: CHEAP,
  })
  gateway = opening.gateway
  opened.defer(() => gateway.close())
  url = await gateway.app.listen({ port: 0, host: '127.0.0.1' })
})
after(() => opened.disposeAsync())

const call = (path: string, key: string, body?: unknown, method = body === undefined ? 'GET' : 'POST') =>
  fetch(url + path, {
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
const chat = (key: string) =>
  call('/v1/chat-completions', key, {
    model: 'alpha-5.4',
    max_tokens: 20,
    messages: [{ role: 'user', content: 'Hello.' }],
  })
/** Which ledger has it, by the ledgers' own tables. */
async function homeOf(account: string): Promise<string[]> {
  const found: string[] = []
  for (const name of NAMES) {
    const database = openDatabase({ connection: { connectionString: addressOf(name) }, connectionsMax: 1 })
    try {
      const rows = await database.query({ text: 'select 1 from public.account where id = $1 and ledger is null' }, [
        account,
      ])
      if (rows.length > 0) found.push(name)
    } finally {
      await database.close()
    }
  }
  return found
}
interface Customer {
  readonly id: string
  readonly key: string
}
const customers = new Map<string, Customer>()

async function customer(): Promise<Customer & { readonly home: string }> {
  const { id } = await ask<{ id: string }>('/accounts', { name: 'Customer', credits: '10' })
  const { key } = await ask<{ key: string }>(`/accounts/${id}/keys`, { name: 'app' })
  const home = await homeOf(id)
  assert.equal(home.length, 1, 'it is in one ledger')
  return { id, key, home: home[0]! }
}

test('accounts lie in both ledgers, their calls are charged there, and nobody sees where', async () => {
  for (let tries = 0; tries < 6; tries++) {
    const { home, ...made } = await customer()
    customers.set(home, made)
  }
  assert.deepEqual([...customers.keys()].sort(), ['east', 'west'])
  for (const { id, key } of customers.values()) {
    const response = await chat(key)
    assert.equal(response.status, 200, await response.text())
    const { balance } = await ask<{ balance: string }>(`/accounts/${id}`)
    assert.ok(Number(balance) < 10, balance)
  }
})

test('a ledger that is away is felt by its accounts only, and serves them when it is back', async () => {
  const [east, west] = [customers.get('east')!, customers.get('west')!]
  cut('east')
  const refused = await chat(east.key)
  assert.equal(refused.status, 503)
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  for (let calls = 0; calls < 20; calls++) assert.equal((await chat(west.key)).status, 200)
  assert.ok(await ask(`/accounts/${west.id}`))
  cables.get('east')?.heal()
  await until(async () => ((await chat(east.key)).status === 200 ? true : undefined))
})

test('calls with known keys go on while control is away', async () => {
  const west = customers.get('west')!
  cut('control')
  for (let calls = 0; calls < 20; calls++) assert.equal((await chat(west.key)).status, 200)
  cables.get('control')?.heal()
  await until(async () => ((await call('/admin/v1/limits', OPERATOR_TOKEN)).status === 200 ? true : undefined))
})
