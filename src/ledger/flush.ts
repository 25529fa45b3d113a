// A group of operations as one statement, and its answer: the words between the ledger and its function in the database.
import { type Database, statement } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import type { Rate, Reservation, Reserved, Resolution, Resolved } from './ledger.ts'

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

/** Columns of nothing are left out: an empty array would be read as well. */
const NO_RESOLUTIONS = Array<null>(19).fill(null)
const NO_RESERVATIONS = Array<null>(11).fill(null)
/** The process and the accounts, then the columns. */
const FLUSH_COLUMNS = 2 + NO_RESOLUTIONS.length + NO_RESERVATIONS.length
const FLUSH = statement(
  'ledger_flush',
  `select * from ledger_flush(${Array.from({ length: FLUSH_COLUMNS }, (_, i) => `$${i + 1}`).join(', ')})`,
)
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
  const columns = [...resolutionColumns(resolutions, placeOf), ...reservationColumns(reservations, placeOf)]
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

function resolutionColumns(all: readonly Resolution[], placeOf: (account: string) => number): Array<string | null> {
  if (all.length === 0) return NO_RESOLUTIONS
  const givenUp = all.filter((one) => one.givenUp).map((one) => one.id)
  const kept = all.filter((one) => one.idempotent).map(({ id, keep }) => ({ id, keep: keep && keepRecord(keep) }))
  return [
    plain(all.map((one) => one.id)),
    plain(all.map((one) => placeOf(one.account))),
    plain(all.map((one) => one.kind)),
    plain(all.map((one) => one.charge)),
    quoted(all.map((one) => one.key)),
    quoted(all.map((one) => one.product)),
    quoted(all.map((one) => one.door)),
    plain(all.map((one) => one.status)),
    JSON.stringify(all.map((one) => one.lines)),
    plain(all.map((one) => one.estimated)),
    plain(all.map((one) => one.stream)),
    plain(all.map((one) => one.route)),
    plain(all.map((one) => Math.round(one.durationMs))),
    plain(all.map((one) => Math.round(one.firstByteMs))),
    plain(all.map((one) => one.catalogVersion)),
    plain(all.map((one) => one.inputTokens)),
    plain(all.map((one) => one.outputTokens)),
    kept.length === 0 ? null : JSON.stringify(kept),
    givenUp.length === 0 ? null : plain(givenUp),
  ]
}

function keepRecord({ status, contentType, body }: NonNullable<Resolution['keep']>): object {
  return { status, type: contentType, body: body.toString('base64') }
}

function reservationColumns(all: readonly Reservation[], placeOf: (account: string) => number): Array<string | null> {
  if (all.length === 0) return NO_RESERVATIONS
  const jobs = all.flatMap(({ job }, at) => (job ? [{ i: at + 1, ...job }] : []))
  return [
    plain(all.map((one) => one.id)),
    plain(all.map((one) => placeOf(one.account))),
    quoted(all.map((one) => one.key)),
    plain(all.map((one) => one.want)),
    plain(all.map((one) => one.floor)),
    quoted(all.map((one) => one.product)),
    plain(all.map((one) => one.catalogVersion)),
    plain(all.map((one) => one.tokens)),
    quoted(all.map((one) => one.idempotency?.key)),
    quoted(all.map((one) => one.idempotency?.requestHash)),
    jobs.length === 0 ? null : JSON.stringify(jobs),
  ]
}

function readResolved(answer: string): Resolved[] {
  const [outcomes = [], paid, loss, posted, held] = columnsOf(answer)
  return outcomes.map((outcome, i) => ({
    outcome: outcome as Resolved['outcome'],
    paid: BigInt(paid![i]!),
    loss: BigInt(loss![i]!),
    posted: BigInt(posted![i]!),
    held: BigInt(held![i]!),
  }))
}

function readReserved(answer: string, details: NonNullable<FlushRow['details']>): Array<Reserved | Error> {
  const [outcomes = [], amounts, posted, held] = columnsOf(answer)
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

function columnsOf(answer: string): string[][] {
  return answer === '' ? [] : answer.split(';').map((column) => column.split(','))
}
