// The recipe of deploy/high-availability on one machine: etcd, and three Postgres servers under Patroni with the file
// that is delivered. Needs programs that are not packages of ours.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type pg from 'pg'
import { family } from '../../bench/process.ts'
import { atOnce, until } from '../kit.ts'

const RECIPE = resolve(import.meta.dirname, '..', '..', 'deploy', 'high-availability', 'patroni.yaml')
/** The fix that keeps a leader from overwriting another's key came with this version. */
const SAFE = [3, 0, 3] as const
const PASSWORD = 'of-the-tests'

export interface Programs {
  readonly version: string
  readonly serverPrograms: string
  /** Postgres does not run as root. */
  readonly user: { readonly uid: number; readonly gid: number }
}

/** Or why the recipe cannot be run here. */
export function findPrograms(): Programs | string {
  const user = { uid: 0, gid: 0 }
  const say = (program: string, ...args: string[]) => {
    try {
      return execFileSync(program, args, { ...user, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    } catch {
      return undefined
    }
  }
  if (process.getuid?.() !== 0) return 'only root can start servers as the user postgres'
  const [uid = 0, gid = 0] = [say('id', '-u', 'postgres'), say('id', '-g', 'postgres')].map(Number)
  if (!uid || !gid) return 'there is no user postgres'
  Object.assign(user, { uid, gid })
  const version = say('patroni', '--version')?.split(' ').at(-1)
  if (version === undefined) return 'patroni is not installed, or not for the user postgres'
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  if (major * 1e6 + minor * 1e3 + patch < SAFE[0] * 1e6 + SAFE[1] * 1e3 + SAFE[2])
    return `patroni ${version} is unsafe: it may rewind acknowledged charges`
  if (say('etcd', '--version') === undefined) return 'etcd is not installed'
  const serverPrograms = say('sh', '-c', 'ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1')
  if (!serverPrograms || say(join(serverPrograms, 'pg_rewind'), '--version') === undefined)
    return 'there is no Postgres with pg_basebackup and pg_rewind in /usr/lib/postgresql'
  return { version, serverPrograms, user }
}

type Node = { readonly name: string; readonly port: number; readonly api: string; readonly patroni: ChildProcess }

interface Loss {
  readonly name: string
  /** The machine is there again, where it can be; resolves when its server follows the new leader. */
  comeBack(): Promise<void>
}

export interface PatroniCluster {
  /** All of them, as one address. */
  readonly url: string
  /** The role of each, as it says itself. */
  leader(): Promise<Node | undefined>
  standbys(): Promise<number>
  /** The leader's machine loses its power: server and Patroni are gone at once. */
  loseLeader(): Promise<Loss>
  /** It hangs: nothing there runs, no connection is closed, and later it goes on where it was. */
  freezeLeader(): Promise<Loss>
  connectionOf(node: Node): pg.ClientConfig
  close(): Promise<void>
}

export async function startCluster(programs: Programs): Promise<PatroniCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-patroni-'))
  const { uid, gid } = programs.user
  await chown(directory, uid, gid)
  const children: ChildProcess[] = []
  const start = (program: string, args: string[], env: Record<string, string> = {}) => {
    // In a group of its own, so that its server can be ended with it.
    const child = spawn(program, args, {
      uid,
      gid,
      cwd: directory,
      detached: true,
      stdio: 'ignore',
      env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', HOME: directory, ...env },
    })
    children.push(child)
    return child
  }
  const [etcdPort = 0, peerPort = 0, ...ports] = await freePorts(8)
  start('etcd', [
    '--data-dir',
    join(directory, 'etcd'),
    '--name',
    'one',
    '--listen-client-urls',
    `http://127.0.0.1:${etcdPort}`,
    '--advertise-client-urls',
    `http://127.0.0.1:${etcdPort}`,
    '--listen-peer-urls',
    `http://127.0.0.1:${peerPort}`,
  ])
  await until(() => answers(`http://127.0.0.1:${etcdPort}/health`))

  const file = join(directory, 'patroni.yaml')
  // There is no watchdog in most places where tests run.
  await writeFile(file, (await readFile(RECIPE, 'utf8')).replace('mode: required', 'mode: "off"'))
  const nodes: Node[] = []
  for (const name of ['pg1', 'pg2', 'pg3']) {
    const [port = 0, apiPort = 0] = ports.splice(0, 2)
    const data = join(directory, name)
    await mkdir(data, { mode: 0o700 })
    await chown(data, uid, gid)
    const patroni = start('patroni', [file], {
      PATRONI_NAME: name,
      PATRONI_ETCD3_HOSTS: `"127.0.0.1:${etcdPort}"`,
      PATRONI_RESTAPI_LISTEN: `127.0.0.1:${apiPort}`,
      PATRONI_RESTAPI_CONNECT_ADDRESS: `127.0.0.1:${apiPort}`,
      PATRONI_POSTGRESQL_LISTEN: `127.0.0.1:${port}`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `127.0.0.1:${port}`,
      PATRONI_POSTGRESQL_DATA_DIR: join(data, 'data'),
      PATRONI_POSTGRESQL_BIN_DIR: programs.serverPrograms,
      PATRONI_POSTGRESQL_PGPASS: join(data, 'pgpass'),
      PATRONI_SUPERUSER_USERNAME: 'postgres',
      PATRONI_SUPERUSER_PASSWORD: PASSWORD,
      PATRONI_REPLICATION_USERNAME: 'replicator',
      PATRONI_REPLICATION_PASSWORD: PASSWORD,
    })
    nodes.push({ name, port, api: `http://127.0.0.1:${apiPort}`, patroni })
    // The first becomes the leader; the others copy it.
    await until(() => answers(`http://127.0.0.1:${apiPort}/${name === 'pg1' ? 'leader' : 'replica'}`))
  }
  const lost = new Set<Node>()
  const present = () => nodes.filter((node) => !lost.has(node))
  const cluster: PatroniCluster = {
    url: `postgres://postgres:${PASSWORD}@${nodes.map(({ port }) => `127.0.0.1:${port}`)}/postgres?target_session_attrs=read-write`,
    async leader() {
      for (const node of present()) if (await answers(`${node.api}/primary`)) return node
      return undefined
    },
    async standbys() {
      const found = await Promise.all(present().map(({ api }) => answers(`${api}/synchronous`)))
      return found.filter(Boolean).length
    },
    async loseLeader() {
      const node = (await cluster.leader())!
      lost.add(node)
      await endGroup(node.patroni)
      await endServer(join(directory, node.name, 'data'))
      return { name: node.name, comeBack: () => Promise.reject(new Error('It has no power.')) }
    },
    async freezeLeader() {
      const node = (await cluster.leader())!
      lost.add(node)
      const server = await serverIn(join(directory, node.name, 'data'))
      const all = [...family(node.patroni.pid!), ...family(server!)]
      for (const pid of all) process.kill(pid, 'SIGSTOP')
      return {
        name: node.name,
        async comeBack() {
          for (const pid of all) process.kill(pid, 'SIGCONT')
          lost.delete(node)
          await until(() => answers(`${node.api}/replica`))
        },
      }
    },
    connectionOf: ({ port }) => ({
      host: '127.0.0.1',
      port,
      user: 'postgres',
      password: PASSWORD,
      database: 'postgres',
    }),
    async close() {
      for (const child of children.reverse()) await endGroup(child)
      for (const { name } of nodes) await endServer(join(directory, name, 'data'))
      await rm(directory, { recursive: true, force: true, maxRetries: 10 })
    },
  }
  await until(() => cluster.standbys(), 1)
  return cluster
}

async function endGroup(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  process.kill(-child.pid!, 'SIGKILL')
  await gone
}

/** A server outlives its Patroni: it is in a session of its own. */
async function endServer(data: string): Promise<void> {
  const pid = await serverIn(data)
  if (pid === undefined) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It had ended.
  }
}

async function serverIn(data: string): Promise<number | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number(text.split('\n')[0])
  return pid > 1 ? pid : undefined
}

async function answers(url: string): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
    (answer) => answer.ok,
    () => false,
  )
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await atOnce(count, () => {
    const server = createServer()
    return new Promise<typeof server>((done) => server.listen(0, '127.0.0.1', () => done(server)))
  })
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))))
  return ports
}
