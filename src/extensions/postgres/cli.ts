// How to connect to the database with psql. It prints the command and does not run it: psql may not be installed, and a
// person should see what they connect to.
import { join } from 'node:path'
import { CliError, type Command, type Settings, told } from '../../cli/command.ts'
import { withoutPassword } from '../../database/address.ts'
import { PASSWORD_FILE, runningStore } from './cluster.ts'

export const PSQL_COMMAND: Command = {
  name: 'psql',
  summary: 'Prints how to connect to the database with psql.',
  about: 'For reading only: do not write to the database.',
  run: (call) => told(connection(call.settings), (how) => how.command),
}

async function connection(settings: Settings): Promise<{ command: string; embedded: boolean }> {
  if (settings.databaseUrl !== undefined) {
    const { password, ...plain } = withoutPassword(settings.databaseUrl)
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
    command: `${password}psql -h ${quote(running.host)} -p ${running.port} -U ${running.user} ${running.database}`,
  }
}

function quote(path: string): string {
  return /^[\w/.@+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
