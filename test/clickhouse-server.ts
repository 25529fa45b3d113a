// Debian's ClickHouse server, unchanged: an old version, on a free port, with a directory of its own that goes with it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { closing, freePort, until } from './kit.ts'
import { debianPackages } from './sdk/cache.ts'

const USERS = `<yandex><profiles><default><insert_distributed_sync>1</insert_distributed_sync></default></profiles><quotas><default/></quotas><users>
  <tollgate><password>secret &amp; long</password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></tollgate>
</users></yandex>`

/** A cluster of two shards, which are two databases of this server. */
function clusterAt(port: number): string {
  const shard = (name: string) =>
    `<shard><replica><host>127.0.0.1</host><port>${port}</port><default_database>${name}</default_database>
      <user>tollgate</user><password>secret &amp; long</password></replica></shard>`
  return `<remote_servers><tollgate>${shard('shard1')}${shard('shard2')}</tollgate></remote_servers>`
}

/** `start` again after `kill` goes on with the same data. */
export async function clickHouseServer() {
  const found = await debianPackages(['clickhouse-server', 'clickhouse-common'])
  if ('missing' in found) return found
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-clickhouse-'))
  const [http, tcp, between] = [await freePort(), await freePort(), await freePort()]
  const of = (path: string) => join(directory, path)
  for (const path of ['data', 'tmp', 'files', 'schemas']) await mkdir(of(path))
  await writeFile(of('users.xml'), USERS)
  await writeFile(
    of('config.xml'),
    // Another zone than the gateway's, on which nothing may depend.
    `<yandex><logger><level>warning</level><console>1</console></logger><timezone>Asia/Kolkata</timezone>
      <http_port>${http}</http_port><tcp_port>${tcp}</tcp_port><interserver_http_port>${between}</interserver_http_port>
      <listen_host>127.0.0.1</listen_host><path>${of('data')}/</path><tmp_path>${of('tmp')}/</tmp_path>
      <user_files_path>${of('files')}/</user_files_path><format_schema_path>${of('schemas')}/</format_schema_path>
      <mark_cache_size>67108864</mark_cache_size><users_config>${of('users.xml')}</users_config>
      ${clusterAt(tcp)}
      <default_profile>default</default_profile><default_database>default</default_database></yandex>`,
  )
  const program = join(found.directory, 'usr', 'sbin', 'clickhouse-server')
  let child: ReturnType<typeof spawn> | undefined
  const server = {
    url: `http://tollgate:${encodeURIComponent('secret & long')}@127.0.0.1:${http}/default`,
    async start() {
      child = spawn(program, [`--config-file=${of('config.xml')}`], { env: found.env, stdio: 'ignore' })
      const answers = () =>
        fetch(`http://127.0.0.1:${http}/ping`).then(
          ({ ok }) => ok,
          () => false,
        )
      await until(answers)
    },
    async kill() {
      // It may have ended by itself.
      if (!child || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
    async close() {
      await server.kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
  await server.start()
  return closing(server)
}
