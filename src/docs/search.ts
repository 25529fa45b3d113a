// Search over the documentation: sections of pages, found by their words. Made on the server, so that it works without a script.

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
    const text = part
      .replace(/^#+ .*$/m, '')
      .replaceAll(/<a id="[^"]{0,100}"><\/a>|[`*|#]+|\]\([^()]{0,300}\)|\[/g, ' ')
    const name = heading.replaceAll('`', '')
    return { href: heading ? `${href}#${slugOf(heading)}` : href, title: name ? `${title}: ${name}` : title, text }
  })
}

/** How well a word is met: 2 as it is, 1 as the beginning of one ("idempot"), 0 not at all. In the middle of a word it is another word. */
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
  const from = Math.max(0, at - EXCERPT_CHARS / 3)
  return `${from > 0 ? '… ' : ''}${spaced.slice(from, from + EXCERPT_CHARS)}${from + EXCERPT_CHARS < spaced.length ? ' …' : ''}`
}

export interface Found {
  readonly href: string
  readonly title: string
  readonly excerpt: string
}

/** What is asked, as it is looked for; and what is found, the best first. */
export function searchSections(sections: readonly Section[], query: string): { asked: string; found: Found[] } {
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
  const found = sections
    .map((section) => ({ section, rank: rank(section, words) }))
    .filter((one) => one.rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .slice(0, RESULTS_MAX)
    .map(({ section: { href, title, text } }) => ({ href, title, excerpt: excerpt(text, first) }))
  return { asked, found }
}
