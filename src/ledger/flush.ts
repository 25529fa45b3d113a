// A group of operations as one statement, and its answer: the words between the ledger and its function in the database.
import { type Database, SHORT_MS, statement } from '../database/database.ts'
import type { Credits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import type { ChargeLine } from '../meter/charge.ts'

export interface Reservation {
  /** The call's id: it names the hold, the transfer and the usage row. */
  readonly id: string
  readonly account: string
  readonly key: string
  readonly product: string
  readonly catalogVersion: number
  readonly want: Credits
  /** The least that is worth holding; equal to `want` unless the ask is open-ended. */
  readonly floor: Credits
  /** What a limit on tokens counts until the settlement says better. */
  readonly tokens: number
  readonly idempotency?: { readonly key: string; readonly requestHash: string }
  /** A job's row, made by the same statement; its hold outlives this process. */
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
interface Rate {
  readonly max: number
  readonly left: number
}

export type Reserved =
  | { outcome: 'held'; amount: Credits; posted: Credits; held: Credits; rate: Rate | null }
  | { outcome: 'short'; available: Credits; required: Credits }
  | { outcome: 'limited'; limit: string; max: string; waitSeconds: number }
  | { outcome: 'idem_conflict' | 'idem_running' | 'idem_replay' }

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
  readonly status: number
  readonly estimated: boolean
  readonly stream: boolean
  readonly route: number
  readonly durationMs: number
  readonly firstByteMs: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** The reservation that is released made a job of which nobody was told: it goes too, unless it has been begun. */
  readonly givenUp?: boolean
  /** The call came with an idempotency key: `keep` is the answer to replay; without it the key is free again. */
  readonly idempotent?: boolean
  readonly keep?: { readonly status: number; readonly contentType: string; readonly body: Buffer }
}

export interface Resolved {
  /** `late`: the hold had expired, and the amount was taken anew. `already`: an earlier try did it. */
  readonly outcome: 'settled' | 'released' | 'late' | 'already'
  readonly paid: Credits
  readonly loss: Credits
  readonly posted: Credits
  readonly held: Credits
  /** What the hold was. */
  readonly hold: Credits
}

export type Op = { kind: 'reserve'; value: Reservation } | { kind: 'resolve'; value: Resolution }

/** An ordinary prompt is far below this; a group of 256 stays small. */
const LARGE_CHARS = 8_000

/** Whether an operation has so much of its account's own text that nobody else should wait for it. */
export function isLarge({ kind, value }: Op): boolean {
  if (kind === 'resolve') return (value.keep?.body.length ?? 0) > LARGE_CHARS
  return value.job !== undefined && value.job.input.length + value.job.request.length > LARGE_CHARS
}

interface FlushRow {
  /** Columns, of the resolutions and of the reservations: see the function. */
  readonly resolved: string | null
  readonly reserved: string | null
  readonly details: Readonly<Record<number, object>> | null
}

type Column<T> = (all: readonly T[], placeOf: (account: string) => number) => string | null

/** What is not money in a usage row: a line for each column of the table, named by it. */
const FACTS: Record<string, Column<Resolution>> = {
  key_id: (all) => quoted(all.map((one) => one.key)),
  product: (all) => quoted(all.map((one) => one.product)),
  endpoint: (all) => quoted(all.map((one) => one.endpoint)),
  status: (all) => plain(all.map((one) => one.status)),
  catalog_version: (all) => plain(all.map((one) => one.catalogVersion)),
  lines: (all) => JSON.stringify(all.map((one) => one.lines)),
  estimated: (all) => plain(all.map((one) => one.estimated)),
  stream: (all) => plain(all.map((one) => one.stream)),
  route: (all) => plain(all.map((one) => one.route)),
  duration_ms: (all) => plain(all.map((one) => Math.round(one.durationMs))),
  first_byte_ms: (all) => plain(all.map((one) => Math.round(one.firstByteMs))),
}

/** By the names of the function's parameters. */
const RESOLUTION: Record<string, Column<Resolution>> = {
  s_id: (all) => plain(all.map((one) => one.id)),
  s_account: (all, placeOf) => plain(all.map((one) => placeOf(one.account))),
  s_kind: (all) => plain(all.map((one) => one.kind)),
  s_charge: (all) => plain(all.map((one) => one.charge)),
  s_in: (all) => plain(all.map((one) => one.inputTokens)),
  s_out: (all) => plain(all.map((one) => one.outputTokens)),
  ...Object.fromEntries(Object.entries(FACTS).map(([name, column]) => [`s_${name}`, column])),
  s_kept(all) {
    const kept = all.filter((one) => one.idempotent).map(({ id, keep }) => ({ id, keep: keep && keepRecord(keep) }))
    return kept.length === 0 ? null : JSON.stringify(kept)
  },
  s_given_up(all) {
    const givenUp = all.filter((one) => one.givenUp).map((one) => one.id)
    return givenUp.length === 0 ? null : plain(givenUp)
  },
}

const RESERVATION: Record<string, Column<Reservation>> = {
  r_id: (all) => plain(all.map((one) => one.id)),
  r_account: (all, placeOf) => plain(all.map((one) => placeOf(one.account))),
  r_key: (all) => quoted(all.map((one) => one.key)),
  r_want: (all) => plain(all.map((one) => one.want)),
  r_floor: (all) => plain(all.map((one) => one.floor)),
  r_product: (all) => quoted(all.map((one) => one.product)),
  r_version: (all) => plain(all.map((one) => one.catalogVersion)),
  r_tokens: (all) => plain(all.map((one) => one.tokens)),
  r_idem: (all) => quoted(all.map((one) => one.idempotency?.key)),
  r_hash: (all) => quoted(all.map((one) => one.idempotency?.requestHash)),
  r_job(all) {
    const jobs = all.flatMap(({ job }, at) => (job ? [{ i: at + 1, ...job }] : []))
    return jobs.length === 0 ? null : JSON.stringify(jobs)
  },
}

/** In the order of the statement's values. */
export const FLUSH_PARAMETERS = ['process', 'accounts', ...Object.keys(RESOLUTION), ...Object.keys(RESERVATION)]
const FLUSH = statement(
  'ledger_flush',
  `select * from ledger_flush(${FLUSH_PARAMETERS.map((name, at) => `${name} => $${at + 1}`).join(', ')})`,
  SHORT_MS,
)

/** Columns of nothing are left out: an empty array would be read as well. */
function columnsOf<T>(
  columns: Record<string, Column<T>>,
  all: readonly T[],
  placeOf: (account: string) => number,
): Array<string | null> {
  return Object.values(columns).map((column) => (all.length === 0 ? null : column(all, placeOf)))
}

/** An operation that the database refuses must not take its neighbours with it: the group is then run one by one. */
export async function flushOrSplit(
  database: Database,
  processId: string,
  ops: readonly Op[],
): Promise<Array<Reserved | Resolved | Error>> {
  try {
    return await flush(database, processId, ops)
  } catch (error) {
    if (ops.length === 1 || error instanceof Fault) throw error
    return Promise.all(
      ops.map((op) =>
        flush(database, processId, [op]).then(
          ([result]) => result as Reserved | Resolved | Error,
          (cause: Error) => cause,
        ),
      ),
    )
  }
}

async function flush(
  database: Database,
  processId: string,
  ops: readonly Op[],
): Promise<Array<Reserved | Resolved | Error>> {
  const accounts = new Map<string, number>()
  const placeOf = (account: string) => {
    const place = accounts.get(account) ?? accounts.size + 1
    accounts.set(account, place)
    return place
  }
  const resolutions: Resolution[] = []
  const reservations: Reservation[] = []
  for (const op of ops) {
    if (op.kind === 'resolve') resolutions.push(op.value)
    else reservations.push(op.value)
  }
  const columns = [...columnsOf(RESOLUTION, resolutions, placeOf), ...columnsOf(RESERVATION, reservations, placeOf)]
  const [row] = await database.query<FlushRow>(FLUSH, [processId, quoted([...accounts.keys()]), ...columns])
  const resolved = readResolved(row?.resolved ?? '')
  const reserved = readReserved(row?.reserved ?? '', row?.details ?? {})
  let [resolvedAt, reservedAt] = [0, 0]
  return ops.map((op) => (op.kind === 'resolve' ? resolved[resolvedAt++]! : reserved[reservedAt++]!))
}

/** As an array in the database's own words: ids, numbers and booleans need no quotes. */
function plain(values: ReadonlyArray<string | number | bigint | boolean>): string {
  return `{${values.join(',')}}`
}

function quoted(values: ReadonlyArray<string | undefined>): string {
  return `{${values.map(quote).join(',')}}`
}

function quote(value: string | undefined): string {
  if (value === undefined) return 'NULL'
  return /["\\]/.test(value) ? `"${value.replaceAll(/["\\]/g, '\\$&')}"` : `"${value}"`
}

function keepRecord({ status, contentType, body }: NonNullable<Resolution['keep']>): object {
  return { status, type: contentType, body: body.toString('base64') }
}

function readResolved(answer: string): Resolved[] {
  const [outcomes = [], paid, loss, posted, held, hold] = splitColumns(answer)
  return outcomes.map((outcome, i) => ({
    outcome: outcome as Resolved['outcome'],
    paid: BigInt(paid![i]!),
    loss: BigInt(loss![i]!),
    posted: BigInt(posted![i]!),
    held: BigInt(held![i]!),
    hold: BigInt(hold![i]!),
  }))
}

function readReserved(answer: string, details: NonNullable<FlushRow['details']>): Array<Reserved | Error> {
  const [outcomes = [], amounts, posted, held] = splitColumns(answer)
  return outcomes.map((outcome, i) => {
    const detail = details[i + 1]
    switch (outcome) {
      case 'held': {
        const balance = { posted: BigInt(posted![i]!), held: BigInt(held![i]!) }
        return { outcome, amount: BigInt(amounts![i]!), ...balance, rate: (detail ?? null) as Rate | null }
      }
      case 'short':
        return { outcome, required: BigInt(amounts![i]!), available: BigInt(posted![i]!) - BigInt(held![i]!) }
      case 'limited': {
        const { limit, max, wait } = detail as { limit: string; max: number | string; wait: number }
        return { outcome, limit, max: String(max), waitSeconds: Math.max(1, wait) }
      }
      case 'gone':
        return new Fault('conflict', { internal: { why: 'the reservation was given up before it arrived' } })
      case 'no_account':
        return { outcome: 'short', required: 0n, available: 0n }
      default:
        return { outcome: outcome as 'idem_conflict' | 'idem_running' | 'idem_replay' }
    }
  })
}

function splitColumns(answer: string): string[][] {
  return answer === '' ? [] : answer.split(';').map((column) => column.split(','))
}
