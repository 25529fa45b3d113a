// The call profile: what a key may do with a model at an endpoint, worked out once. It follows from the key, the
// endpoint and one version of the catalog alone. Each of these is an object that a change replaces, so the profiles of
// what has changed are never found again.
import { mayUse, type Principal } from '../admission/api-key.ts'
import type { Model, Route } from '../catalog/document.ts'
import type { Catalog } from '../catalog/store.ts'
import type { KindName } from '../meter/kind.ts'
import type { ModelFacts } from '../protocols/text/text.ts'
import type { Whose } from './read.ts'

interface CallProfile {
  readonly model: Model
  /** What reading a request of text depends on. */
  readonly facts: ModelFacts | undefined
  /** The routes of a request without a need of its own. Undefined: each request finds its routes. */
  readonly routes: readonly Route[] | undefined
  /** Its answers may be kept for other calls, if the call says so. */
  readonly mayCache: boolean
}

/**
 * As many as there are models and endpoints that this key calls. They are kept no longer than what they follow from.
 */
const profiles = new WeakMap<Catalog, WeakMap<Principal, Map<string, CallProfile>>>()

/** Undefined: the key may not use this model here, and whoever needs to know says why. */
export function profileOf(kind: KindName, uid: string, { spec, catalog, principal }: Whose): CallProfile | undefined {
  const byName = profiles.get(catalog)?.get(principal)
  return byName?.get(`${spec.id} ${uid}`) ?? workOut(kind, uid, { spec, catalog, principal })
}

function workOut(kind: KindName, uid: string, { spec, catalog, principal }: Whose): CallProfile | undefined {
  const { models } = catalog.document
  const model = Object.hasOwn(models, uid) ? models[uid] : undefined
  const isHere = model?.enabled && model.type === kind && (!spec.format || model.clientFormats.includes(spec.format))
  if (!model || !isHere || !mayUse(principal, uid)) return undefined
  const { routes, cache } = model
  const plain = routes.filter(({ enabled, serves, protocol }) => enabled && (!serves || protocol === spec.format))
  // A vendor of the caller's own format takes whatever it is asked.
  const isAll = plain.length > 0 && plain.every(({ protocol }) => protocol === spec.format)
  const profile: CallProfile = {
    model,
    facts: model.type === 'text' ? { uid, ...textFacts(model) } : undefined,
    routes: isAll ? plain : undefined,
    mayCache: principal.responseCache ?? (cache !== undefined && !cache.keysOnly),
  }
  const byPrincipal = profiles.get(catalog) ?? new WeakMap<Principal, Map<string, CallProfile>>()
  const byName = byPrincipal.get(principal) ?? new Map<string, CallProfile>()
  profiles.set(catalog, byPrincipal)
  byPrincipal.set(principal, byName)
  byName.set(`${spec.id} ${uid}`, profile)
  return profile
}

const textFacts = ({ traits, limits, pricing }: Omit<ModelFacts, 'uid'>) => ({ traits, limits, pricing })
