// Markdown is read by marked. A model's answer is somebody else's text, and a few kilobytes of `*a_` or `> ` keep any
// complete reader busy for minutes, so this file bounds what marked is given: short sections, few levels, few marks.
import { Lexer, type MarkedToken, type Token, Tokenizer } from 'marked'

const SECTION_CHARS_MAX = 8_000
const LEVELS_MAX = 8
const MARKS_MAX = 200

/**
 * Pieces that can be read on their own: fenced code, or what stands between blank lines. While an answer streams in
 * only the last one changes.
 */
export function sectionsOf(text: string): string[] {
  const sections: string[] = []
  let section = ''
  let fence = ''
  let before = ''
  const cut = () => {
    if (section.trim() !== '') sections.push(section)
    section = ''
  }
  for (const line of text.replaceAll(/\r\n?/g, '\n').split('\n')) {
    if (fence !== '') {
      section += `${line}\n`
      if (!line.trim().startsWith(fence) || line.trim().replaceAll(fence[0] ?? '', '') !== '') continue
      fence = ''
      cut()
      continue
    }
    fence = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1] ?? ''
    // Lists, quotes and indented lines belong to what stands above the blank line.
    const begins = before === '' && !/^(?:\s|$|[-*+>]|\d{1,9}[.)]\s)/.test(line)
    before = line.trim()
    if (fence !== '' || begins || section.length + line.length > SECTION_CHARS_MAX) cut()
    for (let at = 0; at === 0 || at < line.length; at += SECTION_CHARS_MAX) {
      if (at > 0) cut()
      section += line.slice(at, at + SECTION_CHARS_MAX)
    }
    section += '\n'
  }
  cut()
  return sections
}

export function blocksOf(section: string): MarkedToken[] {
  return known(new BoundedLexer().lex(section))
}

export function inlineOf(text: string): MarkedToken[] {
  return known(new BoundedLexer().inlineTokens(text))
}

/** The generic token stands for those of extensions, and there are none. */
export function known(tokens: Token[]): MarkedToken[] {
  return tokens as MarkedToken[]
}

/** The address of a link that may be followed. */
export function safeAddress(address: string): string | undefined {
  return /^(?:https?:\/\/|mailto:)\S+$/i.test(address) ? address : undefined
}

class BoundedLexer extends Lexer {
  constructor() {
    super({ gfm: true, tokenizer: new BoundedTokenizer() })
  }

  override inlineTokens(text: string, tokens: Token[] = []): Token[] {
    // Partners are sought for every mark, which takes time that grows with the cube of their number.
    if ((text.match(/[*_~`[\]<\\!&@]/g)?.length ?? 0) <= MARKS_MAX) return super.inlineTokens(text, tokens)
    tokens.push({ type: 'text', raw: text, text })
    return tokens
  }
}

class BoundedTokenizer extends Tokenizer {
  #level = 0

  override blockquote(text: string) {
    return this.#nested(() => super.blockquote(text))
  }

  override list(text: string) {
    return this.#nested(() => super.list(text))
  }

  #nested<T>(read: () => T): T | undefined {
    if (this.#level >= LEVELS_MAX) return undefined
    this.#level += 1
    try {
      return read()
    } finally {
      this.#level -= 1
    }
  }
}
