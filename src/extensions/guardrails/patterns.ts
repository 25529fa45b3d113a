// What redaction finds in a text: the patterns with a name, and the operator's own. Each says where its matches are,
// and from where on the end of an unfinished text may be the beginning of one.

import { CREDENTIALS } from '../../kernel/redact.ts'
import { compilePattern, type LinearPattern, type PatternName } from './rules.ts'

export type Span = readonly [start: number, end: number]

export interface Pattern {
  /** The word in the placeholder. */
  readonly label: string
  /** The name of the rule that asks for it. */
  readonly rule: string
  /** From left to right. */
  spans(text: string): Iterable<Span>
  /** What stands before it cannot become part of a match any more. */
  openFrom(text: string): number
}

/** Of a match by an operator's own pattern, and of every one that is still under way. */
const OWN_CHARS_MAX = 256

export function ownPattern(rule: string, label: string, source: string): Pattern {
  const compiled = compilePattern(source)
  if (typeof compiled === 'string') throw new Error(`The pattern ${label} ${compiled}.`)
  return {
    label: label.toUpperCase(),
    rule,
    *spans(text) {
      yield* linearSpans(compiled, text)
      if (isOdd(text)) yield* foldedSpans((folded) => linearSpans(compiled, folded), text)
    },
    openFrom: (text) => text.length - OWN_CHARS_MAX,
  }
}

function* linearSpans(pattern: LinearPattern, text: string): Generator<Span> {
  const matcher = pattern.matcher(text)
  while (matcher.find()) if (matcher.end() > matcher.start()) yield [matcher.start(), matcher.end()]
}

function* nativeSpans(pattern: RegExp, text: string): Generator<Span> {
  for (const { index, 0: found } of text.matchAll(pattern)) yield [index, index + found.length]
}

// The same text may be written with other characters: compatibility forms (full width, mathematical), other spaces and
// dashes, characters without a width in between, an encoded @. It is searched as if it were written plainly, and the
// matches are mapped back.

const ODD = /%40|[^\x00-\x7f]/gu
const isOdd = (text: string) => text.search(ODD) >= 0

function plainOf(odd: string): string {
  if (odd === '%40') return '@'
  if (/\p{Cf}/u.test(odd)) return ''
  return /[\p{Pd}\u2212]/u.test(odd) ? '-' : odd.normalize('NFKC')
}

function* foldedSpans(spans: (text: string) => Iterable<Span>, text: string): Generator<Span> {
  let folded = ''
  // Of each character of `folded`: from where to where it was written.
  const written: Span[] = []
  const add = (plain: string, start: number, end: number, isSame: boolean) => {
    for (let at = 0; at < plain.length; at++) written.push(isSame ? [start + at, start + at + 1] : [start, end])
    folded += plain
  }
  let done = 0
  for (const { index, 0: odd } of text.matchAll(ODD)) {
    add(text.slice(done, index), done, index, true)
    done = index + odd.length
    add(plainOf(odd), index, done, false)
  }
  add(text.slice(done), done, text.length, true)
  for (const [start, end] of spans(folded)) yield [written[start]?.[0] ?? 0, written[end - 1]?.[1] ?? text.length]
}

const whenOdd = (spans: (text: string) => Iterable<Span>) => (text: string) =>
  isOdd(text) ? foldedSpans(spans, text) : spans(text)

/** Whether a character may be part of something that is written in such a way. */
const isOddPart = (code: number) =>
  code > 0x7f &&
  ((code >= 0xd800 && code <= 0xdfff) ||
    (code >= 0xff00 && code <= 0xffef) ||
    /[\p{Z}\p{Pd}\p{Cf}\p{Nd}\u2212]/u.test(String.fromCharCode(code)))

/** The end of the text as far as it consists of such characters, at most so many. */
function tailOf(text: string, isPart: (code: number) => boolean, charsMax: number): number {
  const least = Math.max(0, text.length - charsMax)
  let from = text.length
  while (from > least && isPart(text.charCodeAt(from - 1))) from--
  return from
}

const isDigit = (code: number) => code >= 0x30 && code <= 0x39
const isUpper = (code: number) => code >= 0x41 && code <= 0x5a
const isAlphanumeric = (code: number) => isDigit(code) || isUpper(code) || (code >= 0x61 && code <= 0x7a)
const isOneOf = (characters: string) => (code: number) => characters.includes(String.fromCharCode(code))
const isLetter = (code: number) => isAlphanumeric(code) || (code > 0x7f && /\p{L}/u.test(String.fromCharCode(code)))

// Mail addresses: from each @ to both sides, so that every character is looked at once.

const isLocalMark = isOneOf('._%+-')
const isLocal = (code: number) => isLetter(code) || isLocalMark(code)
const isDomain = (code: number) => isLetter(code) || code === 0x2e || code === 0x2d
const LOCAL_CHARS_MAX = 64
const DOMAIN_CHARS_MAX = 253

function* emails(text: string): Generator<Span> {
  let done = 0
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    let start = at
    const least = Math.max(done, at - LOCAL_CHARS_MAX)
    while (start > least && isLocal(text.charCodeAt(start - 1))) start--
    let end = at + 1
    while (end - at <= DOMAIN_CHARS_MAX && isDomain(text.charCodeAt(end))) end++
    while (end > at + 1 && !isLetter(text.charCodeAt(end - 1))) end--
    if (start === at || !text.slice(at + 2, end - 1).includes('.')) continue
    yield [start, end]
    done = end
  }
}

// Card numbers: groups of digits that together have the right length and check digit.

const DIGITS = /\d(?:(?:\r\n|[ \t\r\n.-])?\d){12,}/g
const GROUP = /\d+/g
const isSeparator = isOneOf(' \t\r\n.-')
/** Columns and decimals are no cards, so that between such separators a group must look like one of a card. */
const RARE_SEPARATOR = /[\t\r\n.]/
const GROUP_DIGITS_MIN = 3

function* cards(text: string): Generator<Span> {
  for (const [start, end] of nativeSpans(DIGITS, text)) {
    const groups = [...nativeSpans(GROUP, text.slice(start, end))]
    for (let first = 0; first < groups.length; first++) {
      const last = lastOfCard(text.slice(start, end), groups, first)
      if (last === undefined) continue
      yield [start + (groups[first]?.[0] ?? 0), start + (groups[last]?.[1] ?? 0)]
      first = last
    }
  }
}

function lastOfCard(run: string, groups: readonly Span[], first: number): number | undefined {
  let digits = ''
  if (!/[2-6]/.test(run[groups[first]?.[0] ?? 0] ?? '')) return undefined
  for (let last = first; last < groups.length; last++) {
    const [start, end] = groups[last] ?? [0, 0]
    digits += run.slice(start, end)
    if (digits.length > 19) return undefined
    const isRare = last > first && RARE_SEPARATOR.test(run.slice(groups[last - 1]?.[1], start))
    if (isRare && end - start < GROUP_DIGITS_MIN) return undefined
    if (digits.length >= 13 && hasLuhnDigit(digits)) return last
  }
  return undefined
}

function hasLuhnDigit(digits: string): boolean {
  let sum = 0
  for (let at = 0; at < digits.length; at++) {
    const digit = digits.charCodeAt(digits.length - 1 - at) - 0x30
    const counted = at % 2 === 0 ? digit : digit * 2
    sum += counted > 9 ? counted - 9 : counted
  }
  return sum % 10 === 0
}

// Bank accounts: the length is the country's, and the remainder by 97 is 1.

const IBAN_CHARS = new Map(
  'AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30'
    .match(/.{4}/g)
    ?.map((one) => [one.slice(0, 2), Number(one.slice(2))]),
)
const IBAN_START = /(?<![A-Za-z0-9])[A-Z]{2}\d{2}/g

function* ibans(text: string): Generator<Span> {
  for (const { index } of text.matchAll(IBAN_START)) {
    const chars = IBAN_CHARS.get(text.slice(index, index + 2)) ?? 0
    let end = index
    let iban = ''
    for (; iban.length < chars; end++) {
      const code = text.charCodeAt(end)
      if (isDigit(code) || isUpper(code)) iban += text[end]
      else if (!isSeparator(code) || (isSeparator(text.charCodeAt(end - 1)) && text.slice(end - 1, end + 1) !== '\r\n'))
        break
    }
    if (chars > 0 && iban.length === chars && !isAlphanumeric(text.charCodeAt(end)) && isIban(iban)) yield [index, end]
  }
}

function isIban(iban: string): boolean {
  let rest = 0
  for (const character of iban.slice(4) + iban.slice(0, 4))
    for (const digit of String(Number.parseInt(character, 36))) rest = (rest * 10 + Number(digit)) % 97
  return rest === 1
}

// Telephone numbers: with a country's code or an area code in brackets, or in the American groups.

const PHONE = /(?<![\w+])(?:\+\d|00[1-9]|\(\d)[\d ()./-]{5,20}\d(?!\w)|(?<![\w.-])\d{3}[ .-]\d{3}[ .-]\d{4}(?![\w-])/g

function* phones(text: string): Generator<Span> {
  for (const [start, end] of nativeSpans(PHONE, text)) {
    const digits = text.slice(start, end).replaceAll(/\D/g, '').length
    if (digits >= 7 && digits <= 15) yield [start, end]
  }
}

// Credentials, as they are kept out of recordings.

const PRIVATE_KEY = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{0,20000}(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g
const KEY_BEGINS = '-----BEGIN '
const KEY_HEAD = /^-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----/
const HEAD_CHARS_MAX = 80
const isTokenMark = isOneOf('_.~+/=-')

function* credentials(text: string): Generator<Span> {
  for (const pattern of CREDENTIALS) if (!pattern.source.startsWith('-----BEGIN')) yield* nativeSpans(pattern, text)
}

function keyOpenFrom(text: string): number {
  const begun = text.lastIndexOf(KEY_BEGINS)
  const isKey =
    begun >= 0 && (text.length - begun < HEAD_CHARS_MAX || KEY_HEAD.test(text.slice(begun, begun + HEAD_CHARS_MAX)))
  if (isKey && !/-----END [A-Z ]{0,40}-----/.test(text.slice(begun))) return begun
  return tailOf(text, (code) => isUpper(code) || code === 0x20 || code === 0x2d, 100)
}

const NAMED: Readonly<Record<PatternName, Omit<Pattern, 'rule'>>> = {
  email: {
    label: 'EMAIL',
    spans: whenOdd(emails),
    openFrom: (text) =>
      tailOf(text, (code) => isLocal(code) || code === 0x40 || isOddPart(code), LOCAL_CHARS_MAX + 1 + DOMAIN_CHARS_MAX),
  },
  phone: {
    label: 'PHONE',
    spans: whenOdd(phones),
    openFrom: (text) => tailOf(text, (code) => isDigit(code) || isOneOf(' ()+./-')(code) || isOddPart(code), 80),
  },
  card: {
    label: 'CARD',
    spans: whenOdd(cards),
    openFrom: (text) => tailOf(text, (code) => isDigit(code) || isSeparator(code) || isOddPart(code), 80),
  },
  iban: {
    label: 'IBAN',
    spans: whenOdd(ibans),
    openFrom: (text) =>
      tailOf(text, (code) => isDigit(code) || isUpper(code) || isSeparator(code) || isOddPart(code), 100),
  },
  api_key: {
    label: 'API_KEY',
    spans: whenOdd(credentials),
    openFrom: (text) => tailOf(text, (code) => isAlphanumeric(code) || isTokenMark(code) || isOddPart(code), 4_000),
  },
  private_key: { label: 'PRIVATE_KEY', spans: (text) => nativeSpans(PRIVATE_KEY, text), openFrom: keyOpenFrom },
}

export const namedPattern = (rule: string, name: PatternName): Pattern => ({ ...NAMED[name], rule })
