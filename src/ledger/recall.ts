// Credits that processes have leased come back to their account: for a call that does not fit without them, and before
// a change of what calls may cost.
import { type Database, sql } from '../database/database.ts'
import type { Log } from '../kernel/log.ts'
import { singleFlight, sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import type { createLeases } from './leases.ts'
import { HEARD_SECONDS, SILENT_SECONDS } from './liveness.ts'

const RECALLED_WAIT_MS = 50
/** Processes that lease the missing credits poll twice a second; after these waits the credits will not be returned. */
const RETURN_WAITS_MS = [100, 200, 300, 400, 500, 500]

export function createRecall({
  database,
  world,
  leases,
  posted,
  log,
}: {
  readonly database: Database
  readonly world: World
  readonly leases: Pick<ReturnType<typeof createLeases>, 'rest' | 'recall'>
  readonly posted: (account: string) => Promise<void>
  readonly log?: Log | undefined
}) {
  const returns = singleFlight<void>()
  const returned = (account: string) => returns(account, () => takeBack(account))

  async function takeBack(account: string): Promise<void> {
    for (const waitMs of RETURN_WAITS_MS) {
      leases.rest(account)
      await posted(account)
      const rows = await database.query(RECALL, [account])
      if (rows.length === 0) return
      await sleep(world, waitMs)
    }
  }

  async function recalled(account: string): Promise<void> {
    leases.recall((lease) => lease.account === account)
    const untilMs = world.elapsedMs() + SILENT_SECONDS * 1_000
    try {
      while ((await database.query(ADMITTING, [account])).length > 0) {
        if (world.elapsedMs() >= untilMs) throw new Error('a process has not given back its lease in time')
        await sleep(world, RECALLED_WAIT_MS)
      }
    } catch (error) {
      // The change is stored, so the answer must not say that it failed.
      log?.error({ account, error }, 'calls may be admitted for a while with leases from before a change')
    }
  }

  return { returned, recalled }
}

/** A process without a recent heartbeat admits no calls with leases. */
const ADMITTING = sql('lease_admitting')`
  select 1 from lease e join gateway_instance p on p.id = e.process_id and p.heartbeat_at > now() - make_interval(secs => ${HEARD_SECONDS})
   where e.account_id = $1 and e.recalled_at is not null and not e.retired limit 1`
/** What calls use of a lease comes back when they end: nobody waits for it here. */
const RECALL = sql('lease_recall')`with recalled as (
     update lease set recalled_at = least(recalled_at, now()) where account_id = $1 and amount > 0 returning recalled_at, amount > in_use or slices <> '{}' and not retired as has_more
   )
   select 1 from recalled where has_more and recalled_at > now() - interval '2 seconds'`
