// The server of a data directory that another process has started.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive } from './alive.ts'
import { DATABASE, PASSWORD_FILE, SUPERUSER } from './cluster.ts'
import type { EmbeddedConnection } from './embedded.ts'

/** The built-in Postgres of a data directory, if it runs: its own file says where it listens. */
export async function runningStore(dataDirectory: string): Promise<EmbeddedConnection | undefined> {
  const directory = join(dataDirectory, 'postgres')
  const lines = (await readFile(join(directory, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  const port = Number(lines[3]?.trim())
  if (!port || !isAlive(Number(lines[0]))) return undefined
  const shared = { port, user: SUPERUSER, database: DATABASE, ssl: false as const }
  // Its own name for the socket's directory may be relative to itself.
  const socket = lines[4]?.trim() ?? ''
  const listens = lines[5]?.trim() ?? ''
  if (socket === '' && listens !== '') {
    const password = (await readFile(join(dataDirectory, PASSWORD_FILE), 'utf8')).trim()
    return { ...shared, host: '127.0.0.1', password }
  }
  return { ...shared, host: socket.startsWith('/') && !socket.startsWith('/proc/') ? socket : directory }
}
