// The results in words: one table of ratios, what the goals say to it, and the page in docs/.
import type { Case, Side } from './cases.ts'
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
  /** A table already. */
  readonly stages: string
}

export interface Facts {
  readonly machine: string
  readonly date: string
  readonly command: string
  readonly versions: readonly string[]
  readonly loadBefore: number
  readonly notes: readonly string[]
}

const NOTHING = '–'

export function ratio(a: number | undefined, b: number | undefined): string {
  if (a === undefined || b === undefined || b === 0) return NOTHING
  const value = a / b
  return value >= 10 ? value.toFixed(0) : value.toFixed(2)
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
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
      const { nginx, Portkey, Tollgate } = results.get(id)!
      const cpu = [nginx, Portkey, Tollgate].map((side) => micros(side?.cpu)).join(' / ')
      return [
        title,
        ratio(Tollgate?.rps, nginx?.rps),
        ratio(Tollgate?.rps, Portkey?.rps),
        cpu,
        micros(Tollgate?.storeCpu),
        [nginx, Portkey, Tollgate].map((side) => side?.rss.toFixed(0) ?? NOTHING).join(' / '),
      ]
    })
  return table(
    [
      'case',
      'Tollgate ÷ nginx, calls/s',
      'Tollgate ÷ Portkey, calls/s',
      'CPU µs a call: nginx / Portkey / Tollgate',
      'Postgres µs a call',
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
    for (const side of ['nginx', 'Portkey', 'Tollgate'] as const) {
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
function rssAt({ rssSeen }: Measured, share: number): number {
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

interface Goal {
  readonly text: string
  readonly value: string
  readonly met: boolean
  readonly why: Why
}

/** What the profiles say of a goal that is missed (decision 0030). Whoever changes the path profiles it again. */
const WHY = {
  chat: `The profile is flat. Of the gateway's time at 64 callers: collecting garbage 9 to 14 %, the kernel's sockets 11 %, undici with its
  parser 10 %, JSON 7 %, the ledger's words and the driver 9 %, the framework with its router 5 %, the log 3 %, V8's own threads 9 %;
  the rest is spread over hundreds of functions of less than 1 % each. A plain proxy on Node with the same client, without keys or money,
  was measured at 56 to 82 µs a call and 0.22 to 0.32 × nginx, so the last goal leaves little more than that for everything.`,
  stream: `Handing on the pieces is 20 % of a stream's profile, half of that writing to sockets; collecting garbage 11 %, undici with its
  parser 6 %. Most of the rest is what any call costs: admission, hold, settlement and log, which nginx does not have.`,
  latency: `Two flushes with a commit each, and code that runs with cold caches: at this rate the processor is halted between calls, and the same
  code takes four to five times as long as under load (nginx as well).`,
  streams: `20,000 pieces a second at about 35 µs are two thirds of a core (nginx: 13 µs). Of these, writing to sockets is 20 %, Node's streams and
  sockets 12 %, undici with its parser 9 %, our relay, observer and transfer 12 %, collecting garbage 6 %. The collector stops everything for
  3 to 5 ms twice a second, and what has come meanwhile has to be worked off: about one piece in a hundred.`,
  growth: `Three rounds of two seconds a side: on a guest machine they differ by a tenth and more. The rows below it were measured on the same
  store afterwards.`,
  other: 'Not profiled.',
} as const
type Why = keyof typeof WHY

/** What was set out to be reached, and whether it was. */
export function goals({ results, ledger, growth }: Findings): Goal[] {
  const found: Goal[] = []
  let why: Why = 'other'
  const goal = (text: string, value: number | undefined, met: (value: number) => boolean, digits = 2) => {
    if (value !== undefined && Number.isFinite(value))
      found.push({ text, value: value.toFixed(digits), met: met(value), why })
  }
  const at = (id: string) => results.get(id) ?? {}
  const over = (a: number | undefined, b: number | undefined) =>
    a === undefined || b === undefined ? undefined : a / b
  const chat = at('chat-64')
  why = 'chat'
  goal('chat JSON, 64 at a time: CPU a call ≤ 150 µs', chat.Tollgate?.cpu, (v) => v <= 150, 0)
  goal('… at least 5 times less than Portkey', over(chat.Portkey?.cpu, chat.Tollgate?.cpu), (v) => v >= 5)
  goal('… throughput ≥ 5 × Portkey', over(chat.Tollgate?.rps, chat.Portkey?.rps), (v) => v >= 5)
  goal('… throughput ≥ 0.15 × nginx', over(chat.Tollgate?.rps, chat.nginx?.rps), (v) => v >= 0.15)
  const stream = at('stream')
  why = 'stream'
  goal('SSE, same format: throughput ≥ 0.9 × nginx', over(stream.Tollgate?.rps, stream.nginx?.rps), (v) => v >= 0.9)
  goal('… ≥ 3 × Portkey', over(stream.Tollgate?.rps, stream.Portkey?.rps), (v) => v >= 3)
  const converted = at('converted')
  goal('SSE, converted: throughput ≥ 0.5 × nginx', over(converted.Tollgate?.rps, converted.nginx?.rps), (v) => v >= 0.5)
  const begun = at('stream-start')
  const addedTo = (sides: Partial<Record<Side, Measured>>, name: 'p50' | 'p99' | 'ttfb50') =>
    sides.Tollgate && sides.upstream ? (sides.Tollgate[name] - sides.upstream[name]) / 1000 : undefined
  const firstByte = addedTo(begun, 'ttfb50')
  const hold = (begun.Tollgate?.hold ?? 0) / 1000
  goal(
    `SSE: added to the first byte, p50, ≤ 1 ms plus the hold (which took ${hold.toFixed(2)} ms on average in these rounds, of ${firstByte?.toFixed(2)} ms in all); the rest`,
    firstByte === undefined ? undefined : firstByte - hold,
    (v) => v <= 1,
  )
  why = 'latency'
  goal('300 calls a second: added p50 ≤ 2 ms', addedTo(at('latency'), 'p50'), (v) => v <= 2)
  goal('… added p99 ≤ 10 ms', addedTo(at('latency'), 'p99'), (v) => v <= 10)
  why = 'other'
  goal('GET /v1/models: CPU ≤ 40 µs', at('models').Tollgate?.cpu, (v) => v <= 40, 0)
  for (const status of ['402', '429'])
    goal(
      `a refusal (${status}) costs less than an admission: its CPU ÷ that of a chat call < 1`,
      over(at(`refused-${status}`).Tollgate?.cpu, chat.Tollgate?.cpu),
      (v) => v < 1,
    )
  const open = at('open-streams')
  why = 'streams'
  goal('2,000 open streams: RSS ≤ 400 MB', open.Tollgate?.rss, (v) => v <= 400, 0)
  goal('… p99 chunk delay ≤ 3 × nginx', over(open.Tollgate?.cd99, open.nginx?.cd99), (v) => v <= 3)
  if (open.Tollgate) {
    const { cdq } = open.Tollgate
    goal('… flat: p99 chunk delay of the last quarter ÷ the first ≤ 1.5', over(cdq[3], cdq[0]), (v) => v <= 1.5)
    const rss = over(rssAt(open.Tollgate, 1), rssAt(open.Tollgate, 0.25))
    goal('… flat: RSS at the end ÷ at a quarter of the time ≤ 1.1', rss, (v) => v <= 1.1)
  }
  why = 'other'
  const best = Math.max(...ledger.map((point) => point.callsPerSecond))
  goal('the ledger alone: ≥ 10,000 paid calls a second', ledger.length > 0 ? best : undefined, (v) => v >= 10_000, 0)
  why = 'growth'
  for (const { what, small, grown } of growth)
    goal(`growth, ${what}: CPU grown ÷ small ≤ 1.15`, over(grown.cpu, small.cpu), (v) => v <= 1.15)
  return found
}

export function goalsTable(findings: Findings): string {
  return table(
    ['goal', 'found', ''],
    goals(findings).map(({ text, value, met }) => [text, value, met ? 'reached' : '**missed**']),
  )
}

/** The goals that were missed, each group with what its profile says. */
function missedList(findings: Findings): string {
  const missed = Map.groupBy(
    goals(findings).filter(({ met }) => !met),
    ({ why }) => why,
  )
  const lines = [...missed].map(
    ([why, all]) => `- **${all.map(({ text, value }) => `${text}: ${value}`).join('; ')}.** ${WHY[why]}`,
  )
  return lines.length === 0 ? '' : `\n### Missed, and what the profile says\n\n${lines.join('\n')}\n`
}

export function page(findings: Findings, facts: Facts): string {
  const failed = [...findings.results].flatMap(([id, sides]) =>
    Object.entries(sides)
      .filter(
        ([side, { non200, err }]) => (non200 > 0 && !id.startsWith('refused')) || (err > 0 && side !== 'upstream'),
      )
      .map(([side, { non200, err, n }]) => `${id}, ${side}: ${non200 + err} of ${n} calls were not answered with 200`),
  )
  return `# Performance

Written by \`${facts.command}\` on ${facts.date}; every figure below is from that one run. Tollgate ran in full: key check,
limits, a durable hold before the vendor is called, a durable settlement and a usage row before the last byte, log lines and
metrics, on its embedded Postgres with fsync on. Portkey checks no key and keeps no money; nginx only passes bytes on and is
the practical limit.

- Machine: ${facts.machine}; load average before the run: ${facts.loadBefore.toFixed(2)}.
- Versions: ${facts.versions.join(', ')}.
- The gateway under test was pinned to one core; the load generator, the upstream and Postgres to the rest. Loopback,
  keep-alive, gateways in turns, medians of the rounds. CPU is user + system of the gateway's processes, from /proc.
- The upstream is \`bench/mock.c\`, the load generator \`bench/load.c\`.
${facts.notes.map((note) => `- ${note}\n`).join('')}
## Goals

${goalsTable(findings)}
${missedList(findings)}
## Side by side

${mainTable(findings)}

## What a gateway adds to the upstream's time

${latencyTable(findings)}

## Open streams

The delay of a chunk is counted while all streams are open: from when the last was begun until the first ends.

${streamsTable(findings)}

## Growth

The same load (chat, 64 at a time) against a gateway with an empty database and against one that has grown, in turns. Each
row adds to those before it.

${growthTable(findings)}

## More than one process

Chat, 64 at a time, all cores shared by the gateway, Postgres, the upstream and the load generator: on two cores this shows
what is left for a second process, not what it could do on a core of its own.

${workersTable(findings)}

## The ledger alone

Hold, settlement and usage row, durable, from one process, without HTTP.

${ledgerTable(findings)}
${failed.length > 0 ? `\n## Calls that failed\n\n${failed.map((line) => `- ${line}`).join('\n')}\n` : ''}
## Stage by stage

Each stage of a chat call alone, with a ledger that answers at once: what is left is the path itself. Least of the rounds, processor time
of the gateway's process with its collector. The last two are from socket to socket, 64 at a time; a bare server that reads a body
and answers two bytes is the floor of the door, and the exchange with the vendor is undici's.

${findings.stages}

What made it fast, and what did not help: [decisions/0030-speed.md](decisions/0030-speed.md).
`
}
