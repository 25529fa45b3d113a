// The documentation that the gateway serves: guides written in docs/guides, the API reference drawn from the OpenAPI
// document. Pages are made on the server and need no script, so they work everywhere and offline.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { marked } from 'marked'
import { Fault } from '../kernel/fault.ts'
import { escapeHtml, page, referenceBody } from './docs-page.ts'
import { openapiDocument } from './openapi.ts'

const DOCS = join(import.meta.dirname, '..', '..', 'docs')
const GUIDES = join(DOCS, 'guides')
const REFERENCE = join(DOCS, 'reference')

const CSP =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

interface Guide {
  readonly name: string
  readonly title: string
  readonly html: () => string
}

/** Made when somebody first asks for it: all pages together would hold up the start, and most are never read. */
function once(make: () => string): () => string {
  let made: string | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** Files are named `01-quick-start.md`, so that they stand in order. */
function readGuides(folder: string): Guide[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => {
      const text = readFileSync(join(folder, file), 'utf8')
      const title = /^# (.+)$/m.exec(text)?.[1] ?? file
      return {
        name: file.replace(/^\d+-/, '').replace(/\.md$/, ''),
        title,
        html: once(() => scrollable(withAddresses(marked.parse(text, { async: false, gfm: true }), basename(folder)))),
      }
    })
}

const LINK_TO_FILE = /href="(?:\.\.\/)?(?:(guides|reference)\/)?(?:\d+-)?([a-z-]+)\.md(#[\w-]+)?"/g

/** Pages link to one another as files, so that they read well in a repository too; here the files have addresses. */
function withAddresses(html: string, folder: string): string {
  return html.replaceAll(
    LINK_TO_FILE,
    (_link, other: string | undefined, name: string, at = '') => `href="/docs/${other ?? folder}/${name}${at}"`,
  )
}

/** Wide tables and code move inside their own frame, by touch and by keyboard, and not the page. */
function scrollable(html: string): string {
  return html
    .replaceAll('<table>', '<div class="scroll" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
    .replaceAll('<pre>', '<pre tabindex="0">')
}

export function mountDocs(app: FastifyInstance, options: Parameters<typeof openapiDocument>[0]): void {
  const json = once(() => JSON.stringify(openapiDocument(options)))
  const guides = readGuides(GUIDES)
  const reference = readGuides(REFERENCE)
  const menu = [
    { href: '/docs', title: 'Start' },
    { title: 'Guides' },
    ...guides.map(({ name, title }) => ({ href: `/docs/guides/${name}`, title })),
    { title: 'Reference' },
    { href: '/docs/api', title: 'Every operation' },
    ...reference.map(({ name, title }) => ({ href: `/docs/reference/${name}`, title })),
  ]
  const style = readFileSync(join(import.meta.dirname, 'docs.css'))

  const send = (reply: FastifyReply, html: string) =>
    reply
      .headers({
        'content-security-policy': CSP,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'public, max-age=300',
      })
      .type('text/html; charset=utf-8')
      .send(html)
  const show = (list: readonly Guide[], at: string) => {
    app.get(`${at}/:name`, (request, reply) => {
      const found = list.find(({ name }) => name === (request.params as { name: string }).name)
      if (!found) throw new Fault('not_found')
      return send(reply, page({ title: found.title, menu, here: `${at}/${found.name}`, body: found.html() }))
    })
  }

  app.get('/openapi.json', (_request, reply) =>
    reply.header('access-control-allow-origin', '*').type('application/json; charset=utf-8').send(json()),
  )
  app.get('/docs/style.css', (_request, reply) =>
    reply.type('text/css; charset=utf-8').header('cache-control', 'public, max-age=300').send(style),
  )
  const lines = menu.slice(1).map(({ href, title }) =>
    // A heading ends the list before it and begins the next; the first has none before it.
    href === undefined
      ? `</ul><h2>${escapeHtml(title)}</h2><ul class="index">`
      : `<li><a href="${href}">${escapeHtml(title)}</a></li>`,
  )
  const start = page({
    title: 'Documentation',
    menu,
    here: '/docs',
    body: `<h1>Tollgate documentation</h1><p>One key and one balance of credits in front of text, image and video models, social data and site analytics.</p>${lines.join('').slice('</ul>'.length)}</ul><p>The machine-readable description is at <a href="/openapi.json">/openapi.json</a>.</p>`,
  })
  app.get('/docs', (_request, reply) => send(reply, start))
  const api = once(() =>
    page({ title: 'API reference', menu, here: '/docs/api', body: referenceBody(openapiDocument(options)) }),
  )
  app.get('/docs/api', (_request, reply) => send(reply, api()))
  show(guides, '/docs/guides')
  show(reference, '/docs/reference')
}
