// Ends the moves that nobody drives any more, because the command was killed and not repeated: the gateways take back
// what has not left yet, and finish what has.
import type { Database } from '../../database/database.ts'
import type { Log } from '../../kernel/log.ts'
import { testAccountOf } from '../../kernel/test-account.ts'
import type { World } from '../../kernel/world.ts'
import { cancelMove, type MoveOptions, MoveRefused, moveAccount, NOTICE_MS } from './move.ts'
import { ABANDONED, CONTROL, ENDED, GIVEN_UP, HOME, THAW, UNLEASE } from './steps.ts'

interface Abandoned {
  readonly account: string
  readonly move: string
  readonly state: 'leaving' | 'gone'
  readonly to: string
}

interface Around {
  readonly world: World
  readonly log: Log
}

/** By name, control and the ledgers that answer. */
type Databases = ReadonlyMap<string, Database>

export async function endAbandoned(all: Databases, around: Around): Promise<void> {
  for (const [from, source] of all)
    for (const found of await source.query<Abandoned>(ABANDONED, [[...all.keys()]]).catch(() => [])) {
      const about = { account: found.account, from, to: found.to }
      try {
        await end(all, { ...found, from }, around)
        around.log.warn(
          about,
          `a move that nobody drove any more was ${found.state === 'gone' ? 'finished' : 'taken back'}`,
        )
      } catch (error) {
        around.log.warn({ ...about, error }, 'a move that nobody drives any more could not be ended yet')
        // It has moved on: there is nothing to be finished.
        if (error instanceof MoveRefused) await source.query(GIVEN_UP, [found.account, found.move])
      }
    }
}

async function end(all: Databases, { account, move, state, from, to }: Abandoned & { from: string }, around: Around) {
  const between = (account: string, from: string): MoveOptions | undefined => {
    const [source, target, control] = [from, to, CONTROL].map((name) => all.get(name))
    const within = control && { control, ledger: to === CONTROL ? null : to, noticeMs: NOTICE_MS }
    return (
      source && target && within && { account, source, target, from, to, within, waitMs: 0, say: () => {}, ...around }
    )
  }
  const options = between(account, from)
  const test = testAccountOf(account)
  if (!options) {
    // It goes to another installation, which this one does not know: repeating the command begins anew there.
    await all.get(from)?.query(THAW, [account, move, test])
    await all.get(from)?.query(UNLEASE, [account, test, false])
  } else if (state === 'leaving') await cancelMove(options)
  else {
    await moveAccount(options)
    const [home] = (await all.get(CONTROL)?.query<{ name: string }>(HOME, [test, CONTROL])) ?? []
    const follows = home && home.name !== to ? between(test, home.name) : undefined
    if (follows) await moveAccount({ ...follows, waitMs: WAIT_MS })
    await options.source.query(ENDED, [account, test])
  }
}

/** How long calls with test keys may take to end. */
const WAIT_MS = 30_000
