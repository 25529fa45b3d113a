// Which of a vendor's routes is tested: the cheapest call that says most.
import type { CatalogDocument, Model, Route } from '../catalog/document.ts'
import type { KindName } from '../catalog/kind.ts'
import { readTextTraits } from '../catalog/traits.ts'
import type { PriceTier } from '../meter/price.ts'
import type { ModelFacts } from '../protocols/text/text.ts'

interface ProbedRoute {
  readonly uid: string
  readonly route: Route
  /** Absent: of a kind that has no small call. */
  readonly facts?: ModelFacts
}

/** Kinds that have a small call; those first that show most of a vendor. */
const SMALL: readonly KindName[] = ['text', 'embedding', 'rerank', 'moderation']

/** Undefined when nothing has a route there. */
export function probedRoute(vendor: string, { models, endpoints }: CatalogDocument): ProbedRoute | undefined {
  const routes = Object.entries(models).flatMap(([uid, model]) =>
    model.routes.filter((route) => route.vendor === vendor).map((route) => ({ uid, model, route })),
  )
  const small = routes
    .filter(({ model }) => SMALL.includes(model.type))
    .sort((a, b) => SMALL.indexOf(a.model.type) - SMALL.indexOf(b.model.type) || rateOf(a.model) - rateOf(b.model))[0]
  if (small) return { uid: small.uid, route: small.route, facts: factsOf(small.uid, small.model) }
  const other = routes[0] ?? dataRoute(vendor, endpoints)
  return other && { uid: other.uid, route: other.route }
}

function dataRoute(vendor: string, endpoints: CatalogDocument['endpoints']) {
  for (const [uid, { routes }] of Object.entries(endpoints)) {
    const route = routes.find((one) => one.vendor === vendor)
    if (route) return { uid, route }
  }
  return undefined
}

/** Micro-credits; only for comparing. */
function rateOf({ pricing }: Model): number {
  const tier: PriceTier | undefined = pricing.tiers[0]
  return Number((tier?.input ?? 0n) + (tier?.output ?? 0n))
}

function factsOf(uid: string, model: Model): ModelFacts {
  return { uid, traits: readTextTraits(model.type === 'text' ? model.traits : {}), limits: model.limits }
}
