// The statements that call the ledger's functions in the database (database/functions): operations of one account
// become one statement, and its result is converted back.
import { type Database, plain, SHORT_MS, sql, type Value } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { SILENT_SECONDS } from './liveness.ts'
import type {
  Cover,
  Done,
  Leased,
  Limited,
  Op,
  OpOf,
  Rate,
  Reserved,
  Resolution,
  Resolved,
  Undecided,
} from './operation.ts'

interface Store {
  readonly database: Pick<Database, 'query'>
  readonly processId: string
  readonly nowMs: number
  /** The version of the gateway's limits that this process goes by; null where there are none. */
  readonly system: string | null
}

/** Runs operations of one account and one kind. One answer for each, in their order; an Error concerns only its own. */
export async function send(store: Store, ops: readonly Op[]): Promise<Array<Done | Error>> {
  const [first] = ops
  if (!first) return []
  const { account } = first.value
  const run = async (what: (typeof RUN)[Op['kind']], ...values: Value[]) => {
    const [row] = await store.database.query<{ answer: unknown }>(what, [account, ...values])
    return row?.answer
  }
  switch (first.kind) {
    case 'reserve': {
      const waiting = ops as ReadonlyArray<OpOf<'reserve'>> // all are of one kind
      // Those that came before this process knew of the limits were not counted.
      const calls = waiting.filter(({ system }) => system === store.system)
      if (calls.length < waiting.length) {
        const answers = (await send(store, calls)).values()
        return waiting.map((op) => (op.system === store.system ? answers.next().value! : { outcome: 'no_slice' })) // one for each call
      }
      const waitedMs = store.nowMs - calls.reduce((earliest, { cameMs }) => Math.min(earliest, cameMs), store.nowMs)
      const asked = toJson(calls.map(callOf))
      const answer = await run(RUN.reserve, store.processId, asked, Math.ceil(waitedMs), store.system)
      return (answer as ReserveAnswer[]).map(readReserved) // as the function says
    }
    case 'resolve': {
      const calls = ops as ReadonlyArray<OpOf<'resolve'>> // all are of one kind
      const answer = (await run(RUN.resolve, toJson(calls.map(settlementOf)))) as ResolveAnswer[] // as the function says
      const byId = new Map(answer.map((one) => [one[0], readResolved(one)]))
      return calls.map(({ value }) => byId.get(value.id) ?? ALREADY)
    }
    case 'lease': {
      const changes = ops as ReadonlyArray<OpOf<'lease'>> // all are of one kind
      const asked = toJson(changes.map(({ value }) => value))
      const answer = await run(RUN.lease, store.processId, asked, store.system)
      return (answer as LeaseAnswer[]).map(readLeased) // as the function says
    }
    case 'post': {
      const posts = ops as ReadonlyArray<OpOf<'post'>> // all are of one kind
      const ids = posts.flatMap(({ value }) => value.ids ?? [])
      const isWhole = posts.some(({ value }) => value.ids === undefined)
      const { left } = (await run(RUN.post, plain(ids), isWhole)) as { left: boolean } // as the function says
      return ops.map(() => ({ left }))
    }
    case 'expire': {
      const [gone, freed] = (await run(RUN.expire, SILENT_SECONDS)) as [number, string] // as the function says
      return ops.map(() => ({ gone, freed: BigInt(freed) }))
    }
  }
}

const RUN = {
  reserve: sql('ledger_reserve', SHORT_MS)`select ledger_reserve($1, $2, $3, $4, $5) as answer`,
  resolve: sql('ledger_resolve', SHORT_MS)`select ledger_resolve($1, $2) as answer`,
  lease: sql('ledger_lease', SHORT_MS)`select ledger_lease($1, $2, $3, $4) as answer`,
  post: sql('ledger_post', SHORT_MS)`select ledger_post($1, $2, $3) as answer`,
  expire: sql('ledger_expire')`select ledger_expire($1, make_interval(secs => $2)) as answer`,
}

function callOf({ value, last, due, open }: OpOf<'reserve'>): object {
  const { want, most = want, catalogVersion: version, idempotency } = value
  const { key: idem, requestHash: hash } = idempotency ?? {}
  // By its labels the ledger has found its budgets.
  return { ...value, labels: undefined, idempotency: undefined, most, open, version, last, due, idem, hash }
}

interface ReserveAnswer {
  readonly as: string
  readonly amount?: string
  readonly available?: string
  readonly held?: string
  readonly calls?: number
  readonly limit?: string
  readonly unit?: Limited['unit']
  readonly span?: Limited['span']
  readonly max?: string
  readonly wait?: number
  readonly scope?: string
  readonly left?: string
  readonly full?: boolean
  readonly rate_max?: number
  readonly rate_left?: number
  readonly status?: string
  readonly reason?: string | null
  readonly contact?: string | null
}

function readReserved(answer: ReserveAnswer): Reserved | Undecided | Error {
  const { as: outcome, limit = '', unit = 'requests', span = 'minute', max = '', wait = 1 } = answer
  const amount = BigInt(answer.amount ?? 0)
  const available = BigInt(answer.available ?? 0)
  switch (outcome) {
    case 'held':
      return { outcome, amount, rate: readRate(answer) ?? null }
    case 'short':
      return { outcome, required: amount, available }
    case 'crowded': {
      const running = { held: BigInt(answer.held ?? 0), calls: answer.calls ?? 0 }
      return { outcome: 'short', required: amount, available, running }
    }
    // An account disappears from a ledger only by moving to another.
    case 'no_account':
      return { outcome: 'frozen' }
    case 'limited':
      return { outcome, limit, unit, span, max, waitSeconds: Math.max(1, wait), available, ...ofBudget(answer) }
    case 'blocked':
      return { outcome, status: answer.status ?? '', reason: answer.reason ?? null, contact: answer.contact ?? null }
    case 'gone':
      return new Fault('conflict', { internal: { why: 'the reservation was given up before it arrived' } })
    default:
      return { outcome } as Reserved | Undecided // one of the words that say all by themselves
  }
}

function ofBudget({ limit, scope, left, full }: ReserveAnswer): Pick<Limited, 'scope' | 'left' | 'isFull'> {
  return limit === 'budget' ? { scope, left, isFull: full ?? false } : {}
}

function readRate({
  rate_max: max,
  rate_left: left = 0,
}: Pick<ReserveAnswer, 'rate_max' | 'rate_left'>): Rate | undefined {
  return max === undefined ? undefined : { max, left }
}

type ResolveAnswer = [id: string, outcome: Resolved['outcome'], paid: string, loss: string, hold: string]

function readResolved([, outcome, paid, loss, hold]: ResolveAnswer): Resolved {
  return { outcome, paid: BigInt(paid), loss: BigInt(loss), hold: BigInt(hold) }
}

/** The same operation was requested twice at once. */
const ALREADY: Resolved = { outcome: 'already', paid: 0n, loss: 0n, hold: 0n }

interface LeaseAnswer extends Pick<ReserveAnswer, 'rate_max' | 'rate_left'> {
  readonly added: string | null
  readonly requests?: number
  readonly tokens?: number
  readonly seconds: number
  readonly second: number
  readonly available: string
  readonly rests?: boolean
}

function readLeased(answer: LeaseAnswer): Leased {
  const { added, requests, tokens, seconds, second, available } = answer
  if (added === null) return { ...NOTHING_LEASED, added: undefined }
  return {
    added: BigInt(added),
    requests,
    tokens,
    rate: readRate(answer),
    seconds,
    second,
    available: BigInt(available),
    rests: answer.rests ?? false,
  }
}
const NOTHING_LEASED = {
  requests: undefined,
  tokens: undefined,
  rate: undefined,
  seconds: 0,
  second: 0,
  available: 0n,
  rests: false,
}

function settlementOf({ value, cover }: OpOf<'resolve'>): object {
  const { idempotent, replay, givenUp: given_up } = value
  const stored = replay && {
    status: replay.status,
    type: replay.contentType,
    sealed: replay.sealed?.toString('base64'),
  }
  return { ...journalRow(value, cover), idempotent, replay: stored, given_up }
}

export const JOURNAL_COLUMNS = [
  ...([
    'account_id',
    'id',
    'key_id',
    'outcome',
    'charged',
    'held',
    'lease_id',
    'stays_leased',
    'tokens',
    'second',
  ] as const),
  ...(['input_tokens', 'output_tokens', 'product', 'endpoint', 'status', 'catalog_version', 'lines'] as const),
  ...(['estimated', 'stream', 'route', 'duration_ms', 'first_byte_ms', 'attempt_log', 'cost', 'cost_basis'] as const),
  ...(['attributes', 'credential', 'client', 'vendor', 'labels', 'scopes'] as const),
]

type JournalRow = Readonly<Record<(typeof JOURNAL_COLUMNS)[number], unknown>>

/** A row as the values of a statement, in the order of its columns. */
export function journalValues(row: JournalRow): Value[] {
  const values: Value[] = []
  for (const name of JOURNAL_COLUMNS) {
    const value = row[name]
    values.push(typeof value === 'object' && value !== null ? toJson(value) : ((value ?? null) as Value)) // a row has no others
  }
  return values
}

/** A row of the journal: what moves, and the facts of the usage row. */
export function journalRow(one: Resolution, cover?: Cover): JournalRow {
  return {
    account_id: one.account,
    id: one.id,
    key_id: one.key,
    outcome: one.kind,
    charged: String(one.charge),
    held: String(cover?.amount ?? 0n),
    lease_id: cover?.lease,
    stays_leased: cover?.staysLeased ?? true,
    tokens: cover?.tokens ?? 0,
    second: cover?.second ?? 0,
    input_tokens: one.inputTokens,
    output_tokens: one.outputTokens,
    product: one.product,
    endpoint: one.endpoint,
    status: one.status,
    catalog_version: one.catalogVersion,
    lines: one.lines,
    estimated: one.estimated,
    stream: one.stream,
    route: one.route,
    duration_ms: Math.round(one.durationMs),
    // Zero says that there was none.
    first_byte_ms: one.firstByteMs === 0 ? 0 : Math.max(1, Math.round(one.firstByteMs)),
    attempt_log: one.attemptLog,
    cost: one.cost === undefined ? undefined : String(one.cost),
    cost_basis: one.costBasis,
    attributes: one.attributes,
    credential: one.credential,
    client: one.client ?? '',
    vendor: one.vendor,
    labels: one.labels,
    scopes: cover ? cover.scopes : one.scopes,
  }
}

/** Amounts as whole numbers, of any size. */
export function toJson(value: unknown): string {
  let text: string
  try {
    text = JSON.stringify(value)
  } catch {
    // There is an amount in it. Looking for one in every member costs four times as much.
    text = JSON.stringify(value, digits)
  }
  // What a vendor or caller wrote may be half a character, or one that no text in the database can hold. Money must not
  // depend on it.
  return /\\u(?:0000|d[89a-f])/.test(text) ? JSON.stringify(value, storable) : text
}

function digits(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

function storable(name: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\ufffd') : digits(name, value)
}
