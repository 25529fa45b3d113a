// The money. A hold is durable before a vendor is called; it resolves exactly once, together with its usage row.
import { type Database, type Queryable, SHORT_MS, statement } from '../database/database.ts'
import type { Credits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { sleep } from '../kernel/timers.ts'
import { newId, type World } from '../kernel/world.ts'
import { createBatch } from './batch.ts'
import {
  flushOrSplit,
  isLarge,
  type Op,
  type Reservation,
  type Reserved,
  type Resolution,
  type Resolved,
} from './flush.ts'

export interface Ledger {
  reserve(reservation: Reservation): Promise<Reserved>
  resolve(resolution: Resolution): Promise<Resolved>
  /** `within`: the transaction of which it is a part. */
  grant(
    grant: { account: string; amount: Credits; note: string; actor: string },
    within?: Queryable,
  ): Promise<{ posted: Credits; held: Credits } | undefined>
  /** Says that this process lives, and expires the holds of those that do not. Answers how many expired. */
  sweep(): Promise<number>
  /** Waits until everything that was asked is durable or refused, or the time is up. */
  idle(forMs?: number): Promise<void>
  readonly pending: number
}

/** Counts what moves where it moves. */
export interface LedgerMeters {
  batch(size: number): void
  moved(kind: 'held' | 'settled' | 'released' | 'expired', amount: Credits): void
}

interface LedgerOptions {
  readonly database: Database
  readonly world: World
  readonly processId: string
  readonly meters?: LedgerMeters
  readonly flushesMax?: number
  /** How long a caller waits for a settlement while the database is away; afterwards it is tried without a caller. */
  readonly resolveForMs?: number
  /** How long a reservation is tried again, and how long its caller waits in all. */
  readonly reserveForMs?: number
  readonly reserveWaitMs?: number
  /** How long the database must have been heard from before the silence of others is taken for death. */
  readonly graceMs?: number
}

const SILENT_SECONDS = 20
/** A process whose last word is older than this has been cut off, and so may all the others. */
const CUT_OFF_MS = 10_000
const BACKGROUND_MS = 24 * 3_600_000
const PENDING_MAX = 20_000
const RETRY_MS = 100

export function createLedger(options: LedgerOptions): Ledger {
  const { database, world, processId, meters } = options
  const resolveForMs = options.resolveForMs ?? 120_000
  const reserveForMs = options.reserveForMs ?? 2_000
  const reserveWaitMs = options.reserveWaitMs ?? 5_000
  const graceMs = options.graceMs ?? 10_000
  const lane = (flushesMax: number, sizeMax: number) =>
    createBatch<Op, Reserved | Resolved>({
      flush: (ops) => flushOrSplit(database, processId, ops),
      flushesMax,
      sizeMax,
      ...(meters ? { observe: meters.batch } : {}),
    })
  const shared = lane(options.flushesMax ?? 2, 256)
  // What one account has to store must not keep the others waiting: it goes alone.
  const alone = lane(1, 1)
  const pending = () => shared.pending + alone.pending
  /** Resolutions that outlive the call that asked for them; `idle` waits for these too. */
  const background = new Set<Promise<unknown>>()

  /** Both operations carry their id, so a try whose answer was lost can simply be repeated. */
  async function insist<T extends Reserved | Resolved>(op: Op, forMs: number, lost?: () => void): Promise<T> {
    const started = world.elapsedMs()
    for (let attempt = 0; ; attempt++) {
      try {
        return (await (isLarge(op) ? alone : shared).run(op)) as T
      } catch (error) {
        lost?.()
        const waitMs = Math.min(RETRY_MS * 2 ** attempt, 2_000)
        if (!isAway(error)) throw error
        if (world.elapsedMs() - started + waitMs > forMs) throw error
        await sleep(world, waitMs)
      }
    }
  }

  /** Goes on without a caller, until the database is back. */
  function retryInBackground(op: Op): Promise<unknown> {
    const going = insist<Reserved | Resolved>(op, BACKGROUND_MS).then(
      (done) => 'paid' in done && count(done),
      () => undefined,
    )
    background.add(going)
    void going.finally(() => background.delete(going))
    return going
  }

  function count(resolved: Resolved): Resolved {
    if (resolved.outcome === 'already') return resolved
    const { paid, hold } = resolved
    if (paid > 0n) meters?.moved('settled', paid)
    if (hold > paid) meters?.moved('released', hold - paid)
    return resolved
  }

  /** Settlements that go on: they are decided, and no release may come before them. */
  const owed = new Set<string>()
  let heardMs = Number.NEGATIVE_INFINITY
  let judgeFromMs = Number.NEGATIVE_INFINITY

  const ledger: Ledger = {
    async reserve(reservation) {
      if (pending() > PENDING_MAX)
        throw new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'ledger queue is full' } })
      let unsure = false
      const lost = () => {
        unsure = true
      }
      try {
        const reserving = insist<Reserved>({ kind: 'reserve', value: reservation }, reserveForMs, lost)
        const reserved = await within(reserving, reserveWaitMs, world)
        if (reserved.outcome === 'held') {
          unsure = false
          meters?.moved('held', reserved.amount)
        }
        return reserved
      } catch (error) {
        unsure = true
        throw error
      } finally {
        // Nobody knows whether a try whose answer was lost made a hold, or still will. It is given up for good.
        if (unsure) void retryInBackground({ kind: 'resolve', value: releaseOf(reservation) })
      }
    },
    async resolve(resolution) {
      const op: Op = { kind: 'resolve', value: resolution }
      if (owed.has(resolution.id)) return { outcome: 'already', paid: 0n, loss: 0n, posted: 0n, held: 0n, hold: 0n }
      try {
        return count(await insist<Resolved>(op, resolveForMs))
      } catch (error) {
        if (isAway(error)) {
          owed.add(resolution.id)
          void retryInBackground(op).finally(() => owed.delete(resolution.id))
        }
        throw error
      }
    },
    async grant({ account, amount, note, actor }, within = database) {
      const [row] = await within.query<{ posted: bigint; held: bigint }>(GRANT, [
        newId(world),
        account,
        amount,
        note,
        actor,
      ])
      return row
    },
    async sweep() {
      await database.query(HEARTBEAT, [processId])
      const nowMs = world.elapsedMs()
      // Whoever could not speak may not judge others by their silence: they first get the time to be heard again.
      if (nowMs - heardMs > CUT_OFF_MS) judgeFromMs = nowMs + graceMs
      heardMs = nowMs
      if (nowMs < judgeFromMs) return 0
      const [row] = await database.query<{ gone: number; given_back: bigint }>(EXPIRE, [SILENT_SECONDS])
      if (row && row.given_back > 0n) meters?.moved('expired', row.given_back)
      return row?.gone ?? 0
    },
    async idle(forMs = Number.POSITIVE_INFINITY) {
      const done = Promise.all([shared.idle(), alone.idle()]).then(() => Promise.all(background))
      if (forMs === Number.POSITIVE_INFINITY) await done
      else await within(done, forMs, world).catch(() => undefined)
    },
    get pending() {
      return pending()
    },
  }
  return ledger
}

function isAway(error: unknown): boolean {
  return error instanceof Fault && error.kind === 'unavailable'
}

/** The same promise, but no longer than this. */
function within<T>(promise: Promise<T>, forMs: number, world: World): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = world.after(forMs, () =>
      reject(new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'the database is slow' } })),
    )
    promise.then(
      (value) => {
        cancel()
        resolve(value)
      },
      (error) => {
        cancel()
        reject(error)
      },
    )
  })
}

const HEARTBEAT = statement(
  'heartbeat',
  'insert into process (id) values ($1) on conflict (id) do update set heartbeat_at = now()',
  SHORT_MS,
)
const EXPIRE = statement('expire', 'select gone, given_back from ledger_expire(make_interval(secs => $1), 1000)')

const GRANT = statement('grant', 'select posted, held from ledger_grant($1, $2, $3, $4, $5)')

function releaseOf(reservation: Reservation): Resolution {
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
