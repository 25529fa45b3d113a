// Sums, shares of limits and what operators look at first.
import * as z from 'zod'
import { count, credits, time } from '../kernel/view.ts'
import { limitsView } from '../ledger/views.ts'

export const grouping = z.enum(['product', 'key', 'status', 'endpoint'])
export type Grouping = z.infer<typeof grouping>
export const step = z.enum(['hour', 'day'])
export type Step = z.infer<typeof step>

const sums = { requests: count, errors: count, charged: credits }

/** One group in one step of time; these are the columns of the CSV file too. */
export const sumRow = z.object({
  at: time,
  /** A product, the id of a key, a status or an endpoint. */
  group: z.string(),
  ...sums,
  latencyMsAvg: count.nullable(),
})
export type SumRow = z.infer<typeof sumRow>

export const usageSums = z.object({
  by: grouping,
  per: step,
  /** The first and the last step; those without calls have no rows in `series`. */
  from: time,
  to: time,
  totals: z.object({ ...sums, refused: count }),
  /** Dearest first. */
  groups: z.array(z.object({ group: z.string(), name: z.string().nullable(), ...sums })),
  series: z.array(sumRow),
  /** By kind of endpoint, of the newest calls of the range: jobs apart from chats. */
  latency: z.array(z.object({ kind: z.string(), calls: count, p50Ms: count, p95Ms: count })),
})
export type UsageSums = z.infer<typeof usageSums>

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
  per: step,
  totals: z.object({ ...sums, refused: count, latencyMsAvg: count.nullable() }),
  series: z.array(z.object({ at: time, ...sums, latencyMsAvg: count.nullable() })),
  topAccounts: z.array(z.object({ id: z.string(), name: z.string(), ...sums })),
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
