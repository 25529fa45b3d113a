// A run is what an agent does for one task: all calls of one session, in parts when it starts sub-agents. Settlements that are not posted yet count.
import * as z from 'zod'
import { type Queryable, SHORT_MS, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { timeOfId } from '../kernel/world.ts'
import { TOKENS } from '../ledger/usage-sums.ts'

const figures = {
  calls: z.number(),
  failed: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  charged: z.string(),
  firstAt: z.string(),
  lastAt: z.string(),
}
const part = z.object({
  /** Null: the agent with which the run began. */
  agent: z.string().nullable(),
  /** Null: started by the agent with which the run began, or not known. */
  parent: z.string().nullable(),
  ...figures,
})
const runCall = z.object({
  requestId: z.string(),
  agent: z.string().nullable(),
  at: z.string(),
  /** A model's answer, or a tool that the agent called. */
  kind: z.enum(['call', 'tool']),
  product: z.string(),
  endpoint: z.string(),
  status: z.number(),
  charged: z.string(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  durationMs: z.number(),
})
export const runView = z.object({
  run: z.string(),
  ...figures,
  models: z.array(z.string()),
  parts: z.array(part),
  /** The oldest first, 500 of them; `next` continues. */
  items: z.array(runCall),
  next: z.string().nullable(),
})
export type RunView = z.output<typeof runView>

const ITEMS_MAX = 500
const OF_RUN = `account_id = $1 and labels ->> 'session' = $2`
const CHARGE = statement(
  'run_charge',
  `select coalesce(sum(x.charged), 0)::bigint as charged
   from (select charged from usage where ${OF_RUN} union all select charged from journal where ${OF_RUN}) x`,
  SHORT_MS,
)
const FIGURES = `count(*)::int as calls, (count(*) filter (where u.status >= 400))::int as failed, sum(u.charged)::bigint as charged,
  sum(t.input)::bigint as input, sum(t.output)::bigint as output, min(u.id) as first, max(u.id) as last`
const PARTS = statement(
  'run_parts',
  `select u.labels ->> ':agent' as agent, min(u.labels ->> ':parent') as parent, ${FIGURES}, array_agg(distinct u.product) as models
   from usage u ${TOKENS} where ${OF_RUN} group by 1 order by min(u.id)`,
)
const ITEMS = statement(
  'run_items',
  `select u.id, u.labels ->> ':agent' as agent, u.product, u.endpoint, u.status, u.charged, u.duration_ms as duration, t.input, t.output
   from usage u ${TOKENS} where ${OF_RUN} and u.id > $3 order by u.id limit $4`,
)

interface FigureRow {
  calls: number
  failed: number
  charged: bigint
  input: bigint
  output: bigint
  first: string
  last: string
}
type PartRow = FigureRow & { agent: string | null; parent: string | null; models: string[] }
interface ItemRow {
  id: string
  agent: string | null
  product: string
  endpoint: string
  status: number
  charged: bigint
  duration: number
  input: bigint
  output: bigint
}

export async function readRunCharge(database: Queryable, account: string, run: string): Promise<bigint> {
  const [row] = await database.query<{ charged: bigint }>(CHARGE, [account, run])
  return row?.charged ?? 0n
}

export async function readRun(
  database: Queryable,
  { account, run, cursor = '' }: { account: string; run: string; cursor?: string | undefined },
): Promise<RunView | undefined> {
  const parts = await database.query<PartRow>(PARTS, [account, run])
  const [first] = parts
  if (!first) return undefined
  const rows = await database.query<ItemRow>(ITEMS, [account, run, cursor, ITEMS_MAX + 1])
  const whole = parts.reduce<FigureRow>((sum, one) => added(sum, one), { ...NOTHING, first: first.first })
  return {
    run,
    ...shown(whole),
    models: [...new Set(parts.flatMap(({ models }) => models))].sort(),
    parts: parts.map((one) => ({ agent: one.agent, parent: one.parent, ...shown(one) })),
    items: rows.slice(0, ITEMS_MAX).map(shownCall),
    next: rows.length > ITEMS_MAX ? (rows[ITEMS_MAX - 1]?.id ?? null) : null,
  }
}

const NOTHING = { calls: 0, failed: 0, charged: 0n, input: 0n, output: 0n, last: '' }

function added(sum: FigureRow, one: FigureRow): FigureRow {
  return {
    ...{ calls: sum.calls + one.calls, failed: sum.failed + one.failed, charged: sum.charged + one.charged },
    ...{ input: sum.input + one.input, output: sum.output + one.output },
    first: one.first < sum.first ? one.first : sum.first,
    last: one.last > sum.last ? one.last : sum.last,
  }
}

const at = (callId: string) => new Date(timeOfId(callId)).toISOString()

function shown({ calls, failed, charged, input, output, first, last }: FigureRow) {
  return {
    ...{ calls, failed, inputTokens: Number(input), outputTokens: Number(output) },
    ...{ charged: formatCredits(charged), firstAt: at(first), lastAt: at(last) },
  }
}

function shownCall({ id, agent, product, endpoint, status, charged, duration, input, output }: ItemRow) {
  return {
    ...{ requestId: `req_${id}`, agent, at: at(id), product, endpoint, status },
    kind: endpoint.startsWith('mcp:') ? ('tool' as const) : ('call' as const),
    ...{ charged: formatCredits(charged), durationMs: duration },
    ...{ inputTokens: Number(input), outputTokens: Number(output) },
  }
}
