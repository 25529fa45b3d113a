// Price and cost: the margin of a typical call, and routes that are sold below cost.
import { formatCredits } from '../kernel/credits.ts'
import { chargeOf } from '../meter/charge.ts'
import { type KindName, kindRow } from '../meter/kind.ts'
import type { Pricing } from '../meter/price.ts'
import type { Usage } from '../meter/usage.ts'
import type { CatalogDocument } from './document.ts'

interface Sample {
  readonly usage: Usage
  readonly attributes: Readonly<Record<string, string>>
}

/** Sample calls: a typical one, and one for each size and attribute at which price or cost changes. */
function samplesOf(kind: KindName, prices: readonly Pricing[]): Sample[] {
  const usage = kindRow(kind).typical
  const tiers = prices.flatMap((price) => price.tiers)
  const sizes = tiers.flatMap(({ upTo }) => (upTo === undefined ? [] : [upTo, upTo + 1]))
  return [
    { usage, attributes: {} },
    ...sizes.map((input) => ({ usage: { ...usage, input }, attributes: {} })),
    ...tiers.flatMap(({ when }) => (when ? [{ usage, attributes: when }] : [])),
  ]
}

/** A sentence for each route, of one vendor or of all, on which a sample call is sold below cost. */
export function belowCostNotes({ models, endpoints }: CatalogDocument, ofVendor?: string): string[] {
  const products = [
    ...Object.entries(models).map(([uid, model]) => ({ uid, kind: model.type, ...model })),
    ...Object.entries(endpoints).map(([uid, endpoint]) => ({ uid, kind: 'data' as const, ...endpoint })),
  ]
  return products.flatMap(({ uid, kind, pricing, routes, enabled }) =>
    routes.flatMap(({ cost, vendor, protocol, enabled: taken }, index) => {
      if (!cost || !enabled || !taken || (ofVendor ?? vendor) !== vendor) return []
      const losing = samplesOf(kind, [pricing, cost]).find(
        ({ usage, attributes }) =>
          chargeOf(cost, usage, attributes).amount > chargeOf(pricing, usage, attributes).amount,
      )
      if (!losing) return []
      const [paid, brought] = [cost, pricing].map((one) =>
        formatCredits(chargeOf(one, losing.usage, losing.attributes).amount),
      )
      return [
        `${uid}, route ${index + 1} (${vendor}, ${protocol}) costs more than it is sold for: a call of ${inWords(losing)} costs ${paid} credits and is charged ${brought}.`,
      ]
    }),
  )
}

function inWords({ usage, attributes }: Sample): string {
  const amounts = Object.entries(usage).map(([unit, quantity]) => `${quantity} ${unit}`)
  const facts = Object.entries(attributes).map(([name, value]) => `${name} ${value}`)
  return [...amounts, ...facts].join(', ')
}
