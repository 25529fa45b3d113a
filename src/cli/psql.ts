// How to look into the store with psql. Prints a command and runs none: psql may not be installed, and a person should see
// what they connect to.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive } from '../database/alive.ts'
import type { EmbeddedConnection } from '../database/embedded.ts'
import { CliError, type Command, type Settings } from './command.ts'

const USER = 'tollgate'
const DATABASE = 'tollgate'
const PASSWORD_FILE = 'postgres-password'

export const PSQL_COMMAND: Command = {
  name: 'psql',
  summary: 'Prints how to connect to the database with psql.',
  about: 'Look, but do not write: the gateway is the only one that may move money.',
  async run(call) {
    const how = await connection(call.settings)
    call.say(call.json ? JSON.stringify(how) : how.command)
  },
}

interface Connection {
  readonly command: string
  readonly embedded: boolean
}

async function connection(settings: Settings): Promise<Connection> {
  if (settings.databaseUrl !== undefined) {
    const { password, ...plain } = readUrl(settings.databaseUrl)
    return {
      embedded: false,
      command: `psql "${plain.text}"${password ? '   # asks for the password of DATABASE_URL' : ''}`,
    }
  }
  const running = await runningStore(settings.dataDirectory)
  if (!running)
    throw new CliError(
      `No database runs in ${settings.dataDirectory}. It runs while the gateway does; start it with "npm start", or set DATABASE_URL.`,
    )
  const password = running.password ? `PGPASSWORD="$(cat ${quote(join(settings.dataDirectory, PASSWORD_FILE))})" ` : ''
  return {
    embedded: true,
    command: `${password}psql -h ${quote(running.host)} -p ${running.port} -U ${USER} ${DATABASE}`,
  }
}

/** The built-in Postgres of a data directory, if it runs: its own file says where it listens. */
export async function runningStore(dataDirectory: string): Promise<EmbeddedConnection | undefined> {
  const directory = join(dataDirectory, 'postgres')
  const lines = (await readFile(join(directory, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  const port = Number(lines[3]?.trim())
  if (!port || !isAlive(Number(lines[0]))) return undefined
  const shared = { port, user: USER, database: DATABASE, ssl: false as const }
  // Its own name for the socket's directory may be relative to itself.
  const socket = lines[4]?.trim() ?? ''
  const listens = lines[5]?.trim() ?? ''
  if (socket === '' && listens !== '') {
    const password = (await readFile(join(dataDirectory, PASSWORD_FILE), 'utf8')).trim()
    return { ...shared, host: '127.0.0.1', password }
  }
  return { ...shared, host: socket.startsWith('/') && !socket.startsWith('/proc/') ? socket : directory }
}

/** A password does not belong on a screen. */
function readUrl(text: string): { text: string; password: boolean } {
  const url = new URL(text)
  const password = url.password !== ''
  url.password = ''
  return { text: url.href, password }
}

function quote(path: string): string {
  return /^[\w/.@+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
