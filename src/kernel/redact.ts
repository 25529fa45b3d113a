// Takes known secrets out of somebody else's text: as they are, and as they look in JSON, addresses, hexadecimal and
// base64.

/** Anything shorter is a word that may stand in a text by chance. */
const SECRET_CHARS_MIN = 8
const PATTERNS_KEPT_MAX = 200

const patterns = new Map<string, RegExp>()

/** The text with a mark in place of every spelling of the secrets. */
export function redact(text: string, secrets: readonly string[], mark = '[key]'): string {
  let clean = text
  for (const secret of secrets) if (secret.length >= SECRET_CHARS_MIN) clean = clean.replace(patternOf(secret), mark)
  return clean
}

/**
 * What looks like a credential, wherever it stands: those of well-known services, our own keys, tokens, private keys.
 */
export const CREDENTIALS = [
  /\b(?:tg_(?:live|test)_[0-9A-Za-z]{38}|sk-[\w-]{16,300}|[rps]k_(?:live|test)_\w{16,300}|AIza[\w-]{35}|gh[opsru]_\w{30,300}|xox[a-z]-[\w-]{10,300}|AKIA[0-9A-Z]{16})/g,
  /(?<![\w-])eyJ[\w-]{10,4000}\.[\w-]{10,4000}\.[\w-]{10,4000}/g,
  /(?<=\bbearer )[\w.~+/=-]{16,4000}/gi,
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{0,20000}/g,
  /(?<="(?:api[_-]?key|password|passwd|secret|client_secret|access_token|refresh_token|authorization)\\{0,3}"\s{0,4}:\s{0,4}\\{0,3}")[^"\\]{4,4000}/gi,
]
/** Pictures and other files, which nobody reads as text. */
const DATA_URI = /(?<=\bdata:[\w.+-]{1,60}\/[\w.+-]{1,60}(?:;[\w=.+-]{1,60}){0,4},)[\w+/=%-]{64,}/g
const ENCODED = /[\w+/-]{1000,}={0,2}/g

/** A text of which somebody wants to read the words. */
export function withoutFiles(text: string): string {
  const leaveOut = (all: string) => `[${all.length} characters left out]`
  return text.replaceAll(DATA_URI, leaveOut).replaceAll(ENCODED, leaveOut)
}

export function withoutCredentials(text: string): string {
  return CREDENTIALS.reduce((clean, pattern) => clean.replaceAll(pattern, '[secret]'), text)
}

/** A run of so many words that stands in a request is the request's. */
const RUN_WORDS = 3
const SENT_CHARS_MAX = 65_536
const WORDS_MAX = 100
const QUOTED = /(["'`])([^"'`]{1,2000})\1/g
const NAME_CHARS_MAX = 40

const EDGES = /^[^\p{L}\p{N}]+|(?<![^\p{L}\p{N}])[^\p{L}\p{N}]+$/gu

/**
 * One line of a message about a request, without what it repeats of the request: it may be kept where requests may not.
 */
export function withoutContent(message: string, sent?: string): string {
  const words = (sent === undefined ? withoutQuotations(message) : message)
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .split(' ')
    .slice(0, WORDS_MAX)
  const text = sent?.slice(0, SENT_CHARS_MAX) ?? ''
  const isRepeated = words.map(() => false)
  for (let at = 0; at + RUN_WORDS <= words.length; at++) {
    const run = words
      .slice(at, at + RUN_WORDS)
      .join(' ')
      .replaceAll(EDGES, '')
    if (text.includes(run)) isRepeated.fill(true, at, at + RUN_WORDS)
  }
  return (
    words
      // A whole run becomes one mark.
      .flatMap((word, at) => (isRepeated[at] ? (isRepeated[at - 1] ? [] : ['…']) : [word]))
      .join(' ')
      // Names of fields and values are quoted too, and say what was wrong.
      .replaceAll(QUOTED, (all, mark: string, inner: string) =>
        inner.length > NAME_CHARS_MAX || /\s/.test(inner) ? `${mark}…${mark}` : all,
      )
  )
}

/** Where nobody knows what was sent, everything between the first quotation mark and the last may be of it. */
function withoutQuotations(message: string): string {
  const from = message.search(/["'`]/)
  const to = Math.max(...['"', "'", '`'].map((mark) => message.lastIndexOf(mark)))
  return from < 0 ? message : `${message.slice(0, from)}…${message.slice(Math.max(from, to) + 1)}`
}

export function patternOf(secret: string): RegExp {
  let pattern = patterns.get(secret)
  if (!pattern) {
    if (patterns.size >= PATTERNS_KEPT_MAX) patterns.clear()
    const bytes = Buffer.from(secret)
    const spellings = [secret, bytes.toString('hex'), ...inBase64(bytes)]
    // Upper and lower case alike: hexadecimal comes in both, and some servers change the case of what they repeat.
    // Letters need no percent sign, but somebody may have given every byte one.
    const encoded = [...bytes].map((byte) => `%(?:25){0,2}${hex(byte)}`).join('')
    pattern = new RegExp([...spellings.map(loosely), encoded].join('|'), 'gi')
    patterns.set(secret, pattern)
  }
  return pattern
}

/**
 * Base64 in both alphabets, wherever in a longer text the secret begins: the characters that its neighbours share are
 * left.
 */
function inBase64(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((lead) => {
    const length = lead + bytes.length
    const all = Buffer.concat([Buffer.alloc(lead), bytes])
      .toString('base64')
      .replace(/(?<!=)=+$/, '')
    const own = all.slice(lead === 0 ? 0 : lead + 1, length % 3 === 0 ? all.length : -1)
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

/**
 * Each character as it is, with the backslashes of JSON in JSON, or percent-encoded. Runs of backslashes have a bound.
 */
function loosely(text: string): string {
  return [...text.replaceAll(/\\+/g, '\\')].map(characterOf).join('')
}

function characterOf(character: string): string {
  if (character === '\\') return String.raw`(?:\\{1,16}|%(?:25){0,2}5C)`
  if (/[a-z0-9]/i.test(character)) return character
  const percent = [...Buffer.from(character)].map((byte) => `%(?:25){0,2}${hex(byte)}`).join('')
  const unicode = String.raw`\\{1,4}u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return String.raw`(?:\\{0,4}${character.replace(/[^\w\s]/, String.raw`\$&`)}|${percent}|${unicode})`
}

const hex = (byte: number) => byte.toString(16).padStart(2, '0')
