// The audit trail: who did what, from where. Rows are append-only, and each has a hash over the one before it. The head
// of the chain (how many rows, the last hash) is sealed outside the table with a key that is not in the database, so
// that a cut or recomputed chain shows.
import { createHash } from 'node:crypto'
import * as z from 'zod'
import { withoutCredentials } from '../kernel/redact.ts'
import { sign } from '../kernel/secret.ts'
import { asPage, count, type Page, type Paging, time } from '../kernel/view.ts'
import { idAtTime, newId, timeOfId, type World } from '../kernel/world.ts'
import { type AuditAction, auditSentence, changeSentences, type EVENTS } from './audit-sentence.ts'
import { type AuditedRow, type KeptRows, keepRows } from './audited-rows.ts'
import { beforeCommit, type Database, type Queryable, sql } from './database.ts'
import { putSetting, readSetting } from './setting.ts'

/** The actor of an audited action. */
export interface By {
  readonly actor: string
  readonly ip: string | null
  readonly requestId: string | null
  /**
   * The name of the token by which the actor came; never its value. Absent: somebody in the console, or the gateway
   * itself.
   */
  readonly token?: string | undefined
  /** The id of the person who acts, in the console or by a token that they made. Not written to the log. */
  readonly person?: string | undefined
}

interface AuditedAction {
  /** The id of the object that was changed; never a secret. */
  readonly object: string
  /** Details for operators. Secrets never go in here. */
  readonly detail?: Readonly<Record<string, unknown>> | undefined
  /** The rows that the action changed and that decide money. The lot of `detail.transfer` is one of them by itself. */
  readonly rows?: readonly AuditedRow[] | undefined
}

/**
 * The fields that the action may have changed, as they were and as they are; only those that differ are stored. Secrets
 * never go in here.
 */
interface AuditChange {
  readonly before: Readonly<Record<string, unknown>>
  readonly after: Readonly<Record<string, unknown>>
}

/** A noun and a verb: `key.create`. Each that changes something says what it was, and what it became. */
type AuditEntry = AuditedAction &
  (
    | ({ readonly action: keyof typeof EVENTS } & Partial<AuditChange>)
    | ({ readonly action: ChangeAction } & AuditChange)
  )

export type ChangeAction = Exclude<AuditAction, keyof typeof EVENTS>

interface AuditFilter {
  readonly actor?: string | undefined
  /** A whole action, or only its noun: `key` finds `key.create` and `key.revoke`. */
  readonly action?: string | undefined
  readonly object?: string | undefined
  readonly token?: string | undefined
  readonly from?: number | undefined
  readonly to?: number | undefined
}

export interface Audit {
  /**
   * Call it in the transaction of the action. It is written right before the commit, because it waits for a lock that
   * all audit writers share.
   */
  write(tx: Queryable, by: By, entry: AuditEntry): Promise<void>
  list(paging: Paging & AuditFilter): Promise<Page<AuditView>>
  /** The rows after one, in the order of the chain, as they are exported. */
  lines(after: string, limit: number): Promise<AuditLine[]>
  /** Verifies the whole chain and its sealed head, and passes its rows to `seen` on the way. */
  verify(seen?: (rows: readonly AuditRow[]) => Promise<void>): Promise<AuditCheck>
  /** The same, only from the row on at which the last whole verification ended. */
  verifyNew(): Promise<AuditCheck>
}

/** An exported row: its detail as it is hashed, and the hashes by which a receiver verifies the chain. */
export type AuditLine = Omit<AuditView, 'before' | 'after'> & { readonly previousHash: string; readonly hash: string }

export type AuditRow = Pick<StoredRow, 'id' | 'actor' | 'action' | 'object' | 'detail'>

const LOCK = sql('audit_lock')`select pg_advisory_xact_lock(7046029258)`
const LAST = sql('audit_last')`select id, hash from audit order by id desc limit 1`
const INSERT = sql('audit_insert')`insert into audit (id, at, actor, action, object, ip, request_id, detail, hash)
   values ($1, to_timestamp($2::double precision / 1000), $3, $4, $5, $6, $7, $8, $9)`
const COLUMNS = 'id, at, actor, action, object, ip, request_id, detail, hash'
const LIST = sql('audit_list')`select ${COLUMNS} from audit where id < $1
     and ($3::text is null or actor = $3) and ($4::text is null or action = $4 or starts_with(action, $4 || '.'))
     and ($5::text is null or object = $5) and ($6::text is null or detail ->> 'token' = $6) and ($7::text is null or id >= $7)
   order by id desc limit $2`
const WALK = sql('audit_walk')`select ${COLUMNS} from audit where id > $1 order by id limit 1000`

const AFTER = sql('audit_after')`select ${COLUMNS} from audit where id > $1 order by id limit $2`
const BEFORE = sql('audit_before')`select hash from audit where id <= $1 order by id desc limit 1`

/** Rows that a tool without the gateway's secret has written: the move of an account to another database. */
const UNSEALED = ['account.move', 'account.arrive']
const SINCE = sql('audit_since')`
  select count(*)::int as count, coalesce(bool_and(action = any($3)), true) as unsealed from audit where id > $1 and id < $2`
const ACCOUNTS = sql('audit_accounts')`select 1 from account where ledger is null limit 1`

type SealName = 'audit_head' | 'audit_checkpoint'

/** The place of a row in the chain. */
interface ChainPlace {
  readonly count: number
  readonly id: string
  /** Hexadecimal. */
  readonly hash: string
}

interface StoredRow {
  id: string
  at: Date
  actor: string
  action: string
  object: string
  ip: string | null
  request_id: string | null
  detail: Record<string, unknown>
  hash: Buffer
}

const START = Buffer.alloc(32)

/** Without a key (tools beside the gateway), the head is neither sealed nor checked. */
export function createAudit(options: { database: Database; world: World; key?: Buffer }): Audit {
  const { database, world, key } = options
  /**
   * The newest row that this process verified. The sealed head does not tell of an older state of both that was put
   * back.
   */
  let verified: ChainPlace | undefined

  const isThere = async ({ id, hash }: ChainPlace) =>
    (await database.query<{ hash: Buffer }>(BEFORE, [id]))[0]?.hash.toString('hex') === hash

  const textOf = (name: SealName, { count, id, hash }: ChainPlace) => `${name} ${count} ${id} ${hash}`

  /** Undefined: there is none; null: it was not made with our key. */
  async function readSeal(on: Queryable, name: SealName): Promise<ChainPlace | null | undefined> {
    const sealed = await readSetting(on, name)
    if (sealed === undefined || !key) return undefined
    const [count = '', id = '', hash = '', mac = ''] = sealed.split(' ')
    const place = { count: Number(count), id, hash }
    return sign(key, textOf(name, place)).toString('hex') === mac ? place : null
  }

  async function seal(on: Queryable, name: SealName, place: ChainPlace): Promise<void> {
    if (!key) return
    const mac = sign(key, textOf(name, place)).toString('hex')
    await putSetting(on, name, `${place.count} ${place.id} ${place.hash} ${mac}`)
  }

  /** With the lock of the chain. A head that does not fit the rows stays as it is, so that verifying finds it. */
  async function advance(tx: Queryable, row: { id: string; hash: Buffer }): Promise<void> {
    const head = key && (await readSeal(tx, 'audit_head'))
    if (!key || head === null) return
    const values = [head?.id ?? '', row.id, UNSEALED]
    const [since] = await tx.query<{ count: number; unsealed: boolean }>(SINCE, values)
    if (!since?.unsealed) return
    const count = (head?.count ?? 0) + since.count + 1
    await seal(tx, 'audit_head', { count, id: row.id, hash: row.hash.toString('hex') })
  }

  async function walk(from: ChainPlace | undefined, seen?: (rows: readonly AuditRow[]) => Promise<void>) {
    const problems: string[] = []
    const head = await readSeal(database, 'audit_head')
    let place = from ?? { count: 0, id: '', hash: START.toString('hex') }
    const isHead = () => head?.id === place.id && head.hash === place.hash && head.count === place.count
    let isHeadFound = head === undefined || isHead()
    let checked = 0
    for (const one of [from, verified])
      if (one && !(await isThere(one)))
        problems.push(`Audit row ${one.id} was changed or removed since it was verified.`)
    const beyond: StoredRow[] = []
    for (;;) {
      const rows = await database.query<StoredRow>(WALK, [place.id])
      for (const row of rows) {
        const hash = hashOf(Buffer.from(place.hash, 'hex'), row)
        if (!hash.equals(row.hash) || row.at.getTime() !== timeOfId(row.id))
          problems.push(`Audit row ${row.id} was changed, or one before it was changed or removed.`)
        place = { count: place.count + 1, id: row.id, hash: row.hash.toString('hex') }
        isHeadFound ||= isHead()
        if (key && row.id > (head?.id ?? '') && !UNSEALED.includes(row.action)) beyond.push(row)
      }
      checked += rows.length
      await seen?.(rows)
      if (rows.length === 0 || problems.length > 0) break
    }
    if (problems.length === 0) {
      // Rows that were written meanwhile are sealed by now.
      const sealed = (await readSeal(database, 'audit_head'))?.id ?? ''
      if (!isHeadFound)
        problems.push(
          'The audit log does not end as its sealed head says: rows were removed, all hashes were computed anew, or TOLLGATE_SECRET is another one.',
        )
      else if (beyond.some(({ id }) => id > sealed))
        problems.push('The last audit rows were not written by this gateway.')
      if (key && checked === 0 && !from && (await database.query(ACCOUNTS)).length > 0)
        problems.push('The audit log is empty, although there are accounts.')
    }
    if (problems.length === 0 && place.count > 0) verified = place
    return { place, result: { ok: problems.length === 0, checked, problems } }
  }

  return {
    async write(tx, by, entry) {
      beforeCommit(tx, async () => {
        await tx.query(LOCK)
        const [last] = await tx.query<{ id: string; hash: Buffer }>(LAST)
        const row = {
          id: laterThan(last?.id, world),
          actor: by.actor,
          action: entry.action,
          object: entry.object,
          ip: by.ip,
          request_id: by.requestId,
          detail: { ...detailOf(by, entry), ...(await rowsOf(tx, entry)) },
        }
        const hash = hashOf(last?.hash ?? START, row)
        await tx.query(INSERT, [
          row.id,
          timeOfId(row.id),
          row.actor,
          row.action,
          row.object,
          row.ip,
          row.request_id,
          JSON.stringify(row.detail),
          hash,
        ])
        await advance(tx, { id: row.id, hash })
      })
    },
    async list({ cursor, limit, actor, action, object, token, from, to }) {
      const since = from === undefined ? null : idAtTime(from)
      const filter = [actor ?? null, action ?? null, object ?? null, token ?? null, since]
      const until = to === undefined ? '~' : idAtTime(to)
      const before = cursor !== undefined && cursor < until ? cursor : until
      const rows = await database.query<StoredRow>(LIST, [before, limit + 1, ...filter])
      return asPage(rows, limit, viewOf)
    },
    async lines(after, limit) {
      const rows = await database.query<StoredRow>(AFTER, [after, limit])
      const [earlier] = rows.length > 0 ? await database.query<{ hash: Buffer }>(BEFORE, [after]) : []
      return rows.map((row, at) => {
        const { before: _, after: __, ...view } = viewOf(row)
        const previousHash = (rows[at - 1] ?? earlier)?.hash ?? START
        return {
          ...view,
          detail: row.detail,
          previousHash: previousHash.toString('hex'),
          hash: row.hash.toString('hex'),
        }
      })
    },
    async verify(seen) {
      const { place, result } = await walk(undefined, seen)
      if (result.ok && place.count > 0) await seal(database, 'audit_checkpoint', place)
      return result
    },
    async verifyNew() {
      const { result } = await walk((await readSeal(database, 'audit_checkpoint')) ?? undefined)
      return result
    },
  }
}

async function rowsOf(tx: Queryable, { object, detail, rows = [] }: AuditEntry): Promise<{ rows?: KeptRows }> {
  const kept = await keepRows(tx, rows)
  const lot = typeof detail?.transfer === 'string' ? await keepRows(tx, [['lot', object, detail.transfer]]) : {}
  const all = { ...kept, ...Object.fromEntries(Object.entries(lot).filter(([, row]) => row !== null)) }
  return Object.keys(all).length === 0 ? {} : { rows: all }
}

/** What is stored and hashed beside the columns. */
function detailOf({ token }: By, { detail, before, after }: AuditEntry): Record<string, unknown> {
  const [was, is] = [plainOf(before ?? {}), plainOf(after ?? {})]
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])]
  const differing = names.filter((name) => canonical(was[name]) !== canonical(is[name]))
  const pick = (from: Record<string, unknown>) =>
    Object.fromEntries(differing.flatMap((name) => (Object.hasOwn(from, name) ? [[name, from[name]]] : [])))
  return {
    ...detail,
    ...(before ? { before: pick(was) } : {}),
    ...(after ? { after: pick(is) } : {}),
    ...(token === undefined ? {} : { token }),
  }
}

const VALUE_CHARS_MAX = 500
const VALUES_MAX = 100

/** As JSON, without what looks like a credential. What is long is cut, and says so. */
function plainOf(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [[name, plain(value)]])),
  )
}

function plain(value: unknown): unknown {
  if (typeof value === 'string') {
    const clean = withoutCredentials(value)
    const left = clean.length - VALUE_CHARS_MAX
    return left > 0 ? `${clean.slice(0, VALUE_CHARS_MAX).toWellFormed()}… (${left} more characters)` : clean
  }
  if (value instanceof Date) return value.toISOString()
  if (typeof value === 'bigint') return value.toString()
  if (Array.isArray(value)) {
    const left = value.length - VALUES_MAX
    return [...value.slice(0, VALUES_MAX).map(plain), ...(left > 0 ? [`… and ${left} more`] : [])]
  }
  return typeof value === 'object' && value !== null ? plainOf(value) : value
}

function viewOf(row: StoredRow): AuditView {
  const { before, after, token, ...detail } = row.detail
  const facts = {
    actor: row.actor,
    action: row.action,
    object: row.object,
    ip: row.ip,
    detail,
    token: typeof token === 'string' ? token : null,
    before: treeOf(before),
    after: treeOf(after),
  }
  return {
    id: row.id,
    at: row.at.toISOString(),
    requestId: row.request_id,
    ...facts,
    sentence: auditSentence(facts),
    changes: changeSentences(facts),
  }
}

function treeOf(value: unknown): Record<string, unknown> {
  // Any object has members by name.
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

/** Returns an id above the last one: the chain is read in order of ids, and the clocks of two processes may differ. */
function laterThan(last: string | undefined, world: World): string {
  const id = newId(world)
  return last === undefined || id > last ? id : idAtTime(timeOfId(last) + 1) + id.slice(10)
}

function hashOf(previous: Buffer, row: Omit<StoredRow, 'hash' | 'at'>): Buffer {
  // The id contains the time.
  const text = canonical([row.id, row.actor, row.action, row.object, row.ip, row.request_id, row.detail])
  return createHash('sha256').update(previous).update(text).digest()
}

/** JSON with sorted members, because the database stores an object's members in its own order. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)
    .join(',')}}`
}

export const auditView = z.object({
  id: z.string(),
  at: time,
  actor: z.string(),
  action: z.string(),
  object: z.string(),
  ip: z.string().nullable(),
  requestId: z.string().nullable(),
  /** The name of the token by which the actor came; null for people in the console and the gateway itself. */
  token: z.string().nullable(),
  /** Who did what, from where, by which token, and what it was before. */
  sentence: z.string(),
  /** What differs, one phrase for each field. */
  changes: z.array(z.string()),
  /** The fields that differ, as they were and as they are; empty for rows of versions that did not keep them. */
  before: z.record(z.string(), z.unknown()),
  after: z.record(z.string(), z.unknown()),
  detail: z.record(z.string(), z.unknown()),
})
export type AuditView = z.infer<typeof auditView>

export const auditCheck = z.object({ ok: z.boolean(), checked: count, problems: z.array(z.string()) })
type AuditCheck = z.infer<typeof auditCheck>
