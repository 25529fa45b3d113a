// How to look into the store with psql. Prints a command and runs none: psql may not be installed, and a person should see
// what they connect to.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError, type Command, type Settings } from './command.ts'

const USER = 'tollgate'
const DATABASE = 'tollgate'

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

export async function connection(settings: Settings): Promise<Connection> {
  if (settings.databaseUrl !== undefined) {
    const { password, ...plain } = readUrl(settings.databaseUrl)
    return {
      embedded: false,
      command: `psql "${plain.text}"${password ? '   # asks for the password of DATABASE_URL' : ''}`,
    }
  }
  const directory = join(settings.dataDirectory, 'postgres')
  const lines = (await readFile(join(directory, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  const port = lines[3]?.trim()
  if (!port)
    throw new CliError(
      `No database runs in ${directory}. It runs while the gateway does; start it with "npm start", or set DATABASE_URL.`,
    )
  // Its own name for the socket's directory may be relative to itself.
  const socket = lines[4]?.trim() ?? ''
  const listens = lines[5]?.trim() ?? ''
  if (socket === '' && listens !== '') {
    const password = `PGPASSWORD="$(cat ${quote(join(settings.dataDirectory, 'postgres-password'))})"`
    return { embedded: true, command: `${password} psql -h 127.0.0.1 -p ${port} -U ${USER} ${DATABASE}` }
  }
  const host = socket.startsWith('/') && !socket.startsWith('/proc/') ? socket : directory
  return { embedded: true, command: `psql -h ${quote(host)} -p ${port} -U ${USER} ${DATABASE}` }
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
