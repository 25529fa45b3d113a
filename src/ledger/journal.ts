// The journal. A settlement that a lease covers is one row here before its caller has the last byte, and in the books a moment
// later, together with all others of that moment. So a call costs one small commit, and the books a tenth of what they cost one by one.
import { type Database, isLockWait, SHORT_MS, statement } from '../database/database.ts'
import type { Log } from '../kernel/log.ts'
import { sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { createBatch } from './batch.ts'
import { createBooking, GROUP_MAX, groupsOf, onlyAccountOf, WAITED_MAX } from './booking.ts'
import { columnOfRows, JOURNAL, type Journaled } from './columns.ts'
import type { Cover, Resolution, Resolved } from './operation.ts'

interface Journal {
  /** Durable when this resolves; it fails when that is not certain. */
  write(op: Journaled): Promise<void>
  /** Resolves when what was written here before is in the books, or cannot be now. */
  post(): Promise<void>
  /** Books what others wrote and did not book, and what this process knows nothing of. */
  adopt(): Promise<void>
  /** Resolves when nothing is being written, and all is in the books. */
  idle(): Promise<void>
  /** Those that wait to be written. */
  readonly pending: number
  readonly unposted: number
}

interface JournalOptions {
  readonly database: Database
  readonly world: World
  readonly processId: string
  readonly log?: Log | undefined
  readonly observe?: ((size: number) => void) | undefined
  /** It is in the books. */
  readonly posted: (written: Written, outcome: Resolved['outcome']) => void
}

/** What is still to be known of a settlement that was written: little, since it grows old in memory. */
interface Written {
  readonly id: string
  readonly account: string
  readonly cover: Cover
}

/** Long enough for a group of calls even where few call; short for whoever looks at the books. */
const POST_AFTER_MS = 250
const RETRY_AFTER_MS = 500
const WRITES_MAX = 2
/** Beyond this the books do not keep up: settlements go into them directly. */
const UNPOSTED_MAX = 20_000

/** Whether a settlement can be written here: it is covered whole, by a lease that stays. */
export function isCovered({ charge }: Resolution, cover: Cover, unposted: number): boolean {
  return cover.keep && charge <= cover.amount && unposted < UNPOSTED_MAX
}

export function createJournal(options: JournalOptions): Journal {
  const { database, world, processId } = options
  const booking = createBooking(options)
  /** Written, and to be booked. */
  let waiting: Written[] = []
  /** Their accounts are locked, or the database was away. */
  let later: Written[] = []
  /** Accounts that were waited for in vain, until something of them is booked. */
  const slow = new Set<string>()
  let posting: Promise<void> | undefined
  let cancel: (() => void) | undefined

  const writes = createBatch<Journaled, true>({
    flush: writeAll,
    flushesMax: WRITES_MAX,
    sizeMax: GROUP_MAX,
    ...(options.observe ? { observe: options.observe } : {}),
  })

  /** Written late, after a lease has expired, it would tell a price that nothing covers: such a one is not written. */
  async function writeAll(ops: readonly Journaled[]): Promise<Array<true | Error>> {
    const [only] = ops
    const rows = await (only && ops.length === 1
      ? database.query<{ id: string }>(
          WRITE_ONE,
          COLUMNS.map(({ read }) => read(only, processId)),
        )
      : database.query<{ id: string }>(
          WRITE,
          COLUMNS.map((column) => columnOfRows(column, ops, processId)),
        ))
    if (rows.length === ops.length) return ops.map(() => true)
    const written = new Set(rows.map(({ id }) => id))
    return ops.map((op) => written.has(op.value.id) || new Error('its lease is no more'))
  }

  function isIdle(): boolean {
    return posting === undefined && waiting.length === 0 && later.length === 0
  }

  function soon(): void {
    if (cancel || posting) return
    cancel = world.after(waiting.length > 0 ? POST_AFTER_MS : RETRY_AFTER_MS, () => {
      cancel = undefined
      start()
    })
  }

  function start(): Promise<void> {
    posting ??= run().finally(() => {
      posting = undefined
      if (!isIdle()) soon()
    })
    return posting
  }

  /** What somebody has locked is waited for in a second round, each account by itself: who has locked others keeps nobody waiting for them. */
  async function run(): Promise<void> {
    cancel?.()
    cancel = undefined
    const all = later.concat(waiting)
    waiting = []
    later = []
    const locked = Map.groupBy(await postAll(groupsOf(all, slow)), (op) => op.account)
    // Who kept us waiting before may do so again.
    const waited = new Set([...locked.keys()].filter((account) => !slow.has(account)).slice(0, WAITED_MAX))
    const again: Written[][] = []
    for (const [account, ops] of locked)
      if (waited.has(account)) again.push(...groupsOf(ops))
      else later.push(...ops)
    const still = await postAll(again)
    for (const op of still) slow.add(op.account)
    later.push(...still)
  }

  /** Answers those that are left because their accounts are locked; while the database is away, all wait until later. */
  async function postAll(groups: readonly Written[][]): Promise<Written[]> {
    const left: Written[] = []
    const vain = new Set<string>()
    for (const [at, group] of groups.entries()) {
      const only = onlyAccountOf(group)
      if (only !== undefined && vain.has(only)) {
        left.push(...group)
        continue
      }
      try {
        left.push(...(await postGroup(group, only !== undefined && !slow.has(only))))
      } catch (error) {
        if (isLockWait(error)) {
          left.push(...group)
          if (only === undefined) continue
          vain.add(only)
          slow.add(only)
        } else {
          later.push(...groups.slice(at).flat())
          options.log?.warn({ error, waiting: later.length }, 'settlements wait in the journal')
          return left
        }
      }
    }
    return left
  }

  async function postGroup(group: readonly Written[], patient: boolean): Promise<Written[]> {
    const ids = group.map((op) => op.id)
    const row = await booking.post(processId, ids, patient)
    const busy = new Set(row.busy)
    for (const op of group) if (!busy.has(op.id)) settle(op, row.apart.get(op.id))
    return group.filter((op) => busy.has(op.id))
  }

  function settle(op: Written, resolved?: Resolved): void {
    if (slow.size > 0) slow.delete(op.account)
    options.posted(op, resolved?.outcome ?? 'settled')
  }

  async function post(): Promise<void> {
    if (posting) await posting
    if (!isIdle()) await start()
  }

  return {
    async write(op) {
      await writes.run(op)
      waiting.push({ id: op.value.id, account: op.value.account, cover: op.cover })
      soon()
    },
    post,
    async idle() {
      await writes.idle()
      for (;;) {
        await post()
        if (isIdle()) return
        await sleep(world, RETRY_AFTER_MS)
      }
    },
    adopt: booking.adopt,
    get pending() {
      return writes.pending
    },
    get unposted() {
      return waiting.length + later.length
    },
  }
}

const COLUMNS = Object.values(JOURNAL)
const NAMES = Object.keys(JOURNAL).join(', ')
const [ACCOUNT, LEASE] = ['account_id', 'lease_id'].map((name) => `$${Object.keys(JOURNAL).indexOf(name) + 1}`)
/** With the parameters as well: whatever the planner believes of the table's size, no other leases are read (functions/flush.sql). */
const HAS_LEASE = 'select 1 from lease e where e.account_id = x.account_id and e.id = x.lease_id'
const WRITE_ONE = statement(
  'journal_write_one',
  `insert into journal (${NAMES}) select * from (values (${COLUMNS.map(({ type }, at) => `$${at + 1}::${type}`).join(', ')})) x(${NAMES})
   where exists (${HAS_LEASE} and e.account_id = ${ACCOUNT} and e.id = ${LEASE}) returning id`,
  SHORT_MS,
)
const WRITE = statement(
  'journal_write',
  `insert into journal (${NAMES}) select * from unnest(${COLUMNS.map(({ type }, at) => `$${at + 1}::${type}[]`).join(', ')}) x(${NAMES})
   where exists (${HAS_LEASE} and e.account_id = any(${ACCOUNT}) and e.id = any(${LEASE})) returning id`,
  SHORT_MS,
)
