// The money. A durable hold, of the call or of its process (a lease), covers a call before the vendor is called. It is
// resolved exactly once, together with its usage row.
import { type Database, hasMoved, type Queryable, sql } from '../database/database.ts'
import type { Credits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { SlotSet } from '../kernel/slot-set.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import { NEVER, sleep } from '../kernel/timers.ts'
import { newId, type World } from '../kernel/world.ts'
import { createBudgets } from './budgets.ts'
import { createJournal } from './journal.ts'
import { createLeases } from './leases.ts'
import { createLines, isCrowded } from './line.ts'
import { createLiveness, type Forgotten } from './liveness.ts'
import { endLots, isSpecial, type Lot } from './lots.ts'
import {
  type Cover,
  type Done,
  type Expired,
  type Leased,
  type Op,
  type Posted,
  type Reservation,
  type Reserved,
  type Resolution,
  type Resolved,
  releaseOf,
  type Undecided,
} from './operation.ts'
import { createQueue } from './queue.ts'
import { createRecall } from './recall.ts'
import { createRetry, isFinal, within } from './retry.ts'
import { createSystem, type System } from './system.ts'
import type { Given } from './views.ts'
import { createWriteWatch, type WriteTrouble } from './write-watch.ts'

export interface Ledger {
  readonly system: System
  /**
   * `waits`: a call that does not fit because running calls of its account hold credits waits for them in line, until
   * this signal, with CLIENT_CLOSED. Without it, it is told so at once.
   */
  reserve(reservation: Reservation, waits?: AbortSignal): Promise<Reserved>
  /** Turns a separately reserved call into a job: the job gets its hold, and nothing is counted again. */
  makeJob(reservation: Reservation): Promise<Reserved>
  resolve(resolution: Resolution): Promise<Resolved>
  /** `within`: the transaction of which it is a part, which has waited for `returned` or `posted` before it began. */
  grant(
    grant: Grant,
    within?: Queryable,
  ): Promise<{ id: string; posted: Credits; held: Credits; moved: Credits } | undefined>
  /** Returns the leases of an account, or of all: limits have changed, or an operator takes credits back. */
  recall(account?: string): void
  /**
   * Resolves when nothing of an account is leased any more, or no more leases will be returned soon. Must not be called
   * in a transaction that has locked the account, because returning a lease needs that lock.
   */
  returned(account: string): Promise<void>
  /** Resolves when no process admits calls any more with leases of an account that were recalled. */
  recalled(account: string): Promise<void>
  /**
   * Sends the heartbeat of this process, and expires the holds of dead processes and the rest of lots that have ended.
   * Returns how many holds expired.
   */
  sweep(): Promise<number>
  /**
   * Resolves when every acknowledged settlement of an account, or of all accounts, is posted or cannot be posted now.
   */
  posted(account?: string): Promise<void>
  /** Waits until every operation is durable or rejected and all leases are returned, or the time is up. */
  idle(forMs?: number): Promise<void>
  /** Operations that are not decided, without the isolated ones. */
  readonly pending: number
  /** Operations of accounts that another transaction has locked. They delay no other account. */
  readonly isolated: number
  /** Settlements that are decided and not posted yet, and how long the oldest has waited. */
  readonly waiting: { readonly settlements: number; readonly oldestMs: number }
  /** Undefined: the last write succeeded. */
  trouble(): WriteTrouble | undefined
}

interface Grant {
  readonly account: string
  /** Below zero: takes back at most what is available. The part that a refund cannot take back is posted as a loss. */
  readonly amount: Credits
  readonly note: string
  readonly actor: string
  readonly kind?: Given | undefined
  /** Of a purchase: an earlier loss that is cancelled, because its money came back. */
  readonly recovered?: Credits | undefined
  /** Of credits that are granted: a lot without an end, products and a priority of its own is plain credit. */
  readonly lot?: Lot | undefined
  /** The lot from which credits are taken back first: the id of the grant that made it. */
  readonly from?: string | undefined
  /** Nothing is taken back from elsewhere. */
  readonly onlyFrom?: boolean | undefined
  /** Of a refund: its payment. What running calls hold of it is claimed: taken from what they release. */
  readonly payment?: string | undefined
}

/** Metrics, counted where the credits move. */
export interface LedgerMeters {
  batch(size: number): void
  moved(kind: 'held' | 'settled' | 'released' | 'expired', amount: Credits): void
  /** A call was settled, whoever's it is. */
  earned?(resolution: Resolution, paid: Credits): void
  /** A charge is above its hold, which should have been the most that the call can cost. */
  aboveHold?(resolution: Resolution, resolved: Pick<Resolved, 'hold' | 'loss'>): void
}

interface LedgerOptions {
  readonly database: Database
  readonly world: World
  readonly processId: string
  readonly meters?: LedgerMeters
  readonly log?: Log
  /** How long a caller waits for a settlement while the database is away; afterwards it is tried without a caller. */
  readonly resolveForMs?: number
  /** How long a reservation is tried again, and how long its caller waits in all. */
  readonly reserveForMs?: number
  readonly reserveWaitMs?: number
  /** How many times as long as usual both take: for a machine that is busy with tests. */
  readonly waitFactor?: number
  /** How long a call waits for credits that running calls of its account hold. */
  readonly creditWaitMs?: number | undefined
  /** The database must have answered for this long before processes without a heartbeat count as dead. */
  readonly graceMs?: number
  /** Off: every call takes a hold of its own. */
  readonly leases?: boolean
  /** Of another ledger of this process, for limits of the whole gateway. */
  readonly system?: System | undefined
}

const BACKGROUND_MS = 24 * 3_600_000
const PENDING_MAX = 20_000
/** Undecided operations that an account with a queue of its own may have. Further calls are rejected. */
const ISOLATED_MAX = 256
/**
 * They are rejected one by one, this far apart: callers who are rejected at one moment all return at one moment, and
 * calls of others wait behind them. A call that would wait longer than `REJECT_WAIT_MS` is rejected at once, so that
 * few wait.
 */
const REJECT_EVERY_MS = 2
const REJECT_WAIT_MS = 2_000
/** How often one call reads the gateway's limits again because they changed. */
const LEARNED_MAX = 5
const TEND_EVERY_MS = 500
/**
 * For a call whose missing credits are leased by a process that does not respond: they are released within
 * `SILENT_SECONDS`.
 */
const AWAY_SECONDS = 5
/**
 * A process posts what it wrote within a second. An older row was written by a process that has died or cannot keep up.
 */
const ABANDONED_SECONDS = 5
/** How long a reader of the ledger waits for settlements that are not posted yet. */
const BOOKED_WAIT_MS = 500

export function createLedger(options: LedgerOptions): Ledger {
  const { database, world, processId, meters, log, waitFactor = 1, creditWaitMs: waitMs = 0 } = options
  const { resolveForMs = 120_000, reserveForMs = waitFactor * 2_000, reserveWaitMs = waitFactor * 5_000 } = options
  const around = { database, watch: createWriteWatch(world), world, processId }
  const [budgets, system] = [createBudgets({ database }), options.system ?? createSystem(around)]
  const lines = createLines({ world, waitMs, look: (accounts) => database.query(AVAILABLE, [accounts]) })
  const queue = createQueue({ ...around, observe: meters?.batch, limits: system.limits, freed: lines.freed })
  /** Work that goes on after its call has ended; `idle` waits for it. */
  const background = new SlotSet<Promise<unknown>>()
  /** Calls that have a hold of their own, from the moment they ask for it, with their budgets. */
  const open = new Map<string, Reservation['scopes']>()

  const retry = createRetry({ world, log, run: queue.run })
  /** By account: how many operations are undecided, and when a call was last rejected because there are too many. */
  const undecided = new Map<string, { count: number; rejectedMs: number }>()

  async function retryUntilKnown<T extends Done>(op: Op, forMs: number, lost?: () => void): Promise<T> {
    const { account } = op.value
    const of = undecided.get(account) ?? { count: 0, rejectedMs: 0 }
    of.count += 1
    undecided.set(account, of)
    try {
      return await retry<T>(op, forMs, lost)
    } finally {
      of.count -= 1
      if (of.count === 0) undecided.delete(account)
    }
  }

  /** Continues without a caller until the database is available again. */
  function track(work: Promise<unknown>): void {
    const place = background.add(work)
    const ended = () => background.remove(place, work)
    work.then(ended, ended)
  }

  const liveness = createLiveness({
    ...around,
    graceMs: options.graceMs ?? 10_000,
    async expire(account) {
      // Settlements of its leases are in the journal, and must be posted before the leases end.
      await journal.post(account)
      const { gone, freed } = await queue.run<Expired>({ kind: 'expire', value: { account } })
      if (freed > 0n) meters?.moved('expired', freed)
      return gone
    },
    unposted: () => journal.recover(ABANDONED_SECONDS),
    presumedDead: () => leases.recall(() => true),
    found: giveUp,
  })
  const leases = createLeases({
    world,
    mayAdmit: (nowMs) =>
      options.leases !== false && nowMs < Math.min(liveness.heard.untilMs, around.watch.stuck.fromMs),
    async report(inUse) {
      const columns = [inUse.map((one) => one.account), inUse.map(({ id }) => id), inUse.map(({ amount }) => amount)]
      const rows = await database.query<{ id: string }>(IN_USE, columns)
      return new Set(rows.map(({ id }) => id))
    },
    change(change) {
      tend()
      // Adding or granting credits must not be repeated while the outcome of the first try is unknown.
      return retryUntilKnown<Leased>({ kind: 'lease', value: change }, change.close ? BACKGROUND_MS : 0)
    },
  })
  const journal = createJournal({
    ...around,
    log,
    observe: meters?.batch,
    run: (op) => queue.run<Posted>(op),
    posted({ id, cover }) {
      owed.delete(id)
      leases.posted(cover, 'settled')
    },
  })

  const { returned, recalled } = createRecall({ ...around, leases, posted: (account) => ledger.posted(account), log })
  let tending = false
  function tend(): void {
    if (tending) return
    tending = true
    world.after(TEND_EVERY_MS, () => {
      tending = false
      if (!leases.some && !system.some) return
      leases.tend()
      void system.tend().catch(() => undefined)
      database.query<{ id: string; account: string }>(RECALLED, [processId]).then(
        (rows) => {
          if (rows.length > 0) {
            leases.asked(new Set(rows.map((row) => row.id)))
            // Leases are returned after their spending is posted.
            for (const account of new Set(rows.map((row) => row.account)))
              void journal.post(account).catch(() => undefined)
          }
          tend()
        },
        () => tend(),
      )
    })
  }

  /** What test accounts spend is no money. */
  function moved(account: string, kind: Parameters<LedgerMeters['moved']>[0], amount: Credits): void {
    if (amount > 0n && !isTestAccount(account)) meters?.moved(kind, amount)
  }

  function count(resolution: Resolution, { outcome, paid, hold, loss }: Resolved): void {
    // A release after a settlement gets the amount of that settlement, which is already counted.
    const isCounted = resolution.kind === 'released' && paid > 0n
    if (system.limits.version !== null || system.tickets.size > 0) {
      // Counted also when the answer to an earlier try was lost: counting twice is better than never.
      system.resolved(resolution, isCounted ? 0n : paid)
      // Also for a job, which this process stopped tracking when it was created.
      if (system.some) tend()
    }
    if (outcome === 'already' || isCounted) return
    if (resolution.kind === 'settled') meters?.earned?.(resolution, paid)
    // Every way to settle a call passes here. The hold of a late one had expired, so there is nothing to compare with.
    if (outcome !== 'late' && resolution.charge > hold) meters?.aboveHold?.(resolution, { hold, loss })
    moved(resolution.account, 'settled', paid)
    moved(resolution.account, 'released', hold - paid)
  }

  /** Until it is written; afterwards the hold, or its part of a lease, is free. */
  async function resolveFor(resolution: Resolution, cover?: Cover): Promise<Resolved> {
    try {
      const resolved = await retryUntilKnown<Resolved>({ kind: 'resolve', value: resolution, cover }, BACKGROUND_MS)
      if (cover) leases.spent(resolution, cover)
      if (cover) leases.posted(cover, resolved.outcome)
      open.delete(resolution.id)
      count(resolution, resolved)
      return resolved
    } catch (error) {
      if (isFinal(error)) {
        // It will never be written and charged nothing: the sweep releases its hold, and the lease gets its part back.
        if (cover) {
          leases.spent({ ...resolution, charge: 0n }, { ...cover, staysLeased: true })
          leases.posted(cover, 'released')
        }
        system.resolved(resolution, 0n)
        open.delete(resolution.id)
      }
      if (!hasMoved(error)) throw error
      // Its hold had expired before, so there is nothing to release, and what it would have cost is not taken.
      if (resolution.kind === 'released') return { outcome: 'already', paid: 0n, loss: 0n, hold: 0n }
      throw new Fault('unavailable', {
        retryAfterSeconds: 1,
        internal: { why: 'its hold expired and its account moved' },
      })
    }
  }

  /** By all processes, where an account is named. */
  async function post(account?: string): Promise<void> {
    await journal.post(account)
    if (account === undefined && liveness.hasOthers()) await journal.recover(0)
  }

  /** Settlements that go on, with the moment of each: they are decided, and no release may come before them. */
  const owed = new Map<string, number>()

  /** Posts it at once, without the journal. */
  function resolveDirectly(resolution: Resolution, cover?: Cover): Promise<Resolved> {
    const going = resolveFor(resolution, cover)
    track(going.finally(() => owed.delete(resolution.id)))
    return within(going, resolveForMs, world)
  }

  async function hold(
    reservation: Reservation,
    version: string | null,
    lost: () => void,
    turn: Turn,
  ): Promise<Reserved | Undecided> {
    const cameMs = world.elapsedMs()
    for (let last = turn === 'waits' || turn === 'due'; ; last = true) {
      const open = leases.openCalls(reservation.account)
      const due = turn === 'now' || turn === 'due'
      const op: Op = { kind: 'reserve', value: reservation, last, due, open, cameMs, system: version }
      const reserved = await retryUntilKnown<Reserved | Undecided>(op, reserveForMs, lost)
      if (reserved.outcome !== 'tight') return reserved
      await returned(reservation.account)
    }
  }

  /** For no longer than its caller waits. */
  async function holdInTime(
    reservation: Reservation,
    version: string | null,
    turn: Turn = 'now',
  ): Promise<Reserved | Undecided> {
    const { account } = reservation
    if (queue.undecided.free + queue.undecided.locked > PENDING_MAX)
      throw new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'ledger queue is full' } })
    // Calls that wait for a locked account delay no others. Their number is bounded so that this stays true.
    const of = undecided.get(account)
    if (of && of.count >= ISOLATED_MAX && queue.isIsolated(account)) {
      const nowMs = world.elapsedMs()
      const atMs = Math.max(of.rejectedMs + REJECT_EVERY_MS, nowMs)
      if (atMs - nowMs <= REJECT_WAIT_MS) {
        of.rejectedMs = atMs
        await sleep(world, atMs - nowMs)
      }
      throw new Fault('unavailable', {
        message: 'Too many calls of this account wait to be posted. Nothing was charged; try again shortly.',
        retryAfterSeconds: 1,
        internal: { why: 'the account’s queue is full' },
        counted: true,
      })
    }
    let unsure = false
    const lost = () => {
      unsure = true
    }
    open.set(reservation.id, reservation.scopes)
    try {
      const reserved = await within(hold(reservation, version, lost, turn), reserveWaitMs, world)
      const isHeld = reserved.outcome === 'held'
      if (isHeld) unsure = false
      // An id that is released below must not be used again: a lease might cover it, and its settlement would find it
      // released.
      else if (unsure && isTriedAgain(reserved))
        throw new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'an answer was lost' } })
      // A job's hold outlives this process, and any process settles it. A call that could not become a job keeps its
      // hold until it is released.
      if (isHeld ? reservation.job : !unsure && !(reservation.isApart && reservation.job)) open.delete(reservation.id)
      return reserved
    } catch (error) {
      unsure = true
      throw error
    } finally {
      // The answer to a try was lost, so a hold may exist or still be made. The id is released and never used again.
      if (unsure) track(resolveFor(releaseOf(reservation)))
    }
  }

  /** By a lease, or by a hold of its own. */
  async function reserveHere(
    reservation: Reservation,
    version: string | null,
    turn: Turn,
  ): Promise<Reserved | Undecided> {
    return leases.admit(reservation) ?? (await holdInTime(reservation, version, turn))
  }

  /** The gateway's limits are checked first. The database rejects a call whose process knows older ones. */
  async function reserveWithin(given: Reservation, isUncovered: boolean, turn: Turn): Promise<Reserved> {
    let reservation = given
    for (let asked = 0; asked < LEARNED_MAX; asked++) {
      const before = system.limits.version
      const admitted = await system.admit(reservation)
      if (admitted?.outcome === 'limited') return admitted
      if (admitted) tend()
      // A call that was not counted must not be treated as counted if this process has learned of limits meanwhile.
      const version = admitted ? system.limits.version : before
      const most = admitted?.most ?? null
      let reserved: Reserved | Undecided | undefined
      try {
        const here = most === null ? reservation : capped(reservation, most)
        // A call tries the leases only once, because each try counts as a call of its key.
        reserved = await (isUncovered && asked === 0
          ? holdInTime(here, version, turn)
          : reserveHere(here, version, turn))
      } finally {
        if (admitted) system.decided(reservation, reserved?.outcome === 'held' ? reserved.amount : undefined)
      }
      if (reserved.outcome === 'no_slice') await system.learn()
      else if (reserved.outcome === 'stale') {
        await budgets.learn(reservation.account)
        reservation = budgets.placed(given)
      } else return decided(reserved)
    }
    throw new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'limits or budgets change' } })
  }

  function waitInLine(asked: Reservation, told: Reserved | undefined, signal: AbortSignal): Promise<Reserved> {
    // Its own leases go back to the account.
    leases.rest(asked.account)
    const attempt = (isDue: boolean) => reserveWithin(budgets.placed(asked), true, isDue ? 'due' : 'waits')
    return lines.wait(asked.account, { attempt, signal }, told && isCrowded(told) ? told : undefined)
  }

  const ledger: Ledger = {
    system,
    async reserve(asked, signal) {
      const waits = waitMs > 0 ? signal : undefined
      const reservation = budgets.known.has(asked.account) ? budgets.placed(asked) : asked
      const isFree = system.limits.version === null
      const isBehind = waits !== undefined && lines.waiting.has(reservation.account)
      const covered = isFree && !isBehind ? leases.admit(reservation) : undefined
      const first =
        covered ?? (isBehind ? undefined : await reserveWithin(reservation, isFree, waits ? 'first' : 'now'))
      const isOver = first !== undefined && (first.outcome === 'held' || waits === undefined || !isCrowded(first))
      const reserved = isOver ? first : await waitInLine(asked, first, waits ?? NEVER)
      if (reserved.outcome === 'held') moved(reservation.account, 'held', reserved.amount)
      else leases.refused(reservation)
      return reserved.outcome === 'limited' ? budgets.named(reservation.account, reserved) : reserved
    },
    async makeJob(asked) {
      // It counts for the budgets by which it is held.
      const reservation = { ...asked, scopes: open.get(asked.id) }
      for (let asked = 0; asked < LEARNED_MAX; asked++) {
        const reserved = await holdInTime(reservation, system.limits.version)
        if (reserved.outcome === 'no_slice') await system.learn()
        else if (reserved.outcome !== 'stale') {
          // A call that does not become a job has been counted too; its release returns the rest.
          if (reserved.outcome === 'held') system.decided(reservation, reserved.amount)
          return decided(reserved)
        }
      }
      throw new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'limits change' } })
    },
    async resolve(asked) {
      const { id, charge, kind } = asked
      if (owed.has(id)) return { outcome: 'already', paid: 0n, loss: 0n, hold: 0n }
      const nowMs = world.elapsedMs()
      owed.set(id, nowMs)
      const cover = leases.coverOf(id)
      const scopes = open.get(id)
      const resolution = scopes === undefined ? asked : { ...asked, scopes }
      // Without a recent heartbeat this process may have lost its leases, so it waits for the outcome before it states
      // a price.
      if (!cover || nowMs >= liveness.heard.untilMs || !journal.takes(resolution, cover))
        return resolveDirectly(resolution, cover)
      try {
        await journal.write({ kind: 'resolve', value: resolution, cover })
      } catch {
        return resolveDirectly(resolution, cover)
      }
      leases.spent(resolution, cover)
      const resolved: Resolved = { outcome: kind, paid: charge, loss: 0n, hold: cover.amount }
      count(resolution, resolved)
      return resolved
    },
    async grant({ account, amount, note, actor, lot, ...given }, within) {
      // Leased credits must not block an operator who takes credits back, and earlier acknowledged settlements must be
      // posted before.
      if (!within) await (amount < 0n ? returned(account) : ledger.posted(account))
      const made = newId(world)
      const [row] = await (within ?? database).query<{ posted: bigint; held: bigint; moved: bigint }>(GRANT, [
        made,
        account,
        amount,
        note,
        actor,
        given.kind ?? null,
        given.recovered ?? 0n,
        lot && isSpecial(lot) ? lot : { id: given.from, only: given.onlyFrom || undefined, payment: given.payment },
      ])
      if (!within) lines.freed(account)
      return row && { id: made, ...row }
    },
    recall(account) {
      leases.recall((lease) => account === undefined || lease.account === account)
    },
    returned,
    recalled,
    async sweep() {
      const expired = await liveness.sweep()
      await endLots(database)
      return expired
    },
    posted: (account) => within(post(account), BOOKED_WAIT_MS, world).catch(() => undefined),
    async idle(forMs = Number.POSITIVE_INFINITY) {
      const done = queue
        .idle()
        .then(() => journal.idle())
        .then(() => leases.giveBack())
        // If this fails, the slice is returned at the next check, or is taken from this process when it no longer
        // responds.
        .then(() => system.giveBack().catch(() => undefined))
        .then(() => Promise.allSettled(background))
      if (forMs === Number.POSITIVE_INFINITY) await done
      else await within(done, forMs, world).catch(() => undefined)
    },
    get pending() {
      return queue.undecided.free + journal.unwritten.length
    },
    get isolated() {
      return queue.undecided.locked
    },
    get waiting() {
      const [sinceMs] = owed.values()
      return { settlements: owed.size, oldestMs: sinceMs === undefined ? 0 : world.elapsedMs() - sinceMs }
    },
    trouble: around.watch.trouble,
  }

  function giveUp(row: Forgotten): void {
    const { id, account, key, product, catalogVersion, scopes } = row
    if (open.has(id) || leases.knows(id)) return
    if (product === null) {
      const change = { give: 0n, add: 0n, least: 0n, requests: 0, tokens: 0, close: true, fresh: false }
      const value = { id, account, key, scopes: scopes ?? undefined, ...change }
      track(retryUntilKnown({ kind: 'lease', value }, BACKGROUND_MS))
    } else {
      const release = releaseOf({ id, account, key, product, catalogVersion, want: 0n, floor: 0n, tokens: 0 })
      // It may have had an idempotency key, which would otherwise stay in use forever.
      track(resolveFor({ ...release, idempotent: true }))
    }
  }
  return ledger
}

/**
 * How a call asks for its hold: once, if it does not wait; else when it comes, while it waits in line, and after that.
 */
type Turn = 'now' | 'first' | 'waits' | 'due'

function isTriedAgain(reserved: Reserved | Undecided): boolean {
  const { outcome } = reserved
  return outcome === 'short' ? reserved.running !== undefined : outcome === 'no_slice' || outcome === 'stale'
}

/** A reservation that costs no more than this. */
function capped(reservation: Reservation, most: Credits): Reservation {
  const atMost = (amount: Credits) => (amount < most ? amount : most)
  return { ...reservation, want: atMost(reservation.want), most: atMost(reservation.most ?? reservation.want) }
}

function decided(reserved: Exclude<Reserved | Undecided, { outcome: 'no_slice' | 'stale' }>): Reserved {
  if (reserved.outcome !== 'away' && reserved.outcome !== 'tight') return reserved
  throw new Fault('unavailable', {
    message:
      'Credits of this account are held by a gateway process that does not respond. They are released within 20 seconds. Nothing was charged; try again shortly.',
    retryAfterSeconds: AWAY_SECONDS,
    internal: { why: 'credits are held by a process that does not respond' },
  })
}

const RECALLED = sql('lease_recalled')`
  select id, account_id as account from lease where process_id = $1 and recalled_at is not null and not retired`
const AVAILABLE = sql('account_available')`
  select id as account, posted - held as available from account where id = any($1::text[])`
const IN_USE = sql('lease_in_use')`with free as (
     select e.account_id, e.id from lease e where e.account_id = any($1::text[]) and e.id = any($2::text[]) order by e.account_id, e.id for update skip locked
   )
   update lease e set in_use = ($3::bigint[])[array_position($2::text[], e.id)] from free f
   where e.account_id = any($1::text[]) and e.id = any($2::text[]) and e.account_id = f.account_id and e.id = f.id returning e.id`
const GRANT = sql('grant')`select posted, held, moved from ledger_grant($1, $2, $3, $4, $5, $6, $7, $8)`
