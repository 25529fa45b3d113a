// What is read across accounts, and how the ledgers' answers are put together. Everything else that names no account is
// control's own. A test compares this list with the resources.
import * as z from 'zod'
import { parseCredits } from '../../kernel/credits.ts'
import { may, type Resource, type ResourceCall } from '../../operator/resource.ts'
import { callsCsv, labelSumsCsv, pagesCsv, sumsCsv } from '../../reports/csv.ts'
import { LABEL_VALUES_MAX } from '../../reports/sums.ts'
import { type VerificationRun, verificationRun } from '../verify/views.ts'
import { joined } from './joined.ts'

// biome-ignore lint/suspicious/noExplicitAny: what each is, its schema says.
export type Row = Readonly<Record<string, any>>

interface Asked {
  readonly query: Row
  readonly answer: z.ZodType
  /** All ledgers, and those that did not answer. */
  readonly names: readonly string[]
  readonly missing: readonly string[]
}

export interface Way {
  /** What each is asked, if not the same. */
  readonly ask?: (query: Row) => Row
  /** Control's answer first. */
  readonly merge: (parts: readonly Row[], asked: Asked) => Row
  /** The table of the merged answer. Without it, the tables are one after the other. */
  readonly csv?: (
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    read: (query: Row) => Promise<any>,
    call: ResourceCall<unknown, Row>,
    answer: Resource['answer'],
  ) => AsyncGenerator<string>
}

type Key = (row: Row) => string | number | bigint
type Order = (a: Row, b: Row) => number

/** The smallest first. */
const least =
  (...keys: readonly Key[]): Order =>
  (a, b) => {
    const key = keys.find((one) => one(a) !== one(b))
    return key === undefined ? 0 : key(a) < key(b) ? -1 : 1
  }
const most = (...keys: readonly Key[]): Order => {
  const order = least(...keys)
  return (a, b) => order(b, a)
}
const of =
  (name: string): Key =>
  (row) =>
    row[name] ?? ''
const creditsOf =
  (name: string): Key =>
  (row) =>
    parseCredits(row[name]) ?? 0n

const whole = (parts: readonly Row[], { answer }: Pick<Asked, 'answer'>): Row => Object(joined(answer, parts))

/** A page after a cursor that says where its last row lies in the order. */
const list = (orderOf: (query: Row) => Order, cursorOf: (row: Row, query: Row) => string): Way => ({
  merge(parts, asked) {
    const { limit } = asked.query
    const all = whole(parts, asked)
    const rows: Row[] = all.items.toSorted(orderOf(asked.query))
    const last = rows[Math.min(limit, rows.length) - 1]
    const isMore = rows.length > limit || parts.some(({ next }) => next !== null)
    return { ...all, items: rows.slice(0, limit), next: isMore && last ? cursorOf(last, asked.query) : null }
  },
})
const newest = list(
  () => most(of('id')),
  ({ id }) => id,
)
const accountId = ({ account }: Row) => account.id

/** A page after so many rows: each is asked for all up to its end, or for all rows if their sums decide the order. */
const counted = (orderOf: (query: Row) => Order, ask: 'up to there' | 'all' = 'up to there'): Way => ({
  ask: (query) => ({
    ...query,
    cursor: undefined,
    limit: ask === 'all' ? ROWS_MAX : Number(query.cursor ?? 0) + query.limit,
  }),
  merge(parts, asked) {
    const start = Number(asked.query.cursor ?? 0)
    const end = start + asked.query.limit
    const all = whole(parts, asked)
    const rows: Row[] = all.items.toSorted(orderOf(asked.query))
    const isMore = rows.length > end || parts.some(({ next }) => next !== null)
    return { ...all, items: rows.slice(start, end), next: isMore ? String(end) : null }
  },
  csv: (read, { query }, answer) => pagesCsv(columnsOf(answer), (paging) => read({ ...query, ...paging })),
})
const ROWS_MAX = 1_000_000

function columnsOf(answer: z.ZodType): string[] {
  const items = answer instanceof z.ZodObject ? answer.shape.items : undefined
  const row = items instanceof z.ZodArray ? items.element : undefined
  return row instanceof z.ZodObject ? Object.keys(row.shape) : []
}

/** An object whose lists are put in order again, and cut. */
const sorted = (...lists: readonly (readonly [name: string, order: Order, rowsMax?: number])[]): Way => ({
  merge(parts, asked) {
    const all = whole(parts, asked)
    const again = lists.map(([name, order, rowsMax]) => [name, all[name].toSorted(order).slice(0, rowsMax)])
    return { ...all, ...Object.fromEntries(again) }
  },
})

const CALLS_ORDERS: Readonly<Record<string, Key>> = { duration: of('durationMs'), charged: creditsOf('charged') }
const placeOf = ({ sort }: Row): Key | undefined => CALLS_ORDERS[sort]
const calls: Way = {
  ...list(
    (query) => (query.order === 'asc' ? least : most)(placeOf(query) ?? (() => 0), of('id')),
    (row, query) => {
      const [id, place] = [row.id.slice('req_'.length), placeOf(query)]
      return place || query.order === 'asc' ? `${place?.(row) ?? 0}_${id}` : id
    },
  ),
  csv: (read, { query: { cursor, limit, ...query } }) =>
    callsCsv((filter) => read({ ...query, cursor: filter.cursor, limit: filter.limit }), { cursor, limit }, 'all'),
}

const LABEL_ORDERS: Readonly<Record<string, readonly Key[]>> = {
  charged: [creditsOf('charged'), of('calls')],
  calls: [of('calls'), creditsOf('charged')],
  last: [of('lastAt')],
}
const labelOrder = ({ sort }: Row): Order => {
  const [first, last] = [most(...(LABEL_ORDERS[sort] ?? [])), least(of('account'), of('value'))]
  return (a, b) => first(a, b) || last(a, b)
}
const labels: Way = {
  ...counted(labelOrder),
  csv: (read, { query, actor }) => {
    const file = { ...query, cursor: undefined, limit: LABEL_VALUES_MAX }
    return labelSumsCsv(async () => (await read(file)).items, new Set(may(actor, 'vendors:read') ? [] : ['cost']))
  },
}

const sums: Way = {
  ...sorted(['groups', most(creditsOf('charged'), of('requests'))], ['series', least(of('at'), of('group'))]),
  csv: (read, { query }) => sumsCsv(() => read(query)),
}

const charged = most(creditsOf('charged'))
const margins = counted(
  ({ by }) => (by === 'month' ? least(of('group')) : (a, b) => charged(a, b) || least(of('group'))(a, b)),
  'all',
)
const withPercent = <T extends Row>(row: T): T => {
  const [margin, known] = [parseCredits(row.margin) ?? 0n, parseCredits(row.chargedWithKnownCost) ?? 0n]
  return { ...row, marginPercent: known === 0n ? null : Number((margin * 1000n) / known) / 10 }
}

const loss = ({ cost, charged: paid }: Row): bigint => (parseCredits(cost) ?? 0n) - (parseCredits(paid) ?? 0n)
const BREAKERS = ['open', 'half-open', 'closed']
const worst = ([...parts]: readonly Row[]): Row =>
  parts.sort(least(({ breaker }) => BREAKERS.indexOf(breaker)))[0] ?? {}
const latest = ([...parts]: readonly Row[]): Row => parts.sort(most(of('lastAt')))[0] ?? {}

/** Control's, with what all have counted and the worst that one has seen. */
function oneVendor(parts: readonly Row[], type: z.core.$ZodType): Row {
  const [first = {}] = parts
  const { inFlight, requests, errors, recent, latencyMsP50, latencyMsP95 }: Row = Object(joined(type, parts))
  const { breaker, reason, since, probe } = worst(parts)
  const { lastError, lastAt } = latest(parts)
  const credentials = first.credentials.map((own: Row) => {
    const all: Row[] = parts.flatMap((part) => part.credentials)
    return all.find(({ name, disabledUntil }) => name === own.name && disabledUntil !== null) ?? own
  })
  const minutes = Math.max(...parts.map((part) => part.recent.minutes))
  const counts = { inFlight, requests, errors, recent: { ...recent, minutes }, latencyMsP50, latencyMsP95 }
  return { ...first, ...counts, breaker, reason, since, probe, lastError, lastAt, credentials }
}

const vendors: Way = {
  merge(parts, { answer }) {
    const [first] = parts
    const type =
      answer instanceof z.ZodObject && answer.shape.items instanceof z.ZodArray ? answer.shape.items.element : answer
    const same = Map.groupBy<string, Row>(
      parts.flatMap(({ items }) => items),
      ({ name }) => name,
    )
    return { ...first, items: first?.items.map(({ name }: Row) => oneVendor(same.get(name) ?? [], type)) }
  },
}

const severity: Key = ({ breaker, requests, errors }) => 2 - BREAKERS.indexOf(breaker) + errors / Math.max(1, requests)
const home: Way = {
  // A route that loses in one ledger may gain in all.
  ask: (query) => ({ ...query, everyRoute: true }),
  merge(parts, asked) {
    const all = whole(parts, asked)
    const unhealthy = Map.groupBy<string, Row>(
      parts.flatMap(({ unhealthyVendors }) => unhealthyVendors),
      ({ name }) => name,
    )
    const health = Array.from(unhealthy.values(), (same) => {
      const sum = (name: string) => same.reduce((total, row) => total + row[name], 0)
      return { ...same[0], breaker: worst(same).breaker, requests: sum('requests'), errors: sum('errors') }
    })
    return {
      ...all,
      lowBalances: all.lowBalances.toSorted(least(of('daysLeft'))).slice(0, LISTED),
      unprofitableRoutes: all.unprofitableRoutes
        .filter((row: Row) => loss(row) > 0n)
        .toSorted(most(loss))
        .slice(0, LISTED),
      unhealthyVendors: health.toSorted(most(severity)),
    }
  },
}
const LISTED = 10

const KINDS = ['call', 'job', 'key', 'account', 'member', 'vendor', 'model']
const FOUND_MAX = 8
/** Of each kind as many as one database finds, exact names first. */
const search: Way = {
  merge(parts, asked) {
    const { items }: Row = whole(parts, asked)
    const isExact = ({ label }: Row) => (label.toLowerCase().split(' · ')[0] === asked.query.q.toLowerCase() ? 0 : 1)
    const newestOf = most(of('id'))
    const orders: Readonly<Record<string, Order>> = {
      key: (a, b) => least(isExact)(a, b) || newestOf(a, b),
      account: (a, b) => least(isExact)(a, b) || newestOf(a, b),
      member: least(of('label'), of('account')),
    }
    const found = KINDS.map((kind) => {
      const same: Row[] = items.filter((row: Row) => row.kind === kind)
      const order = orders[kind]
      return order ? same.toSorted(order).slice(0, FOUND_MAX) : same
    })
    return { items: found.flat(), next: null }
  },
}

const LIVE_MAX = 200
const live: Way = {
  merge(parts, asked) {
    const { items, running }: Row = whole(parts, asked)
    // Each process is in every ledger.
    return {
      items: items.toSorted(most(of('at'))).slice(0, LIVE_MAX),
      next: null,
      running,
      processes: parts[0]?.processes,
    }
  },
}

const vendorErrors: Way = {
  merge(parts, asked) {
    const all = whole(parts, asked)
    const items: Row[] = all.items.map((row: Row) => ({
      ...row,
      products: row.products.slice(0, 5),
      newest: row.newest.toSorted(most(of('requestId'))).slice(0, 3),
    }))
    const newestId: Key = ({ newest: [call] }) => call?.requestId ?? ''
    return { ...all, items: items.toSorted(most(of('calls'), newestId)).slice(0, ERRORS_MAX) }
  },
}
const ERRORS_MAX = 20

const history: Way = {
  merge(parts, asked) {
    const all = whole(parts, asked)
    const items = all.items.map((row: Row) => ({
      ...row,
      hours: row.hours.toSorted(least(of('at'))),
      models: row.models.toSorted(most(of('errors'), of('requests'))),
    }))
    return { ...all, items }
  },
}

/** Under the id of control's. */
function oneRun(runs: readonly VerificationRun[]): VerificationRun {
  const [first] = runs
  const ends = runs.map(({ endedAt }) => endedAt)
  const startedAt = runs.map((run) => run.startedAt).sort()[0] ?? ''
  const endedAt = ends.includes(null) ? null : (ends.toSorted().at(-1) ?? null)
  const failures = runs.flatMap(({ failure }) => failure ?? [])
  return {
    ...(joined(verificationRun, runs) as VerificationRun), // By its schema.
    id: first?.id ?? '',
    startedAt,
    endedAt,
    durationMs: endedAt === null ? null : Date.parse(endedAt) - Date.parse(startedAt),
    failure: failures.length > 0 ? failures.join(' ') : null,
  }
}
const verify: Way = {
  merge(parts) {
    const runs = (name: string) => parts.flatMap((part) => part[name] ?? [])
    const isRunning = runs('running').length > 0
    const lasts = runs('last')
    const running = parts.flatMap((part) => part.running ?? part.last ?? [])
    return {
      running: isRunning ? oneRun(running) : null,
      last: lasts.length > 0 ? oneRun(lasts) : null,
      nextAt: parts[0]?.nextAt ?? null,
    }
  },
}

const system: Way = {
  merge(parts, asked) {
    const [first] = parts
    const { queue, backfills, store }: Row = whole(parts, asked)
    const ledgers = asked.names.map((name) => ({ name, answers: !asked.missing.includes(name) }))
    return { ...first, store: { ...first?.store, sizeBytes: store.sizeBytes }, queue, backfills, ledgers }
  },
}

/** Control's own rows, of each of which the ledgers have counted something. */
const countedOf = (rows: string, name: string): Way => ({
  merge([first, ...more]) {
    const all: Row[] = more.flatMap((part) => part[rows])
    const sumOf = (own: Row) =>
      all.reduce((sum, { id, [name]: there }) => (id === own.id ? sum + there : sum), own[name])
    return { ...first, [rows]: first?.[rows].map((own: Row) => ({ ...own, [name]: sumOf(own) })) }
  },
})

/** Each compares its own payments. */
const reconciled: Way = {
  merge: (parts) => ({
    ...parts[0],
    checked: parts.reduce((sum, { checked }) => sum + checked, 0),
    differences: parts.flatMap(({ differences }) => differences),
    failure: parts.find(({ failure }) => failure !== null)?.failure ?? null,
  }),
}

/** Each ledger sends what it has; control's answer stands for all. */
const everywhere: Way = { merge: ([first]) => first ?? {} }

/** `one`: about one thing, which one of them knows. `new`: for the ledger with most room. */
export const ACROSS: Readonly<Record<string, Way | 'one' | 'new'>> = {
  'POST /accounts': 'new',
  'GET /accounts': newest,
  'GET /alerts': newest,
  'POST /alerts/read': sorted(),
  'GET /audit': newest,
  'GET /audit/verify': sorted(),
  'GET /code-batches': countedOf('items', 'used'),
  'GET /deliveries': list(
    () => most(of('at'), of('id')),
    ({ at, id }) => `${Date.parse(at)}_${id}`,
  ),
  'GET /deliveries/{delivery}': 'one',
  'POST /deliveries/{delivery}/repeat': 'one',
  'POST /exports/{id}/backfill': everywhere,
  'POST /exports/{id}/pause': everywhere,
  'POST /exports/{id}/resume': everywhere,
  'GET /focus': sorted(),
  'GET /home': home,
  'GET /invoices': newest,
  'GET /ledger/archive': sorted(['months', most(of('month'))]),
  'GET /ledger/verify': verify,
  'POST /ledger/verify': { merge: (parts) => oneRun(parts as readonly VerificationRun[]) }, // By their schema.
  'GET /margins': {
    ...margins,
    merge(parts, asked) {
      const { totals, items, next }: Row = margins.merge(parts, asked)
      return { items: items.map(withPercent), next, totals: withPercent(totals) }
    },
  },
  'GET /margins/unbilled': counted(
    () => (a, b) =>
      most(of('day'))(a, b) ||
      least(...['vendor', 'product', 'kind', 'model', 'credential'].map((name) => of(name)))(a, b),
  ),
  'GET /models/{uid}/routes': sorted(['items', least(of('route'))]),
  'GET /payments': newest,
  'GET /payments/{payment}': 'one',
  'POST /payments/{payment}/accept': 'one',
  'POST /payments/{payment}/dismiss': 'one',
  'POST /payments/{payment}/refund': 'one',
  'GET /plans': countedOf('plans', 'accounts'),
  'GET /reconciliations': newest,
  'POST /reconciliations': reconciled,
  'GET /requests/live': live,
  'GET /search': search,
  'GET /statements/{month}': list(() => most(accountId), accountId),
  'GET /system': system,
  'GET /usage': calls,
  'GET /usage/labels': labels,
  'GET /usage/latency': sorted(
    ['overTime', most(of('calls'))],
    ['groups', most(of('calls'))],
    ['series', most(of('calls'))],
  ),
  'GET /usage/sums': sums,
  'GET /vendor-reports/{id}/calls': list(
    () => least(of('id')),
    ({ id }) => id.replace(/^req_/, ''),
  ),
  'GET /vendors': vendors,
  'GET /vendors/history': history,
  'GET /vendors/{name}/errors': vendorErrors,
  'GET /warehouse': sorted(),
}
