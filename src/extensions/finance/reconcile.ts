// Compares vendors' reports with recorded calls, by day, model and credential: what matches, what differs, and what
// only one side has; with the calls of each line.

import { credentialsOf } from '../../catalog/document.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import type { By } from '../../database/audit.ts'
import { sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { DAY_MS, formatDay, parseDay } from '../../kernel/calendar.ts'
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { IS_TEST } from '../../kernel/test-account.ts'
import { asView, type Page, type Paging } from '../../kernel/view.ts'
import { idAtTime, newId, timeOfId } from '../../kernel/world.ts'
import { BYOK } from '../../ledger/operation.ts'
import { TOKENS } from '../../ledger/usage-sums.ts'
import type { Billing } from '../../reports/billing.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import type { GuardedFetch } from '../../upstream/guard.ts'
import { boundTo } from './exports.ts'
import { fetchReport, type ReportLine, readCsvReport } from './report-sources.ts'
import {
  type ComparedCall,
  type ComparedLine,
  REPORT_SOURCES,
  type ReportInput,
  type ReportView,
  reportView,
  type Verdict,
} from './views.ts'

export type VendorReports = ReturnType<typeof createVendorReports>

export interface ReportOptions extends Pick<CoreParts, 'database' | 'audit' | 'world'> {
  readonly catalog: Pick<CatalogStore, 'at' | 'current'>
  readonly credentials: Pick<Credentials, 'get'>
  readonly billing: Pick<Billing, 'get'>
  readonly guard: Pick<GuardedFetch, 'send'>
}

const DAYS_MAX = 31
const REPORTS_MAX = 1_000
const COMPARED_MAX = 100_000
const CALLS_PAGE_MAX = 2_000
const COUNT_MS = 300_000
/** In millionths of a credit. Tolerance for the rounding of vendors. */
const ROUNDING = 10n

export function createVendorReports(options: ReportOptions) {
  const { database, audit, catalog, world } = options

  async function find(id: string): Promise<ReportRow> {
    const [row] = await database.query<ReportRow>(FIND, [id])
    if (!row) throw new Fault('not_found', { message: 'There is no such report.' })
    return row
  }

  /** The model's name at the vendor, by the route of a usage row. */
  async function modelOf({
    product,
    route,
    catalog_version: version,
  }: Pick<OurRow, 'product' | 'route' | 'catalog_version'>): Promise<string> {
    const { document } = await catalog.at(version)
    const found = document.models[product] ?? document.endpoints[product]
    return found?.routes[route - 1]?.model ?? product
  }

  async function ours(report: ReportRow): Promise<Recorded[]> {
    // Calls do not record the credential if the vendor has only one.
    const vendor = catalog.current.document.vendors[report.vendor]
    const only = vendor && !vendor.credentials ? (credentialsOf(vendor)[0]?.name ?? null) : null
    const recorded: Recorded[] = []
    for (let day = parseDay(report.from) ?? 0; day <= (parseDay(report.to) ?? -1); day++) {
      const rows = await database.query<OurRow>(OURS, [
        idAtTime(day * DAY_MS),
        idAtTime((day + 1) * DAY_MS),
        report.vendor,
      ])
      for (const row of rows)
        recorded.push({ ...row, day: formatDay(day), model: await modelOf(row), credential: row.credential ?? only })
      // Unbilled costs: the vendor bills these too.
      for (const row of await database.query<Recorded>(UNBILLED, [formatDay(day), report.vendor]))
        recorded.push({ ...row, credential: row.credential ?? only })
      if (recorded.length > COMPARED_MAX)
        throw new Fault('conflict', { message: 'There is too much to compare at once. Use a report of fewer days.' })
    }
    return recorded
  }

  /** Each day, model and credential, with the figures of both sides. */
  async function compare(
    id: string,
    { verdict, tolerancePercent }: { verdict?: Verdict | undefined; tolerancePercent: number },
  ) {
    const report = await find(id)
    const lines = await database.query<LineRow>(LINES, [id])
    const compared = compareLines(
      lines.map((line) => theirsOf(line, report)),
      await ours(report),
      tolerancePercent,
    )
    return verdict === undefined ? compared : compared.filter((line) => line.verdict === verdict)
  }

  async function linesOf(input: ReportInput): Promise<ReportLine[]> {
    const { source, from, to, keys = {} } = input
    if (source === 'csv') {
      if (input.csv === undefined) throw invalid('csv: is missing.', 'csv')
      return readCsvReport(input.csv)
    }
    const { url = REPORT_SOURCES[source].url, credential = REPORT_SOURCES[source].credential } = input
    const secret = options.credentials.get(boundTo(credential, url))
    if (secret === undefined)
      throw new Fault('conflict', {
        message: `The credential ${credential} is not stored for ${new URL(url).origin}. Store it first: PUT /vendor-reports/credential.`,
      })
    const range = { fromDay: parseDay(from) ?? 0, toDay: parseDay(to) ?? 0 }
    return fetchReport({ upstream: options.guard, source, url, secret, keys, ...range })
  }

  async function creditsPerUnit({ currency = 'USD', creditsPerUnit: given }: ReportInput): Promise<string> {
    if (given !== undefined) return given
    const { worth } = await options.billing.get()
    if (worth?.currency !== currency)
      throw invalid(
        `creditsPerUnit: say how many credits one ${currency} is. It is known only where a credit is worth ${currency}.`,
        'creditsPerUnit',
      )
    return (1 / Number(worth.rate)).toFixed(6)
  }

  return {
    async list(): Promise<ReportView[]> {
      return (await database.query<ReportRow>(LIST, [REPORTS_MAX])).map(view)
    },
    read: async (id: string): Promise<ReportView> => view(await find(id)),
    async create(input: ReportInput, by: By): Promise<ReportView> {
      const { vendor, source, from, to, currency = 'USD' } = input
      const [first, last] = [parseDay(from), parseDay(to)]
      if (first === undefined) throw invalid('from: must be a day such as 2026-11-15.', 'from')
      if (last === undefined || last < first) throw invalid('to: must be a day that does not lie before from.', 'to')
      if (last - first >= DAYS_MAX) throw invalid(`to: a report has at most ${DAYS_MAX} days.`, 'to')
      const rate = await creditsPerUnit(input)
      const lines = (await linesOf(input)).filter(({ day }) => day >= from && day <= to)
      const id = `rep_${newId(world)}`
      await database.transaction(async (tx) => {
        await tx.query(CREATE, [id, vendor, source, from, to, currency, rate])
        await tx.query(ADD_LINES, [id, JSON.stringify(lines)])
        await audit.write(tx, by, { action: 'vendor-report.create', object: id, detail: { vendor, source, from, to } })
      })
      return view(await find(id))
    },
    async remove(id: string, by: By): Promise<ReportView> {
      const gone = view(await find(id))
      await database.transaction(async (tx) => {
        await tx.query(REMOVE, [id])
        const { vendor, source, from, to } = gone
        await audit.write(tx, by, {
          action: 'vendor-report.remove',
          object: id,
          before: { vendor, source, from, to },
          after: {},
        })
      })
      return gone
    },
    compare,
    /** The recorded calls behind a line. */
    async calls(
      id: string,
      { day, model, credential }: { day: string; model: string; credential?: string | undefined },
      { cursor, limit }: Paging,
    ): Promise<Page<ComparedCall>> {
      const report = await find(id)
      const at = parseDay(day)
      if (at === undefined) throw invalid('day: must be a day such as 2026-11-15.', 'day')
      const vendor = catalog.current.document.vendors[report.vendor]
      const isOnly = vendor && !vendor.credentials && credentialsOf(vendor)[0]?.name === credential
      const items: ComparedCall[] = []
      let last = cursor ?? idAtTime(at * DAY_MS)
      for (;;) {
        const rows = await database.query<CallRow>(CALLS, [
          last,
          idAtTime((at + 1) * DAY_MS),
          report.vendor,
          isOnly ? null : (credential ?? null),
          CALLS_PAGE_MAX,
        ])
        for (const row of rows) {
          if (nameOf(await modelOf(row)) !== nameOf(model)) continue
          if (items.length === limit) return { items, next: last }
          last = row.id
          items.push(callView(row))
        }
        const end = rows.at(-1)
        if (!end || rows.length < CALLS_PAGE_MAX) return { items, next: null }
        last = end.id
      }
    },
  }
}

type ReportRow = Pick<ReportView, 'id' | 'vendor' | 'from' | 'to' | 'currency'> & { readonly credits_per_unit: string }

const view = (row: object): ReportView => asView(reportView, row)

interface LineRow {
  readonly day: string
  readonly model: string
  readonly credential: string | null
  readonly requests: bigint | null
  readonly input_tokens: bigint | null
  readonly output_tokens: bigint | null
  readonly cost: string | null
}

interface OurRow {
  readonly product: string
  readonly route: number
  readonly catalog_version: number
  readonly credential: string | null
  readonly calls: bigint
  readonly cost: bigint | null
  readonly input: bigint
  readonly output: bigint
}

type Recorded = Omit<OurRow, 'product' | 'route' | 'catalog_version'> & { readonly day: string; readonly model: string }

/** The figures of one side; null: not reported. */
interface Figures {
  readonly calls: bigint | null
  readonly input: bigint | null
  readonly output: bigint | null
  /** In millionths of a credit. */
  readonly cost: bigint | null
}

interface Theirs extends Figures {
  readonly day: string
  readonly model: string
  readonly credential: string | null
}

function theirsOf(line: LineRow, { credits_per_unit: rate }: ReportRow): Theirs {
  const { day, model, credential, requests: calls, input_tokens: input, output_tokens: output } = line
  const cost = line.cost === null ? null : BigInt(Math.round(Number(line.cost) * Number(rate) * 1_000_000))
  return { day, model, credential, calls, input, output, cost }
}

/** Vendors report the dated name of a model even if the call used its short name. */
function nameOf(model: string): string {
  return model.toLowerCase().replace(/[-@](\d{4}-\d{2}-\d{2}|\d{8})$/, '')
}

const keyOf = (day: string, model: string, credential: string | null) =>
  JSON.stringify([day, nameOf(model), credential])

/** A line with a credential is compared with the calls of that credential, a line without one with all calls. */
function compareLines(
  theirs: readonly Theirs[],
  recorded: readonly Recorded[],
  tolerancePercent: number,
): ComparedLine[] {
  const lines: ComparedLine[] = []
  for (const isByCredential of [true, false]) {
    const some = theirs.filter(({ credential }) => (credential !== null) === isByCredential)
    if (some.length === 0 && (isByCredential || theirs.length > 0)) continue
    const ours = new Map<string, Figures & Pick<Theirs, 'day' | 'model' | 'credential'>>()
    for (const row of recorded) {
      const credential = isByCredential ? row.credential : null
      const key = keyOf(row.day, row.model, credential)
      const sum = ours.get(key)
      const cost = row.cost === null ? (sum?.cost ?? null) : (sum?.cost ?? 0n) + row.cost
      ours.set(key, {
        day: row.day,
        model: sum?.model ?? row.model,
        credential,
        cost,
        calls: (sum?.calls ?? 0n) + row.calls,
        input: (sum?.input ?? 0n) + row.input,
        output: (sum?.output ?? 0n) + row.output,
      })
    }
    for (const line of some) {
      const key = keyOf(line.day, line.model, line.credential)
      lines.push(lineOf(line, ours.get(key), tolerancePercent))
      ours.delete(key)
    }
    for (const sum of ours.values()) lines.push(lineOf(undefined, sum, tolerancePercent, sum))
  }
  return inOrder(lines)
}

const placeOf = ({ day, model, credential }: ComparedLine) => `${day} ${model} ${credential ?? ''}`
const inOrder = (lines: ComparedLine[]) => lines.sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))

/** Of several databases, each compared with its own calls. */
export function joinLines(lines: readonly ComparedLine[], tolerancePercent: number): ComparedLine[] {
  const same = Map.groupBy(lines, ({ day, model, credential }) => keyOf(day, model, credential))
  const all = Array.from(same.values(), ([line, ...more]) => {
    if (!line || more.length === 0) return line ?? []
    const ours = [line, ...more].flatMap((one) => (one.ours ? [figuresOf(one.ours)] : []))
    const theirs = line.theirs && { ...line, ...figuresOf(line.theirs) }
    return lineOf(theirs ?? undefined, ours.length > 0 ? ours.reduce(sumOf) : undefined, tolerancePercent, line)
  })
  return inOrder(all.flat())
}

const figuresOf = ({ calls, inputTokens, outputTokens, cost }: NonNullable<ComparedLine['ours']>): Figures => ({
  calls: calls === null ? null : BigInt(calls),
  input: inputTokens === null ? null : BigInt(inputTokens),
  output: outputTokens === null ? null : BigInt(outputTokens),
  cost: cost === null ? null : (parseCredits(cost) ?? null),
})

function sumOf(a: Figures, b: Figures): Figures {
  const plus = (one: bigint | null, other: bigint | null) =>
    one === null || other === null ? (one ?? other) : one + other
  return {
    calls: plus(a.calls, b.calls),
    input: plus(a.input, b.input),
    output: plus(a.output, b.output),
    cost: plus(a.cost, b.cost),
  }
}

type Named = Pick<Theirs, 'day' | 'model' | 'credential'>

function lineOf(
  theirs: Theirs | undefined,
  ours: Figures | undefined,
  tolerancePercent: number,
  named?: Named,
): ComparedLine {
  const { day, model, credential } = theirs ?? named ?? { day: '', model: '', credential: null }
  const differing = theirs && ours ? differingOf(theirs, ours, tolerancePercent) : []
  const verdict: Verdict = !theirs ? 'only_ours' : !ours ? 'only_theirs' : differing.length > 0 ? 'differs' : 'matched'
  // Null if either cost is unknown.
  const isKnown = (theirs ?? ours)?.cost !== null
  const difference = isKnown ? (theirs?.cost ?? 0n) - (ours?.cost ?? 0n) : null
  return {
    day,
    model,
    credential,
    verdict,
    differing,
    theirs: theirs ? figuresView(theirs) : null,
    ours: ours ? figuresView(ours) : null,
    difference: difference === null ? null : formatCredits(difference),
  }
}

/** The reported figures that differ from ours. */
function differingOf(theirs: Figures, ours: Figures, tolerancePercent: number): ComparedLine['differing'] {
  const names = ['calls', 'input', 'output', 'cost'] as const
  return names.filter((name) => {
    const [a, b] = [theirs[name], ours[name]]
    if (a === null) return false
    if (b === null) return true
    const gap = a > b ? a - b : b - a
    if (name === 'cost' && gap <= ROUNDING) return false
    const most = a > b ? a : b
    return gap * 1_000_000n > most * BigInt(Math.round(tolerancePercent * 10_000))
  })
}

function figuresView({ calls, input, output, cost }: Figures): NonNullable<ComparedLine['theirs']> {
  const number = (value: bigint | null) => (value === null ? null : Number(value))
  return {
    calls: number(calls),
    inputTokens: number(input),
    outputTokens: number(output),
    cost: cost === null ? null : formatCredits(cost),
  }
}

interface CallRow {
  readonly id: string
  readonly account_id: string
  readonly product: string
  readonly route: number
  readonly catalog_version: number
  readonly credential: string | null
  readonly cost: bigint | null
  readonly input: bigint
  readonly output: bigint
}

function callView({ id, account_id: account, product, credential, cost, input, output }: CallRow): ComparedCall {
  return {
    id: `req_${id}`,
    at: new Date(timeOfId(id)).toISOString(),
    account,
    product,
    credential,
    inputTokens: Number(input),
    outputTokens: Number(output),
    cost: cost === null ? null : formatCredits(cost),
  }
}

// Calls that a vendor answered with the gateway's credentials, not with BYOK keys.
const BILLED = `u.vendor = $3 and u.route > 0 and u.outcome = 'settled' and u.credential is distinct from '${BYOK}' and not ${IS_TEST('u.account_id')}`
const OURS = sql('vendor_report_ours', COUNT_MS)`
  select u.product, u.route::int as route, u.catalog_version, u.credential, count(*) as calls, sum(u.cost)::bigint as cost, sum(t.input)::bigint as input, sum(t.output)::bigint as output
   from usage u ${TOKENS} where u.id >= $1 and u.id < $2 and ${BILLED} group by 1, 2, 3, 4`
const UNBILLED = sql('vendor_report_unbilled')`
  select day::text as day, model, nullif(credential, '') as credential, calls, cost, input_tokens as input, output_tokens as output
   from unbilled_day where day = $1::date and vendor = $2`
const CALLS = sql('vendor_report_calls', COUNT_MS)`
  select u.id, u.account_id, u.product, u.route::int as route, u.catalog_version, u.credential, u.cost, t.input, t.output
   from usage u ${TOKENS} where u.id > $1 and u.id < $2 and ${BILLED} and ($4::text is null or u.credential = $4) order by u.id limit $5`
const SEEN = `r.id, r.vendor, r.source, r.from_day::text as "from", r.to_day::text as "to", r.currency, r.credits_per_unit::text as credits_per_unit, r.created_at,
  (select count(*) from vendor_report_line l where l.report_id = r.id) as lines`
const LIST = sql('vendor_report_list')`select ${SEEN} from vendor_report r order by r.id desc limit $1`
const FIND = sql('vendor_report_find')`select ${SEEN} from vendor_report r where r.id = $1`
const LINES = sql('vendor_report_lines')`
  select day::text as day, model, credential, requests, input_tokens, output_tokens, cost::text as cost from vendor_report_line where report_id = $1 order by number`
const CREATE = sql('vendor_report_create')`
  insert into vendor_report (id, vendor, source, from_day, to_day, currency, credits_per_unit) values ($1, $2, $3, $4::date, $5::date, $6, $7::numeric)`
const ADD_LINES = sql('vendor_report_add')`
  insert into vendor_report_line (report_id, number, day, model, credential, requests, input_tokens, output_tokens, cost)
   select $1, x.number, (x.line ->> 'day')::date, x.line ->> 'model', x.line ->> 'credential', (x.line ->> 'requests')::bigint, (x.line ->> 'inputTokens')::bigint,
     (x.line ->> 'outputTokens')::bigint, (x.line ->> 'cost')::numeric
   from jsonb_array_elements($2::jsonb) with ordinality as x(line, number)`
const REMOVE = sql('vendor_report_remove')`delete from vendor_report where id = $1`
