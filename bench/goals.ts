// What was set out to be reached, whether it was, and why not where it was not.
import type { Side } from './cases.ts'
import type { Measured } from './measure.ts'
import { type Findings, rssAt, table } from './report.ts'

interface Goal {
  readonly text: string
  readonly value: string
  readonly met: boolean
  readonly why: Why
}

/**
 * What the profiles say of a goal that is missed (bench/notes/call-path.md). Whoever changes the path profiles it
 * again.
 */
const WHY = {
  chat: `The column "floor" of the table below is what \`node:http\`, undici and one durable update take without anything of ours, in the same turns; the table
  "Stage by stage" has what each of our stages adds to it when it runs alone in a loop. Among 64 callers, by leaving out one part after the other (in turns, on a busy machine, before the
  journal): server, key, body and writing 34 µs, reading the request 11, from admission to settlement without ledger and vendor 27, the exchange with the vendor 53, most of it undici, the
  ledger 67, where the floor took 73 in all.`,
  few: `One caller waits for every part in turn: its request, the vendor's answer, one row of the journal, and wakes the gateway and Postgres for each. The floor of the table
  below has the same three waits. Our own stages, 12 µs when each runs alone in a loop, take several times that when each runs once a call and finds the caches cold.`,
  stream: `Among 64 callers many pieces share a read, and what any call costs is most of a stream: admission, settlement and log, which nginx does not have. Handing on a piece of a
  stream by itself takes 16 to 18 µs where nginx takes 8.6 (one piece on each of 200 streams at a time, in turns, on a busy machine; bench/notes/call-path.md, "A chunk of a stream").`,
  streams: `A piece takes 16 to 18 µs where nginx takes 8.6: one read, a copy, undici's parser, one string, one comparison, one write. The kernel is 43 to 52 % of that profile (bench/notes/call-path.md, "A
  chunk of a stream"). 20,000 pieces a second are most of a core then: what comes late waits for what came before it.`,
  cold: `What a fresh process does besides its calls is to compile: in the first 10,000 of them V8 makes about 1,060 functions anew with its quick optimizing compiler and 126 with the slow one, which is
  nearly all of the difference (bench/notes/call-path.md, "The ninth look"). Without the slow one the ratio is 1.33, because every later call takes half as much again.`,
  growth: `A few rounds of two seconds a side: on a guest machine they differ by a tenth and more. The rows below it were measured on the same
  store afterwards.`,
  other: 'Not profiled.',
} as const
type Why = keyof typeof WHY

type Sides = Partial<Record<Side, Measured>>
type Say = (text: string, value: number | undefined, met: (value: number) => boolean, digits?: number) => void

const over = (a: number | undefined, b: number | undefined) => (a === undefined || b === undefined ? undefined : a / b)
/** Milliseconds that Tollgate adds to what another side takes. */
const added = (sides: Sides, to: Side, name: 'p50' | 'p99' | 'ttfb50') => {
  const other = sides[to]
  return sides.Tollgate && other ? (sides.Tollgate[name] - other[name]) / 1000 : undefined
}

export function goals({ results, ledger, growth, bare, cold }: Findings): Goal[] {
  const found: Goal[] = []
  const goalOf =
    (why: Why): Say =>
    (text, value, met, digits = 2) => {
      if (value !== undefined && Number.isFinite(value))
        found.push({ text, value: value.toFixed(digits), met: met(value), why })
    }
  const at = (id: string): Sides => results.get(id) ?? {}
  sayCalls(at, bare, goalOf)
  sayStreams(at, goalOf)
  if (cold) {
    const goal = goalOf('cold')
    goal('the first 10,000 calls ÷ as many after 60,000 more, CPU ≤ 1.6', cold.ratio, (v) => v <= 1.6)
    goal('longest stop of the event loop at 300/s from readiness on, ms ≤ 60', cold.stopMs, (v) => v <= 60, 0)
    goal('ready on a second start, s ≤ 1', cold.readyMs / 1000, (v) => v <= 1)
    goal('RSS after the start, MB ≤ 150', cold.rss, (v) => v <= 150, 0)
    goal('idle: CPU, % of a core ≤ 0.3', cold.idlePercent, (v) => v <= 0.3)
  }
  const other = goalOf('other')
  other('GET /v1/models: CPU ≤ 40 µs', at('models').Tollgate?.cpu, (v) => v <= 40, 0)
  for (const status of ['402', '429'])
    other(
      `a refusal (${status}) costs less than an admission: its CPU ÷ that of a chat call < 1`,
      over(at(`refused-${status}`).Tollgate?.cpu, at('chat-64').Tollgate?.cpu),
      (v) => v < 1,
    )
  const best = Math.max(...ledger.map((point) => point.callsPerSecond))
  other('the ledger alone: ≥ 10,000 paid calls a second', ledger.length > 0 ? best : undefined, (v) => v >= 10_000, 0)
  for (const { what, small, grown } of growth)
    goalOf('growth')(`growth, ${what}: CPU grown ÷ small ≤ 1.15`, over(grown.cpu, small.cpu), (v) => v <= 1.15)
  return found
}

function sayCalls(at: (id: string) => Sides, bare: number | undefined, goalOf: (why: Why) => Say): void {
  const [many, one, steady] = [at('chat-64'), at('chat-1'), at('latency')]
  const chat = goalOf('chat')
  chat('chat JSON, 64 at a time: CPU ÷ nginx ≤ 8', over(many.Tollgate?.cpu, many.nginx?.cpu), (v) => v <= 8)
  chat('… throughput ÷ Portkey ≥ 7', over(many.Tollgate?.rps, many.Portkey?.rps), (v) => v >= 7)
  const few = goalOf('few')
  few('chat JSON, 1 at a time: throughput ÷ Portkey ≥ 1.6', over(one.Tollgate?.rps, one.Portkey?.rps), (v) => v >= 1.6)
  const p50 = added(steady, 'upstream', 'p50')
  few(
    `300 calls a second: added p50 ÷ a bare durable update (${bare === undefined ? 'not measured' : `${(bare / 1000).toFixed(2)} ms`}) ≤ 6`,
    over(p50, bare === undefined ? undefined : bare / 1000),
    (v) => v <= 6,
  )
  few('… added p99, ms over nginx ≤ 10', added(steady, 'nginx', 'p99'), (v) => v <= 10)
}

function sayStreams(at: (id: string) => Sides, goalOf: (why: Why) => Say): void {
  const [stream, converted, open] = [at('stream'), at('converted'), at('open-streams')]
  const goal = goalOf('stream')
  goal('SSE, same format: throughput ÷ nginx ≥ 0.95', over(stream.Tollgate?.rps, stream.nginx?.rps), (v) => v >= 0.95)
  goal('SSE, converted: throughput ÷ nginx ≥ 0.8', over(converted.Tollgate?.rps, converted.nginx?.rps), (v) => v >= 0.8)
  goal('SSE: added to the first byte, p50, ms ≤ 2', added(at('stream-start'), 'upstream', 'ttfb50'), (v) => v <= 2)
  const streams = goalOf('streams')
  streams('2,000 open streams: RSS, MB ≤ 400', open.Tollgate?.rss, (v) => v <= 400, 0)
  streams('… p99 chunk delay ÷ nginx ≤ 3', over(open.Tollgate?.cd99, open.nginx?.cd99), (v) => v <= 3)
  if (!open.Tollgate) return
  const { cdq } = open.Tollgate
  streams('… flat: p99 chunk delay of the last quarter ÷ the first ≤ 1.5', over(cdq[3], cdq[0]), (v) => v <= 1.5)
  const rss = over(rssAt(open.Tollgate, 1), rssAt(open.Tollgate, 0.25))
  streams('… flat: RSS at the end ÷ at a quarter of the time ≤ 1.1', rss, (v) => v <= 1.1)
}

export function goalsTable(findings: Findings): string {
  return table(
    ['goal', 'found', ''],
    goals(findings).map(({ text, value, met }) => [text, value, met ? 'reached' : '**missed**']),
  )
}

/** The goals that were missed, each group with what its profile says. */
export function missedList(findings: Findings): string {
  const missed = Map.groupBy(
    goals(findings).filter(({ met }) => !met),
    ({ why }) => why,
  )
  const lines = [...missed].map(
    ([why, all]) => `- **${all.map(({ text, value }) => `${text}: ${value}`).join('; ')}.** ${WHY[why]}`,
  )
  return lines.length === 0 ? '' : `\n### Missed, and what the profile says\n\n${lines.join('\n')}\n`
}
