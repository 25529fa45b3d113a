// The documentation that the gateway serves. Its pages, the library that makes them of their texts, and the description of
// the API are loaded when somebody first asks: most processes are never asked.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../kernel/fault.ts'
import { ORIGIN } from '../server/address.ts'
import { rawQuery } from '../server/server.ts'
import type { DocsOptions, openDocs } from './docs.ts'

const CSP =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
type Docs = ReturnType<typeof openDocs>

/** Names and addresses only: nothing of a header that is not an address gets into a page. */
const HOST = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** The configured address; without one, the address that this reader used, which is nobody else's: a shared cache must not keep it. */
function originOf(request: FastifyRequest, configured: string): { origin: string; isShared: boolean } {
  if (/^https?:/.test(configured)) return { origin: new URL(configured).origin, isShared: true }
  const { host } = request.headers
  const protocol = request.protocol === 'https' ? 'https' : 'http'
  return { origin: host !== undefined && HOST.test(host) ? `${protocol}://${host}` : ORIGIN, isShared: false }
}

/** A reader that names Markdown and not HTML. */
function wantsMarkdown({ headers: { accept = '' } }: FastifyRequest): boolean {
  return /\btext\/(?:x-)?markdown\b/i.test(accept) && !/\btext\/html\b/i.test(accept)
}

export function mountDocs(app: FastifyInstance, options: DocsOptions): void {
  let opened: Promise<Docs> | undefined
  const docs = () => {
    opened ??= import('./docs.ts').then(({ openDocs }) => openDocs(options))
    return opened
  }
  const send = (request: FastifyRequest, reply: FastifyReply, type: string, text: string | undefined) => {
    if (text === undefined) throw new Fault('not_found')
    const { origin, isShared } = originOf(request, options.serverUrl)
    return reply
      .headers({
        'content-security-policy': CSP,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': `${isShared ? 'public' : 'private'}, max-age=300`,
        vary: 'accept',
      })
      .type(`${type}; charset=utf-8`)
      .send(text.replaceAll(ORIGIN, origin))
  }
  const sendPage = async (request: FastifyRequest, reply: FastifyReply, address: string) => {
    const pages = await docs()
    const named = address.replace(/\.md$/, '')
    if (named !== address || wantsMarkdown(request)) return send(request, reply, 'text/markdown', pages.markdown(named))
    return send(request, reply, 'text/html', pages.html(address))
  }

  app.get('/openapi.json', async (_request, reply) =>
    reply
      .header('access-control-allow-origin', '*')
      .type('application/json; charset=utf-8')
      .send((await docs()).openapi()),
  )
  const files = {
    '/docs/style.css': ['text/css', 'style'],
    '/docs/client.js': ['text/javascript', 'client'],
    '/docs/theme.js': ['text/javascript', 'theme'],
    '/docs/mark.svg': ['image/svg+xml', 'mark'],
  } as const
  for (const [path, [type, name]] of Object.entries(files))
    app.get(path, async (_request, reply) =>
      reply
        .type(`${type}; charset=utf-8`)
        .header('cache-control', 'public, max-age=300')
        .send((await docs())[name]),
    )
  app.get('/llms.txt', async (request, reply) => send(request, reply, 'text/plain', (await docs()).llms()))
  app.get('/docs/search', async (request, reply) => {
    const query = new URLSearchParams(rawQuery(request)).get('q') ?? ''
    return send(request, reply, 'text/html', (await docs()).search(query))
  })
  for (const path of ['/docs', '/docs.md', '/docs/api', '/docs/api.md'])
    app.get(path, (request, reply) => sendPage(request, reply, path))
  for (const folder of ['guides', 'reference', 'api'] as const)
    app.get(`/docs/${folder}/:name`, (request, reply) => {
      const { name } = request.params as { name: string } // As the path says.
      return sendPage(request, reply, `/docs/${folder}/${name}`)
    })
}
