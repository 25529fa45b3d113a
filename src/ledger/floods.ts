// Keys that are refused again and again. Their calls are decided together: the one that wants the least asks the database, once in a few milliseconds, and
// what it is told holds for all that came before it asked and want no less. So no refusal is older than its call, credits that were given anywhere
// count for the next one, and five thousand refusals a second cost the database a hundred looks at a row. Whoever is refused now and then is not concerned.
import { type Database, SHORT_MS, statement } from '../database/database.ts'
import type { Credits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { Reservation, Reserved } from './operation.ts'

interface Floods {
  /** Undefined for nearly all: the call's key is not being refused again and again. */
  of(reservation: Reservation): Flood | undefined
  /** Together with what else waits. `hold` asks for this call alone. */
  decide(flood: Flood, reservation: Reservation, hold: () => Promise<Reserved>): Promise<Reserved>
  note(reservation: Reservation, reserved: Reserved): void
}

interface Flood {
  /** A sum that halves every second. */
  refused: number
  refusedMs: number
  /** The last one was for want of credits. */
  isShort: boolean
  askedMs: number
  asking: boolean
  line: Waiting[]
}

interface Waiting {
  readonly reservation: Reservation
  readonly hold: () => Promise<Reserved>
  readonly resolve: (reserved: Reserved | Promise<Reserved>) => void
  readonly reject: (error: unknown) => void
}

/** So many refusals lately are a flood. */
const REFUSED_MIN = 20
const ASK_EVERY_MS = 10
const KEYS_MAX = 10_000
/** Refusals that are answered before others have their turn. */
const ANSWERS_AT_ONCE = 8

// Where nothing is leased, what is available is all that decides, and to look at it costs a tenth of the ledger's statement.
const LOOK = statement(
  'flood_look',
  `select posted - held as available from account where id = $1 and (frozen_until is null or frozen_until <= now())
     and not exists (select 1 from lease where account_id = $1 and amount > 0)`,
  SHORT_MS,
)

export function createFloods({ world, database }: { world: World; database: Database }): Floods {
  const floods = new Map<string, Flood>()
  const answers: Array<() => void> = []
  let answering = false

  function next(flood: Flood): void {
    if (flood.asking || flood.line.length === 0) return
    flood.asking = true
    const waitMs = flood.askedMs + ASK_EVERY_MS - world.elapsedMs()
    if (waitMs > 0) world.after(waitMs, () => ask(flood))
    else void ask(flood)
  }

  /** Undefined: there may be enough, or only the ledger's statement can tell. */
  async function look({ account, floor, want }: Reservation): Promise<Reserved | undefined> {
    const [row] = await database.query<{ available: Credits }>(LOOK, [account]).catch(() => [])
    return row && row.available < floor ? { outcome: 'short', required: want, available: row.available } : undefined
  }

  async function ask(flood: Flood): Promise<void> {
    flood.askedMs = world.elapsedMs()
    const { line } = flood
    flood.line = []
    const first = line.reduce((least, one) => (isLess(one.reservation, least.reservation) ? one : least))
    try {
      const reserved = (flood.isShort && (await look(first.reservation))) || (await first.hold())
      first.resolve(reserved)
      for (const one of line) if (one !== first) follow(one, alsoRefused(first.reservation, reserved, one.reservation))
    } catch (error) {
      first.reject(error)
      const isAway = error instanceof Fault && error.kind === 'unavailable'
      for (const one of line) {
        if (one === first) continue
        if (isAway) one.reject(error)
        else follow(one, undefined)
      }
    }
    flood.asking = false
    next(flood)
  }

  /** Refused with the first, or asking for itself. */
  function follow({ resolve, hold }: Waiting, refused: Reserved | undefined): void {
    if (!refused) {
      resolve(hold())
      return
    }
    answers.push(() => resolve(refused))
    if (answering) return
    answering = true
    setImmediate(answer)
  }

  /** A few in a turn of the event loop: calls of others are not kept waiting by answers that cost them nothing to wait for. */
  function answer(): void {
    for (const one of answers.splice(0, ANSWERS_AT_ONCE)) one()
    answering = answers.length > 0
    if (answering) setImmediate(answer)
  }

  return {
    of(reservation) {
      // What an idempotency key was used for, only the database knows.
      if (floods.size === 0 || reservation.idempotency) return undefined
      const flood = floods.get(nameOf(reservation))
      return flood && refusedLately(flood, world) >= REFUSED_MIN ? flood : undefined
    },
    decide: (flood, reservation, hold) =>
      new Promise((resolve, reject) => {
        flood.line.push({ reservation, hold, resolve, reject })
        next(flood)
      }),
    note(reservation, { outcome }) {
      if (outcome !== 'short' && outcome !== 'limited' && outcome !== 'frozen') return
      const name = nameOf(reservation)
      let flood = floods.get(name)
      if (!flood) {
        // Those who wait are decided all the same.
        if (floods.size >= KEYS_MAX) floods.clear()
        const never = { refused: 0, refusedMs: 0, isShort: false, askedMs: Number.NEGATIVE_INFINITY }
        flood = { ...never, asking: false, line: [] }
        floods.set(name, flood)
      }
      flood.refused = refusedLately(flood, world) + 1
      flood.refusedMs = world.elapsedMs()
      flood.isShort = outcome === 'short'
    },
  }
}

function refusedLately({ refused, refusedMs }: Flood, world: World): number {
  return refused * 0.5 ** ((world.elapsedMs() - refusedMs) / 1_000)
}

/** Jobs have a part of the system's limits to themselves. */
function nameOf({ account, key, job }: Reservation): string {
  return `${account} ${key}${job ? ' job' : ''}`
}

function isLess(one: Reservation, than: Reservation): boolean {
  return one.floor < than.floor || (one.floor === than.floor && one.tokens < than.tokens)
}

/** What another call of the same key is told, if it follows from what one was told that wants no more. */
function alsoRefused(asked: Reservation, told: Reserved, other: Reservation): Reserved | undefined {
  switch (told.outcome) {
    case 'short':
      return { ...told, required: other.want }
    case 'frozen':
      return told
    case 'limited':
      // Whoever cannot pay is told that; and how long to wait for tokens depends on how many are wanted.
      if (other.floor > told.available) return undefined
      return told.limit !== 'tokensPerMinute' || other.tokens === asked.tokens ? told : undefined
    default:
      return undefined
  }
}
