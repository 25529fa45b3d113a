// Strings that are as bad as can be for a regular expression, made from the expression itself: what leads up to each of
// its loops, then what goes round in the loop many times, then something that does not belong there.

/** One thing that a pattern matches: a character, a class, a group. */
interface Term {
  /** The shortest that it matches, more or less. */
  readonly sample: string
  /** The text of a character or class in the pattern; empty for others. */
  readonly token: string
  readonly loops: readonly Loop[]
}

interface Loop {
  /** What leads up to it. */
  readonly prefix: string
  /** What goes round in it. */
  readonly round: string
}

export type Attack = { readonly prefix: string; readonly pump: string; readonly suffix: string }

const CANDIDATES = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  'é',
  'É',
  '“',
  '”',
  '😀',
  '\u2028',
]
/** From here on a repetition is a loop. */
const MANY = 16
const CHARS_MAX = 14
const ANCHORS = /^(?:\^|\$|\\b|\\B)$/

export function attacksOn(pattern: RegExp): Attack[] {
  const reader = new Reader(pattern)
  const { loops } = reader.alternatives()
  const chars = reader.alphabet()
  const looped = chars.slice(0, 8)
  const rounds = new Set([...chars, ...looped.flatMap((a) => looped.map((b) => a + b))])
  for (const { prefix, round } of loops) {
    for (const text of [round, prefix, prefix + round]) if (text !== '') rounds.add(text)
    for (const char of looped) rounds.add(prefix + char)
  }
  const prefixes = new Set(['', ...loops.map(({ prefix }) => prefix)])
  const suffixes = new Set(['', '\n', '\0', chars[0] ?? '', chars.at(-1) ?? ''])
  const attacks: Attack[] = []
  for (const prefix of prefixes)
    for (const pump of rounds) for (const suffix of suffixes) attacks.push({ prefix, pump, suffix })
  return attacks
}

export function attackOf({ prefix, pump, suffix }: Attack, chars: number): string {
  return prefix + pump.repeat(Math.ceil(chars / pump.length)) + suffix
}

/** Reads a pattern from left to right. */
class Reader {
  readonly #source: string
  readonly #flags: string
  readonly #tokens = new Set<string>()
  readonly #inLoops = new Set<string>()
  #at = 0

  constructor({ source, flags }: RegExp) {
    this.#source = source
    this.#flags = flags.replaceAll(/[gy]/g, '')
  }

  /** One character for each set of classes that characters can belong to; those that loops go round with come first. */
  alphabet(): string[] {
    const tests = [...this.#tokens].map((token) => new RegExp(`^(?:${token})$`, this.#flags))
    const seen = new Map<string, string>()
    for (const char of CANDIDATES) {
      const kind = tests.map((test) => (test.test(char) ? 1 : 0)).join('')
      if (!seen.has(kind)) seen.set(kind, char)
    }
    const loops = [...this.#inLoops].map((token) => new RegExp(`^(?:${token})$`, this.#flags))
    const weight = (char: string) => -loops.filter((test) => test.test(char)).length
    return [...seen.values()].sort((a, b) => weight(a) - weight(b)).slice(0, CHARS_MAX)
  }

  alternatives(): Term {
    const parts = [this.#sequence()]
    while (this.#source[this.#at] === '|') {
      this.#at += 1
      parts.push(this.#sequence())
    }
    return { sample: parts[0]!.sample, token: '', loops: parts.flatMap(({ loops }) => loops) }
  }

  #sequence(): Term {
    let sample = ''
    const loops: Loop[] = []
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at]!)) {
      const before = sample
      const term = this.#term()
      const { least, most } = this.#quantifier()
      for (const { prefix, round } of term.loops) loops.push({ prefix: before + prefix, round })
      if (most >= MANY) {
        loops.push({ prefix: before, round: term.sample })
        if (term.token !== '') this.#inLoops.add(term.token)
      }
      sample += term.sample.repeat(Math.min(least, 64))
    }
    return { sample, token: '', loops }
  }

  #quantifier(): { least: number; most: number } {
    const [text = '', least, comma, most] = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})?/.exec(this.#source.slice(this.#at)) ?? []
    this.#at += text.length
    if (text !== '' && this.#source[this.#at] === '?') this.#at += 1
    if (text === '*') return { least: 0, most: Number.POSITIVE_INFINITY }
    if (text === '+') return { least: 1, most: Number.POSITIVE_INFINITY }
    if (text === '?') return { least: 0, most: 1 }
    if (least === undefined) return { least: 1, most: 1 }
    if (comma === '') return { least: Number(least), most: Number(least) }
    return { least: Number(least), most: most === '' ? Number.POSITIVE_INFINITY : Number(most) }
  }

  #term(): Term {
    if (this.#source[this.#at] === '(') return this.#group()
    const [token = ''] =
      /^(?:\[(?:[^\]\\]|\\.)*\]|\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\k<\w+>|\\.|[\s\S])/u.exec(
        this.#source.slice(this.#at),
      ) ?? []
    this.#at += token.length
    // A reference to a group repeats what the group had; its shortest text will do.
    if (ANCHORS.test(token) || /^\\(?:[1-9]|k)/.test(token)) return { sample: '', token: '', loops: [] }
    this.#tokens.add(token)
    const test = new RegExp(`^(?:${token})$`, this.#flags)
    return {
      sample:
        CANDIDATES.filter((char) => char > ' ').find((char) => test.test(char)) ??
        CANDIDATES.find((char) => test.test(char)) ??
        '',
      token,
      loops: [],
    }
  }

  #group(): Term {
    const [opening = '('] = /^\((?:\?(?:[:=!]|<[=!]|<\w+>))?/.exec(this.#source.slice(this.#at)) ?? []
    this.#at += opening.length
    const inside = this.alternatives()
    this.#at += 1
    return /^\(\?<?[=!]/.test(opening) ? { ...inside, sample: '' } : inside
  }
}
