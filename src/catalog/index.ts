// Every public endpoint: those in code, and those that sections of a catalog define. The server's routes, OpenAPI and the reference loop over them.
import { ANALYTICS } from './analytics.ts'
import type { CatalogDocument } from './document.ts'
import { type EndpointSpec, TAGS } from './endpoint.ts'
import { FREE, PAID } from './generation.ts'
import { allSections } from './section.ts'
import { SOCIAL } from './social.ts'

const IN_ORDER = [...Object.values(PAID), ...Object.values(FREE), ...SOCIAL, ...ANALYTICS]

export const ENDPOINTS: readonly EndpointSpec[] = Object.keys(TAGS).flatMap((tag) =>
  IN_ORDER.filter((spec) => spec.tag === tag),
)

const known = new WeakMap<CatalogDocument, readonly EndpointSpec[]>()

/** All endpoints of a catalog, in the order of the reference. Worked out once for each version. */
export function endpointsOf({ document }: { readonly document: CatalogDocument }): readonly EndpointSpec[] {
  let specs = known.get(document)
  if (!specs) {
    const more = allSections().flatMap(({ endpoints }) => endpoints?.(document) ?? [])
    specs = more.length === 0 ? ENDPOINTS : [...ENDPOINTS, ...more]
    known.set(document, specs)
  }
  return specs
}
