// JSON as models write it, made into JSON as parsers read it: fences and words around it, other quotes, bare words,
// comments, missing or superfluous commas, and an end that is missing. One pass over a stranger's text, which is never
// read twice.
import { jsonIn } from '../json.ts'

const CHARS_MAX = 1_000_000
const DEPTH_MAX = 200
const QUOTES: Readonly<Record<string, string>> = { '"': '"', "'": "'", '“': '”', '‘': '’', '`': '`' }
const WORDS: Readonly<Record<string, string>> = {
  true: 'true',
  false: 'false',
  null: 'null',
  True: 'true',
  False: 'false',
  None: 'null',
  undefined: 'null',
  NaN: 'null',
}
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const SPACE = /\s/
/** What ends a word without quotes. */
const BREAK = /[\s,:{}[\]"“”]/

/**
 * The JSON in the text; undefined: there is none, or it cannot be made out. `opener`: how the value is expected to
 * begin.
 */
export function repairJson(text: string, opener: '{' | '[' = '{'): string | undefined {
  if (text.length > CHARS_MAX) return undefined
  const inFence = /```[a-zA-Z]{0,20}\s/.exec(text)
  const from = inFence ? inFence.index + inFence[0].length : 0
  const expected = text.indexOf(opener, from)
  const start = expected >= 0 ? expected : text.indexOf(opener === '{' ? '[' : '{', from)
  if (start < 0) return undefined
  const written = new Repair(text, start).value(0)
  return written !== undefined && isJson(written) ? written : undefined
}

/** Whether a text is one complete JSON value, neither truncated nor empty. */
export const isJson = (text: string) => jsonIn(text) !== undefined

class Repair {
  private readonly text: string
  private at: number

  constructor(text: string, at: number) {
    this.text = text
    this.at = at
  }

  /** Undefined: nothing stands here, or too deep within. */
  value(depth: number): string | undefined {
    this.skip()
    const first = this.text[this.at]
    if (first === undefined || depth > DEPTH_MAX) return undefined
    if (first === '{') return this.members(depth)
    if (first === '[') return this.items(depth)
    return Object.hasOwn(QUOTES, first) ? this.quoted() : this.bare()
  }

  private members(depth: number): string | undefined {
    this.at += 1
    const members: string[] = []
    for (;;) {
      this.skipMarks()
      const next = this.text[this.at]
      if (next === '}') this.at += 1
      if (next === undefined || next === '}' || next === ']') return `{${members.join(',')}}`
      const name = Object.hasOwn(QUOTES, next) ? this.quoted() : JSON.stringify(this.word())
      this.skip()
      if (this.text[this.at] === ':') this.at += 1
      else if (name === '""') return undefined
      this.skip()
      const isMissing = /^[,}\]]?$/.test(this.text[this.at] ?? '')
      const value = isMissing ? 'null' : this.value(depth + 1)
      if (value === undefined) return undefined
      members.push(`${name}:${value}`)
    }
  }

  private items(depth: number): string | undefined {
    this.at += 1
    const items: string[] = []
    for (;;) {
      this.skipMarks()
      const next = this.text[this.at]
      if (next === ']') this.at += 1
      if (next === undefined || next === ']' || next === '}') return `[${items.join(',')}]`
      const value = next === ':' ? undefined : this.value(depth + 1)
      if (value === undefined) return undefined
      items.push(value)
    }
  }

  /** Up to the quote that ends it: one behind which a value can end. */
  private quoted(): string {
    const { text } = this
    const close = QUOTES[text[this.at] ?? ''] ?? '"'
    let inside = ''
    for (this.at += 1; this.at < text.length; this.at += 1) {
      const letter = text[this.at] ?? ''
      if (letter === '\\' && this.at + 1 < text.length) {
        this.at += 1
        inside += this.escaped(text[this.at] ?? '')
      } else if (letter === close && this.endsHere()) {
        this.at += 1
        break
      } else inside += letter
    }
    return JSON.stringify(inside)
  }

  private escaped(letter: string): string {
    const code = letter === 'u' ? /^[0-9a-fA-F]{4}/.exec(this.text.slice(this.at + 1, this.at + 5))?.[0] : undefined
    if (code !== undefined) this.at += code.length
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16))
    return { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' }[letter] ?? letter
  }

  /** Whether a value may end at this quote: behind it comes a mark, a line's end or nothing. */
  private endsHere(): boolean {
    let next = this.at + 1
    while (next < this.text.length && SPACE.test(this.text[next] ?? '')) {
      if (this.text[next] === '\n') return true
      next += 1
    }
    return next >= this.text.length || /[,:}\]/`]/.test(this.text[next] ?? '')
  }

  private bare(): string {
    const word = this.word()
    if (Object.hasOwn(WORDS, word)) return WORDS[word] ?? 'null'
    return NUMBER.test(word) ? word : JSON.stringify(word)
  }

  private word(): string {
    const start = this.at
    while (this.at < this.text.length && !BREAK.test(this.text[this.at] ?? '')) this.at += 1
    // A mark that nothing begins with is passed over.
    if (this.at === start) this.at += 1
    return this.text.slice(start, this.at).replaceAll(/[,:{}[\]"“”]/g, '')
  }

  /** Past commas and dots that stand for more; a fence is the end. */
  private skipMarks(): void {
    const marks = () => (this.text[this.at] === ',' ? 1 : this.text.startsWith('...', this.at) ? 3 : 0)
    this.skip()
    for (let past = marks(); past > 0; past = marks()) {
      this.at += past
      this.skip()
    }
    if (this.text.startsWith('```', this.at)) this.at = this.text.length
  }

  /** Past white space and comments. */
  private skip(): void {
    const { text } = this
    for (;;) {
      while (this.at < text.length && SPACE.test(text[this.at] ?? '')) this.at += 1
      const end = text.startsWith('//', this.at) ? '\n' : text.startsWith('/*', this.at) ? '*/' : undefined
      if (end === undefined) return
      const found = text.indexOf(end, this.at + 2)
      this.at = found < 0 ? text.length : found + end.length
    }
  }
}
