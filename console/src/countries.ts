// Every country by its code and English name, for a field.

/** Codes that stand for no country, though they have a name. */
const NO_COUNTRY = new Set(['EU', 'EZ', 'UN', 'QO', 'XA', 'XB', 'ZZ', 'AC', 'CP', 'CQ', 'DG', 'EA', 'IC', 'TA'])
const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']

export function countries(): (readonly [code: string, name: string])[] {
  const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' })
  const known = LETTERS.flatMap((first) => LETTERS.map((second) => first + second)).flatMap((code) => {
    // Codes of countries that are gone stand for their successors.
    const isOwn = new Intl.Locale(`und-${code}`).region === code && !NO_COUNTRY.has(code)
    const name = isOwn ? names.of(code) : undefined
    return name === undefined ? [] : [[code, name] as const]
  })
  return known.toSorted(([, a], [, b]) => a.localeCompare(b, 'en'))
}
