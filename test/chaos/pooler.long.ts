// Behind pgbouncer in transaction mode, where two statements in a row may run on two connections: everything works,
// from the migrations of an empty database to the end of a video job. Runs where pgbouncer is installed.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../src/database/database.ts'
import { chooseUser } from '../../src/extensions/postgres/cluster.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { emptyDatabase, type FreshDatabase, freshDatabase } from '../database.ts'
import { assert, atLeast, freePort, SECRET, test, textOf, until } from '../gateway.ts'
import { checkBooks, noHolds } from './books.ts'
import { type GatewayProcess, keyOf, startProcess } from './gateway-process.ts'
import { startProxy } from './proxy.ts'
import { countBy, type Kind, startTraffic } from './traffic.ts'

const KINDS: readonly Kind[] = ['chat', 'stream', 'data', 'messages', 'leave', 'responses', 'fail', 'image']
const CALLS = 400
/** From this version on it keeps prepared statements in transaction mode. */
const KEEPS_STATEMENTS = [1, 21] as const

function versionOf(program: string): string | undefined {
  try {
    return /PgBouncer (\S+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[1]
  } catch {
    return undefined
  }
}

const PROGRAM = ['pgbouncer', '/usr/sbin/pgbouncer'].find((name) => versionOf(name) !== undefined)
const VERSION = PROGRAM === undefined ? undefined : versionOf(PROGRAM)!

/** Four connections for all clients, so that sessions are really shared. */
async function startPooler(to: FreshDatabase, settings: string) {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-pooler-'))
  const port = await freePort()
  const { host, port: serverPort, database, user, password } = to.connection
  // The socket of the store is open to its own user only.
  const door = await startProxy({ path: `${host}/.s.PGSQL.${serverPort}` })
  const file = join(directory, 'pgbouncer.ini')
  await writeFile(
    file,
    `[databases]
${database} = host=127.0.0.1 port=${door.port} dbname=${database} user=${user}${password === undefined ? '' : ` password=${password}`}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
${settings}
`,
  )
  await chmod(directory, 0o755)
  // Like Postgres it does not run as root.
  const runner = await chooseUser(directory)
  const child: ChildProcess = spawn(PROGRAM!, [file], { ...runner, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (piece) => {
      output += piece
    })
  const exited = new Promise<void>((done) => child.once('exit', () => done()))
  const accepts = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
  await until(async () => {
    assert.equal(child.exitCode, null, output)
    return accepts()
  })
  return {
    url: `postgres://${user}@127.0.0.1:${port}/${database}`,
    get output() {
      return output
    },
    async stop() {
      child.kill('SIGTERM')
      await exited
      await door.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function everythingWorks(settings: string, prepare: '0' | '1'): Promise<string> {
  const fresh = await emptyDatabase()
  const data = await mkdtemp(join(tmpdir(), 'tollgate-pooled-'))
  const pooler = await startPooler(fresh, settings)
  const gateways: GatewayProcess[] = []
  const direct = fresh.open({ connectionsMax: 2 })
  try {
    const start = () =>
      startProcess({
        env: {
          DATABASE_URL: pooler.url,
          TOLLGATE_DATABASE_PREPARE: prepare,
          TOLLGATE_SECRET: SECRET,
          TOLLGATE_DATA: join(data, String(gateways.length)),
          TOLLGATE_SANDBOX_SPEED: '100',
        },
      })
    const first = await start()
    gateways.push(first)
    const key = await keyOf(first)
    const send = async (path: string, body?: object) => {
      const text = await textOf(
        fetch(first.url + path, {
          method: body ? 'POST' : 'GET',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          ...(body ? { body: JSON.stringify(body) } : {}),
        }),
      )
      return JSON.parse(text) as { data: { jobId: string; status: string } }
    }
    // Its steps and the queue behind them run here only, while the simulated vendor that knows it is the only one.
    const { data: job } = await send('/v1/video/seedance', { model: 'videogen-2.0', prompt: 'x', duration: 4 })
    await until(async () => ['COMPLETED', 'FAILED'].includes((await send(`/v1/jobs/${job.jobId}`)).data.status))
    assert.equal((await send(`/v1/jobs/${job.jobId}`)).data.status, 'COMPLETED')

    gateways.push(await start())
    const traffic = startTraffic({ urls: () => gateways.map(({ url }) => url), key, kinds: KINDS, atOnce: 20 })
    await until(() => traffic.told.length, atLeast(CALLS))
    await traffic.stop()
    for (const { kind, status, text } of traffic.told)
      assert.ok(status === 200 || (kind === 'fail' && (status === 502 || status === 503)), `${kind} ${status} ${text}`)
    await noHolds(direct, 60_000)
    const books = await checkBooks(direct, traffic.acknowledged())
    for (const gateway of gateways.splice(0)) assert.equal(await gateway.stop(), 0, gateway.output)
    return `${JSON.stringify(countBy(traffic.told))}; a video job COMPLETED; ${JSON.stringify(books)}`
  } finally {
    for (const gateway of gateways) {
      gateway.kill('SIGKILL')
      await gateway.exited
    }
    await direct.close()
    await pooler.stop()
    await rm(data, { recursive: true, force: true })
    await fresh.drop()
  }
}

test('everything works behind pgbouncer in transaction mode without prepared statements', async (t) => {
  if (VERSION === undefined) return t.diagnostic('not done: pgbouncer is not installed')
  t.diagnostic(`pgbouncer ${VERSION}, TOLLGATE_DATABASE_PREPARE=0: ${await everythingWorks('', '0')}`)
})

test('everything works behind a pgbouncer that keeps prepared statements', async (t) => {
  if (VERSION === undefined) return t.diagnostic('not done: pgbouncer is not installed')
  const [major = 0, minor = 0] = VERSION.split('.').map(Number)
  if (major < KEEPS_STATEMENTS[0] || (major === KEEPS_STATEMENTS[0] && minor < KEEPS_STATEMENTS[1]))
    return t.diagnostic(`not done: pgbouncer ${VERSION} does not keep prepared statements; 1.21 and newer do`)
  t.diagnostic(`pgbouncer ${VERSION}, prepared: ${await everythingWorks('max_prepared_statements = 200', '1')}`)
})

test('behind pgbouncer, which refuses startup options, a transaction that stops in the middle loses its locks', async (t) => {
  if (VERSION === undefined) return t.diagnostic('not done: pgbouncer is not installed')
  const fresh = await freshDatabase()
  const pooler = await startPooler(fresh, '')
  const pooled = openDatabase({ connection: { connectionString: pooler.url }, prepare: false })
  const rename = { text: `update account set name = $1 where id = 'acc'` }
  try {
    await pooled.query({ text: `insert into account (id, name) values ('acc', '')` })
    const stuck = pooled.transaction(
      async (tx) => {
        await tx.query(rename, ['stuck'])
        await pooled.query(rename, ['next'])
        await tx.query(rename, ['again'])
      },
      { locksMs: 0, idleMs: 500 },
    )
    await assert.rejects(stuck, (error) => error instanceof Fault && error.kind === 'unavailable')
    assert.deepEqual(await pooled.query({ text: 'select name from account' }), [{ name: 'next' }])
  } finally {
    await pooled.close()
    await pooler.stop()
    await fresh.drop()
  }
})
