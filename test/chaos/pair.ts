// A primary and its standby: two real servers with streaming replication, each behind a proxy of its own, so
// that one can vanish without a word. The standby is synchronous, or lags from the moment `lag` says.
import { execFile } from 'node:child_process'
import { appendFile, chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { type Database, openDatabase } from '../../src/database/database.ts'
import { type Embedded, startEmbedded } from '../../src/extensions/postgres/embedded.ts'
import { until } from '../until.ts'
import { type ChaosProxy, startProxy } from './proxy.ts'

export type Member = { readonly server: Embedded; readonly door: ChaosProxy }

export interface Pair {
  readonly primary: Member
  readonly standby: Member
  /** Both doors, as one address. */
  readonly url: string
  /** Nothing reaches the primary any more, nobody is told, and it stops. */
  losePrimary(): Promise<void>
  loseStandby(): Promise<void>
  /** From now on nothing of the primary reaches the standby. */
  lag(): void
  promote(): Promise<void>
  close(): Promise<void>
}

const STANDBY = 'standby'
const log = () => undefined

export async function startPair(options: { synchronous: boolean } = { synchronous: true }): Promise<Pair> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-pair-'))
  await chmod(directory, 0o711)
  const [first, second] = [join(directory, 'first'), join(directory, 'second')]
  const empty = await startEmbedded({ dataDirectory: first, log, loopback: true })
  await empty.stop()
  await appendFile(join(first, 'postgres', 'pg_hba.conf'), 'host replication all 127.0.0.1/32 scram-sha-256\n')
  await mkdir(second, { mode: 0o700 })
  for (const name of ['postgres', 'postgres-password'])
    await promisify(execFile)('cp', ['-a', join(first, name), join(second, name)])

  const server = await startEmbedded({ dataDirectory: first, log, loopback: true })
  const { port, user, password, database } = server.connection
  const replication = await startProxy({ host: '127.0.0.1', port })
  // A server reads this file as its own user, which is not the one that writes here.
  const settle = (folder: string, text: string) =>
    writeFile(join(folder, 'postgres', 'operator.conf'), text, { mode: 0o644 })
  await settle(
    second,
    `primary_conninfo = 'host=127.0.0.1 port=${replication.port} user=${user} password=${password} application_name=${STANDBY}'\n`,
  )
  await writeFile(join(second, 'postgres', 'standby.signal'), '', { mode: 0o644 })
  const other = await startEmbedded({ dataDirectory: second, log, loopback: true })

  const direct = openDatabase({ connection: server.connection, connectionsMax: 1 })
  await until(async () => (await direct.query({ text: 'select 1 from pg_stat_replication' })).length, 1)
  if (options.synchronous) await makeSynchronous(direct)
  await direct.close()

  const doorOf = (of: Embedded) => startProxy({ host: '127.0.0.1', port: of.connection.port })
  const primary: Member = { server, door: await doorOf(server) }
  const standby: Member = { server: other, door: await doorOf(other) }
  let stopped: Promise<void> | undefined
  let otherStopped: Promise<void> | undefined
  const loseStandby = () => {
    otherStopped ??= other.stop()
    return otherStopped
  }
  const doors = [primary, standby].map(({ door }) => `127.0.0.1:${door.port}`)
  return {
    primary,
    standby,
    url: `postgres://${user}:${password}@${doors}/${database}?target_session_attrs=read-write`,
    async losePrimary() {
      primary.door.stall()
      stopped ??= server.stop()
      await stopped
    },
    loseStandby,
    lag: () => replication.stall(),
    promote: () => promote(other),
    async close() {
      await Promise.all([primary.door.close(), standby.door.close(), replication.close()])
      stopped ??= server.stop()
      await Promise.all([stopped, loseStandby()])
      await rm(directory, { recursive: true, force: true, maxRetries: 10 })
    },
  }
}

async function makeSynchronous(direct: Database): Promise<void> {
  await direct.query({ text: `alter system set synchronous_standby_names = '${STANDBY}'` })
  await direct.query({ text: 'select pg_reload_conf()' })
  const synchronous = { text: `select 1 from pg_stat_replication where sync_state = 'sync'` }
  await until(async () => (await direct.query(synchronous)).length, 1)
}

/** By a connection of its own kind: ours go to servers that take writes. */
async function promote({ connection }: Embedded): Promise<void> {
  const client = new pg.Client({ ...connection })
  await client.connect()
  await client.query('select pg_promote()')
  await client.end()
}
