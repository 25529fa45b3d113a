// Free questions about what a vendor keeps for an account, put to the vendor that has it, on the path that every call takes.
import { findVendorObject, hasRoute, removeVendorObject } from '../admission/vendor-objects.ts'
import type { Model } from '../catalog/document.ts'
import type { EndpointSpec } from '../catalog/endpoint.ts'
import { catalogFor } from '../catalog/simulated.ts'
import { type Catalog, type CatalogStore, findProduct } from '../catalog/store.ts'
import type { OwnKeys } from '../credentials/own-keys.ts'
import { Fault } from '../kernel/fault.ts'
import { arrive } from '../pipeline/arrive.ts'
import type { PathDeps } from '../pipeline/call.ts'
import type { ResponseSink } from '../pipeline/response-sink.ts'
import { serve } from '../pipeline/serve.ts'
import type { PaidRequest } from '../protocols/protocol.ts'
import { routesFor } from '../routing/route.ts'
import { rawQuery } from '../server/server.ts'
import type { RequestContext } from './api.ts'
import { headerOf } from './paid.ts'

export interface VendorObjectDeps {
  readonly catalog: CatalogStore
  readonly path: PathDeps
  readonly ownKeys: Pick<OwnKeys, 'use'>
}

interface Question {
  readonly spec: EndpointSpec
  readonly out: ResponseSink
  /** The vendor's. */
  readonly id: string
  /** What is said to those for whom it is not kept. */
  readonly unknown: () => Fault
  /** Undefined: it stays when the question was answered. */
  readonly removes?: boolean
  ask(product: string): PaidRequest
}

/** Asks whoever keeps it for this account; for all others it is not there. */
export async function askObjectOwner(
  request: RequestContext,
  question: Question,
  deps: VendorObjectDeps,
): Promise<void> {
  const { database } = deps.path
  const { id, unknown } = question
  const principal = request.principal
  const { accountId } = principal
  const now = catalogFor(accountId, deps.catalog.current)
  const kept = await findVendorObject(database, principal, id)
  const model = kept && findProduct(now, kept.product)
  const isThere = kept && model && hasRoute(model.routes, kept, 'openai-responses')
  if (!isThere) throw unknown()
  const asked = question.ask(kept.product)
  const ask = { ...asked, continues: [{ id, unknown: unknown() }, ...(asked.continues ?? [])] }
  try {
    await serveFree(request, { ...question, catalog: now, model: model as Model, ask }, deps)
  } catch (error) {
    if (!(error instanceof Fault) || error.details.internal?.status !== 404) throw error
    // What is gone at the vendor is gone. Of something inside it, or that was sent along, that says nothing.
    if (question.spec.path.lastIndexOf('/') < question.spec.path.indexOf('{'))
      await removeVendorObject(database, accountId, id)
    throw unknown()
  }
  if (question.removes) await removeVendorObject(database, accountId, id)
}

interface FreeCall extends Pick<Question, 'spec' | 'out'> {
  readonly catalog: Catalog
  readonly model: Model
  readonly ask: PaidRequest
}

export async function serveFree(
  request: RequestContext,
  { spec, out, catalog, model, ask }: FreeCall,
  { path, ownKeys }: VendorObjectDeps,
): Promise<void> {
  const { id: requestId, principal } = request
  const own = ownKeys.use(principal.accountId, model, catalog, model.routes)
  const routes = routesFor(ask, model, catalog.document)
  const header = (name: string) => headerOf(request, name)
  const asked = { ask, product: model, routes, ...(own ? { own } : {}) }
  await serve(arrive({ requestId, principal, endpoint: spec.id, out, header }, asked, catalog, path), path)
}

/** What is asked of the gateway, and of no vendor. */
const OURS = new Set(['stream', 'starting_after'])

/** The parameters that the endpoint knows, as they came; others are left behind. */
export function knownQuery(request: RequestContext, { params = {} }: EndpointSpec): string {
  const known = [...new URLSearchParams(rawQuery(request))].filter(
    ([name]) => Object.hasOwn(params, name.replace(/\[\]$/, '')) && !OURS.has(name),
  )
  return known.length === 0 ? '' : `?${new URLSearchParams(known)}`
}
