// A caller's JSON body, read once: the value for validation, and where each top-level member stands in the raw text, so
// that a body can be forwarded with single members exchanged and every other byte as the caller sent it.
import { isAscii, isUtf8 } from 'node:buffer'
import { Fault, invalid } from './fault.ts'

const DEPTH_MAX = 64
/** Members, elements and containers together. An honest conversation has thousands; a million stalls JSON.parse. */
const VALUES_MAX = 250_000
/** In one object: V8 keeps larger ones as hash tables, which are slow to fill. */
const MEMBERS_MAX = 20_000
/** Up to here a linear search for a repeated key is quicker than a Set. */
const LINEAR_KEYS_MAX = 12

export type Json = Record<string, unknown>

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export interface JsonText {
  /** Without the byte order mark. */
  readonly text: string
  readonly value: Record<string, unknown>
  /** Where the value of a top-level member stands in `text`; undefined when there is no such member. */
  member(name: string): readonly [start: number, end: number] | undefined
}

interface Member {
  readonly keyStart: number
  readonly start: number
  end: number
}

type Members = ReadonlyMap<string, Member>

class ReadText implements JsonText {
  readonly text: string
  readonly value: Record<string, unknown>
  readonly members: Members

  constructor(text: string, value: Record<string, unknown>, members: Members) {
    this.text = text
    this.value = value
    this.members = members
  }

  member(name: string): readonly [number, number] | undefined {
    const found = this.members.get(name)
    return found && [found.start, found.end]
  }
}

/** Reads a body strictly: UTF-8, an object at the top, no repeated key anywhere, bounded depth and size. */
export function readJson(bytes: Buffer): JsonText {
  const text = decode(bytes)
  // The scan comes first: it refuses in linear time what would make the parser slow.
  const members = scan(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'it cannot be read'
    throw new Fault('request_invalid', { message: `The body is not valid JSON: ${why}`, cause })
  }
  return new ReadText(text, value as Record<string, unknown>, members)
}

function decode(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString('latin1')
  if (!isUtf8(bytes)) throw invalid('The body is not valid UTF-8.')
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return bytes.toString('utf8', marked ? 3 : 0)
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OBJECT_OPEN = 0x7b
const OBJECT_CLOSE = 0x7d
const ARRAY_OPEN = 0x5b
const ARRAY_CLOSE = 0x5d

/** The index of the quote that closes the string opened at `open`, or -1. */
function closingQuote(text: string, open: number): number {
  let at = open
  for (;;) {
    at = text.indexOf('"', at + 1)
    if (at < 0) return -1
    let before = at - 1
    while (text.charCodeAt(before) === BACKSLASH) before--
    // An even number of backslashes escape each other; runs never overlap, so this stays linear.
    if ((at - before) % 2 === 1) return at
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

/** The keys of one open object. */
class Keys {
  private few: string[] = []
  private many: Set<string> | undefined

  clear(): void {
    // A long list would be kept for ever, and what it held with it.
    if (this.many) this.few = []
    else this.few.length = 0
    this.many = undefined
  }

  /** False when the key was there already. */
  add(key: string): boolean {
    if (this.many) {
      if (this.many.has(key)) return false
      this.many.add(key)
      if (this.many.size > MEMBERS_MAX) throw invalid(`The body holds an object with more than ${MEMBERS_MAX} members.`)
      return true
    }
    if (this.few.includes(key)) return false
    this.few.push(key)
    if (this.few.length > LINEAR_KEYS_MAX) this.many = new Set(this.few)
    return true
  }
}

/** By depth, for one scan after the other: nobody else runs while one does. */
const inObject: boolean[] = [false]
const keys: Keys[] = []

/**
 * One pass over the text that jumps from quote to quote. It trusts nothing but needs to be right only for valid JSON:
 * whatever else comes is refused by the parser afterwards.
 */
function scan(text: string): Members {
  const members = new Map<string, Member>()
  const length = text.length
  let depth = 0
  let values = 0
  let keyNext = false
  let open: Member | undefined
  let at = 0
  while (at < length && isSpace(text.charCodeAt(at))) at++
  if (at === length) throw invalid('The body is empty; send a JSON object.')
  if (text.charCodeAt(at) !== OBJECT_OPEN) throw invalid('The body must be a JSON object.')
  for (; at < length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = closingQuote(text, at)
        if (end < 0) return members
        if (keyNext) {
          keyNext = false
          const key = readKey(text.slice(at + 1, end))
          if (key === '__proto__') throw invalid('The body must not hold a member named "__proto__".')
          if (!keys[depth]!.add(key))
            throw invalid(`The body holds the member ${JSON.stringify(key.slice(0, 100))} twice in one object.`)
          let start = end + 1
          while (isSpace(text.charCodeAt(start))) start++
          if (text.charCodeAt(start) !== COLON) return members
          start++
          while (isSpace(text.charCodeAt(start))) start++
          if (depth === 1) {
            open = { keyStart: at, start, end: start }
            members.set(key, open)
          }
          at = start - 1
        } else at = end
        break
      }
      case OBJECT_OPEN:
      case ARRAY_OPEN: {
        depth++
        values++
        if (depth > DEPTH_MAX) throw invalid(`The body is nested more than ${DEPTH_MAX} levels deep.`)
        keyNext = text.charCodeAt(at) === OBJECT_OPEN
        inObject[depth] = keyNext
        if (keyNext) {
          const reused = keys[depth]
          if (reused) reused.clear()
          else keys[depth] = new Keys()
        }
        break
      }
      case OBJECT_CLOSE:
      case ARRAY_CLOSE:
        if (depth === 1) closeMember(text, open, at)
        keyNext = false
        depth--
        if (depth <= 0) return members
        break
      case COMMA:
        values++
        if (values > VALUES_MAX) throw invalid(`The body holds more than ${VALUES_MAX} values.`)
        keyNext = inObject[depth] === true
        if (depth === 1) closeMember(text, open, at)
        break
    }
  }
  return members
}

function closeMember(text: string, member: Member | undefined, at: number): void {
  if (!member) return
  let end = at
  while (end > member.start && isSpace(text.charCodeAt(end - 1))) end--
  member.end = end
}

function readKey(raw: string): string {
  if (!raw.includes('\\')) return raw
  let key: string
  try {
    key = JSON.parse(`"${raw}"`) as string
  } catch {
    return raw // The parser will refuse the whole body for the same reason.
  }
  // V8 takes the name x" for x\ once it has seen an object with the latter: what we check would not be what we forward.
  if (/["\\]$/.test(key)) throw invalid('The body must not hold a member whose name ends with a quote or a backslash.')
  return key
}

/** Top-level edits; the texts given are JSON. */
interface JsonEdits {
  /** Exchanges the value of a member that is there. */
  readonly replace?: Readonly<Record<string, string>>
  /** Adds a member that is not there. */
  readonly add?: Readonly<Record<string, string>>
  readonly remove?: readonly string[]
}

/** The body's text with some top-level members edited, and every other character as it was. */
export function splice(json: JsonText, edits: JsonEdits): string {
  if (!(json instanceof ReadText)) throw new TypeError('splice needs a body that readJson has read')
  const { text, members } = json
  const cuts: { from: number; to: number; put: string }[] = []
  for (const name in edits.replace) {
    const member = members.get(name)
    if (member) cuts.push({ from: member.start, to: member.end, put: edits.replace[name]! })
  }
  let left = members.size
  if (edits.remove?.some((name) => members.has(name))) {
    const all = [...members]
    let firstKept = -1
    for (const [index, [name, member]] of all.entries()) {
      if (!edits.remove.includes(name)) {
        if (firstKept < 0) firstKept = index
        continue
      }
      left--
      const next = all[index + 1]?.[1]
      // With nothing kept before it a member takes the comma after it along, else the comma before it.
      if (firstKept < 0) cuts.push({ from: member.keyStart, to: next ? next.keyStart : member.end, put: '' })
      else cuts.push({ from: all[index - 1]![1].end, to: member.end, put: '' })
    }
  }
  let added = ''
  for (const name in edits.add) {
    if (left > 0) added += ','
    added += `${JSON.stringify(name)}:${edits.add[name]}`
    left++
  }
  if (added) {
    const close = text.lastIndexOf('}')
    cuts.push({ from: close, to: close, put: added })
  }
  cuts.sort((a, b) => a.from - b.from)
  let out = ''
  let done = 0
  for (const cut of cuts) {
    out += text.slice(done, cut.from) + cut.put
    done = cut.to
  }
  return out + text.slice(done)
}

/** The body with some top-level members edited. */
export const edited = (json: JsonText, edits: JsonEdits): JsonText => readJson(Buffer.from(splice(json, edits)))

/** The body with these members, whether it has them or not. */
export function withMembers(json: JsonText, members: Readonly<Record<string, string>>, remove?: readonly string[]) {
  const replace = Object.fromEntries(Object.entries(members).filter(([name]) => json.member(name)))
  const add = Object.fromEntries(Object.entries(members).filter(([name]) => !json.member(name)))
  return edited(json, { replace, add, ...(remove && { remove }) })
}

/** What stands at a place of a JSON text: a string, the name of a member, or a number as it is written. */
type JsonLeaf = 'string' | 'name' | 'number'

/**
 * The text of a JSON value with leaves exchanged for strings, and every other character as it was. A path has the names
 * of members, and nothing for elements.
 */
export function editLeaves(
  text: string,
  edit: (leaf: string, path: readonly string[], kind: JsonLeaf) => string,
): string {
  const path: string[] = []
  let out = ''
  let done = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === OBJECT_OPEN || code === ARRAY_OPEN) path.push('')
    else if (code === OBJECT_CLOSE || code === ARRAY_CLOSE) path.pop()
    else if (code === COMMA && path.length > 0) path[path.length - 1] = ''
    const isString = code === QUOTE
    if (!isString && code !== MINUS && (code < ZERO || code > NINE)) continue
    const end = isString ? closingQuote(text, at) + 1 : endOfNumber(text, at)
    if (end <= at) return out + text.slice(done)
    const leaf = isString ? readString(text.slice(at, end)) : text.slice(at, end)
    let next = end
    while (isSpace(text.charCodeAt(next))) next++
    const isName = isString && text.charCodeAt(next) === COLON
    const put = edit(leaf, path, isName ? 'name' : isString ? 'string' : 'number')
    if (isName) path[path.length - 1] = leaf
    if (put !== leaf) {
      out += text.slice(done, at) + JSON.stringify(put)
      done = end
    }
    at = end - 1
  }
  return out + text.slice(done)
}

const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39

function endOfNumber(text: string, from: number): number {
  let end = from + 1
  while (/[0-9.eE+-]/.test(text[end] ?? '')) end++
  return end
}

function readString(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1)
  try {
    return JSON.parse(quoted) as string // A quoted text parses as a string, or throws.
  } catch {
    return quoted.slice(1, -1) // No JSON after all: the text as it is.
  }
}

const BRACKET_OR_QUOTE = /["[\]{}]/g

/**
 * Where the array closes that opens at `at`, if nothing but numbers is in it; else -1. Passes 60 MB of vectors in a
 * third of the time.
 */
function endOfNumbers(text: string, at: number): number {
  if (text.charCodeAt(at) !== ARRAY_OPEN) return -1
  BRACKET_OR_QUOTE.lastIndex = at + 1
  const end = BRACKET_OR_QUOTE.test(text) ? BRACKET_OR_QUOTE.lastIndex - 1 : -1
  return text.charCodeAt(end) === ARRAY_CLOSE ? end : -1
}

/**
 * Where the members of the object that starts at `from` stand, in text that is known to be JSON: for edits in a
 * vendor's answer. Undefined when no object starts there.
 */
export function memberSpan(text: string, name: string, from = 0): readonly [start: number, end: number] | undefined {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  if (text.charCodeAt(at) !== OBJECT_OPEN) return undefined
  const length = text.length
  let depth = 0
  let keyNext = false
  let start = -1
  for (; at < length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = closingQuote(text, at)
        if (end < 0) return undefined
        const isKey = keyNext && depth === 1 && end - at - 1 === name.length && text.startsWith(name, at + 1)
        keyNext = false
        at = end
        if (isKey) {
          start = end + 1
          while (isSpace(text.charCodeAt(start)) || text.charCodeAt(start) === COLON) start++
          at = start - 1
        }
        break
      }
      case OBJECT_OPEN:
      case ARRAY_OPEN: {
        const end = endOfNumbers(text, at)
        if (end > at) {
          at = end
          break
        }
        depth++
        keyNext = depth === 1
        break
      }
      case OBJECT_CLOSE:
      case ARRAY_CLOSE:
      case COMMA:
        if (depth === 1) {
          if (start >= 0) {
            let end = at
            while (isSpace(text.charCodeAt(end - 1))) end--
            return [start, end]
          }
          keyNext = true
        }
        if (text.charCodeAt(at) !== COMMA) depth--
        if (depth === 0) return undefined
        break
    }
  }
  return undefined
}

/** The value of a JSON text; undefined: it is none, or is truncated. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// Values of parsed JSON, if they have the type that is wanted.

/** A string member, or undefined. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** Null and undefined mean the same in the formats. */
export const isGiven = (value: unknown) => value !== undefined && value !== null

export function objects(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** The value if it is an object, otherwise an empty object. */
export function objectOf(value: unknown): Json {
  return isObject(value) ? value : {}
}

export function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

export function strings(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : undefined
}

export function flag(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined
}

type MaybeAbsent<T> = { [K in keyof T]: null extends T[K] ? K : undefined extends T[K] ? K : never }[keyof T]
type Given<T> = Omit<T, MaybeAbsent<T>> & { [K in MaybeAbsent<T>]?: Exclude<T[K], undefined | null> }

/** Removes absent members: null and undefined mean the same in these formats. */
export function given<const T extends object>(members: T): Given<T> {
  const present = Object.entries(members).filter(([, value]) => isGiven(value))
  return Object.fromEntries(present) as Given<T> // Members that may be missing are optional in the type.
}
