// Untrusted regular expressions: one is used only if no text can make it slow. The engine backtracks over all ways
// through a pattern, so the ways are counted.

/** Longer texts are left to the vendor. */
export const PATTERN_TEXT_MAX = 256
const WAYS_MAX = 10_000
const PATTERN_CHARS_MAX = 300

/**
 * A pattern that could be slow, or is not valid in JavaScript, is left to the vendor, or rejected if the operator wrote
 * it.
 */
export function isQuickPattern(pattern: string): boolean {
  // Backreferences and lookarounds read the text again, however few ways there are.
  if (pattern.length > PATTERN_CHARS_MAX || /\\[1-9k]|\(\?[=!<]/.test(pattern)) return false
  try {
    new RegExp(pattern, 'u')
  } catch {
    return false
  }
  const { ways, isAnchored } = new Ways(pattern).count()
  return ways * (isAnchored ? 1 : PATTERN_TEXT_MAX) <= WAYS_MAX
}

/** The ways through a valid pattern: a choice adds them, a sequence multiplies them, and a repetition does both. */
class Ways {
  readonly #pattern: string
  #at = 0

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  count(): { ways: number; isAnchored: boolean } {
    const { ways, choices } = this.#choices()
    return { ways, isAnchored: this.#pattern.startsWith('^') && choices === 1 }
  }

  #choices(): { ways: number; choices: number } {
    let [ways, choices, row] = [0, 1, 1]
    for (; this.#at < this.#pattern.length && this.#pattern[this.#at] !== ')'; ) {
      if (this.#pattern[this.#at] === '|') {
        ;[ways, choices, row] = [ways + row, choices + 1, 1]
        this.#at += 1
      } else row *= this.#repeated(this.#one())
    }
    return { ways: ways + row, choices }
  }

  /** A group, a class or a character. */
  #one(): number {
    const char = this.#pattern[this.#at++]
    if (char === '\\') this.#at += 1
    if (char === '[') this.#skipClass()
    if (char !== '(') return 1
    // Groups without a number, with or without flags.
    if (this.#pattern[this.#at] === '?') this.#at = this.#pattern.indexOf(':', this.#at) + 1
    const { ways } = this.#choices()
    this.#at += 1
    return ways
  }

  #skipClass(): void {
    while (this.#at < this.#pattern.length && this.#pattern[this.#at] !== ']')
      this.#at += this.#pattern[this.#at] === '\\' ? 2 : 1
    this.#at += 1
  }

  #repeated(ways: number): number {
    const rest = this.#pattern.slice(this.#at)
    const [all, sign, from = '', comma, to = ''] = /^(?:([*+?])|\{(\d{1,15})(?:(,)(\d{0,15}))?\})\??/.exec(rest) ?? []
    if (all === undefined) return ways
    this.#at += all.length
    const least = sign === undefined ? Number(from) : sign === '+' ? 1 : 0
    const most = sign === '?' ? 1 : sign !== undefined || (comma && to === '') ? Infinity : comma ? Number(to) : least
    // A repetition of one thing with one way has one way per count.
    if (ways === 1) return Math.min(most - least + 1, PATTERN_TEXT_MAX)
    let sum = 0
    for (let times = least; times <= most && sum <= WAYS_MAX; times++) sum += ways ** times
    return sum
  }
}
