// What keeps guessing slow, in the database, so that it holds for all processes together. Nobody is ever locked out: an
// address that was tried five times in vain waits a second, then two, then four, up to a minute.
import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { type Database, statement } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'

export interface Attempts {
  /** Counts a try before it is made, so that a thousand at once are not one. Throws rate_limited while it must wait. */
  begin(email: string, ip: string): Promise<void>
  /** The try was right: it counts for nothing. */
  succeeded(email: string, ip: string): Promise<void>
}

const FREE_TRIES = 5
const PER_ADDRESS = 20

// A try that comes too early changes nothing and answers no row.
const TRY_NAME = statement(
  'attempt_name',
  `insert into login_attempt as a (subject, tries) values ($1, 1)
   on conflict (subject) do update set
     tries = case when a.since < now() - interval '1 hour' then 1 else a.tries + 1 end,
     since = now(),
     blocked_until = case when a.since < now() - interval '1 hour' or a.tries + 1 < $2 then now()
       else now() + make_interval(secs => least(60, power(2, least(a.tries + 1 - $2, 10)))) end
   where a.blocked_until <= clock_timestamp()
   returning tries`,
)
const TRY_ADDRESS = statement(
  'attempt_address',
  `insert into login_attempt as a (subject, tries, blocked_until) values ($1, 1, now())
   on conflict (subject) do update set
     tries = case when a.since < now() - interval '1 minute' then 1 else a.tries + 1 end,
     since = case when a.since < now() - interval '1 minute' then now() else a.since end,
     blocked_until = case when a.since >= now() - interval '1 minute' and a.tries + 1 >= $2 then a.since + interval '1 minute' else now() end
   where a.blocked_until <= clock_timestamp()
   returning tries`,
)
const WAIT = statement(
  'attempt_wait',
  'select extract(epoch from blocked_until - clock_timestamp())::float8 as seconds from login_attempt where subject = $1',
)
const FORGET = statement('attempt_forget', 'delete from login_attempt where subject = $1')
const TAKE_BACK = statement(
  'attempt_take_back',
  'update login_attempt set tries = greatest(tries - 1, 0), blocked_until = now() where subject = $1',
)

export function createAttempts(database: Database): Attempts {
  async function count(text: typeof TRY_NAME, subject: string, most: number): Promise<void> {
    const [row] = await database.query(text, [subject, most])
    if (row) return
    const [wait] = await database.query<{ seconds: number }>(WAIT, [subject])
    const seconds = Math.max(1, Math.ceil(wait?.seconds ?? 1))
    throw new Fault('rate_limited', {
      message: `There were too many tries. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
      retryAfterSeconds: seconds,
    })
  }

  return {
    async begin(email, ip) {
      await count(TRY_ADDRESS, addressOf(ip), PER_ADDRESS)
      await count(TRY_NAME, nameOf(email), FREE_TRIES)
    },
    async succeeded(email, ip) {
      await database.query(FORGET, [nameOf(email)])
      await database.query(TAKE_BACK, [addressOf(ip)])
    },
  }
}

/** Whether anyone has the address or not, the row looks the same. */
function nameOf(email: string): string {
  return `name:${createHash('sha256').update(email).digest('base64url')}`
}

/** One subscriber has a whole /64 of IPv6. */
function addressOf(ip: string): string {
  if (!isIPv6(ip) || ip.startsWith('::ffff:')) return `address:${ip.replace('::ffff:', '')}`
  const [head = '', tail = ''] = ip.split('::')
  const groups = head.split(':').filter(Boolean)
  const filled = ip.includes('::') ? 8 - groups.length - tail.split(':').filter(Boolean).length : 0
  const all = [...groups, ...Array<string>(filled).fill('0'), ...tail.split(':').filter(Boolean)]
  return `address:${all.slice(0, 4).join(':')}::/64`
}
