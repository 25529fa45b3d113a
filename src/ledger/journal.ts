// The journal. A settlement that a lease covers is one row here before its caller has the last byte. A moment later it
// is posted together with all others of its account, so a call costs one small commit, and posting a tenth of what it
// costs one by one.
import { isOfAPart, SHORT_MS, sql } from '../database/database.ts'
import { createBatch } from '../kernel/batch.ts'
import type { Log } from '../kernel/log.ts'
import { sleep } from '../kernel/timers.ts'
import { AccountLocked, type Cover, type Op, type OpOf, type Posted, type Resolution } from './operation.ts'
import { JOURNAL_COLUMNS, journalRow, journalValues, toJson } from './statements.ts'
import type { Around } from './write-watch.ts'

/** A settlement that a lease covers. */
type Journaled = OpOf<'resolve'> & { readonly cover: Cover }

interface JournalOptions extends Omit<Around, 'processId'> {
  readonly log?: Log | undefined
  readonly observe?: ((size: number) => void) | undefined
  readonly run: (op: Op) => Promise<Posted>
  /** It is posted. */
  readonly posted: (written: Written) => void
}

/** What memory holds of a written settlement until it is posted. */
interface Written {
  readonly id: string
  readonly cover: Cover
}

/** The settlements of an account that wait to be posted. */
interface Waiting {
  readonly account: string
  written: Written[]
  dueMs: number
  posting: Promise<void> | undefined
}

/** Long enough to group calls even at a low rate, and short enough for readers of the ledger. */
const POST_AFTER_MS = 250
/**
 * Added for every other waiting account, so that posting for a thousand accounts does not use all of the database's
 * time.
 */
const POST_EACH_MS = 1
const RETRY_AFTER_MS = 500
const ENDED = 'its lease has ended'
/** Posting statements at once. The other connections are for calls. */
const POSTS_MAX = 2
const WRITES_MAX = 2
const GROUP_MAX = 256
/** Beyond this, posting does not keep up: settlements go into the ledger directly. */
const UNPOSTED_MAX = 20_000

export function createJournal({ database, watch, world, run, posted, log, observe }: JournalOptions) {
  /** By account, in the order in which they are due. */
  const waiting = new Map<string, Waiting>()
  let unposted = 0
  let posts = 0
  let isTicking = false

  const writes = createBatch<Journaled, true>({
    flush: writeAll,
    flushesMax: WRITES_MAX,
    sizeMax: GROUP_MAX,
    ...(observe ? { observe } : {}),
  })

  /** A settlement whose lease has expired is not written here, because nothing covers its charge any more. */
  async function writeAll(ops: readonly Journaled[]): Promise<Array<true | Error>> {
    const [only] = ops
    if (only && ops.length === 1) {
      const values = journalValues(journalRow(only.value, only.cover))
      const [done] = await watch(database.query<{ id: string }>(WRITE_ONE, values))
      return [done ? true : new Error(ENDED)]
    }
    const rows = ops.map(({ value, cover }) => journalRow(value, cover))
    const accounts = [...new Set(ops.map(({ value }) => value.account))]
    const leases = [...new Set(ops.map(({ cover }) => cover.lease))]
    const done = await watch(database.query<{ id: string }>(WRITE, [toJson(rows), accounts, leases]))
    if (done.length === ops.length) return ops.map(() => true)
    const written = new Set(done.map(({ id }) => id))
    return ops.map((op) => written.has(op.value.id) || new Error(ENDED))
  }

  /** Those that are due are posted, the first ones first. */
  function tick(): void {
    const nowMs = world.elapsedMs()
    let nextMs = Number.POSITIVE_INFINITY
    for (const one of waiting.values()) {
      if (one.posting) continue
      if (one.dueMs > nowMs || posts >= POSTS_MAX) {
        nextMs = Math.max(one.dueMs - nowMs, 5)
        break
      }
      posts += 1
      void start(one).finally(() => {
        posts -= 1
      })
    }
    isTicking = nextMs < Number.POSITIVE_INFINITY
    if (isTicking) world.after(nextMs, tick)
  }

  function later(one: Waiting, delayMs: number): void {
    one.dueMs = world.elapsedMs() + delayMs + waiting.size * POST_EACH_MS
    waiting.delete(one.account)
    waiting.set(one.account, one)
    if (isTicking) return
    isTicking = true
    world.after(delayMs, tick)
  }

  function start(one: Waiting): Promise<void> {
    one.posting ??= postWritten(one).finally(() => {
      one.posting = undefined
      if (one.written.length > 0) later(one, RETRY_AFTER_MS)
      else waiting.delete(one.account)
    })
    return one.posting
  }

  async function postWritten(one: Waiting): Promise<void> {
    const { account } = one
    const written = one.written
    one.written = []
    try {
      for (let at = 0; at < written.length; at += GROUP_MAX)
        await postAccount(
          account,
          written.slice(at, at + GROUP_MAX).map(({ id }) => id),
        )
    } catch (error) {
      one.written = written.concat(one.written)
      if (!(error instanceof AccountLocked)) log?.warn({ error, waiting: unposted }, 'settlements wait in the journal')
      return
    }
    unposted -= written.length
    for (const each of written) posted(each)
  }

  /** These, which are found by their ids however much was there before them; or whatever stands in its journal. */
  async function postAccount(account: string, ids?: readonly string[]): Promise<void> {
    try {
      while ((await run({ kind: 'post', value: { account, ...(ids && { ids }) } })).left);
    } catch (error) {
      if (!isOfAPart(error)) throw error
      await postOneByOne(account)
    }
  }

  /**
   * One that can never be posted stays in the journal, and `ledger verify` names it: nothing is lost, and the others
   * are posted.
   */
  async function postOneByOne(account: string): Promise<void> {
    for (const { id } of await database.query<{ id: string }>(OF_ACCOUNT, [account]))
      try {
        await database.query(POST_ONE, [account, [id]])
      } catch (error) {
        if (!isOfAPart(error)) throw error
        log?.error({ error, id }, 'a settlement in the journal cannot be posted')
      }
  }

  async function post(account?: string): Promise<void> {
    if (account === undefined) {
      await Promise.all(Array.from(waiting.values(), postOf))
      return
    }
    const one = waiting.get(account)
    if (one) await postOf(one)
    const [others] = await database.query(HAS_ROWS, [account])
    if (others) await postAccount(account)
  }

  async function postOf(one: Waiting): Promise<void> {
    // A statement in flight may have started before the last row was written.
    if (one.posting) await one.posting
    if (one.written.length > 0) await start(one)
  }

  return {
    /** Whether a settlement can be written here: it is covered whole, by a lease that stays. */
    takes: ({ charge }: Resolution, cover: Cover): boolean =>
      cover.staysLeased && charge <= cover.amount && unposted < UNPOSTED_MAX,
    /** Durable when this resolves; it fails when that is not certain. */
    async write(op: Journaled): Promise<void> {
      await writes.run(op)
      const { account, id } = op.value
      let one = waiting.get(account)
      if (!one) {
        one = { account, written: [], dueMs: 0, posting: undefined }
        waiting.set(account, one)
        later(one, POST_AFTER_MS)
      }
      one.written.push({ id, cover: op.cover })
      unposted += 1
    },
    /**
     * Resolves when the journal rows of an account, from any process, are posted or cannot be posted now; without an
     * account, when all rows that this process wrote are posted.
     */
    post,
    /**
     * Posts rows of other processes that are older than this many seconds, and rows that this process has lost track
     * of.
     */
    async recover(afterSeconds: number): Promise<void> {
      for (const { account } of await database.query<{ account: string }>(UNBOOKED, [afterSeconds]))
        if (!waiting.has(account))
          await postAccount(account).catch((error: unknown) => {
            // The transaction that has the account locked posts it, or the next sweep does.
            if (!(error instanceof AccountLocked)) throw error
          })
    },
    /** Resolves when nothing is being written and everything is posted. */
    async idle() {
      await writes.idle()
      for (;;) {
        await post()
        if (waiting.size === 0) return
        await sleep(world, RETRY_AFTER_MS)
      }
    },
    /** Those that wait to be written. */
    unwritten: writes.waiting,
  }
}

const NAMES = JOURNAL_COLUMNS.join(', ')
/**
 * The lease ids are parameters, so that no other leases are read, whatever size the planner assumes for the table
 * (functions/settings.sql).
 */
const WRITE = sql('journal_write', SHORT_MS)`
  insert into journal (${NAMES}) select ${NAMES} from json_populate_recordset(null::journal, $1::json) x
   where exists (select 1 from lease e where e.account_id = x.account_id and e.id = x.lease_id and e.account_id = any($2::text[]) and e.id = any($3::text[]))
   returning id`
/** Reading a row out of JSON costs more than all the rest of writing one. */
const WRITE_ONE = sql('journal_write_one', SHORT_MS)`
  insert into journal (${NAMES}) select ${JOURNAL_COLUMNS.map((_, at) => `$${at + 1}`).join(', ')}
   where exists (select 1 from lease e where e.account_id = $${JOURNAL_COLUMNS.indexOf('account_id') + 1} and e.id = $${JOURNAL_COLUMNS.indexOf('lease_id') + 1}) returning id`
const OF_ACCOUNT = sql('journal_of_account')`select id from journal where account_id = $1 order by id limit 1000`
const HAS_ROWS = sql('journal_has_rows')`select 1 from journal where account_id = $1 limit 1`
const POST_ONE = sql('journal_post_one', SHORT_MS)`select ledger_post($1, $2, false)`
const UNBOOKED = sql('journal_unposted')`
  select distinct account_id as account from journal where at <= now() - make_interval(secs => $1) limit 1000`
