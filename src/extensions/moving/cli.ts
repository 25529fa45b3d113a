// Moves an account between two databases. Unlike the other commands it connects to the databases directly: the gateway
// of the one does not know the other.

import { CliError, type Command, flag, type Invocation, type Settings, takes, text } from '../../cli/command.ts'
import { card } from '../../cli/table.ts'
import { addressProblem, withoutPassword } from '../../database/address.ts'
import { realWorld } from '../../kernel/world.ts'
import { runningStore } from '../postgres/cluster.ts'
import type { EmbeddedConnection } from '../postgres/embedded.ts'

const WAIT_SECONDS = 30
const WAIT_SECONDS_MAX = 3_600

export const MOVE_COMMAND: Command = {
  name: 'accounts move',
  summary: 'Moves an account to another database.',
  about: `Its rows are copied while it is in use. Then it takes no calls (503, with retry-after) until running calls have ended, the rest is copied and both ends are compared; the source records the target. Both gateways must have the same TOLLGATE_SECRET.
Repeat it after a crash: it continues where it stopped. The password may be left out of the address if ~/.pgpass has it.`,
  args: ['account'],
  options: {
    to: takes('DATABASE_URL', 'The target database; a gateway must have been started with it once.'),
    wait: takes('seconds', `How long running calls may take to end (${WAIT_SECONDS}).`),
    cancel: flag('Cancels an unfinished move: the account stays, and its copy is removed.'),
  },
  async run(call) {
    const to = text(call, 'to')
    if (to === undefined) throw new CliError('Say where to: --to postgres://user:password@host:5432/database', 2)
    const problem = addressProblem(to)
    if (problem) throw new CliError(`--to ${problem}.`, 2)
    const wait = waitOf(call)
    const connection = await sourceOf(call.settings)
    // Loaded here, so that other commands start faster.
    const { cancelMove, MoveRefused, moveAccount } = await import('./move.ts')
    const { openDatabase } = await import('../../database/database.ts')
    const source = openDatabase({ connection, connectionsMax: 4 })
    const target = openDatabase({ connection: { connectionString: to }, connectionsMax: 4 })
    const move = {
      account: call.args[0] ?? '',
      source,
      target,
      world: realWorld,
      waitMs: wait * 1_000,
      from: nameOf(call.settings.databaseUrl),
      to: nameOf(to),
      say: (line: string) => (call.values.json ? undefined : call.say(`${line}\n`)),
    }
    try {
      if (call.values.cancel) {
        await cancelMove(move)
        return { answer: { cancelled: true }, words: `Account ${move.account} stays in ${move.from}.` }
      }
      const answer = await moveAccount(move)
      const { rows, ...rest } = answer
      return { answer, words: card({ ...rest, ...rows }) }
    } catch (error) {
      if (error instanceof MoveRefused) throw new CliError(error.message)
      throw error
    } finally {
      await Promise.all([source.close(), target.close()])
    }
  },
}

export function waitOf(call: Invocation): number {
  const wait = Number(text(call, 'wait') ?? WAIT_SECONDS)
  if (!Number.isInteger(wait) || wait < 1 || wait > WAIT_SECONDS_MAX)
    throw new CliError(`--wait must be a number of seconds from 1 to ${WAIT_SECONDS_MAX}.`, 2)
  return wait
}

async function sourceOf({
  databaseUrl,
  dataDirectory,
}: Settings): Promise<{ connectionString: string } | EmbeddedConnection> {
  if (databaseUrl !== undefined) return { connectionString: databaseUrl }
  const running = await runningStore(dataDirectory)
  if (running) return running
  throw new CliError(`No database runs in ${dataDirectory}. Start the gateway, or set DATABASE_URL.`)
}

/** The address of a database, for people and for the row that stays in the old one. */
function nameOf(url: string | undefined): string {
  return url === undefined ? 'the built-in database' : withoutPassword(url).text
}
