// The route and the credential by which a job's task is made and later polled.

import { catalogFor } from '../catalog/simulated.ts'
import { type CatalogStore, findProduct } from '../catalog/store.ts'
import type { ByokKeys, OwnUse } from '../credentials/byok-keys.ts'
import { Fault } from '../kernel/fault.ts'
import { BYOK } from '../ledger/operation.ts'
import { withCredential } from '../routing/credential-state.ts'
import { byByokKey, type Candidate, type RouteSources, routeRequest, routesFor } from '../routing/route.ts'
import type { Vendors } from '../routing/vendor.ts'
import type { ClaimedJob } from './job.ts'
import { readStoredRequest } from './stored-request.ts'
import type { TaskPlace } from './vendor-tasks.ts'

interface PlaceDeps {
  readonly catalog: CatalogStore
  readonly routes: RouteSources
  readonly byokKeys: Pick<ByokKeys, 'use'>
}

/**
 * Vendors show a task only to the credential that made it, so a job keeps its route and credential. If that credential was removed,
 * another credential of the vendor is used; it sees the task if it belongs to the same vendor account.
 */
export async function placeOf(job: ClaimedJob, deps: PlaceDeps): Promise<TaskPlace> {
  const candidates = await candidatesOf(job, deps)
  const ofRoute = candidates.filter((candidate) => candidate.number === job.route)
  const place = ofRoute.find((one) => (one.credential === BYOK) === (job.credential === BYOK)) ?? ofRoute[0]
  if (!place) throw new Fault('internal', { internal: { why: 'the route is gone', job: job.id, route: job.route } })
  const credential = place.credentials?.find(({ name }) => name === job.credential) ?? place.credentials?.[0]
  return credential ? withCredential(place, credential) : place
}

/** The hold, made when the job was created, decides whether the account's own key or the gateway's credentials may be used. */
async function candidatesOf(job: ClaimedJob, deps: PlaceDeps): Promise<Candidate[]> {
  const catalog = catalogFor(job.account_id, await deps.catalog.at(job.catalog_version))
  const product = findProduct(catalog, job.product)
  if (!product) return []
  const { routes, routing } = product
  const { byok, routes: allowed } = readStoredRequest(job.request)
  const able = routesFor({}, product, catalog.document)
  const pool = allowed ? able.filter((route) => allowed.includes(routes.indexOf(route) + 1)) : able
  const candidates = routeRequest({ product: job.product }, { routes, routing, pool }, catalog.document, deps.routes)
  if (!byok) return candidates
  const own = ownUseOf(() => deps.byokKeys.use(job.account_id, product, catalog, product.routes))
  if (own) return byByokKey(candidates, { ...own, fallback: byok.fallback })
  // The account's key was removed. A task that it may have made can be polled only with the gateway's credentials. They may make a new task only if
  // the account allows the fallback, because otherwise the hold covers just the fee. A refused submission has made no task.
  const mayBeMade = job.task_id !== null || job.submit_age_ms !== null
  return byok.fallback || mayBeMade ? candidates : []
}

/** A key that can no longer be decrypted counts as removed. */
function ownUseOf(use: () => OwnUse | undefined): OwnUse | undefined {
  try {
    return use()
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

/** Prefers a usable route other than the one that has just refused. */
export async function chooseRoute(
  job: ClaimedJob,
  deps: PlaceDeps & { readonly vendors: Vendors },
): Promise<Candidate | undefined> {
  const { vendors } = deps
  const { credential } = job
  // A fault of one of several credentials does not count against its route.
  const wasAside = ({ vendorName, credentials }: Candidate) =>
    credentials !== undefined && credential !== null && vendors.credentials.health(vendorName, credential).why !== null
  const isSame = (one: Candidate) => (one.credential === BYOK) === (credential === BYOK)
  const refused = (one: Candidate) => Number(one.number === job.route && isSame(one) && !wasAside(one))
  for (const candidate of (await candidatesOf(job, deps)).toSorted((a, b) => refused(a) - refused(b))) {
    if (candidate.credential === BYOK) return candidate
    const usable = candidate.credentials ? vendors.credentials.choose(candidate, job.account_id) : candidate
    if (!(usable instanceof Fault) && vendors.available(candidate.vendorName, job.account_id)) return usable
  }
  return undefined
}
