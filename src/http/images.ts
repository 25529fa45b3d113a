// The image endpoint: a body of up to hundreds of megabytes is read straight from the socket, within the budget of bytes.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Principal } from '../admission/api-key.ts'
import type { AssetHost } from '../assets/host.ts'
import type { Model } from '../catalog/document.ts'
import type { EndpointSpec } from '../catalog/endpoint.ts'
import type { Catalog, CatalogStore } from '../catalog/store.ts'
import { Fault } from '../kernel/fault.ts'
import type { PathDeps } from '../pipeline/call.ts'
import { serve } from '../pipeline/serve.ts'
import { type ImageAskDeps, readImageAsk } from '../protocols/openai-images/ask.ts'
import {
  BODY_BYTES_MAX,
  checkImageContentType,
  type ImageRequestBody,
  readImageBody,
} from '../protocols/openai-images/body.ts'
import type { Ask } from '../protocols/protocol.ts'
import { readModelName } from '../protocols/text.ts'
import type { ByteBudget } from '../upstream/budget.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import { arrive, idempotencyKeyOf } from './arrive.ts'
import { type Handlers, onPath } from './routes.ts'
import { modelAt, withModel } from './text.ts'

export interface ImageDeps {
  readonly catalog: CatalogStore
  readonly path: PathDeps
  readonly guard: Pick<GuardedFetch, 'fetchImage'>
  readonly assets: AssetHost
  readonly budget: ByteBudget
  readonly strictErrors: boolean
  readonly defaultModel: string | undefined
}

/** What a chunked body is counted as before its size is known. */
const UNKNOWN_BYTES = 32_000_000
const BESIDE_BYTES = 2_000_000

export function imageHandlers(deps: ImageDeps): Handlers {
  const { catalog, path, guard, assets, budget } = deps

  function images(request: FastifyRequest, reply: FastifyReply, spec: EndpointSpec): void {
    onPath(request, reply, deps, async (out) => {
      checkImageContentType(request.headers['content-type'])
      const length = request.headers['content-length']
      const contentLength = length === undefined ? undefined : Number(length)
      if ((contentLength ?? 0) > BODY_BYTES_MAX) throw new Fault('request_too_large')
      const lease = await budget.acquire(Math.max(contentLength ?? UNKNOWN_BYTES, BESIDE_BYTES), out.signal)
      try {
        const read = await readImageBody(request.raw, {
          contentLength,
          digest: idempotencyKeyOf(request) !== undefined,
        })
        // The text is gone; what stays are the pictures and little else.
        lease.shrinkTo(read.inlineBytes + BESIDE_BYTES)
        const body = { ...read, json: withModel(read.json, deps.defaultModel) }
        const now = catalog.current
        const account = request.principal!.accountId
        const { ask, model } = imageAsk(body, now, request.principal!, {
          fetchImage: (url, about) => guard.fetchImage(url, { account, ...about }),
          keep: assets.keep,
          lease,
        })
        const facts = {
          door: spec.id,
          catalog: now,
          ...(body.digest ? { body: body.digest } : {}),
        }
        await serve(arrive(request, out, ask, model, facts, path), path)
      } finally {
        lease.release()
      }
    })
  }

  return { images }
}

/** Whatever is wrong with the body is said first, even when the model is wrong too. */
export function imageAsk(
  body: ImageRequestBody,
  catalog: Catalog,
  { models }: Principal,
  deps: ImageAskDeps,
): { ask: Ask; model: Model } {
  const uid = readModelName(body.json)
  const ask = readImageAsk(body, { uid }, deps)
  const model = modelAt(catalog, uid)
  if (!model?.enabled || model.type !== 'image' || (models !== null && !models.has(uid)))
    throw new Fault('model_unknown')
  return { ask, model }
}

/** The contract has no edits route; whoever looks for it learns where editing is done. */
export function mountNoEdits(app: FastifyInstance): void {
  for (const url of ['/alpha/v1/images/edits', '/alpha/images/edits', '/v1/images/edits'])
    app.route({
      method: 'POST',
      url,
      config: { surface: 'images', alias: true },
      onRequest: (_request, _reply, done) =>
        done(
          new Fault('not_found', {
            message:
              'There is no edits route. Send the pictures as image_urls to /alpha/v1/images/generations, as JSON.',
          }),
        ),
      handler: () => undefined,
    })
}
