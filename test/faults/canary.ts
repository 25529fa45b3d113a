// Secrets that nobody outside may ever read, and every way in which somebody may spell them.

/** No shape that a pattern could know, and one whose every spelling differs. */
export const KEYS = ['9f8e7d6c5b4a39281706f5e4d3c2b1a098765432', 'Zq/7"Lm+2%vX=8.kT~5wR9'] as const
export const HOUSE = ['node-7.svc.internal', 'db.corp.local:5432', 'fd12:3456:789a::17'] as const
/** The value of a header that the operator has us send to a vendor. */
export const HEADER = 'tenant-42-of-the-house'
/** The caller's own; only the log may not have it. */
export const PROMPT = 'canary prompt 0815'

export function spellings(key: string): string[] {
  const bytes = Buffer.from(key)
  const basic = ['', 'u', 'us', 'user:'].map((before) => Buffer.from(`${before}${key}`).toString('base64'))
  return [
    key,
    key.toUpperCase(),
    `Bearer ${key}`,
    JSON.stringify(key).slice(1, -1),
    JSON.stringify(JSON.stringify(key)).replaceAll('/', '\\/'),
    encodeURIComponent(key),
    encodeURIComponent(key).toLowerCase(),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    bytes.toString('base64url'),
    ...basic,
    // Where the end of the message is cut.
    `${'x '.repeat(980)}${key}`,
  ]
}

const NEEDLES = [
  ...new Set([...KEYS.flatMap(spellings), HEADER, ...HOUSE].map((text) => text.replace(/^(x )+/, '').toLowerCase())),
].filter(({ length }) => length >= 12)

/** The secret that stands in the text, if one does. */
export function secretIn(said: string): string | undefined {
  const plain = said.toLowerCase()
  return NEEDLES.find((needle) => plain.includes(needle))
}
