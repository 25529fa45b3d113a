// Redaction in both directions, without I/O. What patterns find in a request becomes a placeholder before a vendor sees
// it, and the placeholder becomes the text again in the answer. What patterns find in an answer becomes a placeholder
// for good.
import { editLeaves } from '../../kernel/json.ts'
import type { Pattern, Span } from './patterns.ts'

/**
 * Makes the placeholder of a text: always the same one within an account, so that vendors' prompt caches find the same
 * prompt.
 */
type PlaceholderOf = (label: string, secret: string, turn: number) => string

const PLACEHOLDER = /\[[A-Z][A-Z_]{0,19}_[0-9A-F]{12}\]/g
const PLACEHOLDER_CHARS_MAX = 36
const PLACEHOLDER_BEGUN = /^\[[A-Z_0-9]*$/
/** Released text that patterns may look back at. */
const CONTEXT_CHARS = 64
/** So little is searched with every piece. */
const EAGER_CHARS_MAX = 80
/** A match that is still growing is held back as far as this. */
const HELD_CHARS_MAX = 24_000

/** The texts of one call that were taken out of it, by their placeholders. */
export class Redacted {
  readonly secrets = new Map<string, string>()
  readonly #placeholderOf: PlaceholderOf

  constructor(placeholderOf: PlaceholderOf) {
    this.#placeholderOf = placeholderOf
  }

  /** The text as a vendor may see it. */
  hide(text: string, patterns: readonly Pattern[], found: (pattern: Pattern) => void = () => {}): string {
    const spans = spansOf(text, patterns)
    if (spans.length === 0) return text
    let out = ''
    let done = 0
    for (const { pattern = ANY, span } of spans) {
      out += text.slice(done, span[0]) + this.#keep(pattern.label, text.slice(...span))
      done = span[1]
      found(pattern)
    }
    return out + text.slice(done)
  }

  /** In place of what must not be seen, without a way back. */
  mark(label: string, secret: string): string {
    return this.#placeholderOf(label, secret, 0)
  }

  #keep(label: string, secret: string): string {
    for (let turn = 0; ; turn++) {
      const placeholder = this.#placeholderOf(label, secret, turn)
      const known = this.secrets.get(placeholder)
      if (known !== undefined && known !== secret) continue
      this.secrets.set(placeholder, secret)
      return placeholder
    }
  }
}

interface FoundSpan {
  /** Absent: it is a placeholder. */
  readonly pattern?: Pattern
  readonly span: Span
}

/** What any of the patterns finds. */
function spansOf(text: string, patterns: readonly Pattern[]): FoundSpan[] {
  const all: FoundSpan[] = []
  for (const pattern of patterns) for (const span of pattern.spans(text)) all.push({ pattern, span })
  return all.length > 1 ? withoutOverlaps(all) : all
}

/** Of what overlaps, the one that begins first; the rest of another that reaches further is hidden as well. */
function withoutOverlaps(all: FoundSpan[]): FoundSpan[] {
  all.sort(({ span: a }, { span: b }) => a[0] - b[0] || b[1] - a[1])
  const kept: FoundSpan[] = []
  let end = 0
  for (const { pattern = ANY, ...one } of all) {
    const { span } = one
    if (span[1] <= end) continue
    kept.push(span[0] >= end ? { ...one, ...(pattern === ANY ? {} : { pattern }) } : { pattern, span: [end, span[1]] })
    end = span[1]
  }
  return kept
}

const ANY: Pattern = { label: 'TEXT', rule: '', spans: () => [], openFrom: (text) => text.length }

// Requests. Everything is text to the vendor but what the format itself means something by.

const STRUCTURE = new Set([
  'type',
  'role',
  'model',
  'models',
  'object',
  'status',
  'format',
  'detail',
  'encoding_format',
])
/** Members that hold bytes, written as text. */
const OPAQUE = new Set([
  'signature',
  'thoughtSignature',
  'thought_signature',
  'encrypted_content',
  'data',
  'file_data',
  'b64_json',
  'partial_image_b64',
  'bytesBase64Encoded',
  'embedding',
  'result',
])
const ADDRESSED = new Set(['url', 'image_url', 'file_url', 'uri', 'fileUri', 'file_uri'])
/** Members that hold a tool's own JSON, in which no name means anything to the vendor. */
const FREE = new Set(['arguments', 'args', 'input', 'response', 'output', 'result', 'metadata', 'schema', 'parameters'])
const FILE = /^data:[\w.+/-]{1,100}(?:;[\w.+-]{1,40}=[\w.+-]{1,40}){0,3};base64,/
const NOT_ENCODED = /[^A-Za-z0-9+/=_-]/
const ENCODED_CHARS_MIN = 100
/** In a tool's own JSON such a name may mean anything. */
const ENCODED_CHARS_MIN_FREE = 1000
const WORD = /^[\w.:/-]{1,200}$/
const NUMBER_CHARS_MIN = 7

/**
 * Whether the format means something by the leaf at this place, so that it must stay. `isTool`: all of it is a tool's
 * own JSON.
 */
export function isStructure(leaf: string, path: readonly string[], isTool = false): boolean {
  const name = path.at(-1) ?? ''
  const isOpaque = OPAQUE.has(name)
  if ((isOpaque || ADDRESSED.has(name)) && isFile(leaf)) return true
  const charsMin = isTool || isFree(path) ? ENCODED_CHARS_MIN_FREE : ENCODED_CHARS_MIN
  if (isOpaque) return leaf.length >= charsMin && !NOT_ENCODED.test(leaf)
  if (isTool || isFree(path)) return false
  return (STRUCTURE.has(name) || isLabel(path)) && WORD.test(leaf)
}

function isFile(leaf: string): boolean {
  const start = FILE.exec(leaf)?.[0]
  return start !== undefined && !NOT_ENCODED.test(leaf.slice(start.length))
}

const isLabel = (path: readonly string[]) => /(?:^|_)(?:id|name)$/.test(path.at(-1) ?? '')

/** Inside a tool's own JSON; `input` and its like at the top of a request are the request's. */
const isFree = (path: readonly string[]) =>
  path.some((name, depth) => depth > 0 && depth < path.length - 1 && FREE.has(name))

/** Each text of a request exchanged; also those of JSON that stands in a text, as the arguments of tools do. */
export function editTexts(json: string, edit: (text: string, isLabel?: boolean) => string, isTool = false): string {
  return editLeaves(json, (leaf, path, kind) => {
    if (kind === 'string') {
      if (!isStructure(leaf, path, isTool)) return editText(leaf, edit)
      return isLabel(path) ? edit(leaf, true) : leaf
    }
    if (!(isTool || isFree(path)) || (kind === 'number' && leaf.length < NUMBER_CHARS_MIN)) return leaf
    return edit(leaf)
  })
}

/**
 * What is looked for in ids and names, most of which are made by chance: keys, and what is a number of somebody's as a
 * whole.
 */
export function forLabels(patterns: readonly Pattern[]): Pattern[] {
  const whole = ({ spans }: Pattern) =>
    function* (text: string) {
      for (const span of spans(text)) if (span[0] === 0 && span[1] === text.length) yield span
    }
  return patterns.flatMap((one) => {
    if (one.label === 'API_KEY') return [one]
    return one.label === 'CARD' || one.label === 'PHONE' ? [{ ...one, spans: whole(one) }] : []
  })
}

/** Members whose values are words of the formats. */
const SETTINGS = new Set([
  'models',
  'tool_choice',
  'reasoning_effort',
  'effort',
  'service_tier',
  'voice',
  'size',
  'quality',
  'style',
  'response_format',
  'output_format',
  'language',
  'verbosity',
  'truncation',
  'include',
  'modalities',
  'mode',
  'finish_reason',
  'stop_reason',
  'finishReason',
  'system_fingerprint',
  'modelVersion',
  'responseId',
  'ttl',
  'responseMimeType',
  'mimeType',
  'mime_type',
  'media_type',
  'role',
  'category',
  'threshold',
  'probability',
  'responseModalities',
  'aspect_ratio',
  'resolution',
  'background',
  'moderation',
  'timestamp_granularities[]',
])
const SETTING = /^[\w.:/-]{1,60}$/
const SCHEMA_TYPE = /^(?:object|string|number|integer|boolean|array|null)$/

function isSetting(leaf: string, path: readonly string[]): boolean {
  if (path.at(-1) === 'type' && SCHEMA_TYPE.test(leaf)) return true
  return !isFree(path) && SETTINGS.has(path.findLast((name) => name !== '') ?? '') && SETTING.test(leaf)
}

/** Each text exchanged that somebody may have said: what checks by others are about. */
export function editSaid(json: string, edit: (text: string) => string, isTool = false): string {
  return editLeaves(json, (leaf, path, kind) => {
    const isText = kind === 'string' && leaf !== '' && !isStructure(leaf, path, isTool)
    return isText && (isTool || !isSetting(leaf, path)) ? edit(leaf) : leaf
  })
}

function editText(text: string, edit: (text: string) => string): string {
  if (!isJson(text)) return edit(text)
  return editLeaves(text, (leaf, _, kind) => (kind === 'number' && leaf.length < NUMBER_CHARS_MIN ? leaf : edit(leaf)))
}

function isJson(text: string): boolean {
  if (!/^\s{0,20}[[{]/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

// Answers.

interface Rewriting {
  readonly redacted: Redacted
  readonly patterns: readonly Pattern[]
  /** The text is JSON: what is put into it is quoted as that asks for. */
  readonly isJson: boolean
  readonly found: (pattern: Pattern) => void
}

/**
 * One text of an answer, piece by piece: placeholders become what they stand for, and what the patterns find becomes a
 * placeholder.
 */
export class Rewriter {
  readonly #by: Rewriting
  /** The end of what was released, and what was not. */
  #before = ''
  #held = ''
  #quoted = false
  #escaped = false
  #lookAt = 0

  constructor(by: Rewriting) {
    this.#by = by
  }

  get holds(): boolean {
    return this.#held !== ''
  }

  push(piece: string): string {
    this.#held += piece
    return this.#held.length < this.#lookAt ? '' : this.#release(false)
  }

  end(): string {
    return this.#held === '' ? '' : this.#release(true)
  }

  #release(all: boolean): string {
    const text = this.#before + this.#held
    const from = this.#before.length
    const found = this.#found(text, from)
    let to = all ? text.length : Math.max(from, this.#openFrom(text))
    const crossing = found.find(({ span }) => span[0] < to && span[1] > to)
    // Whole or not at all, unless it does not end.
    if (crossing) to = text.length - crossing.span[0] > HELD_CHARS_MAX ? crossing.span[1] : crossing.span[0]
    let out = ''
    let done = from
    for (const one of found) {
      if (one.span[0] >= to) break
      out += this.#plain(text.slice(done, one.span[0])) + this.#put(one, text.slice(...one.span))
      done = one.span[1]
    }
    out += this.#plain(text.slice(done, to))
    this.#before = text.slice(Math.max(0, to - CONTEXT_CHARS), to)
    this.#held = text.slice(to)
    // What is held back is searched again only when it has grown by a part of itself, or a long one would cost its
    // square.
    const { length } = this.#held
    this.#lookAt = length < EAGER_CHARS_MAX ? 0 : length + length / 2
    return out
  }

  #found(text: string, from: number): FoundSpan[] {
    const { redacted, patterns } = this.#by
    const restored: FoundSpan[] = []
    if (redacted.secrets.size > 0)
      for (const { index, 0: placeholder } of text.matchAll(PLACEHOLDER))
        if (redacted.secrets.has(placeholder)) restored.push({ span: [index, index + placeholder.length] })
    // What a placeholder stands for is the caller's own, and its letters are nobody's.
    const blank = (all: string) => (redacted.secrets.has(all) ? '\0'.repeat(all.length) : all)
    const searched = restored.length > 0 && patterns.length > 0 ? text.replaceAll(PLACEHOLDER, blank) : text
    const all = patterns.length === 0 ? restored : withoutOverlaps([...restored, ...spansOf(searched, patterns)])
    return all.flatMap((one) =>
      one.span[1] <= from ? [] : [{ ...one, span: [Math.max(one.span[0], from), one.span[1]] as const }],
    )
  }

  #put({ pattern = ANY }: FoundSpan, what: string): string {
    const { redacted, isJson, found } = this.#by
    const secret = pattern === ANY ? redacted.secrets.get(what) : undefined
    if (secret !== undefined) return isJson ? JSON.stringify(secret).slice(1, -1) : secret
    found(pattern)
    const mark = redacted.mark(pattern.label, what)
    return isJson && !this.#quoted ? `"${mark}"` : mark
  }

  /** Of JSON it is remembered whether a string is open. */
  #plain(text: string): string {
    if (this.#by.isJson && this.#by.patterns.length > 0)
      for (const character of text) {
        if (this.#escaped) this.#escaped = false
        else if (character === '\\') this.#escaped = true
        else if (character === '"') this.#quoted = !this.#quoted
      }
    return text
  }

  #openFrom(text: string): number {
    const { redacted, patterns } = this.#by
    let from = text.length
    for (const pattern of patterns) from = Math.min(from, pattern.openFrom(text))
    from = Math.max(from, text.length - HELD_CHARS_MAX)
    const bracket = redacted.secrets.size > 0 ? text.lastIndexOf('[') : -1
    if (bracket >= text.length - PLACEHOLDER_CHARS_MAX && PLACEHOLDER_BEGUN.test(text.slice(bracket)))
      from = Math.min(from, bracket)
    return from
  }
}
