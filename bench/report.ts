// The results in words: a table for each part.
import type { Case, Side } from './cases.ts'
import type { Cold } from './cold.ts'
import type { GrowthRow } from './growth.ts'
import type { LedgerPoint } from './ledger.ts'
import type { Measured } from './measure.ts'

export type Results = ReadonlyMap<string, Partial<Record<Side, Measured>>>

export interface Findings {
  readonly cases: readonly Case[]
  readonly results: Results
  readonly growth: readonly GrowthRow[]
  readonly workers: readonly { readonly what: string; readonly measured: Measured }[]
  readonly ledger: readonly LedgerPoint[]
  /** Microseconds that a bare durable update took in the minute of the latencies, on the same disk. */
  readonly bare: number | undefined
  readonly cold: Cold | undefined
  /** A table already. */
  readonly stages: string
}

const NOTHING = '–'

export function ratio(a: number | undefined, b: number | undefined): string {
  if (a === undefined || b === undefined || b === 0) return NOTHING
  const value = a / b
  return value >= 10 ? value.toFixed(0) : value.toFixed(2)
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

const micros = (value: number | undefined) => (value === undefined ? NOTHING : value.toFixed(value < 100 ? 1 : 0))
const millis = (value: number | undefined) => (value === undefined ? NOTHING : (value / 1000).toFixed(2))

/** Side by side: throughput as ratios, processor time as it is. */
export function mainTable({ cases, results }: Findings): string {
  const rows = cases
    .filter(({ id }) => results.has(id))
    .map(({ id, title }) => {
      const { nginx, Portkey, floor, Tollgate } = results.get(id)!
      const cpu = [nginx, Portkey, floor, Tollgate].map((side) => micros(side?.cpu)).join(' / ')
      return [
        title,
        ratio(Tollgate?.rps, nginx?.rps),
        ratio(Tollgate?.rps, Portkey?.rps),
        ratio(Tollgate?.rps, floor?.rps),
        ratio(floor?.rps, Portkey?.rps),
        cpu,
        `${micros(floor?.storeCpu)} / ${micros(Tollgate?.storeCpu)}`,
        [nginx, Portkey, Tollgate].map((side) => side?.rss.toFixed(0) ?? NOTHING).join(' / '),
      ]
    })
  return table(
    [
      'case',
      'Tollgate ÷ nginx, calls/s',
      'Tollgate ÷ Portkey, calls/s',
      'Tollgate ÷ floor, calls/s',
      'floor ÷ Portkey, calls/s',
      'CPU µs a call: nginx / Portkey / floor / Tollgate',
      'Postgres µs a call: floor / Tollgate',
      'RSS MB: nginx / Portkey / Tollgate',
    ],
    rows,
  )
}

/** What each gateway adds to the upstream's own time. */
export function latencyTable({ cases, results }: Findings): string {
  const rows: string[][] = []
  for (const { id, title } of cases) {
    const sides = results.get(id)
    const direct = sides?.upstream
    if (!sides || !direct) continue
    for (const side of ['nginx', 'Portkey', 'floor', 'Tollgate'] as const) {
      const measured = sides[side]
      if (!measured) continue
      const added = (name: 'p50' | 'p99' | 'ttfb50' | 'ttfb99') => millis(measured[name] - direct[name])
      rows.push([title, side, added('p50'), added('p99'), added('ttfb50'), added('ttfb99')])
    }
  }
  return table(
    [
      'case',
      'gateway',
      'added p50, ms',
      'added p99, ms',
      'added to the first byte p50, ms',
      'added to the first byte p99, ms',
    ],
    rows,
  )
}

/** What it had when this share of the time had passed. */
export function rssAt({ rssSeen }: Measured, share: number): number {
  return rssSeen[Math.floor((rssSeen.length - 1) * share)] ?? Number.NaN
}

export function streamsTable({ cases, results }: Findings): string {
  const sides = results.get('open-streams')
  const title = cases.find(({ id }) => id === 'open-streams')?.title
  if (!sides || !title) return ''
  const rows = (['nginx', 'Portkey', 'Tollgate'] as const)
    .filter((side) => sides[side])
    .map((side) => {
      const { cpu, cd50, cd99, cdq, rss, n, err, non200 } = sides[side]!
      return [
        side,
        `${n - non200} of ${n + err}`,
        millis(cd50),
        millis(cd99),
        cdq.map(millis).join(', '),
        (cpu / 1000).toFixed(1),
        rss.toFixed(0),
        [0.25, 0.5, 0.75, 1].map((share) => rssAt(sides[side]!, share).toFixed(0)).join(', '),
      ]
    })
  const head = [
    'gateway',
    'streams served',
    'chunk delay p50, ms',
    'p99, ms',
    'p99 of each quarter, ms',
    'CPU ms a stream',
    'RSS MB, most',
    'RSS at ¼, ½, ¾ and the end',
  ]
  return `${title}:\n\n${table(head, rows)}`
}

export function growthTable({ growth }: Findings): string {
  return table(
    ['what grew', 'calls/s, grown ÷ small', 'CPU µs a call: small → grown', 'Postgres µs a call: small → grown'],
    growth.map(({ what, small, grown }) => [
      what,
      ratio(grown.rps, small.rps),
      `${micros(small.cpu)} → ${micros(grown.cpu)}`,
      `${micros(small.storeCpu)} → ${micros(grown.storeCpu)}`,
    ]),
  )
}

export function workersTable({ workers }: Findings): string {
  const [first] = workers
  return table(
    ['processes', 'calls/s, compared with one', 'CPU µs a call', 'p50, ms', 'p99, ms'],
    workers.map(({ what, measured }) => [
      what,
      ratio(measured.rps, first?.measured.rps),
      micros(measured.cpu),
      millis(measured.p50),
      millis(measured.p99),
    ]),
  )
}

export function ledgerTable({ ledger }: Findings): string {
  return table(
    ['callers', 'accounts', 'paid calls/s', 'CPU µs a call', 'operations a flush'],
    ledger.map((point) =>
      [point.callers, point.accounts, point.callsPerSecond, point.cpuMicrosPerCall, point.batchMean].map(String),
    ),
  )
}
