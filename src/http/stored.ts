// Responses that a vendor keeps: only the account that made them may read and delete them, at the vendor that has them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { dropKeptAnswer, findKeptAnswer, type KeptAnswer } from '../admission/kept-answers.ts'
import type { Model } from '../catalog/document.ts'
import type { EndpointSpec } from '../catalog/endpoint.ts'
import type { ProtocolName } from '../catalog/kind.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { serve } from '../pipeline/serve.ts'
import { storedAsk } from '../protocols/openai-responses/stored.ts'
import type { TextAsk } from '../protocols/text.ts'
import { arrive } from './arrive.ts'
import type { PublicDeps } from './public.ts'
import { type Handlers, onPath } from './routes.ts'
import { rawQuery } from './server.ts'
import { modelAt } from './text.ts'

export function storedHandlers(deps: PublicDeps): Handlers {
  const { catalog, path, database } = deps

  const handle = (method: 'GET' | 'DELETE', below: string) => {
    return (request: FastifyRequest, reply: FastifyReply, spec: EndpointSpec) => {
      const query = queryOf(request, spec)
      onPath(request, reply, deps, async (out) => {
        const { id } = request.params as { id: string }
        const { accountId, models } = request.principal!
        const now = catalog.current
        const kept = await findKeptAnswer(database, accountId, id)
        const model = kept && modelAt(now, kept.product)
        if (!kept || !model || !isKept(model, kept, 'openai-responses') || (models && !models.has(kept.product)))
          throw unknown()
        const ask = storedAsk({ method, id, below, query }, kept.product)
        const facts = { door: spec.id, catalog: now }
        try {
          await serve({ ...arrive(request, out, ask, model, facts, path), keeper: kept.vendor }, path)
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
    'responses/{id}': handle('GET', ''),
    'responses/{id}/delete': handle('DELETE', ''),
    'responses/{id}/input_items': handle('GET', '/input_items'),
  }
}

/** The vendor that keeps what a request goes on from. */
export async function keeperOf(
  { continues, door }: TextAsk,
  model: Model,
  account: string,
  { database }: PublicDeps,
): Promise<string | undefined> {
  if (!continues) return undefined
  const kept = await findKeptAnswer(database, account, continues.id)
  if (!kept || !isKept(model, kept, door)) throw continues.unknown
  return kept.vendor
}

/** The catalogue may have changed since. */
function isKept(model: Model, { vendor }: KeptAnswer, protocol: ProtocolName): boolean {
  return model.routes.some((route) => route.vendor === vendor && route.protocol === protocol)
}

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
