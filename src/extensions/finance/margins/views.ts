// Margins, and what no customer pays.
import * as z from 'zod'
import { STORED_LABEL } from '../../../kernel/label.ts'
import { count, credits } from '../../../kernel/view.ts'
import { UNBILLED_KINDS } from '../../../reports/views.ts'

export const MARGIN_GROUPINGS = ['product', 'account', 'vendor', 'month'] as const
/** The values of a label are read from single calls. */
export const marginGrouping = z.union([
  z.enum(MARGIN_GROUPINGS),
  z.templateLiteral(
    ['label:', z.string().regex(STORED_LABEL)],
    'must be product, account, vendor, month or label:<name>',
  ),
])
export type MarginGrouping = z.infer<typeof marginGrouping>

/** These are the columns of the CSV file too. */
export const marginRow = z.object({
  /**
   * A product, the id of an account, a vendor, a month or a label's value. An empty vendor: cached responses, and calls
   * that nobody answered. An empty value: calls without the label. An empty account: what no caller pays.
   */
  group: z.string(),
  /** Of an account. */
  name: z.string().nullable(),
  calls: count,
  charged: credits,
  /** The charges of calls whose cost is known. */
  chargedWithKnownCost: credits,
  cost: credits,
  /** chargedWithKnownCost − cost */
  margin: credits,
  /** Of `chargedWithKnownCost`, in percent; null: no cost is known. */
  marginPercent: z.number().nullable(),
  /** The part of `cost` for answers that no caller pays. */
  unbilled: credits,
})
export type MarginRow = z.infer<typeof marginRow>

export const marginPage = z.object({
  items: z.array(marginRow),
  next: z.string().nullable(),
  totals: marginRow.omit({ group: true, name: true }),
})
export type MarginPage = z.infer<typeof marginPage>

/** A vendor's cost on a day for answers that no caller pays. These are the columns of the CSV file too. */
export const unbilledRow = z.object({
  /** In UTC. */
  day: z.string(),
  kind: z.enum(UNBILLED_KINDS),
  vendor: z.string(),
  product: z.string(),
  /** Its name at the vendor. */
  model: z.string(),
  /** Null: the vendor has one. */
  credential: z.string().nullable(),
  calls: count,
  /** Estimated if a call was aborted. */
  inputTokens: count,
  outputTokens: count,
  /** At the route's cost; null: it has none. */
  cost: credits.nullable(),
})
export type UnbilledRow = z.infer<typeof unbilledRow>
