// Purses of an account: making them, putting credits in and taking them out, and what became of them. Calls change them
// in functions.sql.
import { accountMoving, accountUnknown } from '../../admission/accounts.ts'
import type { By } from '../../database/audit.ts'
import { type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { DAY_MS, dayNumber, formatDay, monthStart, parseDay } from '../../kernel/calendar.ts'
import { CREDITS_MAX, type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { asView, type Page, type Paging } from '../../kernel/view.ts'
import { newId, type World } from '../../kernel/world.ts'
import {
  type PurseMargins,
  type PurseMovement,
  type PurseStatement,
  type PurseView,
  purseMovement,
  purseView,
} from './views.ts'

interface PurseFilter extends Paging {
  /** A part of its id or name. */
  readonly search?: string | undefined
  readonly status?: PurseView['status'] | undefined
}

interface Creation {
  readonly id: string
  readonly name: string
  readonly low: Credits | null
  readonly credits: Credits
}

interface Granting {
  /** Below zero: taken back. */
  readonly amount: Credits
  readonly kind?: 'grant' | 'topup'
  readonly note: string | null
  /** Makes it once. */
  readonly reference: string | undefined
}

interface Change {
  readonly name?: string | undefined
  readonly low?: Credits | null | undefined
  readonly status?: PurseView['status'] | undefined
  readonly note?: string | undefined
}

interface PurseRow {
  readonly id: string
  readonly name: string
  readonly status: PurseView['status']
  readonly posted: bigint
  readonly held: bigint
  readonly low: bigint | null
  readonly created_at: Date
  readonly moved_at: Date | null
}

/** What a movement without a call says. */
interface Entry {
  readonly account: string
  readonly purse: string
  readonly kind: PurseMovement['kind']
  readonly by: Credits
  readonly note: string | null
  readonly reference?: string | undefined
  readonly actor: string
}

interface Turning extends Pick<Entry, 'account' | 'purse' | 'note' | 'actor'> {
  readonly status: PurseView['status']
}

/** For the audit log. */
interface Changed {
  readonly account: string
  readonly id: string
  readonly by: By
  readonly action: 'purse.create' | 'purse.change' | 'purse.grant'
  readonly detail?: Readonly<Record<string, unknown>>
  /** Undefined: there was none. */
  readonly before: PurseView | undefined
}

const told = ({ name, status, low, balance }: PurseView) => ({ name: name || null, status, low, balance })

type PurseDeps = Pick<CoreParts, 'database' | 'world' | 'audit'>

/** Until the transaction ends nothing else changes it. */
export async function lockPurse(tx: Queryable, account: string, id: string): Promise<PurseRow> {
  const [row] = await tx.query<PurseRow>(LOCK, [account, id])
  if (!row) throw unknownPurse(id)
  return row
}

export const movePurse = (tx: Queryable, world: World, { account, purse, kind, by, note, reference, actor }: Entry) =>
  tx.query(MOVE, [account, newId(world), purse, kind, note, reference ?? null, actor, by])

export async function findPurse(on: Queryable, account: string, id: string): Promise<PurseView> {
  const [row] = await on.query<PurseRow>(FIND, [account, id])
  if (!row) throw unknownPurse(id)
  return view(row)
}

/**
 * Begins the ids of top-ups by a payment provider, which are the references of what they moved, and of nothing else.
 */
export const TOP_UP = 'top_'

export type Purses = ReturnType<typeof createPurses>

export function createPurses({ database, world, audit }: PurseDeps) {
  const lock = lockPurse
  const move = (tx: Queryable, entry: Entry) => movePurse(tx, world, entry)

  async function put(tx: Queryable, row: PurseRow, account: string, entry: Granting & { actor: string }) {
    const { amount, kind = 'grant', reference, note, actor } = entry
    const [before] = reference === undefined ? [] : await tx.query<{ by: bigint }>(MADE, [account, row.id, reference])
    if (before && before.by === amount) return
    if (before)
      throw new Fault('conflict', {
        message: `The reference ${JSON.stringify(reference)} was used for another amount: ${formatCredits(before.by)}.`,
      })
    if (amount === 0n) throw invalid('"credits" must not be 0.', 'credits')
    if (amount > 0n && row.status === 'closed')
      throw new Fault('conflict', { message: 'This purse is closed, and takes no more credits.' })
    if (row.posted + amount > CREDITS_MAX) throw invalid('"credits" is more than a purse can have.', 'credits')
    const free = row.posted - row.held
    if (-amount > free)
      throw new Fault('conflict', {
        message: `Only ${formatCredits(free)} credits can be taken back from this purse: it has ${formatCredits(row.posted)}, and running calls hold ${formatCredits(row.held)}. Nothing was taken.`,
      })
    await move(tx, {
      account,
      purse: row.id,
      kind: amount < 0n ? 'takeback' : kind,
      by: amount,
      note,
      reference,
      actor,
    })
  }

  async function turn(tx: Queryable, row: PurseRow, { status, ...about }: Turning): Promise<void> {
    if (row.status === 'closed') throw new Fault('conflict', { message: 'This purse is closed for good.' })
    const free = row.posted - row.held
    // What running calls give back later can be taken back then.
    if (status === 'closed' && free > 0n) await move(tx, { ...about, kind: 'takeback', by: -free })
    await move(tx, { ...about, kind: status === 'open' ? 'reopened' : status, by: 0n })
  }

  /** Nothing is written where nothing changed, such as by a grant that was made before. */
  async function changed(tx: Queryable, { account, before, ...about }: Changed): Promise<PurseView> {
    const { id } = about
    const after = await find(account, id, tx)
    const [was, is] = [before ? told(before) : {}, told(after)]
    if (JSON.stringify(was) === JSON.stringify(is)) return after
    const { action, detail = {}, by } = about
    await audit.write(tx, by, {
      action,
      object: `${account}/${id}`,
      detail: { account, name: after.name || undefined, ...detail },
      before: was,
      after: is,
    })
    return after
  }

  const find = (account: string, id: string, on: Queryable = database) => findPurse(on, account, id)

  return {
    /** The same customer has one purse, however often it is created; what it is given then is given once. */
    create: (account: string, { id, name, low, credits }: Creation, by: By): Promise<PurseView> =>
      database.transaction(async (tx) => {
        await requireAccount(tx, account)
        const [made] = await tx.query(CREATE, [account, id, name, low])
        const row = await lock(tx, account, id)
        if (credits < 0n) throw invalid('"credits" must not be below 0.', 'credits')
        const first = { amount: credits, note: null, reference: CREATION, actor: by.actor }
        if (credits > 0n) await put(tx, row, account, first)
        return changed(tx, { account, id, by, action: 'purse.create', before: made ? undefined : view(row) })
      }),
    async list(account: string, { search, status, cursor, limit }: PurseFilter): Promise<Page<PurseView>> {
      const like = search === undefined ? null : `%${search.toLowerCase().replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
      const rows = await database.query<PurseRow>(LIST, [account, like, status ?? null, cursor ?? '', limit + 1])
      return { items: rows.slice(0, limit).map(view), next: rows.length > limit ? (rows[limit - 1]?.id ?? null) : null }
    },
    find,
    change: (account: string, id: string, input: Change, by: By): Promise<PurseView> =>
      database.transaction(async (tx) => {
        await requireAccount(tx, account)
        const row = await lock(tx, account, id)
        const { name = row.name, low = row.low, status = row.status, note = null } = input
        await tx.query(CHANGE, [account, id, name, low])
        if (status !== row.status) await turn(tx, row, { account, purse: id, status, note, actor: by.actor })
        return changed(tx, { account, id, by, action: 'purse.change', detail: { note }, before: view(row) })
      }),
    grant: (account: string, id: string, input: Granting, by: By): Promise<PurseView> =>
      database.transaction(async (tx) => {
        if (input.reference?.startsWith(TOP_UP)) throw invalid(`reference: must not begin with ${TOP_UP}.`, 'reference')
        await requireAccount(tx, account)
        const row = await lock(tx, account, id)
        await put(tx, row, account, { ...input, actor: by.actor })
        const { amount, kind = 'grant', reference, note } = input
        const detail = { amount: formatCredits(amount), kind: amount < 0n ? 'takeback' : kind, reference, note }
        return changed(tx, { account, id, by, action: 'purse.grant', detail, before: view(row) })
      }),
    async movements(account: string, id: string, { cursor, limit }: Paging): Promise<Page<PurseMovement>> {
      await find(account, id)
      const rows = await database.query<MovementRow>(MOVEMENTS, [account, id, cursor ?? null, limit + 1])
      const next = rows.length > limit ? (rows[limit - 1]?.id ?? null) : null
      return { items: rows.slice(0, limit).map(movementOf), next }
    },
    /** month: such as 2026-11; the present one by default. */
    async statement(account: string, id: string, given: string | undefined): Promise<PurseStatement> {
      const { name } = await find(account, id)
      const from = given === undefined ? monthStart(Math.floor(world.nowMs() / DAY_MS)) : parseDay(`${given}-01`)
      if (from === undefined || from < FIRST_DAY) throw invalid('"month" must be a month such as 2026-11.', 'month')
      const values = [account, id, new Date(from * DAY_MS), new Date(monthStart(from, 1) * DAY_MS)]
      const [sums] = await database.query<SumsRow>(SUMS, values)
      const lines = await database.query<LineRow>(LINES, values)
      const { opening = 0n, granted = 0n, taken = 0n, spent = 0n } = sums ?? {}
      return {
        purse: id,
        name,
        month: formatDay(from).slice(0, 7),
        opening: formatCredits(opening),
        granted: formatCredits(granted),
        takenBack: formatCredits(taken),
        spent: formatCredits(spent),
        closing: formatCredits(opening + granted - taken - spent),
        lines: lines.map(({ product, list, calls, spent }) => ({ product, list, calls, spent: formatCredits(spent) })),
      }
    },
    async margins(
      account: string,
      { fromMs, toMs }: { fromMs?: number | undefined; toMs?: number | undefined },
    ): Promise<PurseMargins> {
      const values = [account, new Date(fromMs ?? 0), new Date(toMs ?? LAST_MS)]
      const [purses, products] = await Promise.all([
        database.query<SoldRow>(BY_PURSE, values),
        database.query<SoldRow>(BY_PRODUCT, values),
      ])
      const all = products.reduce(
        (sum, { calls, sold, paid }) => ({ calls: sum.calls + calls, sold: sum.sold + sold, paid: sum.paid + paid }),
        { calls: 0, sold: 0n, paid: 0n },
      )
      return {
        ...soldOf(all),
        purses: purses.map((row) => ({ purse: row.id, name: row.name ?? '', ...soldOf(row) })),
        products: products.map((row) => ({ product: row.id, ...soldOf(row) })),
      }
    },
  }
}

/** The reference of what a purse is given when it is created. */
const CREATION = 'created'
const FIRST_DAY = dayNumber({ year: 2000, month: 1, day: 1 })
const LAST_MS = Date.UTC(3000, 0, 1)

/**
 * Throws not_found, or conflict while it moves to another database, where a change made here would be missing. Before
 * its purses, as calls lock them.
 */
export async function requireAccount(on: Queryable, account: string): Promise<{ readonly isOpen: boolean }> {
  const [row] = await on.query<{ moving: boolean; open: boolean }>(ACCOUNT, [account])
  if (!row) throw accountUnknown()
  if (row.moving) throw accountMoving()
  return { isOpen: row.open }
}

export function unknownPurse(id: string): Fault {
  return new Fault('not_found', {
    message: `There is no purse ${JSON.stringify(id.slice(0, 100).toWellFormed())} here.`,
  })
}

const view = (row: PurseRow): PurseView => ({
  ...asView(purseView, row),
  balance: formatCredits(row.posted),
  available: formatCredits(row.posted - row.held),
})

interface MovementRow {
  readonly id: string
  readonly moved_at: Date
  readonly by: bigint
  readonly balance: bigint
  readonly product: string | null
}

const movementOf = (row: MovementRow): PurseMovement => ({
  ...asView(purseMovement, row),
  at: row.moved_at.toISOString(),
  moved: formatCredits(row.by),
  balanceAfter: formatCredits(row.balance),
  requestId: row.product === null ? null : `req_${row.id}`,
})

interface SumsRow {
  readonly opening: bigint
  readonly granted: bigint
  readonly taken: bigint
  readonly spent: bigint
}
interface LineRow {
  readonly product: string
  readonly list: number
  readonly calls: number
  readonly spent: bigint
}
interface SoldRow {
  readonly id: string
  readonly name?: string | null
  readonly calls: number
  readonly sold: bigint
  readonly paid: bigint
}

const soldOf = ({ calls, sold, paid }: Pick<SoldRow, 'calls' | 'sold' | 'paid'>) => ({
  calls,
  sold: formatCredits(sold),
  paid: formatCredits(paid),
  margin: formatCredits(sold - paid),
})

/** The change of the balance by a movement. */
export const PURSE_MOVED = `case when kind in ('grant', 'topup') then amount when kind in ('takeback', 'settled') then -amount else 0 end`
const COLUMNS = 'id, name, status, posted, held, low, created_at, moved_at'
const CREATE = sql('purse_create')`
  insert into purse (account_id, id, name, low) values ($1, $2, $3, $4) on conflict (account_id, id) do nothing returning id`
const ACCOUNT = sql('purse_account')`
  select coalesce(frozen_until > now(), false) as moving, status = 'open' as open from account where id = $1 for share`
const FIND = sql('purse_find')`select ${COLUMNS} from purse where account_id = $1 and id = $2`
const LOCK = sql('purse_lock')`select ${COLUMNS} from purse where account_id = $1 and id = $2 for update`
const LIST = sql('purse_list')`select ${COLUMNS} from purse
   where account_id = $1 and ($2::text is null or lower(id) like $2 or lower(name) like $2) and ($3::text is null or status = $3) and id > $4
   order by id limit $5`
const CHANGE = sql('purse_change')`update purse set name = $3, low = $4 where account_id = $1 and id = $2`
const MOVE = sql('purse_move')`
  select purse_move(jsonb_populate_record(null::purse_movement, jsonb_build_object('account_id', $1::text, 'id', $2::text, 'purse_id', $3::text,
     'kind', $4::text, 'note', $5::text, 'reference', $6::text, 'actor', $7::text)), $8::bigint, 0)`
const MADE = sql('purse_made')`
  select ${PURSE_MOVED} as by from purse_movement where account_id = $1 and purse_id = $2 and reference = $3`
const MOVEMENTS = sql('purse_movements')`
  select id, moved_at, kind, ${PURSE_MOVED} as by, balance, charged, list, product, reference, note, actor from purse_movement
   where account_id = $1 and purse_id = $2
     and moved_at < case when $3::text is null then 'infinity' else (select c.moved_at from purse_movement c where c.account_id = $1 and c.id = $3) end
   order by moved_at desc limit $4`
const IN_MONTH = 'm.account_id = $1 and m.purse_id = $2 and m.moved_at >= $3 and m.moved_at < $4'
// A month without movements begins with what the last one before it left.
const SUMS = sql('purse_sums')`
  select coalesce((select m.balance from purse_movement m where m.account_id = $1 and m.purse_id = $2 and m.moved_at < $3 order by m.moved_at desc limit 1),
      (select p.base from purse p where p.account_id = $1 and p.id = $2)) as opening,
     coalesce(sum(amount) filter (where kind in ('grant', 'topup')), 0)::bigint as granted,
     coalesce(sum(amount) filter (where kind = 'takeback'), 0)::bigint as taken,
     coalesce(sum(amount) filter (where kind = 'settled'), 0)::bigint as spent
   from purse_movement m where ${IN_MONTH}`
const LINES = sql('purse_lines')`
  select product, list, count(*)::int as calls, sum(amount)::bigint as spent from purse_movement m
   where ${IN_MONTH} and kind = 'settled' group by product, list order by spent desc, product, list`
const SOLD = `count(*)::int as calls, sum(m.amount)::bigint as sold, sum(m.charged)::bigint as paid`
const RANGE = `m.account_id = $1 and m.moved_at >= $2 and m.moved_at < $3 and m.kind = 'settled'`
const BY_PURSE = sql('purse_margins')`
  select m.purse_id as id, p.name, ${SOLD} from purse_movement m join purse p on p.account_id = m.account_id and p.id = m.purse_id
   where ${RANGE} group by 1, 2 order by sum(m.amount) desc, 1 limit 200`
const BY_PRODUCT = sql('purse_product_margins')`
  select m.product as id, ${SOLD} from purse_movement m where ${RANGE} group by 1 order by sum(m.amount) desc, 1`
