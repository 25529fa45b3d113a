// The pages of the documentation: guides written in docs/guides, the API reference drawn from the OpenAPI document. They are
// made on the server and are complete without a script, so they work everywhere and offline.

import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Marked } from 'marked'
import { openapiDocument } from './openapi.ts'
import { escapeHtml, operationsOf, page, referenceBody } from './page.ts'

/** Anchors and comments are all the HTML that pages hold: anything else in angle brackets is a word for a reader, such as <key>. */
const OWN_HTML = /^(?:<a id="[\w-]+">|<\/a>|<!--[\s\S]*?-->|<a id="[\w-]+"><\/a>)\s*$/
const markdown = new Marked({
  gfm: true,
  renderer: { html: ({ text }) => (OWN_HTML.test(text) ? text : escapeHtml(text)) },
})

const DOCS = join(import.meta.dirname, '..', '..', 'docs')
const GUIDES = join(DOCS, 'guides')
const REFERENCE = join(DOCS, 'reference')

interface Guide {
  readonly name: string
  readonly title: string
  readonly html: () => string
  readonly sections: () => Section[]
}

/** Made when somebody first asks for it: all pages together would hold up the start, and most are never read. */
function once<T>(make: () => T): () => T {
  let made: T | undefined
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
      const name = file.replace(/^\d+-/, '').replace(/\.md$/, '')
      const html = () => withAddresses(markdown.parse(text, { async: false }), basename(folder))
      return {
        name,
        title,
        html: once(() => anchored(scrollable(html()))),
        sections: once(() => sectionsOf(text, title, `/docs/${basename(folder)}/${name}`)),
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

/** Headings can be linked to, by the same words as in a repository. */
function anchored(html: string): string {
  return html.replaceAll(/<h([234])>(.{0,300}?)<\/h\1>/g, (heading, level: string, inside: string) =>
    html.includes(`id="${slugOf(inside)}"`) ? heading : `<h${level} id="${slugOf(inside)}">${inside}</h${level}>`,
  )
}

/** The rest is for whoever writes programs. */
const FOR_OPERATORS: ReadonlySet<string> = new Set([
  'accounts-keys-people',
  'backup-and-upgrade',
  'cells',
  'citus',
  'connect-a-vendor',
  'high-availability',
  'import',
  'import-new-api',
  'operating',
  'production',
  'scaling',
  'vendor-credentials',
])

/** `endpoints` lists what the page of all operations shows in full. */
const menuOf = (guides: readonly Guide[], reference: readonly Guide[]) => {
  const links = (list: readonly Guide[], at: string) =>
    list.map(({ name, title }) => ({ href: `/docs/${at}/${name}`, title }))
  return [
    { href: '/docs', title: 'Start' },
    { title: 'Guides' },
    ...links(
      guides.filter(({ name }) => !FOR_OPERATORS.has(name)),
      'guides',
    ),
    { title: 'For operators' },
    ...links(
      guides.filter(({ name }) => FOR_OPERATORS.has(name)),
      'guides',
    ),
    { title: 'Reference' },
    { href: '/docs/api', title: 'Every operation' },
    ...links(
      reference.filter(({ name }) => name !== 'endpoints'),
      'reference',
    ),
  ]
}

const START = `<h1>Tollgate documentation</h1><p>One key and one balance of credits in front of text, image and video models, social data and site analytics.</p>
<ul class="index">
<li><a href="/docs/guides/quick-start">Quick start</a>: from nothing to the first answer, in a minute.</li>
<li><a href="/docs/guides/sdks">SDKs</a>: the ones that you know, with another address.</li>
<li><a href="/docs/guides/agents">Agents</a>: coding agents on these models, and tools for them.</li>
<li><a href="/docs/api">Every operation</a>: parameters, examples, answers, and a way into the playground.</li>
<li><a href="/docs/reference/errors">Error codes</a>: what each means and what to do.</li>
<li><a href="/docs/guides/operating">Operating</a>: running it for others.</li>
</ul><p>The machine-readable description is at <a href="/openapi.json">/openapi.json</a>.</p>`

/** Addresses of this server stand in the pages as ORIGIN. */
export function openDocs(options: Parameters<typeof openapiDocument>[0]) {
  const folders = { guides: readGuides(GUIDES), reference: readGuides(REFERENCE) }
  const { guides, reference } = folders
  const menu = menuOf(guides, reference)
  const sections = once(() => [
    ...operationsOf(openapiDocument(options)).map(({ path, method, operation }) => ({
      href: `/docs/api#${operation.operationId}`,
      title: `${method} ${path}: ${operation.summary}`,
      text: operation.description,
    })),
    ...[...guides, ...reference].flatMap((guide) => guide.sections()),
  ])
  return {
    openapi: once(() => JSON.stringify(openapiDocument(options))),
    style: readFileSync(join(import.meta.dirname, 'docs.css')),
    client: readFileSync(join(import.meta.dirname, 'docs-client.js')),
    start: page({ title: 'Documentation', menu, here: '/docs', body: START }),
    api: once(() =>
      page({ title: 'API reference', menu, here: '/docs/api', body: referenceBody(openapiDocument(options)) }),
    ),
    search: (query: string) =>
      page({ title: 'Search', menu, here: '/docs/search', body: searchBody(sections(), query), query }),
    /** Undefined where there is none of that name. */
    guide(folder: keyof typeof folders, name: string): string | undefined {
      const found = folders[folder].find((one) => one.name === name)
      return found && page({ title: found.title, menu, here: `/docs/${folder}/${name}`, body: found.html() })
    },
  }
}

// Search over the documentation: sections of pages and operations, found by their words. Made on the server, so that it
// works without a script.

interface Section {
  readonly href: string
  /** Of the page, and of the section where it is not the whole page. */
  readonly title: string
  readonly text: string
}

const WORDS_MAX = 8
const QUERY_CHARS_MAX = 100
const RESULTS_MAX = 30
const EXCERPT_CHARS = 180

/** As pages on the web write the anchors of their headings. */
const slugOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/<[^<>]{0,200}>|&[a-z]{1,10};|[`'’]/g, '')
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-|-$/g, '')

/** The parts of a Markdown page between its headings. */
function sectionsOf(markdown: string, title: string, href: string): Section[] {
  const parts = markdown.replaceAll(/<!--.{0,500}?-->/gs, '').split(/^(?=## )/m)
  return parts.map((part, index) => {
    const heading = index === 0 ? '' : (/^## (.*)$/m.exec(part)?.[1] ?? '')
    const text = part.replace(/^#+ .*$/m, '').replaceAll(/[`*|#]+|\]\([^()]{0,300}\)|\[/g, ' ')
    const name = heading.replaceAll('`', '')
    return { href: heading ? `${href}#${slugOf(heading)}` : href, title: name ? `${title}: ${name}` : title, text }
  })
}

function rank({ title, text }: Section, words: readonly string[]): number {
  const [heading, body] = [title.toLowerCase(), text.toLowerCase()]
  let sum = 0
  for (const word of words) {
    const [above, below] = [heading.includes(word), body.includes(word)]
    if (!above && !below) return 0
    sum += above ? 10 : 1
  }
  return sum
}

function excerpt(text: string, word: string): string {
  const plain = text.replaceAll(/\s+/g, ' ').trim()
  const at = plain.toLowerCase().indexOf(word)
  const from = Math.max(0, at - EXCERPT_CHARS / 3)
  return `${from > 0 ? '… ' : ''}${plain.slice(from, from + EXCERPT_CHARS)}${from + EXCERPT_CHARS < plain.length ? ' …' : ''}`
}

/** The body of the page that answers `query`. */
function searchBody(sections: readonly Section[], query: string): string {
  const asked = query.slice(0, QUERY_CHARS_MAX).trim()
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean).slice(0, WORDS_MAX)
  const found = sections
    .map((section) => ({ section, rank: words.length ? rank(section, words) : 0 }))
    .filter((one) => one.rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .slice(0, RESULTS_MAX)
  const items = found.map(
    ({ section: { href, title, text } }) =>
      `<li><a href="${escapeHtml(href)}">${escapeHtml(title)}</a><p>${escapeHtml(excerpt(text, words[0] ?? ''))}</p></li>`,
  )
  const none = words.length ? '<p>Nothing was found. Try fewer or other words.</p>' : '<p>Type a word above.</p>'
  return `<h1>Search${asked ? `: ${escapeHtml(asked)}` : ''}</h1>${items.length ? `<ul class="found">${items.join('')}</ul>` : none}`
}
