// Markdown into the HTML of the documentation.
import { Marked } from 'marked'
import { escapeHtml } from '../kernel/html.ts'
import { slugOf } from './search.ts'

/** Anchors and comments are all the HTML that pages hold: anything else in angle brackets is a word for a reader, such as <key>. */
const OWN_HTML = /^(?:<a id="[\w-]+">|<\/a>|<!--[\s\S]*?-->|<a id="[\w-]+"><\/a>)\s*$/
const marked = new Marked({
  gfm: true,
  renderer: {
    html: ({ text }) => (OWN_HTML.test(text) ? text : escapeHtml(text)),
    code({ text, lang = '' }) {
      const tab = /\btab=(\S+)/.exec(lang)?.[1]?.replaceAll('_', ' ')
      const attribute = tab === undefined ? '' : ` data-tab="${escapeHtml(tab)}"`
      return `<pre tabindex="0"${attribute}><code>${escapeHtml(text)}\n</code></pre>\n`
    },
  },
})

const LINK_TO_FILE = /href="(?:\.\.\/)?(?:(guides|reference)\/)?(?:\d+-)?([a-z-]+)\.md(#[\w-]+)?"/g

/** `folder`: where the page stands. Pages link to one another as files, so that they read well in a repository too; here the files have addresses. */
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

// Within them all angle brackets are escaped.
const TAB = /<pre tabindex="0" data-tab="([^"]*)">(<code>[^<]*<\/code>)<\/pre>\n/g
const RUN = /(?:<pre tabindex="0" data-tab="[^"]*"><code>[^<]*<\/code><\/pre>\n)+/g

/** Blocks that say the same in several languages lie on top of one another: the radio buttons of HTML, so no script is needed. */
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
export function headingsOf(html: string): { id: string; title: string }[] {
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
