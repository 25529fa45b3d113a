// Files that the gateway hosts, under signed addresses.
import type { FastifyInstance } from 'fastify'
import { type AssetResponse, serveAsset } from '../assets/serve.ts'
import type { AssetSigner, AssetStore } from '../assets/store.ts'
import type { World } from '../kernel/world.ts'
import { rawQuery } from '../server/server.ts'

export function mountAssets(
  app: FastifyInstance,
  deps: { store: AssetStore; signer: AssetSigner; world: World },
): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/assets/:name',
    async handler(request, reply) {
      const query = new URLSearchParams(rawQuery(request))
      const { headers } = request
      const answer: AssetResponse = await serveAsset(deps, {
        method: request.method as 'GET' | 'HEAD',
        name: (request.params as { name: string }).name,
        exp: query.get('exp') ?? undefined,
        sig: query.get('sig') ?? undefined,
        range: headers.range,
        ifRange: headers['if-range'] as string | undefined,
        ifNoneMatch: headers['if-none-match'],
      })
      return reply
        .code(answer.status)
        .headers(answer.headers)
        .send(answer.stream ?? null)
    },
  })
  app.crossSite('/assets/:name')
}
