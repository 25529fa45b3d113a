// What each public endpoint does with a request of a known caller: validate it into an ask, and put it on the path.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { estimate } from '../admission/admit.ts'
import { type DataEndpointSpec, type EndpointSpec, isDataEndpoint } from '../catalog/endpoint.ts'
import { cacheKey } from '../catalog/query.ts'
import { type CatalogStore, type DataProduct, findDataProduct } from '../catalog/store.ts'
import { dataTraits } from '../catalog/traits.ts'
import { type Database, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { type Limits, showLimits } from '../ledger/limits.ts'
import { chargeOf } from '../meter/charge.ts'
import type { PathDeps } from '../pipeline/call.ts'
import { type DataCache, serveThroughCache } from '../pipeline/data-cache.ts'
import { serve } from '../pipeline/serve.ts'
import { type DataAsk, readAnalyticsAsk } from '../protocols/site-analytics.ts'
import { readSocialAsk } from '../protocols/social-v2.ts'
import { countTokens } from '../protocols/text.ts'
import { arrive } from './arrive.ts'
import { createModelLists } from './models.ts'
import { type DefaultModels, readQuoted } from './quote.ts'
import { type Handlers, onPath } from './routes.ts'
import { jsonBody, rawQuery } from './server.ts'
import { keeperOf, storedHandlers } from './stored.ts'
import { readTextRequest, TEXT_DOORS, textAsk, withModel } from './text.ts'

/** For the checks that do not depend on the product, when it is not offered. */
const NO_DATA_TRAITS = dataTraits.parse({})

export interface PublicDeps {
  readonly catalog: CatalogStore
  readonly path: PathDeps
  readonly database: Database
  readonly strictErrors: boolean
  readonly cache: DataCache
  /** Filled in for requests without a model, where the operator wants it so. */
  readonly defaultModels: DefaultModels | undefined
}

export function publicHandlers(deps: PublicDeps): Handlers {
  const { catalog, path } = deps
  const lists = createModelLists(() => catalog.current)

  function text(request: FastifyRequest, reply: FastifyReply, spec: EndpointSpec): void {
    const now = catalog.current
    const json = withModel(readTextRequest(request), spec.id === 'chat' ? deps.defaultModels?.chat : undefined)
    const { ask, model } = textAsk(TEXT_DOORS[spec.id]!, json, now, request.principal!)
    const facts = { door: spec.id, catalog: now, body: json.text }
    onPath(request, reply, deps, async (out) => {
      const arrived = arrive(request, out, ask, model, facts, path)
      if (!ask.continues) return serve(arrived, path)
      return serve({ ...arrived, keeper: await keeperOf(ask, model, request.principal!.accountId, deps) }, path)
    })
  }

  function data(request: FastifyRequest, reply: FastifyReply, spec: EndpointSpec): void {
    if (!isDataEndpoint(spec)) throw new Fault('not_found')
    const now = catalog.current
    const product = findDataProduct(now, spec.product)
    const ask = dataAsk(spec, request, product)
    if (!product?.enabled) throw new Fault('not_found', { message: 'This endpoint is not enabled.' })
    const { models } = request.principal!
    if (models !== null && !models.has(spec.restriction))
      throw new Fault('access_denied', { message: `This key may not use ${spec.restriction}.` })
    // Only the vendor knows the headers of an answer, and asking it would cost what the answer costs.
    if (request.method === 'HEAD') return void send(reply, '')
    const cached = 'cache' in product ? product.cache : undefined
    onPath(request, reply, deps, (out) => {
      const arrived = arrive(request, out, ask, product, { door: spec.id, catalog: now }, path)
      if (!cached) return serve(arrived, path)
      const rule = { key: cacheKey(spec, ask.query), ttlSeconds: cached.ttlSeconds, pricing: cached.pricing }
      return serveThroughCache(arrived, rule, deps.cache, path)
    })
  }

  function dataAsk(spec: DataEndpointSpec, request: FastifyRequest, product: DataProduct | undefined): DataAsk {
    if (spec.restriction === 'socialapi') {
      const traits = product?.traits ?? NO_DATA_TRAITS
      return readSocialAsk(spec, request.params as Record<string, string>, rawQuery(request), traits)
    }
    const perRow = product?.pricing.tiers.some((tier) => tier.row !== undefined) ?? false
    return readAnalyticsAsk(spec, rawQuery(request), path.world.nowMs(), { perRow })
  }

  const send = (reply: FastifyReply, body: string) =>
    reply.header('content-type', 'application/json; charset=utf-8').send(body)
  const isBeta = (request: FastifyRequest) => request.routeOptions.url?.startsWith('/beta/') ?? false

  return {
    chat: text,
    responses: text,
    messages: text,
    ...storedHandlers(deps),
    data,
    count_tokens: (request, reply) =>
      send(reply, JSON.stringify({ input_tokens: countTokens(readTextRequest(request)) })),
    models: (request, reply) => send(reply, lists.list(request.principal!, request.id, isBeta(request))),
    'models/{id}': (request, reply) =>
      send(
        reply,
        lists.retrieve(request.principal!, request.id, (request.params as { id: string }).id, isBeta(request)),
      ),
    async account(request, reply) {
      const [row] = await deps.database.query<AccountRow>(ACCOUNT, [
        request.principal!.accountId,
        request.principal!.keyId,
      ])
      if (!row) throw new Fault('key_unknown')
      const { models, expiresAtMs } = request.principal!
      return send(
        reply,
        JSON.stringify({
          success: true,
          data: {
            id: row.id,
            name: row.name,
            balance: formatCredits(row.posted),
            held: formatCredits(row.held),
            available: formatCredits(row.posted - row.held),
            limits: showLimits(row.limits),
            key: {
              id: request.principal!.keyId,
              models: models && [...models],
              expiresAt: Number.isFinite(expiresAtMs) ? new Date(expiresAtMs).toISOString() : null,
              limits: showLimits(row.key_limits ?? {}),
            },
          },
          requestId: request.id,
        }),
      )
    },
    async quote(request, reply) {
      const now = catalog.current
      const { ask, product } = await readQuoted(jsonBody(request), now, request.principal!, deps.defaultModels)
      const { want, floor } = estimate(ask, product)
      const [row] = await deps.database.query<AccountRow>(ACCOUNT, [
        request.principal!.accountId,
        request.principal!.keyId,
      ])
      const available = row ? row.posted - row.held : 0n
      return send(
        reply,
        JSON.stringify({
          success: true,
          data: {
            product: ask.product,
            unit: 'credits',
            hold: formatCredits(want < available ? want : available > floor ? available : want),
            costAtMost: formatCredits(want),
            costAtLeast: formatCredits(floor),
            worstCase: ask.worst,
            lines: chargeOf(product.pricing, ask.worst, ask.price).lines.map(([unit, quantity, rate]) => ({
              unit,
              quantity,
              rate: formatCredits(BigInt(rate)),
              per: 1_000_000,
            })),
            available: formatCredits(available),
            affordable: floor <= available,
            catalogVersion: now.version,
          },
          requestId: request.id,
        }),
      )
    },
  }
}

interface AccountRow {
  id: string
  name: string
  posted: bigint
  held: bigint
  limits: Limits
  key_limits: Limits | null
}

const ACCOUNT = statement(
  'own_account',
  `select a.id, a.name, a.posted, a.held, a.limits, k.limits as key_limits
   from account a left join api_key k on k.id = $2 where a.id = $1`,
)
