// What must be true of holds, leases and limits after every statement of the ledger, seen from outside: by the rows
// that it left, and by what its processes have admitted.
import type { Queryable, Statement } from '../../src/database/database.ts'
import type { Reservation } from '../../src/ledger/operation.ts'
import type { Process } from './process.ts'
import type { VirtualWorld } from './virtual-world.ts'

interface HoldRow {
  readonly id: string
  readonly key: string
  readonly process: string
  readonly amount: number
  readonly tokens: number
  readonly atMs: number
  readonly recalledMs: number | null
  /** Of a lease: what it has of limits and budgets in requests. */
  readonly requests?: number | null
}

interface Counter {
  /** Empty for the whole gateway. */
  readonly account: string
  readonly scope: string
  readonly name: string
  readonly unit: string
  readonly span: string
  readonly max: number
  readonly soft: boolean
  readonly used: number
}

interface Share {
  readonly process: string
  readonly unit: string
  readonly amount: number
}

interface Spent {
  readonly id: string
  readonly key: string
  readonly kind: string
  readonly amount: number
  /** Neither expired nor given up. */
  readonly isCall: boolean
}

interface LotRow {
  readonly id: string
  readonly remaining: number
  readonly held: number
  /** What holds took of it, and what transfers moved. */
  readonly holds: number
  readonly moved: number
}

interface State {
  readonly posted: number
  readonly held: number
  readonly lots: readonly LotRow[]
  readonly holds: readonly HoldRow[]
  readonly leases: readonly HoldRow[]
  /** Settlements that are not in the ledger: what they will take out of their leases. */
  readonly journal: ReadonlyArray<{ readonly id: string; readonly amount: number }>
  readonly counters: readonly Counter[]
  readonly shares: readonly Share[]
  readonly spent: readonly Spent[]
}

/** Of one account, where it lives: while it moves, in the ledger that it leaves. */
const SEE = {
  name: 'books',
  text: `select a.held::int as held, a.posted::int as posted,
    (select coalesce(json_agg(json_build_object('id', l.id, 'remaining', l.remaining, 'held', l.held,
       'holds', (select coalesce(sum((p ->> 1)::int), 0) from hold h, jsonb_array_elements(h.lots) p where h.account_id = $1 and h.lots is not null and p ->> 0 = l.id),
       'moved', (select coalesce(sum((t.lots ->> l.id)::int), 0) from transfer t where t.account_id = $1 and t.lots is not null))), '[]')
     from lot l where l.account_id = $1) as lots,
    (select coalesce(json_agg(json_build_object('id', id, 'key', key_id, 'process', case when job then 'jobs' else process_id end, 'amount', amount,
       'tokens', tokens, 'atMs', extract(epoch from created_at) * 1000)), '[]') from hold where account_id = $1) as holds,
    (select coalesce(json_agg(json_build_object('id', id, 'key', key_id, 'process', process_id, 'amount', amount,
       'recalledMs', extract(epoch from recalled_at) * 1000, 'requests', (select sum((s.value ->> 0)::int) from jsonb_each(slices) s))), '[]')
     from lease where account_id = $1) as leases,
    (select coalesce(json_agg(json_build_object('id', id, 'amount', charged)), '[]') from journal where account_id = $1) as journal,
    (select coalesce(json_agg(json_build_object('account', account_id, 'scope', scope, 'name', name, 'unit', unit, 'span', span, 'max', max, 'soft', soft,
       'used', used + case when account_id = '' and unit = 'credits' then (select coalesce(sum(x.charged), 0) from (
         select u.charged from usage_hour u where u.hour >= counter.since union all select j.charged from journal j) x) else 0 end)), '[]')
     from counter where account_id in ('', $1)) as counters,
    (select coalesce(json_agg(json_build_object('process', process_id, 'unit', unit, 'amount', amount)), '[]') from quota_slice) as shares,
    (select coalesce(json_agg(json_build_object('id', id, 'key', key_id, 'kind', outcome, 'amount', charged, 'isCall', endpoint <> '')), '[]')
     from usage where account_id = $1) as spent
    from account a where a.id = $1 and a.ledger is null and a.frozen_until is distinct from 'infinity'`,
}

interface Admitted {
  readonly process: Process
  readonly key: string
  readonly amount: number
  readonly tokens: number
  /** When it asked, and when it was let in. */
  readonly cameMs: number
  readonly atMs: number
  /** Its lease was taken from a process that was believed dead. */
  excused: boolean
}

/** What was once held for a call, and by whom. */
interface Covered {
  readonly process: string
  readonly amount: number
  /** Its process was believed dead, and what it had of the gateway's limits was given to others. */
  shared: boolean
  /** And so was what it had leased for the call. */
  unheld: boolean
}

/** A bucket of the sliding minute is a second: what came at its end leaves with it. */
const MINUTE_MS = 59_000
/** After so long what was recalled is back, in fair weather and in foul. */
const BACK_MS = { fair: 3_000, foul: 40_000 }

export class Books {
  readonly #world: VirtualWorld
  readonly #account: string
  readonly #patienceMs: number
  readonly #admitted = new Map<string, Admitted>()
  /** Those that counted for limits, in the order of their admission. */
  readonly #counted = new Map<string, { readonly key: string; readonly tokens: number; readonly atMs: number }>()
  /** All that had a hold or a lease, for good. */
  readonly #covered = new Map<string, Covered>()
  /** By call: dead processes that had admitted it with a lease, until others have taken that lease. */
  readonly #orphans = new Map<string, string>()
  /** Calls that have spent something. */
  readonly #spenders = new Set<string>()
  readonly #entered: Array<{ readonly id: string; readonly tokens: number; readonly cameMs: number }> = []
  #shares: readonly Share[] = []
  #leased = new Map<string, number>()
  #leasedCalls = 0

  constructor(world: VirtualWorld, account: string, fair: boolean) {
    this.#world = world
    this.#account = account
    this.#patienceMs = fair ? BACK_MS.fair : BACK_MS.foul
  }

  /** Calls that had no hold of their own. */
  get leasedCalls(): number {
    return this.#leasedCalls
  }

  /** A process was told that a call may go. */
  admitted(process: Process, { id, key, tokens }: Reservation, held: bigint, cameMs: number): void {
    const atMs = this.#world.nowMs()
    const amount = Number(held)
    this.#admitted.set(id, { process, key, amount, tokens, cameMs, atMs, excused: false })
    this.#covered.set(id, { process: process.id, amount, shared: false, unheld: false })
    this.#entered.push({ id, tokens, cameMs })
  }

  /** To be called after a statement. Answers what is wrong. */
  async look({ name = '' }: Statement, on: Queryable): Promise<string[]> {
    if (!/^(ledger_|journal_|lease_|quota_|grant)/.test(name)) return []
    const [state] = await on.query<State>(SEE, [this.#account])
    return state ? this.#all(name, state) : []
  }

  /**
   * To be called when a vendor hears of a call: what covers it must have been there before. Undefined: the account
   * does not live there.
   */
  async heard(id: string, on: Queryable): Promise<string[] | undefined> {
    const [state] = await on.query<State>(SEE, [this.#account])
    if (!state) return undefined
    const known =
      [...state.holds, ...state.journal, ...state.spent].some((row) => row.id === id) || this.#admitted.has(id)
    return [...(known ? [] : [`${id} reached a vendor without a hold`]), ...this.#all('heard', state)]
  }

  #all(name: string, state: State): string[] {
    this.#remember(state)
    const covers = this.#covers(name, state)
    return [
      ...this.#holds(state),
      ...this.#lots(state),
      ...covers,
      ...this.#recalls(state),
      ...this.#limits(state),
      ...this.#system(state),
    ]
  }

  #holds({ held, holds, leases }: State): string[] {
    const sum = sumOf([...holds, ...leases])
    return held === sum ? [] : [`${held} is held, and ${sum} by holds and leases`]
  }

  /** What is in lots is what moved of them; and what is held of them, or beside them, is there. */
  #lots({ posted, held, lots }: State): string[] {
    const plain = lots.reduce((left, lot) => left - lot.remaining, posted)
    const plainHeld = lots.reduce((left, lot) => left - lot.held, held)
    return [
      ...(plainHeld < 0 || plainHeld > plain ? [`${plainHeld} of ${plain} plain credits are held`] : []),
      ...lots
        .filter((lot) => lot.held !== lot.holds || lot.remaining !== lot.moved)
        .map((lot) => `lot ${lot.id} is wrong: ${JSON.stringify(lot)}`),
    ]
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
    const isTaken = (process: string) =>
      name === 'ledger_expire' && (leased.get(process) ?? 0) < (this.#leased.get(process) ?? 0)
    for (const [id, process] of this.#orphans)
      if (ended.has(id) || isTaken(process)) {
        this.#orphans.delete(id)
        if (!ended.has(id)) this.#unhold(id)
      }
    for (const [id, call] of this.#admitted) {
      if (!this.#counted.has(id)) {
        this.#leasedCalls += 1
        this.#counted.set(id, call)
      }
      const { process, amount, excused } = call
      if (ended.has(id) || process.dead) {
        this.#admitted.delete(id)
        if (process.dead && !own.has(id)) this.#orphans.set(id, process.id)
      } else if (isTaken(process.id)) {
        call.excused = true
        this.#unhold(id)
      } else if (!own.has(id) && !excused)
        open.set(process.id, (open.get(process.id) ?? 0) + (written.get(id) ?? amount))
    }
    this.#leased = leased
    return [...open]
      .filter(([process, amount]) => amount > (leased.get(process) ?? 0))
      .map(([process, amount]) => `${process} has admitted ${amount} on a lease of ${leased.get(process) ?? 0}`)
  }

  #unhold(id: string): void {
    const covered = this.#covered.get(id)
    if (covered) covered.unheld = true
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

  /** What was there before this look, and will be asked for later. */
  #remember({ holds, journal, spent, shares }: State): void {
    for (const { id, process, amount } of holds)
      if (!this.#covered.has(id)) this.#covered.set(id, { process, amount, shared: false, unheld: false })
    for (const { id } of [...journal, ...spent]) this.#spenders.add(id)
    const before = new Set(this.#shares.map(({ process }) => process))
    const now = new Set(shares.map(({ process }) => process))
    // It was asked for while the process had a share, and cannot be asked for anew.
    for (const [id, covered] of this.#covered)
      if (before.has(covered.process) && !now.has(covered.process) && !this.#spenders.has(id)) covered.shared = true
    this.#shares = shares
  }

  /** More than was held for them: a vendor reported more than it was asked for, or the hold was gone. */
  #beyond(spent: ReadonlyMap<string, number>, gone: 'shared' | 'unheld'): number {
    let sum = 0
    for (const [id, amount] of spent) {
      const covered = this.#covered.get(id)
      sum += covered && !covered[gone] ? Math.max(0, amount - covered.amount) : amount
    }
    return sum
  }

  /** Of accounts and keys: all that was spent is counted, and with what is held it is no more than is allowed. */
  #limits({ counters, holds, leases, journal, spent }: State): string[] {
    const wrong: string[] = []
    const ended = new Set(spent.map((row) => row.id))
    /** What a process lost by its death, a hold or what its lease covered, is no request: its place is free again. */
    const released = new Set(spent.filter(({ isCall }) => !isCall).map(({ id }) => id))
    const isLost = (id: string) => released.has(id) || this.#covered.get(id)?.unheld === true
    const beyond = this.#beyond(actual({ journal, spent }), 'unheld')
    for (const { account, scope, name, unit, max, used, soft } of counters) {
      if (account === '') continue
      // Budgets of these stories are for keys, each from the beginning.
      const whose = name === 'budget' ? scope.slice(scope.indexOf('=') + 1) : scope
      const within = ({ key }: { readonly key: string }) => whose === 'account' || whose === key
      const own = holds.filter(within)
      if (unit === 'credits') {
        const should = sumOf(spent.filter(within))
        if (used !== should) wrong.push(`${name} of ${scope} counts ${used} and it is ${should}`)
        const held = sumOf([...own, ...leases.filter(within)])
        if (used + held > max + beyond && !soft)
          wrong.push(`${scope} has ${used} spent and ${held} held of ${name}: ${max}`)
      }
      if (unit === 'calls' && own.length > max) wrong.push(`${scope} has ${own.length} calls at once of ${max}`)
      const calls = [...this.#counted].map(([id, call]) => ({ id, ...call }))
      const lately = calls.filter((call) => within(call) && !isLost(call.id))
      if (name !== 'budget') wrong.push(...this.#minute(`${name} of ${scope}`, { unit, max }, lately, ended))
      else if (unit === 'requests') {
        // One that is settled after all counts, though others may have had its place.
        const paid = spent.filter((row) => row.isCall && within(row))
        const late = paid.filter(({ id }) => id.endsWith('+late') || this.#covered.get(id)?.unheld).length
        const given = own.length + leases.filter(within).reduce((sum, lease) => sum + (lease.requests ?? 0), 0)
        if (used !== paid.length + given)
          wrong.push(`${scope} counts ${used} requests: ${paid.length} calls have ended, and ${given} are given`)
        if (used > max + late && !soft) wrong.push(`${scope}: ${used} of ${max} requests were admitted, ${late} late`)
      }
    }
    return wrong
  }

  /** No 60 seconds admit more than the limit. */
  #minute(
    name: string,
    { unit, max }: Pick<Counter, 'unit' | 'max'>,
    calls: ReadonlyArray<{ readonly id: string; readonly tokens: number; readonly atMs: number }>,
    ended: ReadonlySet<string>,
  ): string[] {
    const sinceMs = this.#world.nowMs() - MINUTE_MS
    const lately = calls.filter(({ atMs }) => atMs > sinceMs)
    const tokens = lately.reduce((sum, call) => sum + (ended.has(call.id) ? 0 : call.tokens), 0)
    const counted = unit === 'requests' ? lately.length : unit === 'tokens' ? tokens : 0
    return counted > max ? [`${name}: ${counted} of ${max} ${unit} were admitted`] : []
  }

  /**
   * Of the whole gateway, whose processes count by themselves: what was spent and what calls hold together is no more
   * than the limit, whatever the rows say; and the rows say what was spent.
   */
  #system({ counters, holds, journal, spent }: State): string[] {
    const wrong: string[] = []
    const paid = actual({ journal, spent })
    const sum = [...paid.values()].reduce((all, amount) => all + amount, 0)
    // A process gives back what a call did not use when its settlement is in the journal.
    const ended = new Set(paid.keys())
    const jobs = holds.filter(({ process }) => process === 'jobs')
    const ofJobs = new Set(jobs.map(({ id }) => id))
    const open = [...this.#admitted]
      .filter(([id]) => !paid.has(id) && !ofJobs.has(id) && this.#covered.get(id)?.shared === false)
      .map(([, call]) => call)
    const lately = this.#entered.map(({ id, tokens, cameMs }) => ({ id, tokens, atMs: cameMs }))
    for (const { account, name, unit, max, used } of counters) {
      if (account !== '') continue
      if (unit === 'credits') {
        const held = sumOf(open) + sumOf(jobs)
        if (sum + held > max + this.#beyond(paid, 'shared'))
          wrong.push(`the gateway has ${sum} spent and ${held} held of ${name}: ${max}`)
        // A row of the journal that was posted before, by a try whose answer was lost, counts until it is found to be
        // so.
        const counted = sumOf(spent) + sumOf(journal)
        if (used !== counted) wrong.push(`${name} of the gateway counts ${used} and it is ${counted}`)
      }
      if (unit === 'calls' && open.length + jobs.length > max)
        wrong.push(`the gateway has ${open.length} calls and ${jobs.length} jobs at once of ${max}`)
      wrong.push(...this.#minute(`${name} of the gateway`, { unit, max }, lately, ended))
    }
    return wrong
  }
}

/** By call: what it spent, in the ledger or on its way into them. */
function actual({ journal, spent }: Pick<State, 'journal' | 'spent'>): Map<string, number> {
  return new Map([...journal, ...spent].map(({ id, amount }) => [id, amount]))
}

function sumOf(rows: ReadonlyArray<{ readonly amount: number }>): number {
  return rows.reduce((sum, { amount }) => sum + amount, 0)
}
