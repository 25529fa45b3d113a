// Takes known secrets out of somebody else's text: as they are, and as they look in JSON, addresses, hexadecimal and base64.

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

export function patternOf(secret: string): RegExp {
  let pattern = patterns.get(secret)
  if (!pattern) {
    if (patterns.size >= PATTERNS_KEPT_MAX) patterns.clear()
    const bytes = Buffer.from(secret)
    const spellings = [secret, bytes.toString('hex'), ...inBase64(bytes)]
    // Upper and lower case alike: hexadecimal comes in both, and some servers change the case of what they repeat.
    pattern = new RegExp(spellings.map(loosely).join('|'), 'gi')
    patterns.set(secret, pattern)
  }
  return pattern
}

/** Base64 in both alphabets, wherever in a longer text the secret begins: the characters that its neighbours share are left. */
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

/** Each character as it is, with the backslashes of JSON in JSON, or percent-encoded. Runs of backslashes have a bound. */
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
