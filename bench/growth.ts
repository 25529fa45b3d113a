// Whether the cost of a call grows with what is stored: the same load against a small gateway and one that has grown, a
// step at a time, in turns.

import type { Embedded } from '../src/extensions/postgres/embedded.ts'
import { idAtTime, realWorld as world } from '../src/kernel/world.ts'
import { listCases } from './cases.ts'
import type { LoadTools } from './load.ts'
import { type Measured, measure, medians } from './measure.ts'
import type { TargetOptions } from './target.ts'
import { aimAt } from './target.ts'
import { startTollgate, type Tollgate } from './tollgate.ts'

export interface GrowthRow {
  readonly what: string
  readonly small: Measured
  readonly grown: Measured
}

const HOUR_MS = 3_600_000
/** Rows of one statement: few enough for its time limit. */
const SLICE = 100_000
/** The keys that take turns: each is a separate account, so that a flush has many rows to change. */
const KEYS_IN_USE = 1_000

export interface GrowthOptions {
  readonly tools: LoadTools
  readonly store: Embedded
  readonly target: TargetOptions
  readonly rounds: number
  readonly seconds: number
  readonly accounts: number
  readonly usageRows: number
  readonly jobs: number
  readonly models: number
  readonly say: (line: string) => void
}

export async function measureGrowth(options: GrowthOptions): Promise<GrowthRow[]> {
  const { tools, store, target, say } = options
  const { body } = listCases(true).find(({ id }) => id === 'chat-64')!
  const small = await startTollgate({ ...target, store, name: 'small' })
  const grown = await startTollgate({ ...target, store, name: 'grown', modelsMore: options.models })
  const rows: GrowthRow[] = []
  let keys: string[] | undefined

  const one = (gateway: Tollgate, seconds: number, warmSeconds: number) => {
    const aim = aimAt(gateway, body)
    return measure(
      tools,
      { gateway: gateway.pid, store: store.pid },
      gateway === grown && keys ? { ...aim, headers: {}, keys } : aim,
      { connections: 64, seconds, warmSeconds },
    )
  }
  async function compare(what: string): Promise<void> {
    const results: Record<'small' | 'grown', Measured[]> = { small: [], grown: [] }
    for (const gateway of [small, grown]) await one(gateway, 0.5, rows.length === 0 ? 4 : 2)
    for (let round = 0; round < options.rounds; round++) {
      results.small.push(await one(small, options.seconds, 0.3))
      results.grown.push(await one(grown, options.seconds, 0.3))
    }
    rows.push({ what, small: medians(results.small), grown: medians(results.grown) })
    say(`  growth: ${what}`)
  }
  const settle = async () => {
    await grown.database.query({ text: 'vacuum analyze' })
    await grown.database.query({ text: 'checkpoint' })
  }

  try {
    await compare(`models in the catalog: 2 → ${count(options.models + 2)}`)
    keys = (await grown.accounts(options.accounts)).slice(0, KEYS_IN_USE).map(({ key }) => key)
    await settle()
    await compare(`accounts and keys: 1 → ${count(options.accounts)}, ${count(keys.length)} of them calling in turn`)
    const before = idAtTime(world.nowMs() - HOUR_MS)
    for (let from = 1; from <= options.usageRows; from += SLICE)
      await grown.database.query({ text: USAGE }, [before, from, Math.min(from + SLICE - 1, options.usageRows)])
    await settle()
    await compare(`usage rows and transfers: 0 → ${count(options.usageRows)}`)
    await grown.database.query({ text: JOBS }, [idAtTime(world.nowMs() - HOUR_MS), options.jobs])
    await settle()
    await compare(`open jobs with their holds: 0 → ${count(options.jobs)}`)
  } finally {
    await small.stop()
    await grown.stop()
  }
  return rows
}

function count(number: number): string {
  return number.toLocaleString('en')
}

/** In the present month's partition, where new rows go as well. */
const USAGE = `
with made as (
  insert into usage (id, account_id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines)
  select $1 || lpad(i::text, 16, '0'), 'acc_grown_' || i % 1000, 'key_1', 'bench-chat', 'chat', 'settled', 200, 1000, 5000, 1,
    '[["input",20,"1000000"]]' from generate_series($2::int, $3::int) i
)
insert into transfer (id, account_id, kind, amount, held)
select $1 || lpad(i::text, 16, '0'), 'acc_grown_' || i % 1000, 'settled', 1000, 5000 from generate_series($2::int, $3::int) i`

/** Their next step is a day away, so that they are open and nothing else. */
const JOBS = `
with made as (
  insert into job (id, account_id, key_id, hold_id, product, catalog_version, status, input, request, step_at)
  select 'job_' || i, 'acc_grown_' || i % 1000, 'key_1', $1 || 'j' || lpad(i::text, 15, '0'), 'bench-chat', 1, 'PROCESSING',
    '{}', '{}', now() + interval '1 day' from generate_series(1, $2::int) i
)
insert into hold (id, account_id, key_id, process_id, job, amount, product, catalog_version)
select $1 || 'j' || lpad(i::text, 15, '0'), 'acc_grown_' || i % 1000, 'key_1', 'bench', true, 1000, 'bench-chat', 1
from generate_series(1, $2::int) i`
