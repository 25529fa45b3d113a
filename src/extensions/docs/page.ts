// The HTML of the documentation's pages: the frame, the menu, the landing page, and the form that sends a request.
// Everything that comes from a document is escaped on its way in.

import { Marked } from 'marked'
import { exampleBody, isDataEndpoint, type JsonSchema } from '../../catalog/endpoint.ts'
import type { PublicBranding } from '../../identity/branding/views.ts'
import { escapeHtml } from '../../kernel/html.ts'
import { kindRow } from '../../meter/kind.ts'
import { highlighted } from './highlight.ts'
import { exampleOf, type Listed } from './operation.ts'
import { meantBy } from './synonyms.ts'

export interface MenuGroup {
  readonly title: string
  readonly links: readonly { readonly href: string; readonly title: string }[]
}

/** What the pages show of the operator's branding. */
export type Brand = Pick<PublicBranding, 'name' | 'logo' | 'support' | 'links'>

interface PageOptions {
  readonly brand: Brand
  readonly title: string
  readonly menu: readonly MenuGroup[]
  readonly here: string
  readonly body: string
  /** The group that it belongs to, named above its title. */
  readonly group?: string | undefined
  /** What was searched for, to go on from. */
  readonly query?: string
  /** It has a twin for agents at its address with .md. */
  readonly twin?: boolean
}

const MARK = `<svg class="mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect class="mark-ground" width="32" height="32" rx="8"/><path class="mark-gate" d="M9 25V12.5M9 17.5 25 8.5M23 25v-7"/><circle class="mark-lamp" cx="9" cy="9" r="2.2"/></svg>`

function menuHtml(menu: readonly MenuGroup[], here: string): string {
  const groups = menu.map(({ title, links }) => {
    const items = links.map(
      ({ href, title: text }) =>
        `<li><a href="${href}"${href === here ? ' aria-current="page"' : ''}>${escapeHtml(text)}</a></li>`,
    )
    return `<p class="nav-title">${escapeHtml(title)}</p><ul>${items.join('')}</ul>`
  })
  return `<nav aria-label="Documentation">${groups.join('')}</nav>`
}

function contentsHtml(body: string): string {
  const headings = headingsOf(body)
  if (headings.length < 2) return ''
  const items = headings.map(({ id, title }) => `<li><a href="#${id}">${title}</a></li>`)
  return `<aside aria-label="On this page"><p class="nav-title">On this page</p><ul>${items.join('')}</ul></aside>`
}

function brandHtml({ name, logo }: Brand): string {
  const mark = logo ? `<img class="mark" src="${escapeHtml(logo.url)}" alt="" height="24">` : MARK
  return `<a class="brand" href="/docs">${mark} ${escapeHtml(name)} <span>Docs</span></a>`
}

function contactHtml({ support, links }: Brand): string {
  const all = [
    ...(support === null ? [] : [{ label: support, url: `mailto:${support}` }]),
    ...links.map(({ label, url }) => ({ label, url })),
  ]
  return all.map(({ label, url }) => `<a href="${escapeHtml(url)}">${escapeHtml(label)}</a>`).join(' · ')
}

export function page({ brand, title, menu, here, body, group, query = '', twin = false }: PageOptions): string {
  const above = group === undefined ? '' : `<p class="crumb">${escapeHtml(group)}</p>`
  const machine = twin
    ? `<a href="${here}.md">This page as Markdown</a> · <a href="/llms.txt">llms.txt</a> · <a href="/openapi.json">OpenAPI</a>`
    : ''
  const foot = [contactHtml(brand), machine].filter(Boolean).join('<br>')
  const below = foot ? `<footer>${foot}</footer>` : ''
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · ${escapeHtml(brand.name)} docs</title>
${brand.logo ? `<link rel="icon" href="${escapeHtml(brand.logo.url)}">` : '<link rel="icon" href="/docs/mark.svg" type="image/svg+xml">'}
${twin ? `<link rel="alternate" type="text/markdown" href="${here}.md">\n` : ''}<link rel="stylesheet" href="/docs/style.css">
<link rel="stylesheet" href="/branding/style.css">
<script src="/docs/theme.js"></script>
<script type="module" src="/docs/client.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header>${brandHtml(brand)}<form action="/docs/search" role="search"><input type="search" name="q" aria-label="Search the documentation" placeholder="Search the docs" maxlength="100" value="${escapeHtml(query)}"></form><a class="console" href="/console">Console</a></header>
<div class="columns">
<input type="checkbox" id="menu" class="menu-switch"><label for="menu" class="menu-label">Menu</label>
${menuHtml(menu, here)}
<main id="content">${above}${body}${below}</main>
${contentsHtml(body)}
</div>
</body>
</html>`
}

interface Card {
  readonly title: string
  readonly text: string
  readonly href: string
}

/** The landing page: what people come for. */
const CARDS: readonly (readonly [group: string, cards: readonly Card[]])[] = [
  [
    'I want to…',
    [
      { title: 'Make a first call', text: 'From nothing to an answer in a minute.', href: '/docs/guides/quick-start' },
      {
        title: 'Use my SDK',
        text: 'OpenAI, Anthropic, Google and Vercel: only the address changes.',
        href: '/docs/guides/sdks',
      },
      {
        title: 'Stream an answer',
        text: 'Server-sent events in every text format.',
        href: '/docs/guides/text#streaming',
      },
      {
        title: 'Look something up',
        text: 'Every endpoint with examples, recorded answers and prices.',
        href: '/docs/api',
      },
      {
        title: 'Understand a charge',
        text: 'Holds, prices, and what a failed call costs.',
        href: '/docs/guides/billing',
      },
      { title: 'Fix an error', text: 'What each code means and what to do.', href: '/docs/reference/errors' },
    ],
  ],
  [
    'Build with',
    [
      {
        title: 'Tools and JSON',
        text: 'Tool calling, and answers that fit a schema.',
        href: '/docs/guides/text#tool-calling',
      },
      { title: 'Images, video and audio', text: 'Generate, edit, transcribe and speak.', href: '/docs/guides/media' },
      {
        title: 'Website and social data',
        text: 'Traffic, keywords, profiles and timelines.',
        href: '/docs/guides/data',
      },
      {
        title: 'Coding agents and MCP',
        text: 'One command sets up Claude Code, Codex, Cursor and others.',
        href: '/docs/guides/agents',
      },
    ],
  ],
  [
    'Run it for others',
    [
      {
        title: 'Connect a vendor',
        text: 'Credential, real test, models and prices in one go.',
        href: '/docs/guides/vendors',
      },
      { title: 'Operate', text: 'Accounts, keys, limits, catalog and alerts.', href: '/docs/guides/operating' },
      { title: 'Go to production', text: 'Postgres, TLS, backups and scaling.', href: '/docs/guides/production' },
      {
        title: 'Migrate',
        text: 'Take models, teams, budgets and keys from LiteLLM or new-api.',
        href: '/docs/guides/import',
      },
    ],
  ],
]

const LEAD =
  'One key and one balance of credits in front of text, image and video models, social data and site analytics.'

export function landingHtml({ name }: Brand): string {
  const sections = CARDS.map(([group, cards]) => {
    const items = cards.map(
      ({ title, text, href }) =>
        `<li><a class="card" href="${href}"><strong>${escapeHtml(title)}</strong><span>${escapeHtml(text)}</span></a></li>`,
    )
    return `<h2>${escapeHtml(group)}</h2><ul class="cards">${items.join('')}</ul>`
  })
  return `<h1>${escapeHtml(name)} documentation</h1><p class="lead">${LEAD}</p>${sections.join('')}`
}

export function landingMarkdown(): string {
  const sections = CARDS.map(([group, cards]) =>
    [`## ${group}`, cards.map(({ title, text, href }) => `- [${title}](${href}.md): ${text}`).join('\n')].join('\n\n'),
  )
  return ['# Tollgate documentation', LEAD, ...sections].join('\n\n')
}

export function searchHtml(asked: string, found: readonly SearchHit[]): string {
  const items = found.map(
    ({ href, title, excerpt }) =>
      `<li><a href="${escapeHtml(href)}">${escapeHtml(title)}</a><p>${escapeHtml(excerpt)}</p></li>`,
  )
  const none = asked ? '<p>No results. Try fewer or other words.</p>' : '<p>Type a word above.</p>'
  return `<h1>Search${asked ? `: ${escapeHtml(asked)}` : ''}</h1>${items.length ? `<ul class="found">${items.join('')}</ul>` : none}`
}

/** The tab of the playground that serves an operation, with the example filled in. */
function playgroundOf({ spec }: Listed): string | undefined {
  if (!spec?.sells || spec.tag === 'Products') return undefined
  if (isDataEndpoint(spec)) {
    const query = new URLSearchParams({ endpoint: spec.id })
    for (const [name, field] of Object.entries(spec.params)) if (field.required) query.append(name, field.example ?? '')
    return `${spec.id.startsWith('social') ? 'social' : 'analytics'}?${query}`
  }
  const tab = kindRow(spec.sells).tab ?? spec.sells
  const example = exampleBody(spec)
  const query = new URLSearchParams()
  for (const name of ['model', 'prompt', 'query']) if (name in example) query.set(name, String(example[name]))
  const texts = example.input ?? example.documents
  if (spec.sells === 'text') query.set('message', 'Say hello in three languages.')
  else if (texts !== undefined) query.set('text', [texts].flat().join('\n'))
  return `${tab}?${query}`
}

/**
 * A form that sends the request from this page with a pasted key. A script shows it and sends it: the key stays in the
 * tab's own storage and never gets into an address, so the field has no name.
 */
export function tryHtml(listed: Listed, document: JsonSchema): string {
  const { method, path, operation, spec } = listed
  if (!spec) return ''
  const played = playgroundOf(listed)
  const playground =
    played === undefined
      ? ''
      : `<p><a class="try" href="/console/try/${escapeHtml(played)}">Try it in the playground</a></p>`
  // A file is chosen there.
  if (spec.form) return playground
  const fields = operation.parameters
    .filter(({ in: place, required }) => required && place !== 'header')
    .map(({ name, in: place, schema, example }) => {
      const value = escapeHtml(String(example ?? exampleOf(schema, document, name)))
      return `<label class="try-field">${escapeHtml(name)}<input data-param="${escapeHtml(name)}" data-in="${place}" value="${value}" autocomplete="off"></label>`
    })
  const body = spec.body
    ? `<label class="try-field">Body<textarea data-body rows="8" spellcheck="false">${escapeHtml(JSON.stringify(exampleBody(spec), null, 2))}</textarea></label>`
    : ''
  return `<h2 id="try-it">Try it</h2>
<form class="try-form" data-method="${method}" data-path="${escapeHtml(path)}" hidden>
<p>Paste a key. It stays in this tab and is sent only to this gateway; a test key (<code>tg_test_…</code>) costs nothing.</p>
<label class="try-field">API key<input data-key type="password" autocomplete="off" spellcheck="false" placeholder="tg_test_…"></label>
${fields.join('\n')}${body}
<button type="submit">Send</button>
<div class="result" role="status" aria-live="polite"></div>
</form>
<noscript><p>Sending from this page needs JavaScript; the examples above do not.</p></noscript>
${playground}`
}

// Search over the documentation: sections of pages, found by their words. Made on the server, so that it works without
// a script.

export interface Section {
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
export function sectionsOf(markdown: string, title: string, href: string): Section[] {
  const parts = markdown.replaceAll(/<!--.{0,500}?-->/gs, '').split(/^(?=###? )/m)
  return parts.map((part, index) => {
    const heading = index === 0 ? '' : (/^###? (.*)$/m.exec(part)?.[1] ?? '')
    const text = part
      .replace(/^#+ .*$/m, '')
      .replaceAll(/<a id="[^"]{0,100}"><\/a>|[`*|#]+|\]\([^()]{0,300}\)|\[/g, ' ')
    const name = heading.replaceAll('`', '')
    return { href: heading ? `${href}#${slugOf(heading)}` : href, title: name ? `${title}: ${name}` : title, text }
  })
}

/**
 * How well a word is met: 2 as it is, 1 as the beginning of one ("idempot"), 0 not at all. In the middle of a word it
 * is another word.
 */
function met(word: string, { starts, whole }: Pattern, text: string): 0 | 1 | 2 {
  // Most texts hold it nowhere, which is found out faster.
  if (!text.includes(word)) return 0
  return whole.test(text) ? 2 : starts.test(text) ? 1 : 0
}

interface Pattern {
  readonly starts: RegExp
  readonly whole: RegExp
}

function patternOf(word: string): Pattern {
  const text = word.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  const before = '(?<![\\p{L}\\p{N}])'
  return { starts: new RegExp(before + text, 'u'), whole: new RegExp(`${before}${text}s?(?![\\p{L}\\p{N}])`, 'u') }
}

function rank({ title, text }: Section, words: ReadonlyMap<string, Pattern>): number {
  const [heading, body] = [title.toLowerCase(), text.toLowerCase()]
  let sum = 0
  for (const [word, pattern] of words) {
    const [above, below] = [met(word, pattern, heading), met(word, pattern, body)]
    if (above + below === 0) return 0
    sum += above * 10 + below
  }
  return sum
}

function excerpt(text: string, { starts }: Pattern): string {
  const spaced = text.replaceAll(/\s+/g, ' ').trim()
  const at = Math.max(0, spaced.toLowerCase().search(starts))
  // Whole words.
  const from = at <= EXCERPT_CHARS / 3 ? 0 : spaced.indexOf(' ', at - EXCERPT_CHARS / 3) + 1
  const end = from + EXCERPT_CHARS >= spaced.length ? spaced.length : spaced.lastIndexOf(' ', from + EXCERPT_CHARS)
  return `${from > 0 ? '… ' : ''}${spaced.slice(from, end)}${end < spaced.length ? ' …' : ''}`
}

interface SearchHit {
  readonly href: string
  readonly title: string
  readonly excerpt: string
}

/** What is asked, as it is looked for; and what is found, the best first. */
export function searchSections(sections: readonly Section[], query: string): { asked: string; found: SearchHit[] } {
  const asked = query.slice(0, QUERY_CHARS_MAX).trim()
  const words = new Map(
    asked
      .toLowerCase()
      .split(/[^\p{L}\p{N}_./-]+/u)
      .filter(Boolean)
      .slice(0, WORDS_MAX)
      .map((word) => [word, patternOf(word)]),
  )
  const [first] = words.values()
  if (!first) return { asked, found: [] }
  const meant = new Map([...words.keys()].map(meantBy).map((word) => [word, patternOf(word)]))
  const found = sections
    .map((section) => ({ section, rank: Math.max(rank(section, words), rank(section, meant)) }))
    .filter((one) => one.rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .slice(0, RESULTS_MAX)
    .map(({ section: { href, title, text } }) => ({ href, title, excerpt: excerpt(text, first) }))
  return { asked, found }
}

// Markdown into the HTML of the documentation.

/**
 * Anchors and comments are all the HTML that pages hold: anything else in angle brackets is a word for a reader, such
 * as <key>.
 */
const OWN_HTML = /^(?:<a id="[\w-]+">|<\/a>|<!--[\s\S]*?-->|<a id="[\w-]+"><\/a>)\s*$/
const marked = new Marked({
  gfm: true,
  renderer: {
    html: ({ text }) => (OWN_HTML.test(text) ? text : escapeHtml(text)),
    code({ text, lang = '' }) {
      const tab = /\btab=(\S+)/.exec(lang)?.[1]?.replaceAll('_', ' ')
      const attribute = tab === undefined ? '' : ` data-tab="${escapeHtml(tab)}"`
      return `<pre tabindex="0"${attribute}><code>${highlighted(text, lang.split(' ', 1)[0] ?? '')}\n</code></pre>\n`
    },
  },
})

const LINK_TO_FILE = /href="(?:\.\.\/)?(?:(guides|reference)\/)?(?:\d+-)?([a-z-]+)\.md(#[\w-]+)?"/g

/**
 * `folder`: where the page stands. Pages link to one another as files, so that they read well in a repository too; here
 * the files have addresses.
 */
export function htmlOf(text: string, folder: string): string {
  const html = marked
    .parse(text, { async: false })
    .replaceAll(
      LINK_TO_FILE,
      (_link, other: string | undefined, name: string, at = '') => `href="/docs/${other ?? folder}/${name}${at}"`,
    )
    // Wide tables move inside their own frame, by touch and by keyboard, and not the page.
    .replaceAll('<table>', '<div class="scroll" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
  return anchored(tabbed(html))
}

/** Headings can be linked to, by the same words as in a repository. */
function anchored(html: string): string {
  return html.replaceAll(/<h([234])>(.{0,300}?)<\/h\1>/g, (heading, level: string, inside: string) =>
    html.includes(`id="${slugOf(inside)}"`) ? heading : `<h${level} id="${slugOf(inside)}">${inside}</h${level}>`,
  )
}

// Within them all angle brackets are escaped, but for those of the colours.
const TAB = /<pre tabindex="0" data-tab="([^"]*)">(<code>(?:[^<]|<\/?span[^>]*>)*<\/code>)<\/pre>\n/g
const RUN = /(?:<pre tabindex="0" data-tab="[^"]*"><code>(?:[^<]|<\/?span[^>]*>)*<\/code><\/pre>\n)+/g

/**
 * Blocks that say the same in several languages lie on top of one another: the radio buttons of HTML, so no script is
 * needed.
 */
function tabbed(html: string): string {
  let sets = 0
  return html.replaceAll(RUN, (run) => {
    const set = `tabs-${++sets}`
    const tabs = [...run.matchAll(TAB)].map(([, label = '', inside = '']) => ({ label, inside }))
    const heads = tabs.map(
      ({ label }, index) =>
        `<input type="radio" name="${set}" id="${set}-${index}"${index === 0 ? ' checked' : ''}><label for="${set}-${index}">${label}</label>`,
    )
    const panels = tabs.map(({ inside }) => `<div class="panel"><pre tabindex="0">${inside}</pre></div>`)
    return `<div class="tabs" role="group" aria-label="Language">${heads.join('')}${panels.join('')}</div>\n`
  })
}

/** The headings of a page, for a list of what is on it. */
function headingsOf(html: string): { id: string; title: string }[] {
  return [...html.matchAll(/<h2 id="([^"]{1,200})">(.{0,300}?)<\/h2>/g)].map(([, id = '', title = '']) => ({
    id,
    title: title.replaceAll(/<[^<>]{0,200}>/g, ''),
  }))
}

/** The first sentence or two of a page, for lists of pages. */
export function leadOf(markdown: string): string {
  // The line below an operation's title is its method and path.
  const isProse = ({ type, raw }: { type: string; raw: string }) =>
    type === 'paragraph' && !/^(?:<|`[A-Z]+ \/)/.test(raw)
  const text = (marked.lexer(markdown).find(isProse)?.raw ?? '')
    .trim()
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\[([^[\]]{0,200})\]\([^()]{0,300}\)/g, '$1')
  return /^.{40,200}?[.!?](?= |$)/.exec(text)?.[0] ?? text.slice(0, 200)
}
