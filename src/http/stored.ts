// Responses that a vendor keeps: only the account that made them may read and delete them, at the vendor that has them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { dropKeptAnswer, findKeptAnswer, hasRoute } from '../admission/kept-answers.ts'
import type { OwnKeys } from '../admission/own-keys.ts'
import type { EndpointSpec } from '../catalog/endpoint.ts'
import { FREE, type FreeId } from '../catalog/generation.ts'
import { catalogFor } from '../catalog/simulated.ts'
import { type CatalogStore, findProduct } from '../catalog/store.ts'
import type { Background } from '../deferred/background.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { OWN_KEY } from '../ledger/operation.ts'
import type { PathDeps } from '../pipeline/call.ts'
import { mayUse } from '../pipeline/read.ts'
import { serve } from '../pipeline/serve.ts'
import { storedAsk } from '../protocols/text/openai-responses/stored.ts'
import { arrive } from './paid.ts'
import { type HandlersOf, onPath } from './routes.ts'
import { rawQuery } from './server.ts'

interface StoredDeps {
  readonly catalog: CatalogStore
  readonly path: PathDeps
  readonly ownKeys: Pick<OwnKeys, 'use'>
  readonly background: Background
  readonly strictErrors: boolean
  readonly log: Log
}

export function storedHandlers(
  deps: StoredDeps,
): HandlersOf<'responses/{id}' | 'responses/{id}/delete' | 'responses/{id}/input_items' | 'responses/{id}/cancel'> {
  const { catalog, path, background } = deps
  const { database } = path

  const handle = (id: FreeId, method: 'GET' | 'DELETE', below: string) => {
    const spec = FREE[id]
    return (request: FastifyRequest, reply: FastifyReply) => {
      const query = queryOf(request, spec)
      reply.hijack()
      onPath(request, reply.raw, deps, async (out) => {
        const { id: asked } = request.params as { id: string }
        const principal = request.principal!
        const { accountId } = principal
        const own = await background.find(principal, asked)
        if (own && below === '') {
          const body = method === 'GET' ? own.answer : await background.remove(own)
          return out.send(200, { 'content-type': JSON_TYPE }, body)
        }
        const id = own?.vendor_id ?? asked
        const now = catalogFor(accountId, catalog.current)
        const kept = await findKeptAnswer(database, accountId, id)
        const model = kept && findProduct(now, kept.product)
        const isThere = kept && model && hasRoute(model.routes, kept, 'openai-responses')
        if (!isThere || !mayUse(principal, kept.product)) throw unknown()
        const ask = storedAsk({ method, id, below, query }, kept.product)
        const ownUse = () => deps.ownKeys.use(accountId, model, now, model.routes)
        const arrived = arrive(request, { endpoint: spec.id, out, catalog: now }, { ask, product: model }, path)
        try {
          await serve({ ...arrived, keeper: kept, own: kept.credential === OWN_KEY ? ownUse() : undefined }, path)
        } catch (error) {
          if (!(error instanceof Fault) || error.details.internal?.status !== 404) throw error
          await dropKeptAnswer(database, accountId, id)
          throw unknown()
        }
        if (method === 'DELETE') await dropKeptAnswer(database, accountId, id)
      })
    }
  }

  return {
    'responses/{id}': handle('responses/{id}', 'GET', ''),
    'responses/{id}/delete': handle('responses/{id}/delete', 'DELETE', ''),
    async 'responses/{id}/cancel'(request, reply) {
      const { id } = request.params as { id: string } // The path has it.
      const principal = request.principal! // The key was checked before the handler.
      const own = await background.find(principal, id)
      if (own) return reply.header('content-type', JSON_TYPE).send(await background.cancel(own))
      if (!(await findKeptAnswer(database, principal.accountId, id))) throw unknown()
      throw invalid('Only a response that was made with "background" can be cancelled.')
    },
    'responses/{id}/input_items': handle('responses/{id}/input_items', 'GET', '/input_items'),
  }
}

const JSON_TYPE = 'application/json; charset=utf-8'

function unknown(): Fault {
  return new Fault('not_found', {
    message: 'There is no stored response with this id. Responses made with "store": false are not kept.',
  })
}

/** The parameters that the endpoint knows, as they came; others are left behind. */
function queryOf(request: FastifyRequest, { params = {} }: EndpointSpec): string {
  const given = new URLSearchParams(rawQuery(request))
  if (given.get('stream') === 'true')
    throw invalid('"stream" must be false: a stored response is given whole.', 'stream')
  const known = [...given].filter(([name]) => Object.hasOwn(params, name.replace(/\[\]$/, '')))
  return known.length === 0 ? '' : `?${new URLSearchParams(known)}`
}
