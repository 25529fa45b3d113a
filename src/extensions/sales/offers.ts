// Sales: packs of credits, free amounts and plans. They are part of the catalog, so that prices have versions, which
// payments refer to.
import * as z from 'zod'
import type { CatalogDocument } from '../../catalog/document.ts'
import type { CatalogSection, Problem } from '../../catalog/section.ts'
import { type Credits, parseCredits } from '../../kernel/credits.ts'
import { limitsInput } from '../../meter/limits.ts'
import { currencyDecimals, parseMoney } from '../billing/money.ts'
import { amountsOf } from '../billing/payments/amounts.ts'
import { reviewSales } from './review.ts'

declare module '../../catalog/section.ts' {
  interface Sections {
    sales?: Sales | undefined
  }
  interface SectionInputs {
    sales?: z.input<typeof sales> | undefined
  }
}

const offerId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'must be lower-case letters, digits and "-"')
const title = z.string().trim().min(1).max(100)
const money = z.string().max(20)
const products = z.array(z.string().min(1).max(100)).min(1).max(200).optional()
const credits = z.union([z.string(), z.number()]).transform((value, context): Credits => {
  const amount = parseCredits(value)
  if (amount !== undefined && amount > 0n) return amount
  context.addIssue('must be an amount of credits above 0 with at most six decimals')
  return z.NEVER
})

const pack = z.strictObject({
  id: offerId,
  name: title,
  price: money,
  credits,
  /** Absent: the credits do not expire. */
  endsAfterDays: z.number().int().min(1).max(3650).optional(),
  /** Models and data endpoints that the credits are for; absent: for all. */
  products,
})

const plan = z.strictObject({
  id: offerId,
  name: title,
  /** Per month; "0" is free. */
  price: money,
  /** The credits of each month. */
  credits,
  products,
  /** The limits of accounts with this plan. */
  limits: limitsInput.optional(),
  trialDays: z.number().int().min(1).max(365).optional(),
  /** Lots with a lower number are spent first. */
  priority: z.number().int().min(0).max(1000).optional(),
})

const OFFERS_MAX = 100

/** Absent in the catalog: nothing is sold. */
const sales = z
  .strictObject({
    currency: z.string().regex(/^[A-Z]{3}$/, 'must be a currency such as "EUR"'),
    /** For free amounts. Absent: only packs and plans are sold. */
    pricePerCredit: z.string().max(20).optional(),
    /** Of free amounts and automatic top-ups. */
    minimum: money.optional(),
    maximum: money.optional(),
    packs: z.array(pack).max(OFFERS_MAX).default([]),
    plans: z.array(plan).max(OFFERS_MAX).default([]),
  })
  .transform((given, context) => {
    const { currency } = given
    const problem = (path: (string | number)[], message: string): bigint => {
      context.addIssue({ code: 'custom', path, message })
      return 0n
    }
    const minor = (text: string, path: (string | number)[], least: bigint): bigint => {
      const amount = parseMoney(text, currency)
      if (amount !== undefined && amount >= least) return amount
      return problem(path, `must be an amount of ${currency} with at most ${currencyDecimals(currency)} decimals`)
    }
    for (const [shelf, offers] of [['packs', given.packs] as const, ['plans', given.plans] as const]) {
      const ids = offers.map(({ id }) => id)
      const twice = ids.findIndex((id, at) => ids.indexOf(id) !== at)
      if (twice >= 0) problem([shelf, twice, 'id'], `names "${ids[twice]}" twice`)
    }
    // A payment identifies what it buys by id, so packs and plans must not share ids.
    const both = given.plans.findIndex(({ id }) => given.packs.some((one) => one.id === id))
    if (both >= 0) problem(['plans', both, 'id'], `names "${given.plans[both]?.id}", which is a pack`)
    const amounts = amountsOf(given, minor, problem)
    const packs = given.packs.map((one, at) => ({ ...one, priceMinor: minor(one.price, ['packs', at, 'price'], 1n) }))
    const plans = given.plans.map((one, at) => ({ ...one, priceMinor: minor(one.price, ['plans', at, 'price'], 0n) }))
    // Keeps the given values beside the parsed ones, because operators edit the given ones.
    return { ...given, amounts, packs, plans }
  })

export type Sales = z.output<typeof sales>

/** Rejects credits for unknown products, which could never be spent. */
function salesProblems({
  sales,
  models,
  endpoints,
}: Pick<CatalogDocument, 'sales' | 'models' | 'endpoints'>): Problem[] {
  const all = [...Object.keys(models), ...Object.keys(endpoints)]
  // A name that ends in * matches all names with that prefix.
  const isKnown = (name: string) =>
    name.endsWith('*') ? all.some((one) => one.startsWith(name.slice(0, -1))) : all.includes(name)
  return (['packs', 'plans'] as const).flatMap((shelf) =>
    (sales?.[shelf] ?? []).flatMap(({ products = [] }, at) =>
      products.flatMap((name, index) =>
        isKnown(name)
          ? []
          : [{ path: ['sales', shelf, at, 'products', index], message: `there is no product "${name}"` }],
      ),
    ),
  )
}

export const salesSection: CatalogSection = {
  name: 'sales',
  schema: sales.optional(),
  check: salesProblems,
  parts: ['packs.*', 'plans.*', 'packs.*.products.*', 'plans.*.products.*'],
  review: reviewSales,
  sells: true,
}
