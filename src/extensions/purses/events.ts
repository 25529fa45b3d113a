// What an account is told of its purses: by signed webhooks, which the page of deliveries shows and repeats. What is to
// be told stands with the movement, so that nothing is lost with a process; each message has the id of its movement, so
// that nothing is told twice.
import type { By } from '../../database/audit.ts'
import { type Queryable, sql } from '../../database/database.ts'
import { pruneAll } from '../../database/prune.ts'
import type { CoreParts } from '../../extension.ts'
import type { Deliveries } from '../../jobs/deliveries.ts'
import type { Message } from '../../jobs/delivery.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import { PURSE_MOVED, requireAccount } from './purses.ts'
import type { EventsView } from './views.ts'

interface EventDeps extends Pick<CoreParts, 'database' | 'audit'> {
  readonly jobs: { readonly deliveries: Pick<Deliveries, 'add' | 'wake'> }
}

interface Untold {
  readonly account_id: string
  readonly id: string
  readonly purse_id: string
  readonly kind: string
  readonly by: bigint
  readonly balance: bigint
  readonly charged: bigint
  readonly product: string | null
  readonly reference: string | null
  readonly moved_at: Date
  readonly events: readonly string[]
  readonly url: string | null
}

const NONE: EventsView = { url: null, settled: false }

export type PurseEvents = ReturnType<typeof createPurseEvents>

export function createPurseEvents({ database, jobs, audit }: EventDeps) {
  async function get(account: string, on: Queryable = database): Promise<EventsView> {
    const [row] = await on.query<EventsView>(FIND, [account])
    return row ?? NONE
  }
  return {
    get: (account: string): Promise<EventsView> => get(account),
    /** Without an address nobody is told. */
    set: (account: string, { url, settled }: EventsView, by: By): Promise<EventsView> =>
      database.transaction(async (tx) => {
        await requireAccount(tx, account)
        const before = await get(account, tx)
        if (url === null) await tx.query(REMOVE, [account])
        else await tx.query(PUT, [account, url, settled])
        const after = await get(account, tx)
        await audit.write(tx, by, {
          action: 'purse-events.set',
          object: account,
          before: told(before),
          after: told(after),
        })
        return after
      }),
    /** Hands over what is to be told. */
    async tell(): Promise<void> {
      for (;;) {
        const told = await database.transaction(async (tx) => {
          const rows = await tx.query<Untold>(UNTOLD)
          await jobs.deliveries.add(tx, rows.flatMap(messagesOf))
          return rows.length
        })
        if (told > 0) jobs.deliveries.wake()
        if (told < TOLD_AT_ONCE) return
      }
    },
    prune: (months: number): Promise<void> => pruneAll(database, PRUNE, [months]).then(() => undefined),
  }
}

/** For the audit log: addresses may hold secrets. */
const told = ({ url, settled }: EventsView) => ({ host: url && new URL(url).host, settled })

function messagesOf({ events, url, ...row }: Untold): Message[] {
  // The account no longer wants to be told.
  if (url === null) return []
  const data = {
    purse: row.purse_id,
    movement: row.id,
    kind: row.kind,
    moved: formatCredits(row.by),
    balance: formatCredits(row.balance),
    charged: formatCredits(row.charged),
    product: row.product,
    reference: row.reference,
    requestId: row.product === null ? null : `req_${row.id}`,
  }
  const [timestamp, livemode] = [row.moved_at.toISOString(), !isTestAccount(row.account_id)]
  return [...new Set(events)].map((one) => ({
    id: `msg_${row.id}_${one}`,
    account: row.account_id,
    kind: 'webhook',
    event: `purse.${one}`,
    subject: row.purse_id,
    to: url,
    body: JSON.stringify({ type: `purse.${one}`, timestamp, livemode, data }),
  }))
}

const TOLD_AT_ONCE = 200
const FIND = sql('purse_events_find')`select url, settled from purse_events where account_id = $1`
const REMOVE = sql('purse_events_remove')`delete from purse_events where account_id = $1`
const PUT = sql('purse_events_put')`insert into purse_events (account_id, url, settled) values ($1, $2, $3)
   on conflict (account_id) do update set url = excluded.url, settled = excluded.settled`
const UNTOLD = sql('purse_untold')`with due as (
     select account_id, id, untold as events from purse_movement where untold is not null
     order by account_id, id limit ${TOLD_AT_ONCE} for update skip locked
   )
   update purse_movement m set untold = null from due
   where m.account_id = due.account_id and m.id = due.id
   returning m.account_id, m.id, m.purse_id, m.kind, ${PURSE_MOVED} as by, m.balance, m.charged, m.product, m.reference, m.moved_at, due.events,
     (select e.url from purse_events e where e.account_id = m.account_id) as url`
const PRUNE = sql('purse_forget')`select purse_prune(now() - make_interval(months => $1), 500) as count`
