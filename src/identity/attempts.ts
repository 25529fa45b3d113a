// Throttles password guessing. The counters are in the database, so they hold for all processes together. No login is
// ever locked for good: after five failed attempts an email address waits one second, then two, then four, up to a
// minute.
import { createHash } from 'node:crypto'
import { type Database, type Queryable, sql } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { networkOf } from '../upstream/address.ts'

export type Attempts = ReturnType<typeof createAttempts>

interface Brake {
  /** What is counted; a mailbox or a domain only as a digest. */
  readonly subject: string
  readonly max: number
  readonly perSeconds: number
}

/** Without a window: the growing wait of a name. */
type Count = Omit<Brake, 'perSeconds'> & { readonly perSeconds?: number }

export interface Attempt {
  /** The login was right: the attempt does not count, and earlier failures for the same name or browser are cleared. */
  succeeded(): Promise<void>
  /** The attempt ended with an error, so it does not count. */
  giveBack(): Promise<void>
}

const FREE_TRIES = 5
const PER_ADDRESS = 20

// An attempt during a wait changes nothing and returns no row.
const TRY_NAME = sql('attempt_name')`insert into login_attempt as a (subject, tries) values ($1, 1)
   on conflict (subject) do update set
     tries = case when a.since < now() - interval '1 hour' then 1 else a.tries + 1 end,
     since = now(),
     blocked_until = case when a.since < now() - interval '1 hour' or a.tries + 1 < $2 then now()
       else now() + make_interval(secs => least(60, power(2, least(a.tries + 1 - $2, 10)))) end
   where a.blocked_until <= clock_timestamp()
   returning blocked_until::text as until`
const WINDOW = 'make_interval(secs => $3)'
const TRY_WINDOW = sql('attempt_window')`
  insert into login_attempt as a (subject, tries, blocked_until) values ($1, 1, case when $2 <= 1 then now() + ${WINDOW} else now() end)
   on conflict (subject) do update set
     tries = case when a.since < now() - ${WINDOW} then 1 else a.tries + 1 end,
     since = case when a.since < now() - ${WINDOW} then now() else a.since end,
     blocked_until = case when a.since >= now() - ${WINDOW} and a.tries + 1 >= $2 then a.since + ${WINDOW} else now() end
   where a.blocked_until <= clock_timestamp()
   returning blocked_until::text as until`
const WAIT = sql('attempt_wait')`
  select extract(epoch from blocked_until - clock_timestamp())::float8 as seconds from login_attempt where subject = $1`
const CLEAR = sql('attempt_clear')`delete from login_attempt where subject = $1`
// A wait that a later attempt has set stays.
const TAKE_BACK = sql('attempt_take_back')`update login_attempt set tries = greatest(tries - 1, 0),
     blocked_until = case when blocked_until = $2::timestamptz then now() else blocked_until end
   where subject = $1`

/** No window of `brake` is longer. */
const WINDOW_HOURS_MAX = 24
/** A row, and its waiting time, is deleted when its window is over. */
export const PRUNE_ATTEMPTS = sql('tidy_attempts')`with gone as (
     delete from login_attempt where ctid = any(array(select ctid from login_attempt
       where blocked_until < now() and since < now() - interval '${WINDOW_HOURS_MAX} hours' limit 5000))
     returning 1
   ) select count(*)::int as count from gone`

export function createAttempts(database: Database) {
  /** Returns a function that undoes the count. */
  async function count({ subject, max, perSeconds }: Count, on: Queryable): Promise<() => Promise<unknown>> {
    const [row] = await (perSeconds === undefined
      ? on.query<{ until: string }>(TRY_NAME, [subject, max])
      : on.query<{ until: string }>(TRY_WINDOW, [subject, max, perSeconds]))
    if (row) return () => on.query(TAKE_BACK, [subject, row.until])
    const [wait] = await on.query<{ seconds: number }>(WAIT, [subject])
    const seconds = Math.max(1, Math.ceil(wait?.seconds ?? 1))
    throw new Fault('rate_limited', {
      message: `There were too many tries. Try again in ${spanOf(seconds)}.`,
      retryAfterSeconds: seconds,
    })
  }

  return {
    /**
     * Counts an attempt before it is made, so that concurrent attempts all count. It counts by network address, and by
     * email address or, for a known browser, by that browser. Throws rate_limited while the caller must wait.
     */
    async begin({
      ip,
      email,
      browser,
    }: {
      ip: string
      email?: string
      browser?: string | undefined
    }): Promise<Attempt> {
      const subject = browser === undefined ? email && nameOf(email) : `browser:${browser}`
      const address = await count({ subject: `address:${networkOf(ip)}`, max: PER_ADDRESS, perSeconds: 60 }, database)
      const name = subject && (await count({ subject, max: FREE_TRIES }, database))
      return {
        async succeeded() {
          if (subject) await database.query(CLEAR, [subject])
          await address()
        },
        async giveBack() {
          if (name) await name()
          await address()
        },
      }
    },

    /**
     * Counts an action against several limits; throws rate_limited if one is reached. In a transaction it counts if
     * that commits.
     */
    async brake(brakes: readonly Brake[], on: Queryable = database): Promise<void> {
      const counted: Array<() => Promise<unknown>> = []
      try {
        for (const one of brakes) counted.push(await count(one, on))
      } catch (error) {
        // A rejected action counts against no limit.
        for (const takeBack of counted) await takeBack()
        throw error
      }
    },
  }
}

function spanOf(seconds: number): string {
  const [count, unit] =
    seconds < 120
      ? [seconds, 'second']
      : seconds < 7_200
        ? [Math.ceil(seconds / 60), 'minute']
        : [Math.ceil(seconds / 3_600), 'hour']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** The row looks the same whether a person with this email address exists or not. */
function nameOf(email: string): string {
  return `name:${createHash('sha256').update(email).digest('base64url')}`
}
