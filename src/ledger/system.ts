// The limits of the whole gateway. This process takes a slice of what they leave (functions/quota-slice.sql) and admits
// calls against it by itself: no call waits for a row that all processes share. What a slice has and no call needs goes
// back within a second, sooner where another process lacks it.
import { SHORT_MS, sql } from '../database/database.ts'
import type { Credits } from '../kernel/credits.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import { singleFlight, sleep } from '../kernel/timers.ts'
import { SILENT_SECONDS } from './liveness.ts'
import type { Limited, Reservation, Reserved, Resolution } from './operation.ts'
import { toJson } from './statements.ts'
import type { Around } from './write-watch.ts'

type Admitted =
  | Extract<Reserved, { outcome: 'limited' }>
  | { readonly outcome: 'admitted'; readonly most: Credits | null }

/** A call that was admitted, and has not ended. */
interface Ticket {
  held: Credits
  readonly tokens: number
  readonly second: number
}

interface Answer {
  readonly version?: string
  readonly credits?: string
  readonly calls?: string
  readonly requests?: string
  readonly tokens?: string
  readonly second?: number
  readonly refused?: (Pick<Limited, 'limit' | 'unit' | 'span' | 'max'> & { readonly wait: number }) | null
}

/** What was given of a minute may be used for so long. */
const SLICE_MS = 1_000
/**
 * And of credits and calls: others take a process for dead, and take what it has, when they have not heard of it for 20
 * s.
 */
const SLICE_MAX_MS = 15_000
/**
 * How long others are waited for, that have what is missing; the first two times what is left is asked for, half of it
 * and then all.
 */
const WAITS_MS = [0, 0, 100, 200, 300, 400, 500, 500]

/** Others have what is left, for as long as nobody says which limit it is. */
const BUSY = { limit: 'requestsPerMinute', unit: 'requests', span: 'minute', max: '0', wait: 1 } as const

export type System = ReturnType<typeof createSystem>

export function createSystem({ database, world, processId }: Omit<Around, 'watch'>) {
  const limits: { version: string | null } = { version: null }
  const tickets = new Map<string, Ticket>()
  /** What is free of the slice; undefined where it is not limited. */
  let credits: Credits | undefined
  let calls: number | undefined
  let requests: number | undefined
  let tokens: number | undefined
  let fromMs = 0
  let turn = 0
  let second = 0
  /**
   * Paid since this process began, and since it asked last: its slice still has that. And what was counted to a minute
   * for nothing.
   */
  let spent = 0n
  let said = 0n
  /** Handed to jobs since this process began: their holds say it, and it is not free. */
  const jobs = { credits: 0n, calls: 0 }
  let unused: Array<readonly [second: number, requests: number, tokens: number]> = []
  let admitted = 0
  /** Whether it is known that the database has what this process said last. */
  let isSure = true
  let refused: Answer['refused']
  const joined = singleFlight<void>()
  /** Has what other ledgers of this process have spent counted with the limits; answers whether all of it is. */
  let countElsewhere = () => Promise.resolve(true)
  /** So much had been spent when all was counted; and so much of it the slice still has, as it may not be counted. */
  let counted = 0n
  let doubted = 0n

  const heldNow = () => Array.from(tickets.values()).reduce((sum, { held }) => sum + held, 0n)

  function giveBackMinute(): void {
    if ((requests ?? 0) > 0 || (tokens ?? 0) !== 0) unused.push([second, requests ?? 0, tokens ?? 0])
    if (requests !== undefined) requests = 0
    if (tokens !== undefined) tokens = 0
  }

  /**
   * Says what calls hold, gives back what is free, and asks for a new slice that has room for this call; without a
   * call, for none.
   */
  async function ask(reservation: Reservation | undefined, everything: boolean): Promise<void> {
    giveBackMinute()
    const has = { credits: heldNow(), calls: tickets.size }
    const [told, back, jobsBefore] = [spent, unused, { ...jobs }]
    unused = []
    if (credits !== undefined) credits = 0n
    if (calls !== undefined) calls = 0
    const sentMs = world.elapsedMs()
    const [need, want] = reservation ? needOf(reservation, admitted) : [{}, {}]
    if (await countElsewhere()) [counted, doubted] = [told, 0n]
    else if (doubted === 0n) doubted = told - counted
    let answer: Answer
    try {
      turn += 1
      const values = [
        processId,
        SILENT_SECONDS,
        toJson({ credits: has.credits + doubted, calls: has.calls }),
        toJson(back),
        toJson(need),
        toJson(want),
        everything,
        turn,
      ]
      const [row] = await database.query<{ answer: Answer }>(TAKE_SLICE, values)
      answer = row?.answer ?? {}
    } catch (error) {
      // What may have been given back is not given back again; what was used besides is rather counted twice than not.
      isSure = false
      unused = back
        .map(([at, requests, tokens]) => [at, Math.min(requests, 0), Math.min(tokens, 0)] as const)
        .concat(unused)
      throw error
    }
    isSure = true
    said = told
    limits.version = answer.version ?? null
    refused = answer.refused
    // Calls that have ended meanwhile left what they did not spend.
    const freed = has.credits - heldNow() - (spent - told) - (jobs.credits - jobsBefore.credits)
    credits = answer.credits === undefined ? undefined : BigInt(answer.credits) + freed
    calls =
      answer.calls === undefined
        ? undefined
        : Number(answer.calls) + has.calls - tickets.size - (jobs.calls - jobsBefore.calls)
    requests = answer.requests === undefined ? undefined : Number(answer.requests)
    tokens = answer.tokens === undefined ? undefined : Number(answer.tokens)
    fromMs = sentMs
    second = answer.second ?? 0
  }

  const hasSome = () =>
    spent !== said ||
    !isSure ||
    unused.length > 0 ||
    (credits ?? 0n) > 0n ||
    (calls ?? 0) > 0 ||
    (requests ?? 0) > 0 ||
    (tokens ?? 0) > 0
  const isLimitedByMinute = () => requests !== undefined || tokens !== undefined

  function take(reservation: Reservation): Admitted | undefined {
    const { id, want, floor, most = want } = reservation
    if (limits.version === null) return { outcome: 'admitted', most: null }
    if (world.elapsedMs() - fromMs >= (isLimitedByMinute() ? SLICE_MS : SLICE_MAX_MS)) return undefined
    if ((requests ?? 1) < 1 || (tokens ?? reservation.tokens) < reservation.tokens || (calls ?? 1) < 1) return undefined
    if (credits !== undefined && credits < floor) return undefined
    const held = credits === undefined ? 0n : credits < most ? credits : most
    if (credits !== undefined) credits -= held
    if (calls !== undefined) calls -= 1
    if (requests !== undefined) requests -= 1
    if (tokens !== undefined) tokens -= reservation.tokens
    admitted += 1
    tickets.set(id, { held, tokens: reservation.tokens, second })
    return { outcome: 'admitted', most: credits === undefined ? null : held }
  }

  async function takeOrWait(reservation: Reservation): Promise<Admitted> {
    for (const [at, waitMs] of WAITS_MS.entries()) {
      const taken = take(reservation)
      if (taken) return taken
      if (waitMs > 0) await sleep(world, waitMs)
      await joined('ask', () => ask(reservation, at > 0))
    }
    const taken = take(reservation)
    if (taken) return taken
    const { wait, ...limit } = refused ?? BUSY
    return { outcome: 'limited', ...limit, waitSeconds: Math.max(1, wait), available: 0n }
  }

  return {
    /** The limits that this process goes by; null where there are none. */
    limits: limits as { readonly version: string | null },
    /** The calls that were admitted, and have not ended. */
    tickets: tickets as ReadonlyMap<string, Ticket>,
    /**
     * Counts a call. Undefined: the gateway does not limit it; else what it may hold at most, null where that is not
     * limited, or why it is refused.
     */
    admit(reservation: Reservation): Promise<Admitted> | undefined {
      if (limits.version === null || isTestAccount(reservation.account)) return undefined
      const taken = take(reservation)
      return taken ? Promise.resolve(taken) : takeOrWait(reservation)
    },
    /** What became of one that was admitted: what it holds; undefined when it was refused for another reason. */
    decided({ id, job }: Reservation, held: Credits | undefined): void {
      const ticket = tickets.get(id)
      if (!ticket) return
      if (held === undefined && isLimitedByMinute()) unused.push([ticket.second, 1, ticket.tokens])
      if (credits !== undefined) credits += ticket.held - (held ?? 0n)
      ticket.held = credits === undefined ? 0n : (held ?? 0n)
      // The hold of a job outlives this process, and says by itself what it has.
      if (held !== undefined && !job) return
      tickets.delete(id)
      if (held === undefined) {
        if (calls !== undefined) calls += 1
        return
      }
      jobs.credits += ticket.held
      jobs.calls += 1
    },
    /** Changes nothing while there are neither limits nor `tickets`. */
    resolved({ id, account, inputTokens, outputTokens }: Resolution, paid: Credits): void {
      // Also if the limits were removed meanwhile: the ticket must not count for limits that are set later.
      const ticket = tickets.get(id)
      tickets.delete(id)
      if (limits.version === null || isTestAccount(account)) return
      spent += paid
      if (!ticket) return
      if (credits !== undefined) credits += ticket.held - paid
      if (calls !== undefined) calls += 1
      const less = ticket.tokens - inputTokens - outputTokens
      if (tokens !== undefined && less !== 0) unused.push([ticket.second, 0, less])
    },
    countElsewhere(by: typeof countElsewhere): void {
      countElsewhere = by
    },
    /** The limits are other ones than this process knows. */
    learn: () => joined('ask', () => ask(undefined, false)),
    /**
     * Looks for other limits, and whether others need what this process has. To be called twice a second while it has
     * `some`, or admits calls by leases.
     */
    async tend() {
      const isQuiet = admitted === 0
      admitted = 0
      const [now] = await database.query<Look>(LOOK, [processId])
      const isAsked = isQuiet || spent !== said || !isSure || now?.recalled
      // A process that admits calls by leases alone learns of changed limits here. The process that changed them sends
      // no message.
      if (now?.version !== limits.version || (isAsked && hasSome())) await joined('ask', () => ask(undefined, false))
    },
    /** Says what was spent, and gives back what no call needs: nobody looks after it any more. */
    async giveBack() {
      if (hasSome()) await joined('ask', () => ask(undefined, false))
    },
    get some() {
      return hasSome()
    },
  }
}

/** As much as was admitted lately, for one second. */
function needOf({ floor, want, most = want, tokens }: Reservation, lately: number): [object, object] {
  const calls = lately + 1
  return [
    { requests: 1, tokens, credits: floor, calls: 1 },
    { requests: calls, tokens: tokens * calls, credits: most + want * BigInt(calls), calls },
  ]
}

const TAKE_SLICE = sql('ledger_quota_slice', SHORT_MS)`
  select ledger_quota_slice($1, make_interval(secs => $2), $3, $4, $5, $6, $7, $8) as answer`
interface Look {
  readonly version: string | null
  readonly recalled: boolean
}
const LOOK = sql('limits_look', SHORT_MS)`select (select value from setting where name = 'system-limits') as version,
     exists (select 1 from quota_slice where account_id = '' and process_id = $1 and recalled_at is not null) as recalled`
