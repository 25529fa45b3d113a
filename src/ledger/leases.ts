// Credits that this process holds in advance, by key. A call that they cover is admitted without a statement to the
// database, and its settlement is its only commit. They grow with the recent demand of a key, are returned when the key
// becomes idle, and are returned at once when the account runs low.
import type { Credits } from '../kernel/credits.ts'
import { newId, type World } from '../kernel/world.ts'
import type { Cover, LeaseChange, Leased, Rate, Reservation, Reserved, Resolution, Resolved } from './operation.ts'

/** What calls under way may spend of a lease. */
interface InUse {
  readonly account: string
  readonly id: string
  readonly amount: Credits
}

interface LeasesOptions {
  readonly world: World
  /** Fails if the outcome is unknown. Closing a lease is retried until the outcome is known. */
  readonly change: (change: LeaseChange) => Promise<Leased>
  /**
   * Stores how much running calls may spend of these leases, for readers of the account; returns the ids of the leases
   * that were updated.
   */
  readonly report: (inUse: readonly InUse[]) => Promise<ReadonlySet<string>>
  /** Whether all others still believe that this process lives, and calls can be settled. */
  readonly mayAdmit: (nowMs: number) => boolean
}

/** The recent demand of a key: sums that halve every `HALF_MS`. */
interface Pace {
  atMs: number
  calls: number
  wants: number
  /** By the last call, and what it got. */
  want: Credits
  got: Credits
}

interface Lease {
  readonly id: string
  readonly account: string
  readonly key: string
  readonly scopes: readonly string[] | undefined
  readonly budgets: number | undefined
  fresh: boolean
  /** At least this much is durably held. */
  amount: Credits
  /** Of it, what calls under way may spend. */
  open: Credits
  /** Of it, what calls took since the last report; and what was last reported as in use. */
  recent: Credits
  reported: Credits
  /**
   * What else the account had at the last change of this lease. Others may have used it since, so it only affects the
   * sizes of leases, never whether a call is covered.
   */
  beside: Credits
  /** Settlements that are not posted. */
  calls: number
  /** What was given of the minute's limits, where there are any. */
  window: Window | undefined
  pace: Pace
  /** A change is under way. */
  changing: boolean
  /** No more calls: it goes back when the last one has ended. */
  retired: boolean
}

interface Window {
  requests: number | undefined
  tokens: number | undefined
  readonly given: { readonly requests: number; readonly tokens: number }
  readonly fromMs: number
  readonly untilMs: number
  readonly second: number
  readonly rate: Rate | undefined
}

/**
 * The recent number of calls from which a key gets a lease: more than one call per `HALF_MS`. A few calls must be
 * enough, otherwise a gateway that is slow because it has no leases stays slow. But two calls must not be enough,
 * otherwise a caller who makes two calls and then looks at the account sees credits held.
 */
const CALLS_MIN = 2
const HALF_MS = 6_000
const HALF_SECONDS = HALF_MS / 1_000
/** If calls alternate between many accounts, growing leases is most of the database's work. */
const CALLS_FREE = 16n
/** Longer than the pauses between calls of a key that has a lease. */
const IDLE_MS = 8_000
/**
 * When this part of a slice of a minute limit, or of its time, is used up, a new slice is requested: on its own, or
 * together with credits.
 */
const WORN = 3 / 4
const HALF_WORN = 1 / 2
/** The slice of a minute limit was returned. */
const OVER: Window = {
  requests: 0,
  tokens: 0,
  given: { requests: 0, tokens: 0 },
  second: 0,
  rate: undefined,
  fromMs: Number.NEGATIVE_INFINITY,
  untilMs: Number.NEGATIVE_INFINITY,
}
const PACES_MAX = 10_000
/**
 * Each statement of an account reads all of its leases. If more users than this call at once, the others use holds of
 * their own.
 */
const SCOPED_MAX = 256
/** A running call appears in the reported usage of its lease after at most two of these intervals. */
const REPORT_EVERY_MS = 120
const NONE: ReadonlySet<string> = new Set()
/** Longer than any call waits for leases of other processes. */
const REST_MS = 3_000

export function createLeases({ world, change, report, mayAdmit }: LeasesOptions) {
  /** By key: those that admit calls. */
  const current = new Map<string, Lease>()
  /** By id: these, and leases that are being returned. */
  const all = new Map<string, Lease>()
  /** By the call's id. */
  const covers = new Map<string, Cover & { readonly reports: number }>()
  /** How many reports there were: a call that began since the last one is recent. */
  let reports = 0
  let isReportDue = false
  const paces = new Map<string, Pace>()
  /** By account: its leases that are for calls of some budgets alone. */
  const scoped = new Map<string, number>()
  /** By account: until when nothing is leased of it. */
  const rests = new Map<string, number>()
  const changes = new Set<Promise<unknown>>()

  function paceOf(name: string, want: Credits, nowMs: number): Pace {
    let pace = paces.get(name)
    if (!pace) {
      if (paces.size >= PACES_MAX) paces.clear()
      pace = { atMs: nowMs, calls: 0, wants: 0, want, got: want }
      paces.set(name, pace)
    }
    const left = 0.5 ** ((nowMs - pace.atMs) / HALF_MS)
    pace.atMs = nowMs
    pace.calls = pace.calls * left + 1
    pace.wants = pace.wants * left + Number(want)
    pace.want = want
    return pace
  }

  function admit(reservation: Reservation): Reserved | undefined {
    if (reservation.idempotency || reservation.job || reservation.isApart) return undefined
    const nowMs = world.elapsedMs()
    if (!mayAdmit(nowMs)) return undefined
    const name = leaseNameOf(reservation)
    const pace = paceOf(name, reservation.want, nowMs)
    const lease = current.get(name)
    if (lease) {
      const amount = shareOf(lease, reservation)
      pace.got = amount
      const { fresh, window } = lease
      // Nothing is leased yet by a fresh one, and a call that costs nothing would not be counted by limits.
      if (!fresh && freeOf(lease) >= amount && (!window || isAllowed(window, reservation.tokens)))
        return take(lease, amount, reservation)
    }
    if (pace.calls >= CALLS_MIN && !isResting(reservation.account) && (lease || !isCrowded(reservation)))
      grow(lease ?? made(reservation, pace), reservation)
    return undefined
  }

  function isCrowded({ account, scopes }: Reservation): boolean {
    return scopes !== undefined && (scoped.get(account) ?? 0) >= SCOPED_MAX
  }

  /** One more lease of an account that is for calls of some budgets alone, or one less. */
  function countScoped({ account, scopes }: Lease, by: 1 | -1): void {
    if (scopes === undefined) return
    const count = (scoped.get(account) ?? 0) + by
    if (count > 0) scoped.set(account, count)
    else scoped.delete(account)
  }

  function isResting(account: string): boolean {
    const untilMs = rests.get(account)
    if (untilMs === undefined) return false
    if (world.elapsedMs() < untilMs) return true
    rests.delete(account)
    return false
  }

  function isAllowed(window: Window, tokens: number): boolean {
    return world.elapsedMs() < window.untilMs && (window.requests ?? 1) >= 1 && (window.tokens ?? tokens) >= tokens
  }

  function isWorn(window: Window, part: number): boolean {
    const { fromMs, untilMs, given, requests = given.requests, tokens = given.tokens } = window
    if (world.elapsedMs() - fromMs > (untilMs - fromMs) * part) return true
    return requests < given.requests * (1 - part) || tokens < given.tokens * (1 - part)
  }

  function take(lease: Lease, amount: Credits, reservation: Reservation): Reserved {
    const { id, tokens } = reservation
    const { window } = lease
    lease.open += amount
    lease.recent += amount
    if (!isReportDue) reportSoon()
    lease.calls += 1
    if (window?.requests !== undefined) window.requests -= 1
    if (window?.tokens !== undefined) window.tokens -= tokens
    const { scopes } = lease
    covers.set(id, { lease: lease.id, amount, staysLeased: true, tokens, second: window?.second ?? 0, scopes, reports })
    if (freeOf(lease) < targetOf(lease.pace) / 2n || (window && isWorn(window, WORN))) grow(lease, reservation)
    const rate = window?.rate
    return { outcome: 'held', amount, rate: rate ? { max: rate.max, left: rate.left + (window.requests ?? 0) } : null }
  }

  /**
   * Reports what is in use, again and again while calls are under way. A call counts from the second report on: most
   * have ended by then, and cost no write.
   */
  function reportSoon(): void {
    isReportDue = true
    world.after(REPORT_EVERY_MS, async () => {
      const changed: InUse[] = []
      let more = false
      for (const lease of all.values()) {
        const { account, id, open, recent, fresh, reported } = lease
        lease.recent = 0n
        more ||= open > 0n
        if (open - recent !== reported && !fresh) changed.push({ account, id, amount: open - recent })
      }
      reports += 1
      const written = changed.length > 0 ? await report(changed).catch(() => NONE) : NONE
      for (const { id, amount } of changed) {
        const lease = written.has(id) ? all.get(id) : undefined
        if (lease) lease.reported = amount
      }
      isReportDue = false
      if (more || written.size < changed.length) reportSoon()
    })
  }

  function made({ account, key, scopes, budgets }: Reservation, pace: Pace): Lease {
    const blank = {
      fresh: true,
      amount: 0n,
      open: 0n,
      recent: 0n,
      reported: 0n,
      beside: 0n,
      calls: 0,
      window: undefined,
      changing: false,
      retired: false,
    }
    const lease: Lease = { id: newId(world), account, key, scopes, budgets, pace, ...blank }
    current.set(leaseNameOf(lease), lease)
    all.set(lease.id, lease)
    countScoped(lease, 1)
    return lease
  }

  /** Asks for more. While it is on its way, calls take holds of their own or what is left. */
  function grow(lease: Lease, { want, tokens }: Reservation): void {
    if (lease.changing) return
    const free = freeOf(lease)
    const target = targetOf(lease.pace)
    // For one second, nearly one and a half times the current rate.
    const calls = Math.ceil(lease.pace.calls / HALF_SECONDS)
    const sentMs = world.elapsedMs()
    // A new slice of minute limits is requested together with credits, unless most of the current slice is left.
    const { window } = lease
    const keeps = window !== undefined && isAllowed(window, tokens) && !isWorn(window, HALF_WORN)
    const minute = keeps ? KEPT : { requests: calls, tokens: calls * tokens }
    const wish = { add: target > free ? target - free : want || 1n, least: want > free ? want - free : 1n }
    run(lease, { ...NOTHING, ...wish, ...minute }, (leased) => {
      const { added } = leased
      if (added === undefined) return forget(lease)
      if (leased.rests) rest(lease.account)
      lease.fresh &&= added === 0n
      lease.amount += added
      lease.beside = leased.available
      if (!keeps) lease.window = windowOf(leased, sentMs)
      if (lease.fresh) forget(lease)
      // The account has no more credits. Another caller may need the rest of this lease.
      else if (added === 0n) retire(lease)
    })
  }

  /**
   * One change at a time. If its answer is lost, at least the assumed amount is held; the lease is abandoned, and all
   * of it is returned.
   */
  function run(lease: Lease, wish: Wish, then: (leased: Leased) => void): void {
    const back = wish.requests === null ? undefined : unusedOf(lease)
    if (back) lease.window = OVER
    lease.changing = true
    lease.amount -= wish.give
    const { id, account, key, scopes, budgets, fresh } = lease
    const going = change({ id, account, key, scopes, budgets, fresh, back, ...wish })
      .then(then, () => {
        lease.fresh = false
        if (wish.close) forget(lease)
        else retire(lease)
      })
      .finally(() => {
        lease.changing = false
        changes.delete(going)
        if (lease.retired) release(lease)
      })
    changes.add(going)
  }

  function retire(lease: Lease): void {
    lease.retired = true
    if (current.get(leaseNameOf(lease)) === lease) current.delete(leaseNameOf(lease))
  }

  /** The lease has ended, here and in the database. Calls that it covered are settled late. */
  function forget(lease: Lease): void {
    retire(lease)
    lease.amount = 0n
    if (all.delete(lease.id)) countScoped(lease, -1)
  }

  /**
   * Returns the unused part; with the last call, everything. `tells`: writes even if nothing can be returned yet, for
   * processes that wait until this lease admits no more calls.
   */
  function release(lease: Lease, tells = false): void {
    if (lease.changing || !all.has(lease.id)) return
    const free = freeOf(lease)
    if (lease.calls === 0) run(lease, { ...NOTHING, close: true }, () => forget(lease))
    else if (free > 0n || tells)
      run(lease, { ...NOTHING, give: free, retired: true }, ({ added }) => {
        if (added === undefined) forget(lease)
      })
  }

  function unusedOf({ window }: Lease): LeaseChange['back'] {
    if (!window || ((window.requests ?? 0) <= 0 && (window.tokens ?? 0) <= 0)) return undefined
    return { requests: window.requests ?? 0, tokens: window.tokens ?? 0, second: window.second }
  }

  function recall(which: (lease: Lease) => boolean): void {
    for (const lease of [...all.values()])
      if (which(lease)) {
        retire(lease)
        release(lease, true)
      }
  }

  function rest(account: string): void {
    if (rests.size >= PACES_MAX) rests.clear()
    rests.set(account, world.elapsedMs() + REST_MS)
    /** Admits no more calls with these leases, and returns the unused part. */
    recall((lease) => lease.account === account)
  }

  return {
    /** Undefined when the call needs a hold of its own. */
    admit,
    /** The key has no credits to lease. It leases again after some calls that were not rejected. */
    refused(reservation: Reservation): void {
      const pace = paces.get(leaseNameOf(reservation))
      if (pace) pace.calls = 0
    },
    /** Calls of an account that are covered by leases. */
    openCalls(account: string): number {
      let calls = 0
      for (const lease of all.values()) if (lease.account === account) calls += lease.calls
      return calls
    },
    /** What covers a call until it is resolved; undefined when it has a hold of its own. */
    coverOf(id: string): Cover | undefined {
      const cover = covers.get(id)
      // A lease that is being returned or has ended keeps nothing.
      return cover && all.get(cover.lease)?.retired !== false ? { ...cover, staysLeased: false } : cover
    },
    /** The settlement of a call is in the journal and not posted: until it is, the lease still holds the amount. */
    spent({ id, charge }: Pick<Resolution, 'id' | 'charge'>, cover: Cover): void {
      const isRecent = covers.get(id)?.reports === reports
      const lease = covers.delete(id) ? all.get(cover.lease) : undefined
      if (!lease) return
      lease.open -= cover.amount
      if (isRecent) lease.recent -= cover.amount
      lease.amount -= cover.staysLeased && charge < cover.amount ? charge : cover.amount
    },
    /** The settlement is posted. */
    posted(cover: Cover, outcome: Resolved['outcome']): void {
      const lease = all.get(cover.lease)
      if (!lease) return
      lease.calls -= 1
      if (outcome === 'late') forget(lease)
      else if (lease.retired) release(lease)
    },
    recall,
    /**
     * Another process needs the leased credits of an account, or the account has lots: nothing is leased for a while.
     */
    rest,
    /** Other processes recall these. */
    asked(ids: ReadonlySet<string>): void {
      // One that goes back when its last call ends was asked for before.
      for (const lease of [...all.values()]) if (ids.has(lease.id) && !lease.retired) rest(lease.account)
      recall((lease) => ids.has(lease.id))
    },
    /** Returns unused credits. Called periodically while there are `some` leases. */
    tend() {
      const nowMs = world.elapsedMs()
      recall((lease) => !lease.retired && !lease.changing && lease.calls === 0 && nowMs - lease.pace.atMs > IDLE_MS)
      for (const lease of current.values()) {
        if (lease.changing) continue
        const most = targetOf(lease.pace) * 4n
        const free = freeOf(lease)
        const isOver = lease.window !== undefined && nowMs > lease.window.untilMs && unusedOf(lease) !== undefined
        if (free > most || isOver)
          run(lease, { ...NOTHING, ...(isOver ? {} : KEPT), give: free > most ? free - most : 0n }, ({ added }) => {
            if (added === undefined) forget(lease)
          })
      }
    },
    /** Returns all unused credits; resolves when that is durable. */
    async giveBack() {
      recall(() => true)
      while (changes.size > 0) await Promise.all(changes)
    },
    knows: (id: string) => all.has(id),
    get some() {
      return all.size > 0
    },
  }
}

function freeOf({ amount, open }: Lease): Credits {
  return amount - open
}

/** As the database gives it to calls with a hold of their own: functions/reserve.sql. */
function shareOf(lease: Lease, { want, most = want }: Reservation): Credits {
  if (most <= want) return want
  const share = (freeOf(lease) + lease.beside) / BigInt(2 * (lease.calls + 1))
  return share >= most ? most : share > want ? share : want
}

/** Values contain no line breaks, so the joined key is unambiguous. */
function leaseNameOf({ account, key, scopes }: Pick<Reservation, 'account' | 'key' | 'scopes'>): string {
  return scopes === undefined ? `${account} ${key}` : `${account} ${key}\n${scopes.join('\n')}`
}

type Wish = Pick<LeaseChange, 'give' | 'add' | 'least' | 'requests' | 'tokens' | 'close' | 'retired'>
const NOTHING: Wish = { give: 0n, add: 0n, least: 0n, requests: 0, tokens: 0, close: false }
/** What it has of the minute stays with it. */
const KEPT = { requests: null, tokens: null }

function windowOf({ requests, tokens, seconds, second, rate }: Leased, fromMs: number): Window | undefined {
  if (requests === undefined && tokens === undefined) return undefined
  const given = { requests: requests ?? 0, tokens: tokens ?? 0 }
  return { requests, tokens, given, fromMs, untilMs: fromMs + seconds * 1_000, second, rate }
}

/**
 * The target for unused credits: a little more than one second of demand, and for occasional callers enough calls that
 * the lease seldom has to grow. A call without an output limit takes more than it needs and returns nearly all of it,
 * so two such calls must fit.
 */
function targetOf({ wants, want, got }: Pace): Credits {
  return BigInt(Math.ceil(wants / HALF_SECONDS)) + want * CALLS_FREE + (got > want ? got * 2n : 0n)
}
