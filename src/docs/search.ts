// Search over the documentation: sections of pages and operations, found by their words. Made on the server, so that it
// works without a script.
import { escapeHtml } from './page.ts'

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
export const slugOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/<[^<>]{0,200}>|&[a-z]{1,10};|[`'’]/g, '')
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-|-$/g, '')

/** The parts of a Markdown page between its headings. */
export function sectionsOf(markdown: string, title: string, href: string): Section[] {
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
export function searchBody(sections: readonly Section[], query: string): string {
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
