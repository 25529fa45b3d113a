// What must be true of holds, leases and limits after every statement of the ledger, seen from outside: by the rows that it
// left, and by what its processes have admitted.
import type { Queryable, Statement } from '../../src/database/database.ts'
import type { Reservation } from '../../src/ledger/operation.ts'
import type { Process } from './process.ts'
import type { VirtualWorld } from './virtual-world.ts'

interface Row {
  readonly id: string
  readonly key: string
  readonly process: string
  readonly amount: number
  readonly tokens: number
  readonly atMs: number
  readonly recalledMs: number | null
}

interface Scope {
  readonly account: string
  readonly scope: string
  readonly limits: Readonly<Record<string, number>>
  readonly held: number
  readonly open: number
  readonly spent: number
  readonly requests: number
  readonly tokens: number
}

interface Spent {
  readonly id: string
  readonly key: string
  readonly kind: string
  readonly amount: number
}

interface State {
  readonly held: number
  readonly holds: readonly Row[]
  readonly leases: readonly Row[]
  /** Settlements that are not in the books: what they will take out of their leases. */
  readonly journal: ReadonlyArray<{ readonly id: string; readonly process: string; readonly amount: number }>
  readonly scopes: readonly Scope[]
  readonly spent: readonly Spent[]
}

const SEE = {
  name: 'books',
  text: `select (select coalesce(sum(held), 0)::int from account) as held,
    (select coalesce(json_agg(json_build_object('id', id, 'key', key_id, 'process', case when job then 'jobs' else process_id end, 'amount', amount,
       'tokens', tokens, 'atMs', extract(epoch from created_at) * 1000)), '[]') from hold) as holds,
    (select coalesce(json_agg(json_build_object('id', id, 'key', key_id, 'process', process_id, 'amount', amount,
       'recalledMs', extract(epoch from recalled_at) * 1000)), '[]') from lease) as leases,
    (select coalesce(json_agg(json_build_object('id', id, 'process', process_id, 'amount', charged)), '[]') from journal) as journal,
    (select coalesce(json_agg(json_build_object('account', account_id, 'scope', scope, 'held', held, 'open', open_calls, 'spent', total_spent,
       'requests', requests_used, 'tokens', tokens_used, 'limits',
       (select coalesce(json_object_agg(key, value::bigint), '{}') from jsonb_each_text(limits)))), '[]') from limited) as scopes,
    (select coalesce(json_agg(json_build_object('id', id, 'key', key_id, 'kind', outcome, 'amount', charged)), '[]') from usage) as spent`,
}

interface Admitted {
  readonly process: Process
  readonly key: string
  readonly amount: number
  readonly tokens: number
  readonly atMs: number
  /** Its lease was taken from a process that was believed dead. */
  excused: boolean
}

/** A bucket of the sliding minute is a second: what came at its end leaves with it. */
const MINUTE_MS = 59_000
/** After so long what was recalled is back, in fair weather and in foul. */
const BACK_MS = { fair: 3_000, foul: 40_000 }

export class Books {
  readonly #world: VirtualWorld
  readonly #patienceMs: number
  readonly #admitted = new Map<string, Admitted>()
  /** Those that counted for limits, in the order of their admission. */
  readonly #counted = new Map<string, { readonly key: string; readonly tokens: number; readonly atMs: number }>()
  #leased = new Map<string, number>()
  #leasedCalls = 0

  constructor(world: VirtualWorld, fair: boolean) {
    this.#world = world
    this.#patienceMs = fair ? BACK_MS.fair : BACK_MS.foul
  }

  /** Calls that had no hold of their own. */
  get leasedCalls(): number {
    return this.#leasedCalls
  }

  /** A process was told that a call may go. */
  admitted(process: Process, { id, key, tokens }: Reservation, amount: bigint): void {
    const atMs = this.#world.nowMs()
    this.#admitted.set(id, { process, key, amount: Number(amount), tokens, atMs, excused: false })
  }

  /** To be called after a statement. Answers what is wrong. */
  async look({ name = '' }: Statement, on: Queryable): Promise<string[]> {
    if (!/^(ledger_|journal_|lease_|limited_|expire|grant)/.test(name)) return []
    const [state] = await on.query<State>(SEE)
    return this.#all(name, state!)
  }

  /** To be called when a vendor hears of a call: what covers it must have been there before. */
  async heard(id: string, on: Queryable): Promise<string[]> {
    const [state] = await on.query<State>(SEE)
    const known =
      [...state!.holds, ...state!.journal, ...state!.spent].some((row) => row.id === id) || this.#admitted.has(id)
    return [...(known ? [] : [`${id} reached a vendor without a hold`]), ...this.#all('heard', state!)]
  }

  #all(name: string, state: State): string[] {
    return [...this.#holds(state), ...this.#covers(name, state), ...this.#recalls(state), ...this.#limits(state)]
  }

  #holds({ held, holds, leases }: State): string[] {
    const sum = sumOf([...holds, ...leases])
    return held === sum ? [] : [`${held} is held, and ${sum} by holds and leases`]
  }

  /** Every call under way has a hold of its own, or is covered by what its process has leased. */
  #covers(name: string, { holds, leases, journal, spent }: State): string[] {
    const ended = new Set(spent.map(({ id }) => id))
    const written = new Map(journal.map((row) => [row.id, row.amount]))
    const own = new Set(holds.map(({ id }) => id))
    const open = new Map<string, number>()
    for (const { id, key, tokens, atMs } of holds)
      if (!this.#counted.has(id)) this.#counted.set(id, { key, tokens, atMs })
    const leased = new Map<string, number>()
    for (const { process, amount } of leases) leased.set(process, (leased.get(process) ?? 0) + amount)
    for (const [id, call] of this.#admitted) {
      if (!this.#counted.has(id)) {
        this.#leasedCalls += 1
        this.#counted.set(id, call)
      }
      const { process, amount, excused } = call
      if (ended.has(id) || process.dead) this.#admitted.delete(id)
      else if (name === 'expire' && (leased.get(process.id) ?? 0) < (this.#leased.get(process.id) ?? 0))
        call.excused = true
      else if (!own.has(id) && !excused) open.set(process.id, (open.get(process.id) ?? 0) + (written.get(id) ?? amount))
    }
    this.#leased = leased
    return [...open]
      .filter(([process, amount]) => amount > (leased.get(process) ?? 0))
      .map(([process, amount]) => `${process} has admitted ${amount} on a lease of ${leased.get(process) ?? 0}`)
  }

  /** What was asked for is back in time, but for what calls need. */
  #recalls({ leases, holds }: State): string[] {
    const own = new Set(holds.map(({ id }) => id))
    const processes = new Map([...this.#admitted.values()].map(({ process }) => [process.id, process]))
    return leases
      .filter(({ recalledMs }) => recalledMs !== null && this.#world.nowMs() - recalledMs > this.#patienceMs)
      .filter(({ process }) => processes.get(process)?.slept === false)
      .filter(({ process, amount }) => {
        const open = [...this.#admitted].filter(([id, call]) => call.process.id === process && !own.has(id))
        return amount > sumOf(open.map(([, call]) => call))
      })
      .map(({ id, process }) => `${process} keeps ${id}, which was recalled`)
  }

  #limits({ scopes, holds, leases, spent }: State): string[] {
    const wrong: string[] = []
    const actual = new Map(spent.map((row) => [row.id, row]))
    for (const { account, scope, limits, held, open, spent: counted } of scopes) {
      if (account === '') continue
      const within = ({ key }: { readonly key: string }) => scope === 'account' || scope === key
      const own = holds.filter(within)
      const is = [held, open, counted]
      const should = [sumOf([...own, ...leases.filter(within)]), own.length, sumOf(spent.filter(within))]
      // Whatever limits only the minute counts nothing else.
      const isMoney = Object.keys(limits).some((name) => !name.endsWith('PerMinute'))
      if (isMoney && String(is) !== String(should))
        wrong.push(`${scope} counts ${is} and has ${should} (held, open, spent)`)
      wrong.push(...this.#minute(scope, limits, within, actual))
    }
    return [...wrong, ...this.#shares({ scopes, holds, leases, spent })]
  }

  #minute(
    scope: string,
    { requestsPerMinute, tokensPerMinute }: Scope['limits'],
    within: (call: { readonly key: string }) => boolean,
    ended: ReadonlyMap<string, unknown>,
  ): string[] {
    const sinceMs = this.#world.nowMs() - MINUTE_MS
    const lately = [...this.#counted].filter(([, call]) => call.atMs > sinceMs && within(call))
    const tokens = lately.reduce((sum, [id, call]) => sum + (ended.has(id) ? 0 : call.tokens), 0)
    return [
      ...(lately.length > (requestsPerMinute ?? Number.POSITIVE_INFINITY)
        ? [`${scope} admitted ${lately.length} of ${requestsPerMinute} a minute`]
        : []),
      ...(tokens > (tokensPerMinute ?? Number.POSITIVE_INFINITY)
        ? [`${scope} admitted ${tokens} tokens of ${tokensPerMinute} a minute`]
        : []),
    ]
  }

  /** The shares of the system's limits together are not more than the limits, and count everything. */
  #shares({ scopes, holds, leases, spent }: Omit<State, 'held' | 'journal'>): string[] {
    const system = scopes.filter(({ account }) => account === '')
    const whole = system.find(({ scope }) => scope === 'system')
    if (!whole) return []
    const wrong: string[] = []
    const shares = system.filter(({ scope, limits }) => scope !== 'system' && Object.keys(limits).length > 0)
    for (const { scope, held } of shares) {
      const has = sumOf([...holds, ...leases].filter(({ process }) => scope === `system@${process}`))
      if (has !== held) wrong.push(`${scope} counts ${held} and has ${has}`)
    }
    const counted = system.reduce((sum, row) => sum + row.spent, 0)
    if (counted !== sumOf(spent)) wrong.push(`the system counts ${counted} spent, and it is ${sumOf(spent)}`)
    for (const [name, max] of Object.entries(whole.limits)) {
      const [usedOf, kept] = name.startsWith('spend')
        ? [(row: Scope) => row.held + row.spent, whole.spent]
        : [(row: Scope) => (name === 'tokensPerMinute' ? row.tokens : row.requests), 0]
      // A vendor may have reported more than was asked for, and that is more than anybody was allowed.
      const most = Math.max(max, kept + shares.reduce((sum, row) => sum + usedOf(row), 0))
      const given = shares.reduce((sum, { limits }) => sum + (limits[name] ?? 0), kept)
      if (given > most) wrong.push(`the shares of ${name} are ${given} of ${max}`)
    }
    return [...wrong, ...this.#minute('system', whole.limits, () => true, new Map(spent.map((row) => [row.id, row])))]
  }
}

function sumOf(rows: ReadonlyArray<{ readonly amount: number }>): number {
  return rows.reduce((sum, { amount }) => sum + amount, 0)
}
