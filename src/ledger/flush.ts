// A group of operations as one statement, and its answer: the words between the ledger and its function in the database.
import { type Database, SHORT_MS, type Statement, statement, type Value } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { type Column, LEASE, type OpOf, Places, plain, quoted, RESERVATION, RESOLUTION } from './columns.ts'
import { Busy, type Done, type Leased, type Op, type Reserved, type Resolved, type Undecided } from './operation.ts'

/** An ordinary prompt is far below this; a group of 256 stays small. */
const LARGE_CHARS = 8_000

/** Whether an operation has so much of its account's own text that nobody else should wait for it. */
export function isLarge({ kind, value }: Op): boolean {
  if (kind === 'resolve') return (value.keep?.sealed?.length ?? 0) > LARGE_CHARS
  return (
    kind === 'reserve' && value.job !== undefined && value.job.input.length + value.job.request.length > LARGE_CHARS
  )
}

interface FlushRow {
  /** Columns, of the resolutions, the reservations and the leases: see the function. */
  readonly resolved: string | null
  readonly reserved: string | null
  readonly leased: string | null
  readonly details: Readonly<Record<number, object>> | null
}

const COMMON = ['process', 'accounts', 'keys', 'key_accounts', 'leases', 'patient', 'waited']
/** Every parameter that is ever given. */
export const FLUSH_PARAMETERS = [...COMMON, ...Object.keys({ ...RESOLUTION, ...RESERVATION, ...LEASE })]

/** Parameters of what a flush does not have are left out: reading forty of them costs more than a small flush. */
const statements = new Map<number, Statement>()
function statementFor(shape: number, parameters: readonly string[]): Statement {
  let known = statements.get(shape)
  if (!known) {
    const GIVEN = parameters.map((name, at) => `${name} => $${at + 1}`).join(', ')
    known = statement(`ledger_flush_${shape}`, `select * from ledger_flush(${GIVEN})`, SHORT_MS)
    statements.set(shape, known)
  }
  return known
}

interface Store {
  readonly database: Database
  readonly processId: string
  readonly nowMs: number
}

export async function flush(
  { database, processId, nowMs }: Store,
  ops: readonly Op[],
  patient: boolean,
): Promise<Array<Done | Error>> {
  const resolutions = ops.filter((op) => op.kind === 'resolve')
  const reservations = ops.filter((op) => op.kind === 'reserve')
  const leases = ops.filter((op) => op.kind === 'lease')
  const places = new Places()
  const names: string[] = []
  const values: Value[] = []
  const put = <K extends Op['kind']>(columns: Record<string, Column<K>>, all: ReadonlyArray<OpOf<K>>) => {
    if (all.length === 0) return
    for (const name in columns) {
      names.push(name)
      values.push((columns[name] as Column<K>)(all, places)) // the name is one of its own
    }
  }
  put(RESOLUTION, resolutions)
  put(RESERVATION, reservations)
  put(LEASE, leases)
  const shape = (resolutions.length > 0 ? 1 : 0) | (reservations.length > 0 ? 2 : 0) | (leases.length > 0 ? 4 : 0)
  const common = [
    processId,
    quoted([...places.accounts.keys()]),
    quoted(places.keys),
    plain(places.keyAccounts),
    places.leases.size === 0 ? null : plain([...places.leases.keys()]),
    patient,
    Math.ceil(nowMs - reservations.reduce((first, { cameMs }) => Math.min(first, cameMs), nowMs)),
  ]
  const [row] = await database.query<FlushRow>(statementFor(shape, [...COMMON, ...names]), [...common, ...values])
  const resolved = readResolved(row?.resolved ?? '')
  const reserved = readReserved(row?.reserved ?? '', row?.details ?? {})
  const leased = readLeased(row?.leased ?? '')
  const at = { resolve: 0, reserve: 0, lease: 0 }
  const answers = { resolve: resolved, reserve: reserved, lease: leased }
  return ops.map(({ kind }) => answers[kind][at[kind]++]!) // one answer for each
}

export function readResolved(answer: string): Array<Resolved | Error> {
  const [outcomes = [], paid = [], loss = [], , , hold = []] = splitColumns(answer)
  return outcomes.map((outcome, i) =>
    outcome === 'busy'
      ? new Busy()
      : {
          outcome: outcome as Resolved['outcome'],
          paid: BigInt(paid[i] ?? 0),
          loss: BigInt(loss[i] ?? 0),
          hold: BigInt(hold[i] ?? 0),
        },
  )
}

function readReserved(answer: string, details: NonNullable<FlushRow['details']>): Array<Reserved | Undecided | Error> {
  const [outcomes = [], amounts = [], posted = [], held = [], max = [], left = []] = splitColumns(answer)
  return outcomes.map((outcome, i) => {
    const detail = details[i + 1]
    const amount = BigInt(amounts[i] ?? 0)
    const available = BigInt(posted[i] ?? 0) - BigInt(held[i] ?? 0)
    switch (outcome) {
      case 'held':
        return { outcome, amount, rate: max[i] ? { max: Number(max[i]), left: Number(left[i]) } : null }
      case 'short':
        return { outcome, required: amount, available }
      case 'limited': {
        const { limit, max, wait } = detail as { limit: string; max: number | string; wait: number }
        return { outcome, limit, max: String(max), waitSeconds: Math.max(1, wait), available }
      }
      case 'gone':
        return new Fault('conflict', { internal: { why: 'the reservation was given up before it arrived' } })
      case 'busy':
        return new Busy()
      case 'no_account':
        return { outcome: 'short', required: 0n, available: 0n }
      default:
        return { outcome } as Reserved | Undecided // one of the words that say all by themselves
    }
  })
}

function readLeased(answer: string): Array<Leased | Error> {
  const [added = [], requests = [], tokens = [], max = [], left = [], seconds = [], [now = '0'] = [], available = []] =
    splitColumns(answer)
  const limited = (text = '-1') => (text === '-1' ? undefined : Number(text))
  return added.map((amount, i) => {
    if (amount === '-1') return new Busy()
    const allowed = limited(max[i])
    return {
      added: amount === '-2' ? undefined : BigInt(amount),
      requests: limited(requests[i]),
      tokens: limited(tokens[i]),
      rate: allowed === undefined ? undefined : { max: allowed, left: Number(left[i]) },
      seconds: Number(seconds[i]),
      second: Number(now) + Number(seconds[i]),
      available: BigInt(available[i] ?? 0),
    }
  })
}

function splitColumns(answer: string): string[][] {
  return answer === '' ? [] : answer.split(';').map((column) => column.split(','))
}
