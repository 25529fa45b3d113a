// The query as it came. Frameworks merge, lower-case or array-ify names and mend bad encodings; the contract wants them
// refused, so the raw text is read here and nowhere else.
import { invalid } from '../kernel/fault.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** What follows the `?`, as names and values in their order. */
export function parseRawQuery(raw: string): Map<string, string> {
  const values = new Map<string, string>()
  for (const piece of raw.split('&')) {
    if (piece === '') continue
    const equals = piece.indexOf('=')
    const name = decodePart(equals < 0 ? piece : piece.slice(0, equals))
    if (name === undefined) throw invalid('A query name is not valid percent-encoded UTF-8.')
    if (BREAKS.test(name)) throw invalid(`The query name ${shown(name)} holds CR, LF or NUL.`)
    const value = equals < 0 ? '' : decodePart(piece.slice(equals + 1))
    if (value === undefined) throw invalid(`${shown(name)} is not valid percent-encoded UTF-8.`, bounded(name))
    if (BREAKS.test(value)) throw invalid(`${shown(name)} holds CR, LF or NUL.`, bounded(name))
    if (values.has(name)) throw invalid(`${shown(name)} is given more than once.`, bounded(name))
    values.set(name, value)
  }
  return values
}

export const BREAKS = /[\r\n\0]/

/** Undefined for a stray percent sign, bytes that are no UTF-8, and what should have been percent-encoded but is not. */
function decodePart(part: string): string | undefined {
  if (!/^([\x00-\x24\x26-\x7f]|%[0-9A-Fa-f]{2})*$/.test(part)) return undefined
  const spaced = part.replaceAll('+', ' ')
  if (!spaced.includes('%')) return spaced
  const bytes = spaced.replace(/%(..)/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
  try {
    return utf8.decode(Buffer.from(bytes, 'latin1'))
  } catch {
    return undefined
  }
}

/** A caller's own words in a message: short, quoted, control characters escaped, no half characters. */
export function shown(text: string): string {
  return JSON.stringify(bounded(text))
}

function bounded(text: string): string {
  return text.length <= 64 ? text : `${text.slice(0, 64).toWellFormed()}…`
}
