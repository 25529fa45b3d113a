// The pages of the documentation: guides written in docs/guides, references, and the API from the OpenAPI document, all
// as Markdown. They are made on the server and are complete without a script, so they work everywhere and offline;
// agents read the Markdown itself.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ORIGIN } from '../../api/server/address.ts'
import type { EndpointSpec, JsonSchema } from '../../catalog/endpoint.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { DEFAULT_NAME } from '../../identity/branding/views.ts'
import { endpointPage, indexPage, TRY_IT, tagOf } from './endpoint-page.ts'
import { openapiDocument } from './openapi.ts'
import { type Listed, operationsOf } from './operation.ts'
import {
  type Brand,
  htmlOf,
  landingHtml,
  landingMarkdown,
  leadOf,
  type MenuGroup,
  page,
  type Section,
  searchHtml,
  searchSections,
  sectionsOf,
  tryHtml,
} from './page.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const DOCS = join(ROOT, 'docs')
const CONSOLE = join(ROOT, 'console')

interface Doc {
  readonly href: string
  readonly title: string
  readonly group: string
  readonly markdown: () => string
  /** What stands on the page besides, for people. */
  readonly extra?: () => string
}

/** Made when somebody first asks for it: all pages together would hold up the start, and most are never read. */
function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** Guides by reader. Their files are numbered in this order. */
const GROUPS = {
  Start: ['quick-start', 'sdks', 'typed-clients', 'sandbox'],
  'Call models': ['text', 'responses', 'media', 'embeddings-and-rerank', 'jobs-and-batches'],
  Data: ['data'],
  Agents: ['agents'],
  'Understand cost': ['billing', 'errors-and-limits', 'labels-and-budgets'],
  'For account owners': ['people'],
  'For finance': ['selling', 'exports'],
  'For operators': ['operating', 'vendors', 'routing', 'products', 'guardrails'],
  'Run it': ['production', 'backup-and-upgrade', 'runbooks'],
  'Move here': ['import'],
} as const satisfies Record<string, readonly string[]>

const GROUP_NAMES = Object.keys(GROUPS) as (keyof typeof GROUPS)[] // The names of an object that has these.

const groupOf = (name: string) => GROUP_NAMES.find((group) => GROUPS[group].some((one: string) => one === name)) ?? ''

/** Files are named `01-quick-start.md`, so they sort in order. */
function readFolder(folder: 'guides' | 'reference'): Doc[] {
  return readdirSync(join(DOCS, folder))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => {
      const text = readFileSync(join(DOCS, folder, file), 'utf8')
      const name = basename(file, '.md').replace(/^\d+-/, '')
      return {
        href: `/docs/${folder}/${name}`,
        title: /^# (.+)$/m.exec(text)?.[1] ?? file,
        group: folder === 'guides' ? groupOf(name) : 'Reference',
        markdown: () => text,
      }
    })
}

/**
 * The endpoints of a group stand in the menu only while one of them is read: all of them would be two hundred entries.
 */
function menuOf(docs: readonly Doc[], here?: Doc): MenuGroup[] {
  const links = (list: readonly Doc[]) => list.map(({ href, title }) => ({ href, title }))
  const siblings = docs.filter(({ group, href }) => group === here?.group && href.startsWith('/docs/api/'))
  return [
    // Readers of one endpoint look for its neighbours.
    ...(siblings.length > 0 && here ? [{ title: `Endpoints: ${here.group}`, links: links(siblings) }] : []),
    ...GROUP_NAMES.map((group) => ({ title: group, links: links(docs.filter((doc) => doc.group === group)) })),
    { title: 'API', links: [{ href: '/docs/api', title: 'All endpoints' }] },
    { title: 'Reference', links: links(docs.filter(({ group }) => group === 'Reference')) },
  ]
}

const LANDING: Doc = { href: '/docs', title: 'Documentation', group: '', markdown: landingMarkdown }

export type DocsOptions = Omit<Parameters<typeof openapiDocument>[0], 'endpoints'> & {
  /** Another list after each change. */
  readonly endpoints: () => readonly EndpointSpec[]
  /** Another object after each change. */
  readonly brand?: () => Brand
  /** For the prices of models; without it pages have none. */
  readonly catalog?: Pick<CatalogStore, 'current'>
}

function apiDocs(document: JsonSchema, listed: readonly Listed[], catalog: DocsOptions['catalog']): Doc[] {
  return [
    { href: '/docs/api', title: 'API reference', group: '', markdown: () => indexPage(listed, document) },
    ...listed.map((one) => ({
      href: one.href,
      title: one.operation.summary,
      group: tagOf(one),
      markdown: () => endpointPage(one, document, catalog?.current),
      extra: () => tryHtml(one, document),
    })),
  ]
}

const PLAIN: Brand = { name: DEFAULT_NAME, logo: null, support: null, links: [] }

/** Addresses of this server stand in the pages as ORIGIN. */
export function openDocs({ catalog, endpoints: listed, brand: branding = () => PLAIN, ...options }: DocsOptions) {
  const written = [...readFolder('guides'), ...readFolder('reference')]
  const made = new Map<string, { version: number | undefined; brand: Brand; html: string }>()

  /** All pages, for one list of endpoints. */
  function pagesFor(endpoints: readonly EndpointSpec[]) {
    const document = openapiDocument({ ...options, endpoints })
    const docs = [LANDING, ...written, ...apiDocs(document, operationsOf(document, endpoints), catalog)]
    const sections = once((): Section[] =>
      docs.slice(1).flatMap(({ href, title, markdown }) => sectionsOf(markdown(), title, href)),
    )
    return {
      endpoints,
      docs,
      sections,
      openapi: once(() => JSON.stringify(document)),
      llms: once(() => llmsText(docs)),
    }
  }

  let pages = pagesFor(listed())

  /** Made anew when the catalog has other products. */
  function current(): typeof pages {
    const endpoints = listed()
    if (endpoints !== pages.endpoints) pages = pagesFor(endpoints)
    return pages
  }

  function htmlPage(doc: Doc, brand: Brand): string {
    const { href, title, group, markdown, extra } = doc
    const folder = /^\/docs\/(guides|reference)\//.exec(href)?.[1] ?? 'guides'
    const body = doc === LANDING ? landingHtml(brand) : htmlOf(markdown(), folder)
    const whole = body.replace(TRY_IT, () => extra?.() ?? '')
    const menu = menuOf(current().docs, doc)
    return page({ brand, title, menu, here: href, body: whole, group: group || undefined, twin: true })
  }

  return {
    openapi: () => current().openapi(),
    /** The console's own palette, so that both look the same. */
    style: [join(CONSOLE, 'src/styles/tokens.css'), join(import.meta.dirname, 'docs.css')]
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n'),
    client: readFileSync(join(import.meta.dirname, 'docs-client.js')),
    theme: readFileSync(join(CONSOLE, 'public/theme.js')),
    mark: readFileSync(join(CONSOLE, 'public/mark.svg')),
    search(query: string): string {
      const { asked, found } = searchSections(current().sections(), query)
      const menu = menuOf(current().docs)
      const body = searchHtml(asked, found)
      return page({ brand: branding(), title: 'Search', menu, here: '/docs/search', body, query })
    },
    /**
     * By its address; undefined where there is none. Prices are those of the current catalog, and the head is the
     * current branding's.
     */
    html(href: string): string | undefined {
      const doc = current().docs.find((one) => one.href === href)
      if (!doc) return undefined
      const version = catalog?.current.version
      const brand = branding()
      const known = made.get(href)
      if (known && known.version === version && known.brand === brand) return known.html
      const html = htmlPage(doc, brand)
      made.set(href, { version, brand, html })
      return html
    },
    markdown: (href: string) =>
      current()
        .docs.find((one) => one.href === href)
        ?.markdown()
        .replace(`${TRY_IT}\n\n`, ''),
    llms: () => current().llms(),
  }
}

/** What agents read first: https://llmstxt.org. */
/** What a guide consists of, for those who look for one of its subjects. */
function partsOf(href: string, markdown: string): string {
  if (!href.startsWith('/docs/guides/')) return ''
  const parts = [...markdown.matchAll(/^## (.+)$/gm)].map(([, part]) => part)
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}

function llmsText(docs: readonly Doc[]): string {
  const groups = Map.groupBy(docs.slice(1), ({ group }) => group || 'API')
  const sections = [...groups].map(([group, list]) => {
    const lines = list.map(
      ({ href, title, markdown }) =>
        `- [${title}](${ORIGIN}${href}.md): ${leadOf(markdown())}${partsOf(href, markdown())}`,
    )
    return [`## ${group}`, lines.join('\n')].join('\n\n')
  })
  return [
    '# Tollgate',
    '> One key and one balance of credits in front of text, image and video models, social data and site analytics. Send `Authorization: Bearer <key>`; every paid answer says its cost in `x-tollgate-charge`.',
    `Every page of the documentation is Markdown at its address with .md, or for \`Accept: text/markdown\`. OpenAPI 3.1: ${ORIGIN}/openapi.json`,
    ...sections,
  ].join('\n\n')
}
