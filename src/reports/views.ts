// Totals, usage of limits, what a credit is worth, and the operator's home page.
import * as z from 'zod'
import { STORED_LABEL } from '../kernel/label.ts'
import { count, credits, time } from '../kernel/view.ts'
import { limitsView } from '../meter/limits.ts'

/** A property of calls, or the values of one of their labels: `label:feature`. */
export const grouping = z.union([
  z.enum(['product', 'key', 'status', 'endpoint', 'vendor', 'client', 'account']),
  z.templateLiteral(
    ['label:', z.string().regex(STORED_LABEL)],
    'must be product, key, status, endpoint, vendor, client, account or label:<name>',
  ),
])
export type Grouping = z.infer<typeof grouping>
export const step = z.enum(['hour', 'day'])
export type Step = z.infer<typeof step>

const sums = { requests: count, errors: count, charged: credits }
/** `requests` and `errors` are of calls that were not rejected. */
const counts = { requests: count, errors: count, rejected: count, charged: credits }
/**
 * A product, the id of a key, a status, an endpoint, a vendor, an agent, the id of an account or a label's value; and
 * the name of a key or account.
 */
const group = { group: z.string(), name: z.string().nullable() }

/** One group in one step of time; these are the columns of the CSV file too. */
export const sumRow = z.object({
  at: time,
  ...group,
  ...counts,
  latencyMsAvg: count.nullable(),
  /** Null if the row was computed from single calls. */
  inputTokens: count.nullable(),
  outputTokens: count.nullable(),
})
export type SumRow = z.infer<typeof sumRow>

const totals = z.object({ ...counts, latencyMsAvg: count.nullable() })
/** Where single calls were read. */
const source = z
  .enum(['database', 'analytics'])
  .exactOptional()
  .describe(
    'Where single calls were read: in the analytics store, or in the database because the range is short or the store lags; absent without such a store',
  )

const timeline = {
  per: step,
  source,
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
  /** Of the period of the same length before it, if it was asked for. */
  previous: totals.exactOptional(),
  /** Highest charge first. */
  groups: z.array(z.object({ ...group, ...counts })),
  series: z.array(sumRow),
})
export type UsageSums = z.infer<typeof usageSums>

export const labelName = z.string().regex(STORED_LABEL, 'must be the name of a label, such as user, session or feature')
export const labelSort = z.enum(['charged', 'calls', 'last'])
export type LabelSort = z.infer<typeof labelSort>

/**
 * The totals of one value of a label: an end user, a session of an agent, a team. These are the columns of the CSV file
 * too.
 */
export const labelSum = z.object({
  /** The account, if the request is for all accounts. */
  account: z.string().exactOptional(),
  accountName: z.string().exactOptional(),
  value: z.string(),
  calls: count,
  errors: count,
  inputTokens: count,
  outputTokens: count,
  charged: credits,
  /** The known vendor cost, for operators; null: no cost is known. */
  cost: credits.nullable().exactOptional(),
  /** The start of its first and last call in the range. */
  firstAt: time,
  lastAt: time,
  /** Models and agents, at most twenty of each. */
  products: z.array(z.string()),
  clients: z.array(z.string()),
})
export type LabelSum = z.infer<typeof labelSum>

export const labelSums = z.object({
  label: z.string(),
  source,
  from: time,
  to: time,
  /** Of all values, also those of other pages. */
  totals: z.object({ values: count, calls: count, charged: credits }),
  items: z.array(labelSum),
  next: z.string().nullable(),
})
export type LabelSums = z.infer<typeof labelSums>

const latency = z.object({ calls: count, p50Ms: count, p95Ms: count, p99Ms: count })
export type LatencyPoint = z.infer<typeof latency>

/** How long calls took that succeeded. */
export const usageLatency = z.object({
  by: grouping,
  ...timeline,
  /** Null: none succeeded. */
  overall: latency.nullable(),
  /** There were more calls than are evaluated: these are the newest. */
  truncated: z.boolean(),
  overTime: z.array(latency.extend({ at: time })),
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
  /** For spending limits: what running calls may still be charged. */
  held: z.string().nullable(),
  /** From 0; above 1 if the limit was lowered. */
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
  /** Accounts that run out first at the rate of the last seven days. */
  lowBalances: z.array(
    z.object({ id: z.string(), name: z.string(), available: credits, perDay: credits, daysLeft: z.number() }),
  ),
  /** `cost` is that of the calls whose cost is known; `chargedWithKnownCost` is what was charged for these. */
  margin: z.object({ charged: credits, chargedWithKnownCost: credits, cost: credits }),
  /** Routes whose vendor cost is above the charges, the largest loss first. */
  unprofitableRoutes: z.array(
    z.object({ product: z.string(), route: count, calls: count, charged: credits, cost: credits }),
  ),
  /** What the catalog sells below cost, in sentences. */
  belowCostNotes: z.array(z.string()),
  /** Worst first. */
  unhealthyVendors: z.array(
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

/** What one credit is worth: 0.01 EUR. */
export const creditWorth = z.object({ currency: z.string(), rate: credits })
export type CreditWorth = z.infer<typeof creditWorth>

export const billingView = z.object({
  /** Null: not set. */
  worth: creditWorth.nullable(),
  /** The contact for customers: on statements, and in the answer to calls of a suspended account. */
  contact: z.string().nullable(),
})
export type BillingView = z.infer<typeof billingView>

/**
 * Why no caller is charged: it was a copy of a call (shadow traffic); it was aborted because another vendor was faster
 * (hedging), because its first token was late, or because its caller disconnected before the first token; or it was a
 * check by a moderation model.
 */
export const UNBILLED_KINDS = ['shadow', 'hedge_lost', 'first_token_timeout', 'client_closed', 'guardrail'] as const
export type UnbilledKind = (typeof UNBILLED_KINDS)[number]

/** Failed attempts at a vendor with the same cause. */
export const vendorError = z.object({
  fault: z.string(),
  /** Of the vendor's answer; null: there was none. */
  status: count.nullable(),
  /** Where it failed: connect, first-byte, idle, body or total; null where the vendor answered. */
  phase: z.string().nullable(),
  cause: z.string().nullable(),
  /** What an operator must fix. */
  fix: z.string().nullable(),
  /** The vendor's last error text. */
  vendorError: z.string().nullable(),
  calls: count,
  products: z.array(z.string()),
  /** The newest calls with this error. */
  newest: z.array(
    z.object({
      requestId: z.string(),
      at: time,
      account: z.string(),
      accountName: z.string().nullable(),
      product: z.string(),
    }),
  ),
})
export type VendorError = z.infer<typeof vendorError>
