// The operations of the ledger and their results.
import type { Credits } from '../kernel/credits.ts'
import type { Fault } from '../kernel/fault.ts'
import type { ChargeLine, CostBasis } from '../meter/charge.ts'
import type { LimitSpan, LimitUnit } from '../meter/limits.ts'
import type { Budget } from './budgets.ts'
import type { AttemptLog } from './views.ts'

/**
 * What a usage row says instead of a credential's name when the account's own was used. No name of a credential is in
 * lower case.
 */
export const BYOK = 'own'

export interface Reservation {
  /** The call's id: it names the hold, the transfer and the usage row. */
  readonly id: string
  readonly account: string
  readonly key: string
  readonly product: string
  /**
   * All products that the call may be charged as, if there are several: restricted credits are held only if they are
   * valid for all of these.
   */
  readonly products?: readonly string[] | undefined
  readonly catalogVersion: number
  readonly want: Credits
  /** The minimum hold; equal to `want` unless the reservation has no output limit. */
  readonly floor: Credits
  /**
   * Of a reservation without an output limit: the most that the call can cost. It gets a share of what is available, up
   * to this.
   */
  readonly most?: Credits | undefined
  /** What a limit on tokens counts until the settlement corrects it. */
  readonly tokens: number
  /** Who spends it, and the first of the keys that its key replaced: by these its budgets are found. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly firstKey?: string | undefined
  /** The version of the account's budgets, and those that it counts for: the ledger finds them. */
  readonly budgets?: number | undefined
  readonly scopes?: readonly string[] | undefined
  readonly idempotency?: { readonly key: string; readonly requestHash: string }
  /** It has a hold of its own: a job may be made of it later. */
  readonly isApart?: boolean | undefined
  /** A job's row, made by the same statement, or for the hold that is there; its hold outlives this process. */
  readonly job?: {
    readonly id: string
    readonly input: string
    readonly request: string
    readonly callback?: string
    /** What is answered, now and again to the same idempotency key. */
    readonly answer: string
  }
}

/** Of the tightest limit on requests: what it allows, and what is left. */
export interface Rate {
  readonly max: number
  readonly left: number
}

/** Why calls of an account are refused, and whom its people may ask. */
export interface Blocked {
  readonly status: string
  readonly reason: string | null
  readonly contact: string | null
}

export type Reserved =
  | { outcome: 'held'; amount: Credits; rate: Rate | null }
  | Short
  | Limited
  | { outcome: 'idem_conflict' | 'idem_running' | 'idem_replay' }
  /** The account is being moved to another database, or was. */
  | { outcome: 'frozen' }
  /** The account is suspended or closed. */
  | ({ outcome: 'blocked' } & Blocked)

export interface Short {
  readonly outcome: 'short'
  readonly available: Credits
  readonly required: Credits
  /** With nothing held the account could pay: so many running calls hold so much. */
  readonly running?: { readonly held: Credits; readonly calls: number } | undefined
}

export interface Limited {
  readonly outcome: 'limited'
  readonly limit: string
  readonly unit: LimitUnit
  readonly span: LimitSpan
  readonly max: string
  readonly waitSeconds: number
  readonly available: Credits
  /** Of a budget: its counter, what is left of it, and whether the account has too many values for another. */
  readonly scope?: string | undefined
  readonly left?: string | undefined
  readonly isFull?: boolean | undefined
  readonly budget?: Budget | undefined
  /** What the caller is told, where the limit is an extension's. */
  readonly fault?: Fault | undefined
}

/**
 * Not decided yet. Others have leased what is missing, and were asked for it; or this process needs a larger share of
 * the system's limits.
 */
export type Undecided =
  | { outcome: 'tight' }
  | { outcome: 'no_slice' }
  /** The account has other budgets than this process knows. */
  | { outcome: 'stale' }
  /**
   * The missing credits are leased by a process that does not respond; they are released when it is considered dead.
   */
  | { outcome: 'away' }

export interface Resolution {
  readonly id: string
  readonly account: string
  readonly key: string
  readonly product: string
  readonly catalogVersion: number
  readonly kind: 'settled' | 'released'
  readonly charge: Credits
  readonly lines: readonly ChargeLine[]
  readonly endpoint: string
  /** Which agent called, if one did. */
  readonly client?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Of its budgets: the ledger knows them. */
  readonly scopes?: readonly string[] | undefined
  readonly status: number
  readonly estimated: boolean
  readonly stream: boolean
  readonly route: number
  readonly durationMs: number
  readonly firstByteMs: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** Which of the vendor's credentials it used, by its name, where there are several. */
  readonly credential?: string | undefined
  /** Who answered it, or was tried last. */
  readonly vendor?: string | undefined
  /** What of the request and its answer decided the rates, where the price names any of it. */
  readonly attributes?: Readonly<Record<string, string>> | undefined
  /** What the vendor takes for it, where the route's cost is known. */
  readonly cost?: Credits | undefined
  /** What decided it besides lines and attributes. */
  readonly costBasis?: CostBasis | undefined
  /** Only of a call that failed, or needed more than one attempt. */
  readonly attemptLog?: AttemptLog | undefined
  /**
   * The released reservation may have created a job although the answer was lost: the job is removed too, unless it has
   * started.
   */
  readonly givenUp?: boolean
  /** The call came with an idempotency key: `keep` is the answer to replay; without it the key is free again. */
  readonly idempotent?: boolean
  readonly replay?: ReplayAnswer | undefined
}

/** The answer, sealed; without it, it stands with the key already. */
export interface ReplayAnswer {
  readonly status: number
  readonly contentType: string
  readonly sealed?: Buffer
}

export interface Resolved {
  /** `late`: the hold had expired, and the amount was taken anew. `already`: an earlier try did it. */
  readonly outcome: 'settled' | 'released' | 'late' | 'already'
  readonly paid: Credits
  readonly loss: Credits
  /** What the hold was. */
  readonly hold: Credits
}

/** What covers a call that has no hold of its own. */
export interface Cover {
  readonly lease: string
  readonly amount: Credits
  /** What the call does not spend stays in the lease. */
  readonly staysLeased: boolean
  /** What limits on tokens counted for it, and in which second. */
  readonly tokens: number
  readonly second: number
  /** Of its budgets. */
  readonly scopes: readonly string[] | undefined
}

/** Credits that a process holds in advance are made, moved or given back. */
export interface LeaseChange {
  readonly id: string
  readonly account: string
  readonly key: string
  /** The budgets that its calls count for, by which version. */
  readonly scopes?: readonly string[] | undefined
  readonly budgets?: number | undefined
  /** Nothing was leased yet. Otherwise a lease that is not there has expired, and none is made. */
  readonly fresh: boolean
  readonly give: Credits
  readonly add: Credits
  /** The least that is worth having. */
  readonly least: Credits
  /** Of the limits on a minute, for a second; null where it keeps what it has of them. */
  readonly requests: number | null
  readonly tokens: number | null
  readonly back?: { readonly requests: number; readonly tokens: number; readonly second: number } | undefined
  readonly close: boolean
  /** Its process admits no more calls by it. */
  readonly retired?: boolean
}

export interface Leased {
  /** Undefined when there is no such lease any more. */
  readonly added: Credits | undefined
  /** Undefined where nothing limits them. */
  readonly requests: number | undefined
  readonly tokens: number | undefined
  readonly rate: Rate | undefined
  /**
   * For how long these may be used from when they were asked for, and the last of these seconds, to which they were
   * counted.
   */
  readonly seconds: number
  readonly second: number
  /** What the account has that nothing holds. */
  readonly available: Credits
  /** Nothing is leased of an account with lots. */
  readonly rests: boolean
}

export type Op =
  | {
      readonly kind: 'reserve'
      readonly value: Reservation
      readonly last: boolean
      /** It has waited for running calls, and takes what is there. */
      readonly due: boolean
      /** Calls of the account that leases of this process cover, which the database does not know of. */
      readonly open: number
      /** When the call came, by the clock that never steps. */
      readonly cameMs: number
      /** The version of the gateway's limits by which it was let in. */
      readonly system: string | null
    }
  | { readonly kind: 'resolve'; readonly value: Resolution; readonly cover?: Cover | undefined }
  | { readonly kind: 'lease'; readonly value: LeaseChange }
  /** Posts these of the account's journal; without ids, what stands there. */
  | { readonly kind: 'post'; readonly value: { readonly account: string; readonly ids?: readonly string[] } }
  /** Gives back what silent processes hold of the account. */
  | { readonly kind: 'expire'; readonly value: { readonly account: string } }
export type OpOf<K extends Op['kind']> = Extract<Op, { kind: K }>
/** Whether there is more to be posted. */
export interface Posted {
  readonly left: boolean
}
export interface Expired {
  readonly gone: number
  readonly freed: Credits
}
export type Done = Reserved | Undecided | Resolved | Leased | Posted | Expired

/** Another transaction has locked the account for long: the operation is retried, and no other account waits for it. */
export class AccountLocked extends Error {}

/** Releases a reservation, whatever its outcome was. */
export function releaseOf(reservation: Reservation): Resolution {
  return {
    id: reservation.id,
    account: reservation.account,
    key: reservation.key,
    product: reservation.product,
    catalogVersion: reservation.catalogVersion,
    kind: 'released',
    charge: 0n,
    lines: [],
    endpoint: '',
    status: 503,
    estimated: false,
    stream: false,
    route: 0,
    durationMs: 0,
    firstByteMs: 0,
    inputTokens: 0,
    outputTokens: 0,
    idempotent: reservation.idempotency !== undefined,
    givenUp: reservation.job !== undefined,
  }
}
