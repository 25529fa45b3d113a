// Builds the call from a request, for all sources alike: HTTP, tools of agents, lines of batches, background responses.

import { createHash } from 'node:crypto'
import type { Principal } from '../admission/api-key.ts'
import { hashRequest } from '../admission/idempotency.ts'
import type { RequestHeaders } from '../catalog/query.ts'
import { type Catalog, type CatalogStore, catalogFor } from '../catalog/store.ts'
import { readJson } from '../kernel/json.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import { readImageBody } from '../protocols/media/openai-images/body.ts'
import { checkVideoBody } from '../protocols/media/video-task/request.ts'
import type { ByteLease } from '../upstream/budget.ts'
import type { Arrived, PathDeps } from './call.ts'
import { type Incoming, type PaidSpec, type Read, type ReadDeps, type RequestBody, read, saysMore } from './read.ts'

/** The caller, and where the answer goes. */
interface Arrival extends Pick<Arrived, 'requestId' | 'principal' | 'endpoint' | 'out' | 'client'> {
  /** Of the request, by lower-case names. Absent: there is none. */
  readonly headers?: RequestHeaders
  /** What the key is bound to: the body, or a hash of it. */
  readonly idempotency?:
    | { readonly key: string; readonly digest: string | Buffer; readonly keepsAll?: true | undefined }
    | undefined
}

export interface ArriveDeps {
  readonly catalog: Pick<CatalogStore, 'current'>
  readonly read: ReadDeps
  readonly path: PathDeps
}

/** The caller's headers that a format or a trace may need. */
const VERSIONS = ['anthropic-version', 'anthropic-beta'] as const
const FORWARDED = [...VERSIONS, 'traceparent'] as const
const NONE = {}

const AGENTS: ReadonlyArray<readonly [prefix: string, name: string]> = [
  ['claude-cli/', 'claude-code'],
  ['codex', 'codex'],
  ['opencode/', 'opencode'],
]

/** Which agent calls, by its user agent; undefined: none that is known. */
function agentByUserAgent(userAgent: string | undefined): string | undefined {
  if (userAgent !== undefined) for (const [prefix, name] of AGENTS) if (userAgent.startsWith(prefix)) return name
  return undefined
}

/** Reads the request with the catalog of its caller. */
export function readFor(
  asked: Omit<Incoming, 'catalog'> & { readonly principal: Principal },
  { catalog: { current }, read: deps }: Pick<ArriveDeps, 'catalog' | 'read'>,
): { readonly asked: Read; readonly catalog: Catalog } {
  const { accountId } = asked.principal
  const catalog = isTestAccount(accountId) ? catalogFor(accountId, current) : current
  return { asked: read({ ...asked, catalog, isBare: !saysMore(asked) }, deps), catalog }
}

/** Written out, because copying objects for every call costs. */
export function arrive(
  { requestId, principal, endpoint, out, client, headers, idempotency }: Arrival,
  { paidRequest, product, routes, cache, own, labels, fallbacks, guard, preference, decided, shadow }: Read,
  catalog: Catalog,
  { world }: Pick<PathDeps, 'world'>,
): Arrived {
  let callerHeaders: Arrived['callerHeaders'] = NONE
  if (headers)
    for (const name of FORWARDED) {
      const value = headers[name]
      if (value !== undefined) callerHeaders = { ...callerHeaders, [name]: value }
    }
  return {
    requestId,
    principal,
    paidRequest,
    product,
    routes,
    catalog,
    endpoint,
    client: client ?? agentByUserAgent(headers?.['user-agent']),
    labels,
    startedMs: world.elapsedMs(),
    out,
    callerHeaders,
    own,
    fallbacks,
    guard,
    preference,
    decided,
    shadow,
    cache: cache && { ...cache, key: questionOf(cache.key, paidRequest, callerHeaders) },
    idempotency: idempotency && {
      key: idempotency.key,
      requestHash: hashRequest(endpoint, idempotency.digest),
      keepsAll: idempotency.keepsAll,
    },
  }
}

/**
 * The version headers that a text vendor gets are part of the cache key. The key is a hash, because callers may send
 * long ones.
 */
function questionOf(key: string, { clientFormat }: Read['paidRequest'], headers: Arrived['callerHeaders']): string {
  const beside = clientFormat === undefined ? [] : VERSIONS.map((name) => headers[name] ?? '')
  return createHash('sha256')
    .update(JSON.stringify([key, ...beside]))
    .digest('base64')
}

/** A JSON body of a paid endpoint. */
export function readBody({ sells }: PaidSpec, bytes: Buffer): RequestBody {
  return { json: readJson(sells === 'video' ? checkVideoBody(bytes) : bytes) }
}

/** The body of an image request in memory. Its pictures are kept separately, and the lease accounts for their bytes. */
export async function readPictures(bytes: Buffer, lease: ByteLease): Promise<RequestBody> {
  const pictures = await readImageBody(inOnePiece(bytes), { contentLength: bytes.length })
  return { json: pictures.json, pictures: { ...pictures, lease } }
}

async function* inOnePiece(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}
