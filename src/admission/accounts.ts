// Accounts as an operator sees them: made, named, given credits, limited, suspended, closed and reopened. Every change
// is one transaction with its audit row.

import type { Audit, By } from '../database/audit.ts'
import type { AuditedRow } from '../database/audited-rows.ts'
import type { Changes } from '../database/changes.ts'
import { beforeCommit, type Database, type Queryable, sql } from '../database/database.ts'
import { CREDITS_MAX, type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { isTestAccount, ownAccountOf, testAccountOf } from '../kernel/test-account.ts'
import { sleep } from '../kernel/timers.ts'
import { idFrom, newId, type World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { type Limits, type LimitsPatch, mergeLimits, readLimits, showLimits, storeLimits } from '../ledger/limits.ts'
import type { Lot } from '../ledger/lots.ts'
import type { AccountStatus, AccountView } from '../ledger/views.ts'
import { createStatements } from '../reports/statement.ts'
import { hashRequest } from './idempotency.ts'

interface CreditInput {
  readonly amount: Credits
  readonly note: string
  readonly key?: string | undefined
  /** It is no top-up, but corrects something in the customer's favour. */
  readonly isCorrection?: boolean | undefined
  /** The credits end, are for some products only, or are spent before or after others. */
  readonly lot?: Omit<Lot, 'source'> | undefined
}

export interface AccountInput {
  /** Of one that was decided elsewhere; without an effect where it is there. Absent: a new one. */
  readonly id?: string
  readonly name: string
  readonly credits?: Credits | undefined
  /** What the credits are for; it stays in the ledger. */
  readonly note?: string | undefined
  readonly limits?: LimitsPatch | null | undefined
  /** Only ledgers of this region may have it. */
  readonly region?: string | undefined
}

/** The starting balance of a test account, and the default of a refill. */
export const TEST_CREDITS: Credits = 1_000_000_000n

/** Test calls cost nothing, so these limits bound them if the account has no such limits of its own. */
const TEST_LIMITS: Limits = { requestsPerMinute: 600, concurrency: 20 }

const INSERT = sql('account_insert')`insert into account (id, name, status, status_reason, status_at, region)
   values ($1, $2, $3, $4, case when $3 <> 'open' then now() end, $5)
   on conflict (id) do nothing returning id`
const EXISTS = sql('account_exists')`select 1 from account where id = $1`
const FIND = sql('account_lock')`
  select name, posted, held, status, status_reason, frozen_until > now() as frozen from account where id = $1 for update`
const CHANGE = sql('account_change')`update account set name = $2 where id = $1 returning id`

const SET_STATUS = sql('account_status')`
  update account set status = $2, status_reason = $3, status_at = case when $2 <> 'open' then now() end where id = any($1)`
// The earlier of the two clocks, as for one key.
const END_KEYS = sql('account_end_keys')`
  update api_key set revoked_at = least(revoked_at, now(), to_timestamp($2::double precision / 1000))
   where account_id = any($1) and (revoked_at is null or revoked_at > now()) returning id`
const RUNNING = sql('account_running')`
  select (select count(*)::int from hold where account_id = $1) + (select count(*)::int from lease where account_id = $1)
     + (select count(*)::int from journal where account_id = $1) as count`
/** How often closing checks whether running calls have ended. */
const CLOSING_LOOKS = 4
const CLOSING_WAIT_MS = 500

const LEASED = sql('account_leased')`select 1 from lease where account_id = $1 and amount > 0 limit 1`
/** How often taking back credits waits for leases to return them. */
const LOOKS = 3

const FIND_KEY = sql('grant_key_find')`
  select request_hash, answer from credit_idempotency where account_id = $1 and key = $2`
const KEEP_KEY = sql('grant_key_keep')`
  insert into credit_idempotency (account_id, key, request_hash, answer) values ($1, $2, $3, $4)`

interface NewAccount {
  readonly id: string
  readonly name: string
  readonly credits: Credits
  readonly note?: string | undefined
  readonly limits: Limits
  readonly region?: string | undefined
  readonly key?: string
  /** Of a test account: as its owner's. */
  readonly status?: Pick<FoundRow, 'status' | 'status_reason'>
}

interface FoundRow {
  name: string
  frozen: boolean | null
  status: AccountStatus
  status_reason: string | null
  posted: bigint
  held: bigint
}

export type Accounts = ReturnType<typeof createAccounts>

export function createAccounts(options: {
  database: Database
  world: World
  ledger: Ledger
  audit: Audit
  changes: Pick<Changes, 'bump' | 'notice'>
}) {
  const { database, world, ledger, audit, changes } = options

  async function find(tx: Queryable, id: string): Promise<FoundRow> {
    const [row] = await tx.query<FoundRow>(FIND, [id])
    if (!row) throw accountUnknown()
    if (row.frozen) throw accountMoving()
    return row
  }

  /** False where there is one with this id already. */
  async function insert(
    tx: Queryable,
    { id, name, credits, note = 'first credits', limits, region, key, status }: NewAccount,
    by: By,
  ): Promise<boolean> {
    // A second request with the same id waits here until the first has committed.
    const values = [id, name, status?.status ?? 'open', status?.status_reason ?? null, region ?? null]
    const [made] = await tx.query(INSERT, values)
    if (!made) return false
    const granted =
      credits > 0n ? await ledger.grant({ account: id, amount: credits, note, actor: by.actor }, tx) : undefined
    if (Object.keys(limits).length > 0) await storeLimits(tx, { kind: 'account', account: id }, limits)
    const detail = {
      name,
      credits: formatCredits(credits),
      limits: showLimits(limits),
      ...(granted ? { transfer: granted.id } : {}),
      ...(key === undefined ? {} : { key }),
    }
    const after = { name, credits: formatCredits(credits), limits: showLimits(limits) }
    const rows = [['account', id]] as const
    await audit.write(tx, by, { action: 'account.create', object: id, detail, before: {}, after, rows })
    return true
  }

  async function createIn(tx: Queryable, { credits = 0n, limits: given, ...input }: AccountInput, by: By) {
    const { id = `acc_${newId(world)}` } = input
    await insert(tx, { ...input, id, credits, limits: mergeLimits({}, given) }, by)
    return id
  }

  /** Without an effect where there is no such account. */
  async function set(tx: Queryable, id: string, { name, limits }: { name: string; limits: Limits }): Promise<void> {
    const [changed] = await tx.query(CHANGE, [id, name])
    if (changed) await storeLimits(tx, { kind: 'account', account: id }, limits)
  }

  /** The limits of an account also apply to its test account, which counts separately. */
  async function setBoth(tx: Queryable, id: string, { name, limits }: { name: string; limits: Limits }): Promise<void> {
    await set(tx, id, { name, limits })
    if (!isTestAccount(id))
      await set(tx, testAccountOf(id), { name: testName(name), limits: { ...TEST_LIMITS, ...limits } })
  }

  async function grant(
    tx: Queryable,
    row: { id: string; posted: bigint },
    { amount, note, key, isCorrection, lot }: CreditInput,
    by: By,
  ): Promise<AccountView> {
    // Taking credits back is always a correction.
    const kind = isCorrection && amount > 0n ? 'correction' : undefined
    const after = await ledger.grant(
      { account: row.id, amount, note, actor: by.actor, kind, lot: lot && { ...lot, source: 'given' } },
      tx,
    )
    const moved = after?.moved ?? 0n
    // A request for more than is available is rejected with the available amount.
    if (moved !== amount) throw lessAvailable(-moved, -amount)
    await audit.write(tx, by, {
      action: 'account.credit',
      object: row.id,
      // The audit row names the transfer, so that verification can match grants with audit rows.
      detail: {
        amount: formatCredits(moved),
        note,
        transfer: after?.id,
        ...(lot ? { lot: { ...lot, endsAt: lot.endsAt?.toISOString() } } : {}),
        ...(key === undefined ? {} : { key }),
      },
      before: { balance: formatCredits(row.posted) },
      after: { balance: formatCredits(after?.posted ?? row.posted) },
    })
    return readAccountView(tx, row.id)
  }

  /** Undefined if some of the credits are leased and this is not the `last` try. */
  async function credit(
    tx: Queryable,
    id: string,
    { amount, note, key, isCorrection, lot, isLast }: CreditInput & { isLast: boolean },
    by: By,
  ): Promise<{ account: AccountView; again: boolean } | undefined> {
    const said = [formatCredits(amount), note, ...(isCorrection ? ['correction'] : []), ...(lot ? [lot] : [])]
    const hash = hashRequest('credit', JSON.stringify(said))
    // The account's lock makes two requests with one key follow each other.
    const row = await find(tx, id)
    const earlier = key === undefined ? undefined : await again(tx, { id, key, hash })
    if (earlier) return { account: earlier, again: true }
    if (row.status === 'closed') throw accountClosed()
    if (row.posted + amount > CREDITS_MAX)
      throw new Fault('request_invalid', {
        message: `amount: the balance may not exceed ${formatCredits(CREDITS_MAX)} credits.`,
        param: 'amount',
      })
    const available = row.posted - row.held
    const isLeased = amount < 0n && available + amount < 0n && (await tx.query(LEASED, [id])).length > 0
    if (isLeased && !isLast) return undefined
    if (isLeased && available === 0n) throw inUse()
    const account = await grant(tx, { ...row, id }, { amount, note, key, isCorrection, lot }, by)
    if (key !== undefined) await tx.query(KEEP_KEY, [id, key, hash, JSON.stringify(account)])
    return { account, again: false }
  }

  async function openTest(tx: Queryable, owner: string, by: By): Promise<string> {
    const id = testAccountOf(owner)
    const own = ownAccountOf(owner)
    const { name, ...status } = await find(tx, own)
    if (status.status === 'closed') throw accountClosed()
    const [there] = await tx.query(EXISTS, [id])
    if (there) return id
    const limits = { ...TEST_LIMITS, ...(await readLimits(tx, own)) }
    await insert(tx, { id, name: testName(name), credits: TEST_CREDITS, limits, status }, by)
    return id
  }

  /** Includes its test account. Every process drops its cached keys of the account and returns its leases. */
  async function changeStatus(id: string, change: (tx: Queryable, row: FoundRow) => Promise<NewStatus | undefined>) {
    await database.transaction(async (tx) => {
      await changes.bump(tx, 'keys')
      const was = await find(tx, id)
      const next = await change(tx, was)
      if (!next) return
      await tx.query(SET_STATUS, [[id, testAccountOf(id)], next.status, next.reason])
      const { by, action, detail, balance = formatCredits(was.posted) } = next
      await audit.write(tx, by, {
        action,
        object: id,
        detail,
        before: { status: was.status, statusReason: was.status_reason, balance: formatCredits(was.posted) },
        after: { status: next.status, statusReason: next.reason, balance },
      })
    })
    await changes.notice('keys')
  }

  const suspend = (id: string, reason: string, by: By) =>
    changeStatus(id, async (_, { status }) => {
      if (status === 'closed') throw accountClosed()
      return { status: 'suspended', reason, action: 'account.suspend', detail: { reason }, by }
    })

  /** With the account locked, and nothing held. */
  async function end(
    tx: Queryable,
    { id, posted }: { id: string; posted: bigint },
    { reason, balance }: { reason: string; balance: 'payout' | 'writeoff' },
    by: By,
  ): Promise<NewStatus> {
    const moving = { account: id, amount: -posted, note: reason, actor: by.actor, kind: balance }
    const moved = posted > 0n ? await ledger.grant(moving, tx) : undefined
    const keys = await tx.query(END_KEYS, [[id, testAccountOf(id)], world.nowMs()])
    const booked = moved
      ? { amount: formatCredits(moved.moved), note: reason, transfer: moved.id, balance }
      : { reason }
    const detail = { ...booked, keysEnded: keys.length }
    return { status: 'closed', reason, action: 'account.close', detail, balance: formatCredits(0n), by }
  }

  return {
    /**
     * Its calls get 403 with the reason, in every process within two seconds. Running calls end and are charged; the
     * credits stay.
     */
    suspend,

    /**
     * Ends its keys, and pays out or writes off its balance. It is suspended first, so that running calls can end.
     * While a call still holds credits, nothing is moved and the account stays suspended.
     */
    async close(id: string, input: { reason: string; balance: 'payout' | 'writeoff' }, by: By) {
      const account = await readAccountView(database, id)
      if (account.status === 'closed') throw accountClosed()
      if (account.status === 'open') await suspend(id, input.reason, by)
      for (let looks = 1; ; looks++) {
        await ledger.returned(id)
        let running: { count: number; held: bigint } | undefined
        await changeStatus(id, async (tx, row) => {
          if (row.status !== 'suspended') throw overtaken(row.status)
          const [{ count } = { count: 0 }] = await tx.query<{ count: number }>(RUNNING, [id])
          if (count > 0) running = { count, held: row.held }
          return count > 0 ? undefined : end(tx, { id, posted: row.posted }, input, by)
        })
        if (!running) return
        if (looks === CLOSING_LOOKS) throw stillRunning(running)
        await sleep(world, looks * CLOSING_WAIT_MS)
      }
    },

    /** Of one that was suspended or closed. Keys that ended with it stay ended. */
    reopen: (id: string, by: By) =>
      changeStatus(id, async (_, { status: was }) => {
        if (was === 'open') return undefined
        return { status: 'open', reason: null, action: 'account.reopen', detail: { was }, by }
      }),

    /** Answers the new account's id. */
    create: (input: AccountInput, by: By) => database.transaction((tx) => createIn(tx, input, by)),
    /** The same as part of another transaction. Its last statement writes to the audit log, whose lock comes last. */
    createIn,
    /** To be called after that commit: a ledger makes its account then. */
    created: async (_id: string): Promise<void> => undefined,
    read: (id: string): Promise<AccountView> => readAccountView(database, id),

    /** The same with an Idempotency-Key, from which the id follows: with an earlier one, that account as it is. */
    async createOnce(key: string, { name, credits = 0n, note, limits: given, region }: AccountInput, by: By) {
      const id = accountIdFrom(key)
      const limits = mergeLimits({}, given)
      const hash = hashRequest('account', JSON.stringify([name, formatCredits(credits), note, showLimits(limits)]))
      return database.transaction(async (tx) => {
        const isNew = await insert(tx, { id, name, credits, note, limits, region, key }, by)
        if (isNew) await tx.query(KEEP_KEY, [id, key, hash, JSON.stringify(await readAccountView(tx, id))])
        else await again(tx, { id, key, hash })
        return { id, again: !isNew }
      })
    },

    /**
     * As a part of a transaction: limits of an account, and so of its test account, that its plan brings or takes away.
     */
    async setLimits(tx: Queryable, id: string, patch: LimitsPatch) {
      const { name } = await find(tx, id)
      await setBoth(tx, id, { name, limits: mergeLimits(await readLimits(tx, id), patch) })
    },

    async change(id: string, input: Pick<AccountInput, 'limits'> & { readonly name?: string | undefined }, by: By) {
      await database.transaction(async (tx) => {
        const row = await find(tx, id)
        const name = input.name ?? row.name
        const was = await readLimits(tx, id)
        const limits = mergeLimits(was, input.limits)
        await setBoth(tx, id, { name, limits })
        const detail = {
          ...(input.name === undefined ? {} : { name }),
          ...(input.limits === undefined ? {} : { limits: showLimits(limits) }),
        }
        await audit.write(tx, by, {
          action: 'account.change',
          object: id,
          detail,
          before: { name: row.name, limits: showLimits(was) },
          after: { name, limits: showLimits(limits) },
          rows: limitedRows(id),
        })
      })
      // They apply in all processes before the answer is sent.
      if (input.limits !== undefined) await Promise.all([id, testAccountOf(id)].map((one) => ledger.recalled(one)))
    },

    /**
     * A negative amount takes credits back; more than what is available is refused. With the key of an earlier credit:
     * its answer again.
     */
    async credit(id: string, input: CreditInput, by: By) {
      if (input.lot && input.amount < 0n)
        throw invalid('amount: only credits that are added have an end, products or a priority.', 'amount')
      if (input.lot?.endsAt && input.lot.endsAt.getTime() <= world.nowMs())
        throw invalid('endsAt: must lie in the future.', 'endsAt')
      if (input.amount >= 0n) await ledger.posted(id)
      // Leases of the account are returned before the transaction starts, because returning them needs the account's
      // lock. Other processes may lease again in between.
      for (let looks = 1; ; looks++) {
        if (input.amount < 0n) await ledger.returned(id)
        const isLast = looks === LOOKS
        const done = await database.transaction((tx) => credit(tx, id, { ...input, isLast }, by))
        if (done) return done
      }
    },

    /**
     * The account's test account, which is made if there is none: with its limits, and credits that nobody paid for.
     */
    openTest,

    /** Sets what a test account has available. */
    async refillTest(owner: string, available: Credits, by: By) {
      await ledger.returned(testAccountOf(owner))
      const account = await database.transaction(async (tx) => {
        const id = await openTest(tx, owner, by)
        const row = await find(tx, id)
        if (row.status === 'closed') throw accountClosed()
        const amount = available - (row.posted - row.held)
        if (amount === 0n) return readAccountView(tx, id)
        return grant(tx, { ...row, id }, { amount, note: 'test credits' }, by)
      })
      ledger.recall(account.id)
      return account
    },

    async systemLimits() {
      return showLimits(await readLimits(database))
    },

    async changeSystemLimits(patch: LimitsPatch, by: By) {
      const ended = await database.transaction(async (tx) => {
        const was = await readLimits(tx)
        const limits = mergeLimits(was, patch)
        await audit.write(tx, by, {
          action: 'system.limits',
          object: 'system',
          detail: { limits: showLimits(limits) },
          before: { limits: showLimits(was) },
          after: { limits: showLimits(limits) },
        })
        // Written after the audit row: the audit lock may take a while, and all calls wait for this row.
        beforeCommit(tx, () => storeLimits(tx, { kind: 'system' }, limits))
        return showLimits(limits)
      })
      // Its next call asks the database, and learns of them. Other processes look for them twice a second.
      ledger.recall()
      return ended
    },
  }
}

/** The account that is made with an Idempotency-Key. */
export const accountIdFrom = (key: string) => `acc_${idFrom(key)}`

/** The answer that was given with this key before, if it was to the same request. */
async function again(
  tx: Queryable,
  { id, key, hash }: { id: string; key: string; hash: string },
): Promise<AccountView | undefined> {
  const [earlier] = await tx.query<{ request_hash: string; answer: AccountView }>(FIND_KEY, [id, key])
  if (earlier && earlier.request_hash !== hash)
    throw new Fault('conflict', { message: 'This Idempotency-Key was used with a different request.' })
  return earlier?.answer
}

const testName = (name: string) => `${name} (test)`

/** An account that was found before. */
async function readAccountView(tx: Queryable, id: string): Promise<AccountView> {
  const account = await createStatements(tx).account(id)
  if (!account) throw accountUnknown()
  return account
}

interface NewStatus {
  readonly status: AccountStatus
  readonly reason: string | null
  readonly action: 'account.suspend' | 'account.close' | 'account.reopen'
  readonly detail: Readonly<Record<string, unknown>>
  /** Where the change moves it. */
  readonly balance?: string
  readonly by: By
}

export const accountClosed = () => new Fault('conflict', { message: 'This account is closed. Reopen it first.' })

const overtaken = (status: string) =>
  new Fault('conflict', {
    message: `Somebody else has changed this account meanwhile: it is ${status} now. Nothing was paid out or written off.`,
  })

function stillRunning({ count, held }: { count: number; held: bigint }): Fault {
  const calls = count === 1 ? 'A call still runs and holds' : `${count} calls still run and hold`
  return new Fault('conflict', {
    message: `${calls} ${formatCredits(held)} credits. The account is suspended and accepts no new calls; close it again when they have ended. Nothing was paid out or written off.`,
    retryAfterSeconds: 10,
  })
}

const inUse = () =>
  new Fault('conflict', {
    message: 'All credits of the account are held by running calls. Try again when they have ended.',
  })

/** The limits of an account are also those of its test account. */
export function limitedRows(id: string): AuditedRow[] {
  return [id, testAccountOf(id)].map((one) => ['account', one])
}

export function accountUnknown(): Fault {
  return new Fault('not_found', { message: 'There is no account with this id.' })
}

/** A change made here now would be missing in the target database. */
export function accountMoving(): Fault {
  return new Fault('conflict', {
    message: 'This account is being moved to another database, or has been. Change it there, or try again later.',
  })
}

function lessAvailable(available: Credits, asked: Credits): Fault {
  const there = available > 0n ? `Only ${formatCredits(available)} credits are` : 'The account has nothing'
  return new Fault('conflict', {
    message: `${there} available, so ${formatCredits(asked)} cannot be taken back. Nothing was taken.`,
  })
}

/** A closed account has keys that ended with it, and gets no new ones. */
export async function lockAccount(tx: Queryable, id: string, what?: 'new key'): Promise<void> {
  const [found] = await tx.query<{ frozen: boolean | null; status: string }>(LOCK_OPEN, [id])
  if (!found) throw accountUnknown()
  if (found.frozen) throw accountMoving()
  if (what && found.status === 'closed') throw accountClosed()
}

// Takes at once the lock that the limits need: upgrading a weaker lock later could deadlock with a flush.
const LOCK_OPEN = sql('key_account')`
  select frozen_until > now() as frozen, status from account where id = $1 for update`
