// From a request and its ask to a call on the path.
import type { FastifyRequest } from 'fastify'
import { hashRequest, readIdempotencyKey } from '../admission/idempotency.ts'
import type { Catalog, Product } from '../catalog/store.ts'
import type { Arrived, PathDeps } from '../pipeline/call.ts'
import type { Out } from '../pipeline/out.ts'
import type { Ask } from '../protocols/protocol.ts'

/** The caller's headers that a format or a trace may need. */
const FORWARDED = ['anthropic-version', 'anthropic-beta', 'traceparent'] as const

export interface ArrivalFacts {
  readonly door: string
  readonly catalog: Catalog
  /** What an idempotency key is bound to: the body, or a hash of it. Absent: the endpoint takes no such key. */
  readonly body?: string | Buffer
}

export function arrive(
  request: FastifyRequest,
  out: Out,
  ask: Ask,
  product: Product,
  { door, catalog, body }: ArrivalFacts,
  path: Pick<PathDeps, 'world'>,
): Arrived {
  const key = body === undefined ? undefined : idempotencyKeyOf(request)
  const arrived: Arrived = {
    requestId: request.id,
    principal: request.principal!,
    ask,
    catalog,
    product,
    door,
    startedMs: path.world.elapsedMs(),
    out,
    callerHeaders: forwarded(request),
  }
  return key === undefined ? arrived : { ...arrived, idempotency: { key, requestHash: hashRequest(door, body!) } }
}

export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  return readIdempotencyKey(headerOf(request, 'idempotency-key'))
}

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}

function forwarded(request: FastifyRequest): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const name of FORWARDED) {
    const value = headerOf(request, name)
    if (value !== undefined) headers[name] = value
  }
  return headers
}
