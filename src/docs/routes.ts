// The documentation that the gateway serves. Its pages, the library that makes them of their texts, and the description of
// the API are loaded when somebody first asks: most processes are never asked.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../kernel/fault.ts'
import { ORIGIN } from '../server/address.ts'
import { rawQuery } from '../server/server.ts'
import type { openDocs } from './docs.ts'

const CSP =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
type Docs = ReturnType<typeof openDocs>

/** Names and addresses only: nothing of a header that is not an address gets into a page. */
const HOST = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

function originOf(request: FastifyRequest, configured: string): string {
  if (/^https?:/.test(configured)) return new URL(configured).origin
  const { host } = request.headers
  return host !== undefined && HOST.test(host) ? `${request.protocol}://${host}` : ORIGIN
}

export function mountDocs(app: FastifyInstance, options: Parameters<typeof openDocs>[0]): void {
  let opened: Promise<Docs> | undefined
  const docs = () => {
    opened ??= import('./docs.ts').then(({ openDocs }) => openDocs(options))
    return opened
  }
  const send = async (request: FastifyRequest, reply: FastifyReply, make: (docs: Docs) => string | undefined) => {
    const html = make(await docs())
    if (html === undefined) throw new Fault('not_found')
    return reply
      .headers({
        'content-security-policy': CSP,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'public, max-age=300',
      })
      .type('text/html; charset=utf-8')
      .send(html.replaceAll(ORIGIN, originOf(request, options.serverUrl)))
  }

  app.get('/openapi.json', async (_request, reply) =>
    reply
      .header('access-control-allow-origin', '*')
      .type('application/json; charset=utf-8')
      .send((await docs()).openapi()),
  )
  app.get('/docs/style.css', async (_request, reply) =>
    reply
      .type('text/css; charset=utf-8')
      .header('cache-control', 'public, max-age=300')
      .send((await docs()).style),
  )
  app.get('/docs/client.js', async (_request, reply) =>
    reply
      .type('text/javascript; charset=utf-8')
      .header('cache-control', 'public, max-age=300')
      .send((await docs()).client),
  )
  app.get('/docs', (request, reply) => send(request, reply, ({ start }) => start))
  app.get('/docs/api', (request, reply) => send(request, reply, ({ api }) => api()))
  app.get('/docs/search', (request, reply) => {
    const query = new URLSearchParams(rawQuery(request)).get('q') ?? ''
    return send(request, reply, ({ search }) => search(query))
  })
  for (const folder of ['guides', 'reference'] as const)
    app.get(`/docs/${folder}/:name`, (request, reply) => {
      const { name } = request.params as { name: string } // As the path says.
      return send(request, reply, ({ guide }) => guide(folder, name))
    })
}
