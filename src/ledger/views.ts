// Accounts, usage, movements and budgets, as operators and owners see them.
import * as z from 'zod'
import { count, credits, time } from '../kernel/view.ts'
import { UNIT_NAMES } from '../meter/kind.ts'
import { BUDGET_SPANS, BUDGET_UNITS, limitsView } from '../meter/limits.ts'

const accountStatus = z.enum(['open', 'suspended', 'closed'])
export type AccountStatus = z.infer<typeof accountStatus>

export const accountView = z.object({
  id: z.string(),
  name: z.string(),
  balance: credits,
  held: credits,
  available: credits,
  limits: limitsView,
  createdAt: time,
  /** Calls of an account that is suspended or closed get 403. */
  status: accountStatus,
  /** Why it is not open, and since when. */
  statusReason: z.string().nullable(),
  statusAt: time.nullable(),
})
export type AccountView = z.infer<typeof accountView>

/** The secret with which an account's receivers verify webhooks. */
export const webhookSecretView = z.object({ secret: z.string() })
export type WebhookSecretView = z.infer<typeof webhookSecretView>

/**
 * Why no further attempt followed: the vendor rejected the request itself, no route was left, the attempt timed out,
 * the caller disconnected, the answer ended in the middle, or another vendor was faster (hedging).
 */
const stop = z.enum(['rejected', 'exhausted', 'timeout', 'client_closed', 'interrupted', 'hedge_lost'])
export type Stop = z.infer<typeof stop>

/** One attempt at a vendor. `skipped`: the vendor was not called. */
const attemptView = z.object({
  /** For operators only, as are `credential`, `vendorError`, `fix` and `cost`. */
  vendor: z.string().exactOptional(),
  /** The name of the credential, if the vendor has several. */
  credential: z.string().exactOptional(),
  /** The model of the attempt, if the request names several. */
  product: z.string().exactOptional(),
  /** The route's position in the catalog, from 1. */
  route: count,
  /** From the start of the call to the start of the attempt, and the duration of the attempt. */
  startMs: count,
  ms: count,
  /** The time before it that was spent waiting for one of the vendor's concurrency slots. */
  queuedMs: count.exactOptional(),
  skipped: z.boolean().exactOptional(),
  /** The status of the vendor's answer; null: there was none. */
  status: count.nullable(),
  /** Null: it succeeded. */
  fault: z.string().nullable(),
  /** Where it failed: connect, first-byte, idle, body or total; null: the vendor answered. */
  phase: z.string().nullable(),
  /** Such as ENOTFOUND. */
  cause: z.string().nullable(),
  /** For a timeout: the deadline that passed. */
  deadlineMs: count.exactOptional(),
  retried: z.boolean(),
  stopped: stop.nullable(),
  /** The vendor's error text. */
  vendorError: z.string().exactOptional(),
  /** What an operator must fix: the account there, the credential or the model's name. */
  fix: z.string().exactOptional(),
  /** The operator's cost of an aborted attempt, which no caller pays. */
  cost: credits.exactOptional(),
})
export type AttemptView = z.infer<typeof attemptView>

/** What one guardrail did; `unchecked`: the check failed, and the rule allows calls then. */
const guardrailReport = z.object({
  rule: z.string(),
  on: z.enum(['request', 'answer']),
  did: z.enum(['redacted', 'replaced', 'blocked', 'unchecked']),
  times: count,
})
export type GuardrailReport = z.infer<typeof guardrailReport>

/**
 * The attempt log of a call. It is stored only for calls that failed, needed more than one attempt, were cut short,
 * cost more than was held, or were changed by guardrails.
 */
const attemptLog = z.object({
  /** From the start of the call until its credits were held. */
  heldMs: count.nullable(),
  attempts: z.array(attemptView),
  /** Its parameters by name, without content; for lists, their length. */
  parameters: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).exactOptional(),
  /** The routing decisions, in words. */
  decided: z.array(z.string()).exactOptional(),
  /**
   * The caller gave no output limit, and the answer ended here because the balance or a spending limit covered no more
   * output tokens.
   */
  cutAtTokens: count.exactOptional(),
  /** The call cost more than was held for it: why. */
  aboveHold: z.string().exactOptional(),
  guardrails: z.array(guardrailReport).exactOptional(),
  /** The error that the caller got; null: the call succeeded, or its caller disconnected. */
  fault: z
    .object({
      name: z.string(),
      code: count,
      status: count,
      blame: z.enum(['caller', 'vendor', 'gateway']),
      message: z.string(),
    })
    .nullable(),
})
export type AttemptLog = z.infer<typeof attemptLog>

const outcome = z.enum(['settled', 'released', 'expired'])

/** A row of usage is a resolved call, or calls that were rejected before credits were held. */
const usageOutcome = z.enum([...outcome.options, 'rejected'])
/** The filter of calls: also whether they succeeded or failed, among those that were not rejected. */
export const soughtOutcome = z.enum([...usageOutcome.options, 'succeeded', 'failed'])

/** Its fields are the columns of the CSV file too, in this order. */
export const usageView = z.object({
  id: z.string(),
  at: time,
  /** Empty: the call was rejected before its product was known. */
  product: z.string(),
  endpoint: z.string(),
  /** For a call by an agent: its session, or the name of its program. */
  client: z.string(),
  /** The labels: `user`, `session` and the caller's tags. Null: none. */
  labels: z.record(z.string(), z.string()).nullable(),
  keyId: z.string(),
  keyName: z.string().nullable(),
  outcome: usageOutcome,
  status: count,
  charged: credits,
  held: credits,
  loss: credits,
  units: z.partialRecord(z.enum(UNIT_NAMES), count),
  estimated: z.boolean(),
  stream: z.boolean(),
  durationMs: count,
  /** Null: no vendor started to answer. */
  firstByteMs: count.nullable(),
  /** Null: no vendor answered. */
  route: count.nullable(),
  job: z.string().nullable(),
  /** The name of the fault by which it failed or was rejected, and the message to the caller. */
  fault: z.string().nullable(),
  message: z.string().nullable(),
  /** How many calls this row stands for: of many rejected calls in a minute, some are only counted. */
  calls: count,
  /** For operators only: the vendor's cost. Null: unknown. */
  cost: credits.nullable().exactOptional(),
  /**
   * For operators only: the name of the vendor credential; `own`: the account's BYOK key. Null: the vendor has only
   * one.
   */
  credential: z.string().nullable().exactOptional(),
  /** It used the account's BYOK key, and cost the BYOK fee. */
  byok: z.boolean(),
  /** For operators only: the vendor that answered, or was tried last. Null: none. */
  vendor: z.string().nullable().exactOptional(),
})
export type UsageView = z.infer<typeof usageView>

/** A call among those of all accounts. */
export const callView = usageView.extend({ account: z.string(), accountName: z.string() })
export type CallView = z.infer<typeof callView>

/** The spending of an agent, by its session or name. */
export const clientSum = z.object({
  client: z.string(),
  requests: count,
  charged: credits,
  firstAt: time,
  lastAt: time,
})
export type ClientSum = z.infer<typeof clientSum>

export const usageDetail = usageView.extend({
  account: z.string(),
  lines: z.array(z.object({ unit: z.enum(UNIT_NAMES), quantity: count, rate: credits, per: count, amount: credits })),
  /** Null: it was rejected before its price was read. */
  catalogVersion: count.nullable(),
  attemptLog: attemptLog.nullable(),
  /** Whether its content is stored and can be read. */
  content: z.boolean(),
  /** The address of its trace; only for operators, and if TOLLGATE_TRACE_URL is set. */
  trace: z.string().optional(),
})
export type UsageDetail = z.infer<typeof usageDetail>

/**
 * Movements of credits without a call. `grant` is a top-up; `takeback` and `correction` are corrections, down and up;
 * `payout` and `writeoff` end the balance of a closed account; `purchase` was paid for, and `refund` took credits back
 * when money was refunded. `plan` is the credits of a plan's month, `code` those of a code; `expiry` is credits that
 * expired.
 */
const given = z.enum([
  ...([
    'grant',
    'correction',
    'takeback',
    'payout',
    'writeoff',
    'purchase',
    'refund',
    'plan',
    'code',
    'expiry',
  ] as const),
])
export type Given = z.infer<typeof given>
export const GIVEN: readonly string[] = given.options
export const movement = z.enum([...given.options, ...outcome.options])
export type Movement = z.infer<typeof movement>

export const ledgerView = z.object({
  id: z.string(),
  at: time,
  kind: movement,
  amount: credits,
  /** The change of the balance; negative if credits were taken. */
  moved: credits,
  loss: credits,
  /** The balance after the movement; it never changes later. Null: nothing moved. */
  balanceAfter: credits.nullable(),
  requestId: z.string().nullable(),
  product: z.string().nullable(),
  note: z.string().nullable(),
  actor: z.string().nullable(),
})
export type LedgerView = z.infer<typeof ledgerView>

const lotSource = z.enum(['bought', 'given', 'plan', 'code'])
export type LotSource = z.infer<typeof lotSource>
/** The priority of plain credits, and of lots without one. */
export const PRIORITY = 50

/** Credits that expire, are for some products only, or have a priority of their own. */
export const lotView = z.object({
  /** The id of the movement that granted it. */
  id: z.string(),
  source: lotSource,
  amount: credits,
  /** What is left of it, including what running calls hold. */
  remaining: credits,
  held: credits,
  /** Null: it does not expire. */
  endsAt: time.nullable(),
  /** Null: for all products. */
  products: z.array(z.string()).nullable(),
  /** 0 is spent first, 100 last; plain credits have 50. */
  priority: count,
  createdAt: time,
})
export type LotView = z.infer<typeof lotView>

export const balanceView = z.object({
  balance: credits,
  held: credits,
  available: credits,
  /** The part of the balance that is in no lot: it does not expire, and is for all products. */
  plain: credits,
  /** In the order in which they are spent. */
  lots: z.array(lotView),
})
export type BalanceView = z.infer<typeof balanceView>

/** Figures of one route of a product. */
export const routeFigures = z.object({
  /** Its position in the catalog, from 1. */
  route: count,
  answered: count,
  failed: count,
  firstByteMsP50: count.nullable(),
  chargedAvg: credits.nullable(),
  /** Null: not known. */
  costAvg: credits.nullable(),
})
export type RouteFigures = z.infer<typeof routeFigures>

export const overviewStep = z.object({
  at: time,
  requests: count,
  errors: count,
  charged: credits,
  inputTokens: count,
  outputTokens: count,
  latencyMsAvg: count.nullable(),
})
export const overviewProduct = z.object({ product: z.string(), requests: count, charged: credits })

export const overview = z.object({
  balance: credits,
  held: credits,
  available: credits,
  /** The runway at the rate of the last seven days; null: nothing was spent. */
  daysLeft: z.number().nullable(),
  series: z.array(overviewStep),
  products: z.array(overviewProduct),
  statuses: z.object({ ok: count, failed: count }),
  /** For operators only: of the calls whose cost is known. */
  margin: z
    .object({
      requests: count,
      charged: credits,
      cost: credits,
      products: z.array(overviewProduct.extend({ cost: credits })),
    })
    .exactOptional(),
})
export type Overview = z.infer<typeof overview>

/** The state of a budget's counter. `max`, `used`, `held` and `left` are credits, or numbers of requests or tokens. */
const budgetState = {
  max: credits,
  used: credits,
  /** For credits: what running calls hold. */
  held: credits,
  left: credits,
  /** The used fraction of the maximum: 1 is all of it. */
  share: z.number(),
  /** When it starts again from zero; null: never, or it is a rolling window. */
  resetsAt: time.nullable(),
}

/** A budget of a user, tag, session, key, member, team or project. */
export const budgetView = z.object({
  id: z.string(),
  name: z.string(),
  /** user, session, key, member, team, project, or a tag such as `tag:feature`. */
  scope: z.string(),
  /** Null: each value has a budget of its own, from its first call on. */
  value: z.string().nullable(),
  unit: z.enum(BUDGET_UNITS),
  span: z.enum(BUDGET_SPANS),
  /** For a rolling window. */
  windowSeconds: count.nullable(),
  /** Calls beyond it are rejected with 429; otherwise it only counts and alerts. */
  hard: z.boolean(),
  /** The used percentage at which an alert is sent; null: as in the alert rule for limits. */
  alertPercent: count.nullable(),
  createdAt: time,
  /** The number of values that it counts. */
  values: count,
  ...budgetState,
})
export type BudgetView = z.infer<typeof budgetView>

export const budgetValueView = z.object({
  value: z.string(),
  /** Its maximum was set for this value only. */
  overridden: z.boolean(),
  ...budgetState,
})
export type BudgetValueView = z.infer<typeof budgetValueView>
