// Colours for the code of the documentation: comments, names of members, texts, numbers and keywords of the few languages that it shows.
import { escapeHtml } from '../../kernel/html.ts'

const LANGUAGES = ['sh', 'json', 'python', 'ts', 'js', 'go', 'yaml', 'toml', 'java', 'http']
const WORDS =
  'async|await|class|const|curl|def|else|export|false|for|from|func|function|if|import|in|let|new|None|npm|npx|null|print|return|True|False|true|type|var|while|with'

/** A comment begins a line or follows a space, so that neither an address nor an anchor is one. */
const TOKEN = new RegExp(
  [
    String.raw`(?<comment>(?<=^|\s)(?:#|//)[^\n]*)`,
    String.raw`(?<name>"(?:[^"\\\n]|\\.)*"(?=\s*:)|(?<=^\s*)[\w.-]+(?=:\s)|(?<=\s)--?[a-zA-Z][\w-]*)`,
    String.raw`(?<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`,
    String.raw`(?<number>(?<![\w.-])\d+(?:\.\d+)?(?![\w.-]))`,
    String.raw`(?<word>(?<![\w.$-])(?:${WORDS})(?![\w-]))`,
  ].join('|'),
  'gm',
)

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
