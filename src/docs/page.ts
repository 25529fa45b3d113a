// The HTML of the documentation's pages: the frame, the menu, the landing page, and the form that sends a request. Everything that comes
// from a document is escaped on its way in.
import type { PublicBranding } from '../branding/views.ts'
import { exampleBody, isDataEndpoint, type JsonSchema } from '../catalog/endpoint.ts'
import { escapeHtml } from '../kernel/html.ts'
import { kindRow } from '../meter/kind.ts'
import { headingsOf } from './markdown.ts'
import { exampleOf, type Listed } from './operation.ts'
import type { Found } from './search.ts'

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
      { title: 'Stream an answer', text: 'Server-sent events in every text format.', href: '/docs/guides/streaming' },
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
        href: '/docs/guides/tool-calling',
      },
      { title: 'Images, video and audio', text: 'Generate, edit, transcribe and speak.', href: '/docs/guides/images' },
      {
        title: 'Website and social data',
        text: 'Traffic, keywords, profiles and timelines.',
        href: '/docs/guides/site-analytics',
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
        href: '/docs/guides/connect-a-vendor',
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

export function searchHtml(asked: string, found: readonly Found[]): string {
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
 * A form that sends the request from this page with a pasted key. A script shows it and sends it: the key stays in the tab's own storage and
 * never gets into an address, so the field has no name.
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
