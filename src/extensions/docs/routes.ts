// The documentation that the gateway serves. Its pages, the library that makes them of their texts, and the description
// of the API are loaded when somebody first asks: most processes are never asked.
import { ORIGIN } from '../../api/server/address.ts'
import { rawQuery, type WebServer } from '../../api/server/server.ts'
import type { WebAnswer, WebRequest } from '../../api/server/web.ts'
import { Fault } from '../../kernel/fault.ts'
import type { DocsOptions, openDocs } from './docs.ts'

const CSP =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
type Docs = ReturnType<typeof openDocs>

/** Names and addresses only: nothing of a header that is not an address gets into a page. */
const HOST = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/**
 * The configured address; without one, the address that this reader used, which is nobody else's: a shared cache must
 * not keep it.
 */
function originOf(request: WebRequest, configured: string): { origin: string; isShared: boolean } {
  if (/^https?:/.test(configured)) return { origin: new URL(configured).origin, isShared: true }
  const { host } = request.headers
  const protocol = request.isHttps ? 'https' : 'http'
  return { origin: host !== undefined && HOST.test(host) ? `${protocol}://${host}` : ORIGIN, isShared: false }
}

/** A reader that names Markdown and not HTML. */
function wantsMarkdown({ headers: { accept = '' } }: WebRequest): boolean {
  return /\btext\/(?:x-)?markdown\b/i.test(accept) && !/\btext\/html\b/i.test(accept)
}

export function mountDocs(app: WebServer, options: DocsOptions): void {
  let opened: Promise<Docs> | undefined
  const docs = () => {
    opened ??= import('./docs.ts').then(({ openDocs }) => openDocs(options))
    return opened
  }
  const page = (request: WebRequest, type: string, text: string | undefined): WebAnswer => {
    if (text === undefined) throw new Fault('not_found')
    const { origin, isShared } = originOf(request, options.serverUrl)
    const headers = {
      'content-type': `${type}; charset=utf-8`,
      'content-security-policy': CSP,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': `${isShared ? 'public' : 'private'}, max-age=300`,
      vary: 'accept',
    }
    return { headers, body: text.replaceAll(ORIGIN, origin) }
  }
  const pageAt = async (request: WebRequest, address: string) => {
    const pages = await docs()
    const named = address.replace(/\.md$/, '')
    if (named !== address || wantsMarkdown(request)) return page(request, 'text/markdown', pages.markdown(named))
    return page(request, 'text/html', pages.html(address))
  }

  app.get('/openapi.json', async () => ({
    headers: { 'content-type': 'application/json; charset=utf-8', 'access-control-allow-origin': '*' },
    body: (await docs()).openapi(),
  }))
  const files = {
    '/docs/style.css': ['text/css', 'style'],
    '/docs/client.js': ['text/javascript', 'client'],
    '/docs/theme.js': ['text/javascript', 'theme'],
    '/docs/mark.svg': ['image/svg+xml', 'mark'],
  } as const
  for (const [path, [type, name]] of Object.entries(files))
    app.get(path, async () => ({
      headers: { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'public, max-age=300' },
      body: (await docs())[name],
    }))
  app.get('/llms.txt', async (request) => page(request, 'text/plain', (await docs()).llms()))
  app.get('/docs/search', async (request) => {
    const query = new URLSearchParams(rawQuery(request)).get('q') ?? ''
    return page(request, 'text/html', (await docs()).search(query))
  })
  for (const path of ['/docs', '/docs.md', '/docs/api', '/docs/api.md'])
    app.get(path, (request) => pageAt(request, path))
  for (const folder of ['guides', 'reference', 'api'] as const)
    app.get(`/docs/${folder}/{name}`, (request) => pageAt(request, `/docs/${folder}/${request.params.name}`))
}
