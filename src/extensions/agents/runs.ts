// A run is what an agent does for one task: all calls of one session, in parts when it starts sub-agents. Settlements
// that are not posted yet count.

import * as z from 'zod'
import { type Database, type Queryable, sql } from '../../database/database.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { timeOfId } from '../../kernel/world.ts'
import { TOKENS } from '../../ledger/usage-sums.ts'
import { type Resource, resource, text } from '../../operator/resource.ts'
import { type RunView, runView } from './views.ts'

const ITEMS_MAX = 500
const OF_RUN = `account_id = $1 and labels ->> 'session' = $2`
const FIGURES = `count(*)::int as calls, (count(*) filter (where u.status >= 400))::int as failed, sum(u.charged)::bigint as charged,
  sum(t.input)::bigint as input, sum(t.output)::bigint as output, min(u.id) as first, max(u.id) as last`
const PARTS = sql('run_parts')`
  select u.labels ->> ':agent' as agent, min(u.labels ->> ':parent') as parent, ${FIGURES}, array_agg(distinct u.product) as models
   from usage u ${TOKENS} where ${OF_RUN} group by 1 order by min(u.id)`
const ITEMS = sql('run_items')`
  select u.id, u.labels ->> ':agent' as agent, u.product, u.endpoint, u.status, u.charged, u.duration_ms as duration, t.input, t.output
   from usage u ${TOKENS} where ${OF_RUN} and u.id > $3 order by u.id limit $4`

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

async function readRun(
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
    ...viewFigures(whole),
    models: [...new Set(parts.flatMap(({ models }) => models))].sort(),
    parts: parts.map((one) => ({ agent: one.agent, parent: one.parent, ...viewFigures(one) })),
    items: rows.slice(0, ITEMS_MAX).map(shownCall),
    next: rows.length > ITEMS_MAX ? (rows[ITEMS_MAX - 1]?.id ?? null) : null,
  }
}

const NOTHING = { calls: 0, failed: 0, charged: 0n, input: 0n, output: 0n, last: '' }

function added(sum: FigureRow, one: FigureRow): FigureRow {
  return {
    calls: sum.calls + one.calls,
    failed: sum.failed + one.failed,
    charged: sum.charged + one.charged,
    input: sum.input + one.input,
    output: sum.output + one.output,
    first: one.first < sum.first ? one.first : sum.first,
    last: one.last > sum.last ? one.last : sum.last,
  }
}

const at = (callId: string) => new Date(timeOfId(callId)).toISOString()

function viewFigures({ calls, failed, charged, input, output, first, last }: FigureRow) {
  return {
    calls,
    failed,
    inputTokens: Number(input),
    outputTokens: Number(output),
    charged: formatCredits(charged),
    firstAt: at(first),
    lastAt: at(last),
  }
}

function shownCall({ id, agent, product, endpoint, status, charged, duration, input, output }: ItemRow) {
  return {
    requestId: `req_${id}`,
    agent,
    at: at(id),
    product,
    endpoint,
    status,
    kind: endpoint.startsWith('mcp:') ? ('tool' as const) : ('call' as const),
    charged: formatCredits(charged),
    durationMs: duration,
    inputTokens: Number(input),
    outputTokens: Number(output),
  }
}

/** For whoever may read an account's usage. */
export function runResources({ database }: { readonly database: Database }): Resource[] {
  return [
    resource('GET /accounts/{id}/run', 'usage:read', {
      title: 'Show an agent’s run',
      // Sessions have any characters, so it is not a part of the path.
      query: z.strictObject({ run: text(64), cursor: text(64).optional() }),
      answer: runView,
      async run({ params, query }) {
        const found = await readRun(database, { account: params.id, ...query })
        if (!found) throw new Fault('not_found', { message: 'This account has no calls with this session.' })
        return found
      },
    }),
  ]
}
