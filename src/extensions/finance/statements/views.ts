// The statement of an account for a month.
import * as z from 'zod'
import { count, credits, time } from '../../../kernel/view.ts'
import { movement } from '../../../ledger/views.ts'
import { creditWorth } from '../../../reports/views.ts'

/** opening + topUps − usage + corrections + expired + settlement = closing, exactly. */
const statementSums = {
  account: z.object({ id: z.string(), name: z.string() }),
  /** `2026-10`, in UTC. */
  month: z.string(),
  opening: credits,
  topUps: credits,
  /** The charges of calls that were posted in the month; positive. */
  usage: credits,
  /** Signed. */
  corrections: credits,
  /** Credits that expired: zero or negative. */
  expired: credits,
  /** What was paid out or written off when the account was closed: zero or negative. */
  settlement: credits,
  closing: credits,
}

export const statementSummary = z.object(statementSums)
export type StatementSummary = z.infer<typeof statementSummary>

const statementLabel = z.object({
  name: z.string(),
  /** Highest charge first. An empty value: calls without the label. Null: all values beyond the first thousand. */
  values: z.array(z.object({ value: z.string().nullable(), calls: count, charged: credits })),
  /** Usage that is not in the values, because its calls are no longer stored. */
  unitemized: credits,
})
export type StatementLabel = z.infer<typeof statementLabel>

export const monthlyStatement = z.object({
  ...statementSums,
  from: time,
  /** The first moment after the month. */
  to: time,
  /** The month is over and nothing can be added to it. */
  final: z.boolean(),
  products: z.array(
    z.object({
      product: z.string(),
      keyId: z.string(),
      /** Null: the console, or a key of another database. */
      keyName: z.string().nullable(),
      calls: count,
      charged: credits,
    }),
  ),
  /** Usage that is not in the products, because its breakdown is no longer stored. */
  unitemized: credits,
  /** The usage by the values of a label, if requested. */
  label: statementLabel.exactOptional(),
  movements: z.array(z.object({ at: time, kind: movement, moved: credits, note: z.string().nullable() })),
  /** At the end of the month. */
  worth: creditWorth.nullable(),
  contact: z.string().nullable(),
})
export type MonthlyStatement = z.infer<typeof monthlyStatement>
