// Sums, shares of limits and what operators look at first.
import * as z from 'zod'
import { count, credits, time } from '../kernel/view.ts'
import { limitsView } from '../ledger/views.ts'

export const grouping = z.enum(['product', 'key', 'status', 'endpoint', 'vendor', 'account'])
export type Grouping = z.infer<typeof grouping>
export const step = z.enum(['hour', 'day'])
export type Step = z.infer<typeof step>

const sums = { requests: count, errors: count, charged: credits }
/** `requests` and `errors` are of calls that were not refused. */
const counts = { requests: count, errors: count, refused: count, charged: credits }
/** A product, the id of a key, a status, an endpoint, a vendor or the id of an account; and the name of a key or account. */
const group = { group: z.string(), name: z.string().nullable() }

/** One group in one step of time; these are the columns of the CSV file too. */
export const sumRow = z.object({
  at: time,
  ...group,
  ...counts,
  latencyMsAvg: count.nullable(),
  /** Null where single calls were summed up. */
  inputTokens: count.nullable(),
  outputTokens: count.nullable(),
})
export type SumRow = z.infer<typeof sumRow>

const totals = z.object({ ...counts, latencyMsAvg: count.nullable() })
const timeline = {
  per: step,
  zone: z.string(),
  /** The beginning of each step; those without calls have no rows in `series`. */
  steps: z.array(time),
}

export const usageSums = z.object({
  by: grouping,
  ...timeline,
  from: time,
  to: time,
  totals,
  /** Of as long a time right before, where it was asked for. */
  before: totals.exactOptional(),
  /** Dearest first. */
  groups: z.array(z.object({ ...group, ...counts })),
  series: z.array(sumRow),
})
export type UsageSums = z.infer<typeof usageSums>

const latency = z.object({ calls: count, p50Ms: count, p95Ms: count, p99Ms: count })
export type LatencyPoint = z.infer<typeof latency>

/** How long calls took that succeeded. */
export const usageLatency = z.object({
  by: grouping,
  ...timeline,
  /** Null: none succeeded. */
  whole: latency.nullable(),
  /** There were more calls than are looked at: these are the newest. */
  isPart: z.boolean(),
  over: z.array(latency.extend({ at: time })),
  /** Those with most calls first. */
  groups: z.array(latency.extend(group)),
  series: z.array(latency.extend({ at: time, group: z.string() })),
})
export type UsageLatency = z.infer<typeof usageLatency>

/** What a limit allows, and how much of it is used now. */
export const fillView = z.object({
  limit: limitsView.keyof(),
  max: z.string(),
  used: z.string(),
  /** Of a spend: what calls that run now may still take. */
  held: z.string().nullable(),
  /** From 0; above 1 where the limit was lowered. */
  share: z.number(),
})
export type FillView = z.infer<typeof fillView>

export const keyFigures = z.object({
  keyId: z.string(),
  ...sums,
  limits: z.array(fillView),
  lastError: z
    .object({
      requestId: z.string(),
      at: time,
      status: count,
      fault: z.string().nullable(),
      message: z.string().nullable(),
    })
    .nullable(),
})
export type KeyFigures = z.infer<typeof keyFigures>

export const homeFigures = z.object({
  /** Those that will be empty first at the pace of the last seven days. */
  lowBalances: z.array(
    z.object({ id: z.string(), name: z.string(), available: credits, perDay: credits, daysLeft: z.number() }),
  ),
  /** `costed` of what was charged is for calls whose cost is known, which is `cost`; the rest has a route without one. */
  margin: z.object({ charged: credits, costed: credits, cost: credits }),
  /** Routes on which more was paid to the vendor than was earned, the dearest first. */
  losing: z.array(z.object({ product: z.string(), route: count, calls: count, charged: credits, cost: credits })),
  /** What the catalogue itself sells below its cost, in sentences. */
  lossNotes: z.array(z.string()),
  /** Worst first. */
  ailingVendors: z.array(
    z.object({
      name: z.string(),
      breaker: z.string(),
      requests: count,
      errors: count,
      lastError: z.string().nullable(),
    }),
  ),
})
export type HomeFigures = z.infer<typeof homeFigures>

export const found = z.object({
  kind: z.enum(['call', 'job', 'key', 'model', 'account', 'member', 'vendor']),
  id: z.string(),
  label: z.string(),
  account: z.string().nullable(),
})
export type Found = z.infer<typeof found>
