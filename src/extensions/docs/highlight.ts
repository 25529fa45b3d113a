// Colours for the code of the documentation: comments, names of members, texts, numbers and keywords of the few
// languages that it shows.
import { escapeHtml } from '../../kernel/html.ts'

const LANGUAGES = ['sh', 'json', 'python', 'ts', 'js', 'go', 'yaml', 'toml', 'java', 'http']

/** A comment begins a line or follows a space, so that neither an address nor an anchor is one. */
const KINDS = [
  /(?<comment>(?<=^|\s)(?:#|\/\/)[^\n]*)/,
  /(?<name>"(?:[^"\\\n]|\\.){0,200}"(?=\s?:)|(?<=^ {0,20})[\w.-]{1,60}(?=:\s)|(?<=\s)--?[a-zA-Z][\w-]*)/,
  /(?<text>"(?:[^"\\\n]|\\.){0,200}"|'(?:[^'\\]|\\.){0,200}')/,
  /(?<number>(?<![\w.-])\d+(?:\.\d+)?(?![\w.-]))/,
  /(?<word>(?<![\w.$-])(?:async|await|class|const|curl|def|else|export|for|from|func|function|if|import)(?![\w-]))/,
  /(?<value>(?<![\w.$-])(?:false|true|null|None|True|False|in|let|new|npm|npx|print|return|type|var|with)(?![\w-]))/,
]
const TOKEN = new RegExp(KINDS.map(({ source }) => source).join('|'), 'gm')

/** As HTML; in a language that is not known, as it is. */
export function highlighted(code: string, language: string): string {
  if (!LANGUAGES.includes(language)) return escapeHtml(code)
  let [html, end] = ['', 0]
  for (const found of code.matchAll(TOKEN)) {
    const [kind] = Object.entries(found.groups ?? {}).find(([, text]) => text !== undefined) ?? []
    html += `${escapeHtml(code.slice(end, found.index))}<span class="hl-${kind}">${escapeHtml(found[0])}</span>`
    end = found.index + found[0].length
  }
  return html + escapeHtml(code.slice(end))
}
