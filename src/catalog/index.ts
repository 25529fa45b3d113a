// Every public endpoint: those in code, those that extensions add, and those that sections of a catalog define. The
// server's routes, OpenAPI and the reference loop over them.
import { ANALYTICS } from './analytics.ts'
import type { CatalogDocument } from './document.ts'
import { type EndpointSpec, TAGS } from './endpoint.ts'
import { FREE, PAID } from './generation.ts'
import { allSections } from './section.ts'
import { SOCIAL } from './social.ts'

function inReferenceOrder(specs: readonly EndpointSpec[]): readonly EndpointSpec[] {
  const ids = new Set(specs.map(({ id }) => id))
  const behind = Map.groupBy(specs, ({ after = '' }) => (ids.has(after) ? after : ''))
  const from = (id: string): EndpointSpec[] => (behind.get(id) ?? []).flatMap((spec) => [spec, ...from(spec.id)])
  const all = from('')
  return Object.keys(TAGS).flatMap((tag) => all.filter((spec) => spec.tag === tag))
}

/** The core's and those that are added, of which one with the id of a core's takes its place. */
export function withAdded(added: readonly EndpointSpec[]): readonly EndpointSpec[] {
  const byId = new Map(added.map((one) => [one.id, one]))
  const own = ENDPOINTS.map((one) => byId.get(one.id) ?? one)
  return inReferenceOrder([...own, ...added.filter((one) => !own.includes(one))])
}

export const ENDPOINTS = inReferenceOrder([...Object.values(PAID), ...Object.values(FREE), ...SOCIAL, ...ANALYTICS])

interface Sources {
  readonly document: CatalogDocument
  readonly added?: readonly EndpointSpec[]
}

interface Listed {
  readonly all: readonly EndpointSpec[]
  readonly defined: readonly EndpointSpec[]
}

const known = new WeakMap<CatalogDocument, Listed>()

/**
 * `all`: those of this gateway, in the order of the reference; `defined`: those that sections of the catalog define.
 * Worked out once for each version.
 */
function listOf({ document, added = [] }: Sources): Listed {
  let lists = known.get(document)
  if (!lists) {
    const defined = allSections().flatMap(({ endpoints }) => endpoints?.(document) ?? [])
    lists = { defined, all: [...withAdded(added), ...defined] }
    known.set(document, lists)
  }
  return lists
}

export const endpointsOf = (catalog: Sources) => listOf(catalog).all
export const definedEndpoints = (catalog: Sources) => listOf(catalog).defined
