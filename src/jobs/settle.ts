// The settlement of a job: it is charged for what was delivered, or the whole hold is released. The resolution has the
// hold's id, so it can be retried until it is known to be durable.

import { type Catalog, findProduct } from '../catalog/store.ts'
import { FAULTS, Fault } from '../kernel/fault.ts'
import { withoutContent } from '../kernel/redact.ts'
import { BYOK, type Resolution } from '../ledger/operation.ts'
import type { AttemptLog } from '../ledger/views.ts'
import { type Charge, chargeOf, costOf, decidingOf } from '../meter/charge.ts'
import { feePricing, type Pricing } from '../meter/price.ts'
import type { Usage } from '../meter/usage.ts'
import { worstTokens } from '../protocols/media/video-task/request.ts'
import { byokFeeOf } from '../upstream/credentials/byok-keys.ts'
import { type ClaimedJob, type Delivered, readStoredRequest, type StoredRequest, type Verdict } from './job.ts'

/** Cancelled by the caller, so no error of gateway or vendor. */
const CANCELLED_STATUS = 499

export interface Decided extends ClaimedJob {
  readonly verdict: Verdict
}

export function isByTokens(pricing: Pricing): boolean {
  return pricing.tiers.some((tier) => tier.output !== undefined)
}

export function jobResolution(job: Decided, catalog: Catalog): Resolution {
  // A release needs only the hold, so that it works even if the stored request cannot be read.
  const paid = job.verdict === 'COMPLETED' ? jobCharge(job, readStoredRequest(job.request), catalog) : undefined
  return {
    id: job.hold_id,
    account: job.account_id,
    key: job.key_id,
    product: job.product,
    catalogVersion: job.catalog_version,
    kind: paid ? 'settled' : 'released',
    charge: paid?.charge.amount ?? 0n,
    lines: paid?.charge.lines ?? [],
    ...askedBy(job.request),
    status:
      job.verdict === 'COMPLETED' ? 200 : job.verdict === 'CANCELLED' ? CANCELLED_STATUS : (job.error?.status ?? 500),
    estimated: paid?.estimated ?? false,
    stream: false,
    route: job.route,
    durationMs: Math.min(job.age_ms, 2_000_000_000),
    firstByteMs: 0,
    inputTokens: 0,
    outputTokens: paid?.outputTokens ?? 0,
    cost: paid?.cost?.amount,
    costBasis: paid?.cost?.basis,
    attributes: paid?.attributes,
    credential: paid ? (job.credential ?? undefined) : undefined,
    vendor: job.vendor ?? undefined,
    attemptLog: job.verdict === 'FAILED' ? attemptLogOf(job) : undefined,
  }
}

function attemptLogOf({ error, vendor, route, credential, age_ms: ageMs }: Decided): AttemptLog {
  const name = error?.name ?? 'internal'
  const { code = FAULTS.internal.code, status = FAULTS.internal.status, message = FAULTS.internal.text } = error ?? {}
  const attempt = { route, startMs: 0, ms: Math.round(ageMs), status: null, fault: name, phase: null, retried: false }
  const by = credential === null ? {} : { credential }
  const attempts =
    vendor === null ? [] : [{ ...attempt, vendor, ...by, cause: error?.reason ?? null, stopped: 'exhausted' as const }]
  return {
    heldMs: null,
    attempts,
    fault: { name, code, status, blame: FAULTS[name].blame, message: withoutContent(message) },
  }
}

function askedBy(request: string): Pick<Resolution, 'endpoint' | 'client' | 'labels'> {
  try {
    const { endpoint, client, labels } = readStoredRequest(request)
    return { endpoint, client, labels }
  } catch {
    return { endpoint: 'video' }
  }
}

function jobCharge(job: Decided, request: StoredRequest, catalog: Catalog) {
  const product = findProduct(catalog, job.product)
  if (!product) throw new Fault('internal', { internal: { why: 'the catalog version lost the product', job: job.id } })
  const delivered = deliveredUsage(job.delivered ?? {}, request, isByTokens(product.pricing))
  const { estimated } = delivered
  const fee = job.credential === BYOK ? byokFeeOf(product, job.vendor ?? '', catalog.document) : undefined
  const pricing = fee ? feePricing(product.pricing, fee) : product.pricing
  const usage = fee ? { call: 1, ...delivered.usage } : delivered.usage
  const resolution = job.delivered?.resolution ?? request.resolution
  const asked = chargeOf(pricing, usage, { resolution: request.resolution })
  const got = chargeOf(pricing, usage, { resolution })
  // The caller pays for the cheaper of the requested and the delivered resolution.
  const isLess = got.amount < asked.amount
  const charge: Charge = isLess ? got : asked
  const attributes = decidingOf(pricing, { resolution: isLess ? resolution : request.resolution })
  const cost = fee
    ? { amount: 0n, basis: undefined }
    : costOf(product.routes[job.route - 1]?.cost, usage, { resolution }, { lines: charge.lines, attributes })
  return { charge, estimated, outputTokens: usage.output ?? 0, cost, attributes }
}

/** The usage that the vendor reports, capped at the job's maximum. Missing figures are taken from the request. */
function deliveredUsage(
  delivered: Delivered,
  request: StoredRequest,
  byTokens: boolean,
): { usage: Usage; estimated: boolean } {
  const second = Math.min(delivered.seconds ?? request.seconds, request.seconds)
  if (!byTokens) return { usage: { second }, estimated: delivered.seconds === undefined }
  const most = worstTokens(request.seconds, request.resolution, request.hasVideos)
  return {
    usage: { second, output: Math.min(delivered.outputTokens ?? most, most) },
    estimated: delivered.outputTokens === undefined,
  }
}
