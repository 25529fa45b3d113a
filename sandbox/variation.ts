// What a wire format leaves open, vendors do differently: the order of members, white space, members of their own, the
// borders of chunks.
import { isRecord, type Json, parseJson } from './json.ts'
import { type Dice, dice, hash } from './seed.ts'

/** Free text of callers and of models keeps its order. */
const OPAQUE: ReadonlySet<string> = new Set(['args', 'input', 'parameters', 'input_schema', 'schema', 'metadata'])

/** Members of the vendor's own, with names and words that stand elsewhere for something else. */
const OWN = {
  x_role: 'model',
  x_simulated: { model: 'not-the-model', delta: { content: 'not the text' }, finish_reason: 'stop' },
}

/** How one answer is written. */
export class Variation {
  readonly #dice: Dice
  readonly #order: number
  readonly #spaced: boolean
  readonly #own: 'first' | 'last' | 'none'

  constructor(seed: number) {
    this.#dice = dice(seed)
    this.#order = this.#dice.roll(3)
    this.#spaced = this.#dice.roll(2) === 0
    this.#own = this.#dice.pick(['first', 'last', 'none'])
  }

  /** The JSON of an answer or of an event. */
  json(value: unknown): string {
    if (!isRecord(value)) return this.#write(value)
    const own = 'error' in value || this.#own === 'none' ? {} : OWN
    return this.#write(
      this.#own === 'first' ? { ...own, ...this.#ordered(value) } : { ...this.#ordered(value), ...own },
    )
  }

  /** The frame of an event, with its data written in this way. */
  frame(frame: string): string {
    const [, head = '', data = ''] = /^((?:event: .*\n)?data: )(\{.*\})\n\n$/.exec(frame) ?? []
    const value = data === '' ? undefined : parseJson(data)
    return value === undefined ? frame : `${head}${this.json(value)}\n\n`
  }

  /** The bytes in one to three pieces. */
  pieces(bytes: Buffer): Buffer[] {
    const cuts = Array.from({ length: this.#dice.roll(3) }, () => this.#dice.roll(bytes.length + 1))
    const borders = [0, ...cuts.sort((a, b) => a - b), bytes.length]
    return borders.slice(1).map((end, index) => bytes.subarray(borders[index], end))
  }

  #ordered(value: Json): Json {
    const entries = Object.entries(value)
    if (this.#order === 1) entries.reverse()
    if (this.#order === 2) entries.sort(([a], [b]) => hash(a) - hash(b))
    return Object.fromEntries(
      entries.map(([name, member]) => [name, OPAQUE.has(name) ? member : this.#inside(member)] as const),
    )
  }

  #inside(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((entry) => this.#inside(entry))
    return isRecord(value) ? this.#ordered(value) : value
  }

  #write(value: unknown): string {
    if (!this.#spaced) return JSON.stringify(value)
    // No string contains the line breaks between members.
    return JSON.stringify(value, null, 1).replaceAll(/(,?)\n */g, ' $1 ')
  }
}
