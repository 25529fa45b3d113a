// The ledgers of an installation, and moving accounts between them. Like `accounts move`, these commands connect to the
// databases directly.
import { CliError, type Command, flag, type Invocation, takes, text } from '../../cli/command.ts'
import { card, table } from '../../cli/table.ts'
import { realWorld } from '../../kernel/world.ts'
import { waitOf } from './cli.ts'
import type { MoveWithin, Places } from './places.ts'

const places = async <T>(call: Invocation, run: (places: Places) => Promise<T>): Promise<T> => {
  // Loaded here, so that other commands start faster.
  const { withPlaces } = await import('./places.ts')
  const { MoveRefused } = await import('./move.ts')
  try {
    return await withPlaces(call.settings, run)
  } catch (error) {
    if (error instanceof MoveRefused) throw new CliError(error.message)
    throw error
  }
}

const moving = (call: Invocation, all: Places, account: string, to: string): MoveWithin => ({
  places: all,
  account,
  to,
  world: realWorld,
  waitMs: waitOf(call) * 1_000,
  say: (line) => call.note(`${line}\n`),
})

const WAIT = takes('seconds', 'How long running calls may take to end (30).')

export const LEDGER_COMMANDS: readonly Command[] = [
  {
    name: 'ledgers list',
    summary: 'Lists the ledgers, whether each answers, and what it has.',
    run: (call) =>
      places(call, async (all) => {
        const { readPlaces } = await import('./balance.ts')
        const answer = await readPlaces(all)
        const columns = {
          name: 'name',
          region: 'region',
          answers: 'answers',
          accounts: 'accounts',
          bytes: 'bytes',
          address: 'address',
        } as const
        return { answer, words: table(answer, columns) }
      }),
  },
  {
    name: 'ledgers show',
    summary: 'Shows a ledger with its accounts, newest first, and the region that each demands.',
    args: ['ledger'],
    options: { limit: takes('number', 'How many (100).'), cursor: takes('id', 'Only accounts older than this one.') },
    run: (call) =>
      places(call, async (all) => {
        const { readAccounts, readPlaces } = await import('./balance.ts')
        const name = call.args[0] ?? ''
        const ledger = (await readPlaces(all)).find((one) => one.name === name)
        if (!ledger) throw new CliError(`There is no ledger ${name}. There are: ${[...all.keys()].join(', ')}.`)
        const limit = Number(text(call, 'limit') ?? 100)
        if (!Number.isInteger(limit) || limit < 1 || limit > 1_000)
          throw new CliError('--limit must be a number from 1 to 1000.', 2)
        const accounts = await readAccounts(all, name, { limit, cursor: text(call, 'cursor') })
        const rows = table(accounts, { account: 'id', name: 'name', status: 'status', region: 'region' })
        return { answer: { ...ledger, items: accounts }, words: `${card({ ...ledger })}\n\n${rows}` }
      }),
  },
  {
    name: 'ledgers add',
    summary: 'Adds a Postgres server, in which new accounts are made from now on.',
    about:
      'It must be empty, or have been a ledger of this installation under this name, and reach the server of DATABASE_URL. Its address is stored sealed, and the gateways that run open it within two seconds. With the name of a ledger that was added, it changes its address.',
    args: ['ledger', 'url'],
    options: { region: takes('region', 'Accounts that demand this region stay there.') },
    async run(call) {
      const { addLedger } = await import('./adding.ts')
      const [name = '', given = ''] = call.args
      const url = given === '-' ? (await call.input()).trim() : given
      const region = text(call, 'region')
      const named = region === undefined ? name : `${name}@${region}`
      const answer = await addLedger(call.settings, `${named}=${url}`, call.world)
      const words = answer.isNew ? `The ledger ${name} was added.` : `The ledger ${name} has this address now.`
      return { answer: { name, region: region ?? null, ...answer }, words }
    },
  },
  {
    name: 'ledgers remove',
    summary: 'Removes a ledger that was added, when no account lies there.',
    args: ['ledger'],
    async run(call) {
      const { removeLedger } = await import('./adding.ts')
      const [name = ''] = call.args
      await removeLedger(call.settings, name, call.world)
      return { answer: { name, removed: true }, words: `The ledger ${name} was removed. Its database stays as it is.` }
    },
  },
  {
    name: 'ledgers move',
    summary: 'Moves an account to another ledger of this installation.',
    about:
      'Its rows are copied while it is in use. Then it takes no calls (503, with retry-after) for about a second, until running calls have ended and the rest is copied and compared. Repeat it after a crash: it continues where it stopped. If nobody does, the gateways take it back or finish it about a minute later.',
    args: ['account'],
    options: {
      to: takes('ledger', 'The name of the ledger; control: the database of DATABASE_URL.'),
      wait: WAIT,
      cancel: flag('Cancels an unfinished move: the account stays, and its copy is removed.'),
    },
    run: (call) =>
      places(call, async (all) => {
        const { cancelWithin, moveWithin } = await import('./places.ts')
        const to = text(call, 'to')
        if (to === undefined) throw new CliError('Say where to: --to NAME', 2)
        const move = moving(call, all, call.args[0] ?? '', to)
        if (call.values.cancel) {
          await cancelWithin(move)
          return { answer: { cancelled: true }, words: `Account ${move.account} stays where it was.` }
        }
        const answer = await moveWithin(move)
        const { rows, ...rest } = answer
        return { answer, words: card({ ...rest, ...rows }) }
      }),
  },
  {
    name: 'ledgers rebalance',
    summary: 'Moves accounts from full ledgers to those with room.',
    about:
      'The size of an account is the number of its calls. Accounts that demand a region stay in it. Nothing moves while a ledger does not answer.',
    options: { 'dry-run': flag('Only says what would move, and why.'), wait: WAIT },
    run: (call) =>
      places(call, async (all) => {
        const { planBalance } = await import('./balance.ts')
        const { moveWithin } = await import('./places.ts')
        const plan = await planBalance(all)
        const columns = { account: 'account', from: 'from', to: 'to', calls: 'calls', why: 'why' } as const
        const words = plan.length === 0 ? 'Nothing has to move.' : table(plan, columns)
        if (call.values['dry-run']) return { answer: plan, words }
        for (const [at, { account, to, why }] of plan.entries()) {
          call.note(`${at + 1} of ${plan.length}: ${account} to ${to}: ${why}\n`)
          await moveWithin(moving(call, all, account, to))
        }
        return { answer: plan, words }
      }),
  },
]
