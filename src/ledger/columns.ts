// The parameters of the ledger's statement: a column for each, made from the operations of a flush.
import type { Value } from '../database/database.ts'
import type { Cover, Keep, LeaseChange, Op, Resolution } from './operation.ts'

export type OpOf<K extends Op['kind']> = Extract<Op, { kind: K }>
export type Column<K extends Op['kind']> = (all: ReadonlyArray<OpOf<K>>, places: Places) => string | boolean | null

/** Each account, key and lease is sent once; operations name their places, from 1. */
export class Places {
  readonly accounts = new Map<string, number>()
  readonly keys: string[] = []
  readonly keyAccounts: number[] = []
  readonly #keys = new Map<string, number>()
  readonly leases = new Map<string, number>()
  account(id: string): number {
    return placeIn(this.accounts, id)
  }
  key({ account, key }: { account: string; key: string }): number {
    const place = placeIn(this.#keys, `${account} ${key}`)
    this.keys[place - 1] ??= key
    this.keyAccounts[place - 1] ??= this.account(account)
    return place
  }
  lease(id: string): number {
    return placeIn(this.leases, id)
  }
}

function placeIn(places: Map<string, number>, id: string): number {
  const known = places.get(id)
  if (known !== undefined) return known
  places.set(id, places.size + 1)
  return places.size
}

interface Fact {
  /** Of the column. */
  readonly type: 'text' | 'int' | 'smallint' | 'boolean' | 'jsonb'
  readonly read: (resolution: Resolution) => string | number | boolean | object
}

/** What is not money in a usage row and every call has: a line for each column of the table, named by it. */
const FACTS: Record<string, Fact> = {
  key_id: { type: 'text', read: (one) => one.key },
  product: { type: 'text', read: (one) => one.product },
  endpoint: { type: 'text', read: (one) => one.endpoint },
  status: { type: 'int', read: (one) => one.status },
  catalog_version: { type: 'int', read: (one) => one.catalogVersion },
  lines: { type: 'jsonb', read: (one) => one.lines },
  estimated: { type: 'boolean', read: (one) => one.estimated },
  stream: { type: 'boolean', read: (one) => one.stream },
  route: { type: 'smallint', read: (one) => one.route },
  duration_ms: { type: 'int', read: (one) => Math.round(one.durationMs) },
  // Zero says that there was none.
  first_byte_ms: {
    type: 'int',
    read: (one) => (one.firstByteMs === 0 ? 0 : Math.max(1, Math.round(one.firstByteMs))),
  },
}

/** What few calls have. A flush of calls that have none of it sends nothing. */
const RARE_FACTS: Record<string, (resolution: Resolution) => object | undefined> = {
  story: ({ story }) => story && storable(story),
  attributes: ({ attributes }) => attributes && storable(attributes),
  cost_basis: ({ costBasis }) => costBasis && storable(costBasis),
}

/** Left out when nobody knows what the calls of the flush cost. */
const costColumn: Column<'resolve'> = (all) =>
  all.some((one) => one.value.cost !== undefined) ? plain(all.map((one) => one.value.cost ?? 'NULL')) : null

/** Left out when every vendor of the flush has one credential only. */
const credentialColumn: Column<'resolve'> = (all) =>
  all.some((one) => one.value.credential) ? quoted(all.map((one) => one.value.credential)) : null

/** Left out when no agent called. */
const clientColumn: Column<'resolve'> = (all) =>
  all.some((one) => one.value.client) ? quoted(all.map((one) => one.value.client ?? '')) : null

function rareColumnOf(fact: (typeof RARE_FACTS)[string]): Column<'resolve'> {
  return (all) => {
    const values = all.map((one) => fact(one.value) ?? null)
    return values.every((value) => value === null) ? null : JSON.stringify(values)
  }
}

function columnOf({ type, read }: Fact): Column<'resolve'> {
  return (all) => {
    const values = all.map((one) => read(one.value))
    if (type === 'jsonb') return JSON.stringify(values)
    return type === 'text' ? quoted(values as string[]) : plain(values as number[]) // a column has one type
  }
}

/** Left out when no call of the flush was covered by a lease. */
const ofCovers =
  (column: Column<'resolve'>): Column<'resolve'> =>
  (all, places) =>
    all.some((one) => one.cover) ? column(all, places) : null

/** What a vendor or caller wrote may be half a character, which no document in the database can hold. Money must not depend on it. */
function storable(value: object): object {
  const clean = (_: string, value: unknown) =>
    typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\ufffd') : value
  return JSON.parse(JSON.stringify(value, clean)) as object // the same, with other text
}

/** By the names of the function's parameters. */
export const RESOLUTION: Record<string, Column<'resolve'>> = {
  s_id: (all) => plain(all.map((one) => one.value.id)),
  s_account: (all, places) => plain(all.map((one) => places.account(one.value.account))),
  s_key: (all, places) => plain(all.map((one) => places.key(one.value))),
  s_kind: (all) => plain(all.map((one) => one.value.kind)),
  s_charge: (all) => plain(all.map((one) => one.value.charge)),
  s_lease: ofCovers((all, places) => plain(all.map(({ cover }) => (cover ? places.lease(cover.lease) : 'NULL')))),
  s_cover: ofCovers((all) => plain(all.map(({ cover }) => cover?.amount ?? 0n))),
  s_keep: ofCovers((all) => plain(all.map(({ cover }) => cover?.keep ?? false))),
  s_tokens: ofCovers((all) => plain(all.map(({ cover }) => cover?.tokens ?? 0))),
  s_second: ofCovers((all) => plain(all.map(({ cover }) => cover?.second ?? 0))),
  s_in: (all) => plain(all.map((one) => one.value.inputTokens)),
  s_out: (all) => plain(all.map((one) => one.value.outputTokens)),
  s_cost: costColumn,
  s_credential: credentialColumn,
  s_client: clientColumn,
  s_again: (all) => all.some((one) => one.again),
  ...Object.fromEntries(Object.entries(FACTS).map(([name, fact]) => [`s_${name}`, columnOf(fact)])),
  ...Object.fromEntries(Object.entries(RARE_FACTS).map(([name, fact]) => [`s_${name}`, rareColumnOf(fact)])),
  s_kept(all) {
    const kept = all
      .filter((one) => one.value.idempotent)
      .map(({ value: { id, keep } }) => ({ id, keep: keep && keepRecord(keep) }))
    return kept.length === 0 ? null : JSON.stringify(kept)
  },
  s_given_up(all) {
    const givenUp = all.filter((one) => one.value.givenUp).map((one) => one.value.id)
    return givenUp.length === 0 ? null : plain(givenUp)
  },
}

export const RESERVATION: Record<string, Column<'reserve'>> = {
  r_id: (all) => plain(all.map((one) => one.value.id)),
  r_account: (all, places) => plain(all.map((one) => places.account(one.value.account))),
  r_key: (all, places) => plain(all.map((one) => places.key(one.value))),
  r_want: (all) => plain(all.map((one) => one.value.want)),
  r_floor: (all) => plain(all.map((one) => one.value.floor)),
  r_most: (all) => plain(all.map((one) => one.value.most ?? one.value.want)),
  r_open: (all) => plain(all.map((one) => one.open)),
  r_product: (all) => quoted(all.map((one) => one.value.product)),
  r_version: (all) => plain(all.map((one) => one.value.catalogVersion)),
  r_tokens: (all) => plain(all.map((one) => one.value.tokens)),
  r_last: (all) => plain(all.map((one) => one.last)),
  r_idem: (all) => quoted(all.map((one) => one.value.idempotency?.key)),
  r_hash: (all) => quoted(all.map((one) => one.value.idempotency?.requestHash)),
  r_job(all) {
    const jobs = all.flatMap(({ value: { job } }, at) => (job ? [{ i: at + 1, ...job }] : []))
    return jobs.length === 0 ? null : JSON.stringify(jobs)
  },
}

const ofBacks =
  (read: (back: NonNullable<LeaseChange['back']>) => number): Column<'lease'> =>
  (all) =>
    all.some((one) => one.value.back) ? plain(all.map(({ value }) => (value.back ? read(value.back) : 'NULL'))) : null

export const LEASE: Record<string, Column<'lease'>> = {
  l_lease: (all, places) => plain(all.map((one) => places.lease(one.value.id))),
  l_account: (all, places) => plain(all.map((one) => places.account(one.value.account))),
  l_key: (all, places) => plain(all.map((one) => places.key(one.value))),
  l_new: (all) => plain(all.map((one) => one.value.fresh)),
  l_give: (all) => plain(all.map((one) => one.value.give)),
  l_add: (all) => plain(all.map((one) => one.value.add)),
  l_least: (all) => plain(all.map((one) => one.value.least)),
  l_requests: (all) => plain(all.map((one) => one.value.requests ?? 'NULL')),
  l_tokens: (all) => plain(all.map((one) => one.value.tokens ?? 'NULL')),
  l_close: (all) => plain(all.map((one) => one.value.close)),
  l_back_requests: ofBacks((back) => back.requests),
  l_back_tokens: ofBacks((back) => back.tokens),
  l_back_second: ofBacks((back) => back.second),
}

/** A settlement that a lease covers. */
export type Journaled = OpOf<'resolve'> & { readonly cover: Cover }
interface Written {
  readonly type: Fact['type'] | 'bigint'
  readonly read: (op: Journaled, process: string) => Value
}

const document = (value: object | undefined) => (value === undefined ? null : JSON.stringify(value))

/** The columns of a row of the journal. */
export const JOURNAL: Record<string, Written> = {
  process_id: { type: 'text', read: (_, process) => process },
  account_id: { type: 'text', read: ({ value }) => value.account },
  id: { type: 'text', read: ({ value }) => value.id },
  outcome: { type: 'text', read: ({ value }) => value.kind },
  charged: { type: 'bigint', read: ({ value }) => value.charge },
  held: { type: 'bigint', read: ({ cover }) => cover.amount },
  lease_id: { type: 'text', read: ({ cover }) => cover.lease },
  tokens: { type: 'bigint', read: ({ cover }) => cover.tokens },
  second: { type: 'bigint', read: ({ cover }) => cover.second },
  input_tokens: { type: 'bigint', read: ({ value }) => value.inputTokens },
  output_tokens: { type: 'bigint', read: ({ value }) => value.outputTokens },
  cost: { type: 'bigint', read: ({ value }) => value.cost ?? null },
  credential: { type: 'text', read: ({ value }) => value.credential ?? null },
  client: { type: 'text', read: ({ value }) => value.client ?? '' },
}
for (const name in FACTS) {
  const { type, read } = FACTS[name] as Fact // its own name
  JOURNAL[name] = { type, read: ({ value }) => (type === 'jsonb' ? JSON.stringify(read(value)) : read(value)) }
}
for (const name in RARE_FACTS)
  JOURNAL[name] = { type: 'jsonb', read: ({ value }) => document(RARE_FACTS[name]?.(value)) }

/** A column of several rows of the journal. */
export function columnOfRows({ type, read }: Written, ops: readonly Journaled[], process: string): string {
  const values = ops.map((op) => read(op, process))
  return type === 'text' || type === 'jsonb'
    ? quoted(values.map((value) => (value as string | null) ?? undefined)) // such a column has nothing else
    : plain(values.map((value) => (value as number | null) ?? 'NULL'))
}

/** As an array in the database's own words: ids, numbers and booleans need no quotes. */
export function plain(values: ReadonlyArray<string | number | bigint | boolean>): string {
  return `{${values.join(',')}}`
}

export function quoted(values: ReadonlyArray<string | undefined>): string {
  return `{${values.map(quote).join(',')}}`
}

function quote(value: string | undefined): string {
  if (value === undefined) return 'NULL'
  return /["\\]/.test(value) ? `"${value.replaceAll(/["\\]/g, '\\$&')}"` : `"${value}"`
}

function keepRecord({ status, contentType, sealed }: Keep): object {
  return { status, type: contentType, sealed: sealed?.toString('base64') }
}
