// From the journal into the books, by functions/post.sql. A row of the journal is the right to book it, so that it does not matter who does, and how often it is tried.
import { type Database, isLockWait, isOfAPart, SHORT_MS, statement } from '../database/database.ts'
import type { Log } from '../kernel/log.ts'
import { plain } from './columns.ts'
import { readResolved } from './flush.ts'
import { ACCOUNTS_MAX } from './lanes.ts'
import { Busy, type Resolved } from './operation.ts'

interface Booking {
  /** Books rows of a process. `patient`: waits for accounts that are locked, which only a group of one account may do (lanes.ts). Those that cannot go together go one by one. */
  post(process: string, ids: readonly string[], patient: boolean): Promise<Posted>
  /** Books what is in the journal, whoever wrote it. What stays locked is left to the next sweep: nobody else's holds and leases wait for it. */
  adopt(): Promise<void>
}

interface Posted {
  readonly busy: readonly string[]
  readonly apart: ReadonlyMap<string, Resolved>
}

/** The caller's side of the event loop is not kept longer than this takes. */
export const GROUP_MAX = 256
/** Accounts that are waited for, one after the other. */
export const WAITED_MAX = 8

interface Unbooked {
  readonly process: string
  readonly account: string
  readonly id: string
}

export function createBooking({
  database,
  log,
}: {
  readonly database: Database
  readonly log?: Log | undefined
}): Booking {
  async function post(process: string, ids: readonly string[], patient: boolean): Promise<Posted> {
    const apart = new Map<string, Resolved>()
    try {
      const [row] = await database.query<PostRow>(POST, [process, plain(ids), patient])
      const busy = row?.busy ?? []
      for (const id of row?.apart ?? []) if (!(await postApart(process, id, apart))) busy.push(id)
      return { busy, apart }
    } catch (error) {
      if (!isOfAPart(error)) throw error
      const busy: string[] = []
      for (const id of ids) if (!(await postApart(process, id, apart))) busy.push(id)
      return { busy, apart }
    }
  }

  /** Whether it is out of the journal. */
  async function postApart(process: string, id: string, into: Map<string, Resolved>): Promise<boolean> {
    try {
      const [row] = await database.query<{ resolved: string }>(POST_APART, [process, plain([id])])
      const [resolved] = row ? readResolved(row.resolved) : []
      if (resolved instanceof Busy) return false
      if (resolved && !(resolved instanceof Error)) {
        into.set(id, resolved)
        if (resolved.loss > 0n) log?.warn({ id, loss: resolved.loss }, 'charge above what the account had')
      }
      return true
    } catch (error) {
      if (!isOfAPart(error)) throw error
      // Nothing is lost: it stays in the journal, and `ledger verify` names it.
      log?.error({ error, id }, 'a settlement in the journal cannot be booked')
      return false
    }
  }

  /** Answers those that are left because their accounts are locked. */
  async function adoptGroup(group: readonly Unbooked[], patient: boolean): Promise<readonly Unbooked[]> {
    try {
      const ids = group.map(({ id }) => id)
      const busy = new Set((await post(group[0]?.process ?? '', ids, patient)).busy)
      return group.filter(({ id }) => busy.has(id))
    } catch (error) {
      if (!isLockWait(error)) throw error
      return group
    }
  }

  return {
    post,
    async adopt() {
      const found = Map.groupBy(await database.query<Unbooked>(UNBOOKED), ({ process }) => process)
      const left: Unbooked[] = []
      /** Accounts that were tried by themselves, in vain: neither waited for again, nor tried with each of many groups. */
      const vain = new Set<string>()
      const tryAll = async (groups: readonly Unbooked[][]) => {
        for (const group of groups) {
          const only = onlyAccountOf(group)
          if (only !== undefined && vain.has(only)) continue
          const still = await adoptGroup(group, only !== undefined && vain.size < WAITED_MAX)
          if (only === undefined) left.push(...still)
          else if (still.length > 0) vain.add(only)
        }
      }
      for (const ofProcess of found.values()) await tryAll(groupsOf(ofProcess))
      const alone = Map.groupBy(left, ({ process, account }) => `${process} ${account}`).values()
      await tryAll([...alone].flatMap((group) => groupsOf(group)))
    },
  }
}

/** In the order of their accounts, so that few accounts are locked at once; those of which it is known that they may have to wait, by themselves. */
export function groupsOf<T extends { readonly account: string }>(
  ops: readonly T[],
  apart: ReadonlySet<string> = NOBODY,
): T[][] {
  const groups: T[][] = []
  let accounts = ACCOUNTS_MAX
  let group: T[] = []
  for (const [account, ofAccount] of Map.groupBy(ops, (op) => op.account)) {
    if (apart.has(account)) accounts = ACCOUNTS_MAX
    for (const [at, op] of ofAccount.entries()) {
      if (group.length === GROUP_MAX || (at === 0 && accounts === ACCOUNTS_MAX)) {
        group = []
        groups.push(group)
        accounts = 0
      }
      if (at === 0) accounts += 1
      group.push(op)
    }
    if (apart.has(account)) accounts = ACCOUNTS_MAX
  }
  return groups
}
const NOBODY: ReadonlySet<string> = new Set()

export function onlyAccountOf(ops: ReadonlyArray<{ readonly account: string }>): string | undefined {
  const account = ops[0]?.account
  return ops.every((op) => op.account === account) ? account : undefined
}

interface PostRow {
  /** Null where there are none. */
  readonly busy: string[] | null
  readonly apart: string[] | null
}

const POST = statement('journal_post', 'select busy, apart from ledger_post($1, $2, $3)', SHORT_MS)
const POST_APART = statement('journal_post_apart', 'select resolved from ledger_post_apart($1, $2)', SHORT_MS)
const UNBOOKED = statement(
  'journal_unbooked',
  'select process_id as process, account_id as account, id from journal order by process_id, id limit 10000',
)
