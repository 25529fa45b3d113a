// Parameters as they stand in an address: dates, lists, countries and arrays have other forms there.
import { COUNTRIES } from './generated.ts'

export function queryOf(params: object): Record<string, string> {
  const query: Record<string, string> = {}
  for (const [name, value] of Object.entries(params))
    if (value !== undefined && value !== null) query[name] = textOf(name, value)
  return query
}

function textOf(name: string, value: unknown): string {
  if (value instanceof Date)
    return /^(?:start|end)_time$/.test(name) ? value.toISOString() : value.toISOString().slice(0, 10)
  if (name === 'country') return countryOf(String(value))
  if (!Array.isArray(value)) return String(value)
  return name.endsWith('Json') ? JSON.stringify(value) : value.join(',')
}

/** Codes of two letters as their numbers, which is what the source knows. */
function countryOf(value: string): string {
  if (value === 'world') return '999'
  const at = /^[a-z]{2}$/i.test(value) ? COUNTRIES.indexOf(`${value.toLowerCase()}`) : -1
  return at < 0 ? value : String(Number(COUNTRIES.slice(at + 2, at + 5)))
}
