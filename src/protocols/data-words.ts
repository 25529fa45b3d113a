// What a data vendor says about a request that it refused, as far as a caller may read it.
import { scrub } from './vendor-words.ts'

/** Undefined when there is nothing to say, or when it is a page for people. */
export function dataWords(
  body: Buffer,
  pick: (value: Readonly<Record<string, unknown>>) => unknown,
): string | undefined {
  const text = body.subarray(0, 65_536).toString('utf8')
  let said: unknown
  try {
    const value: unknown = JSON.parse(text)
    said = typeof value === 'object' && value !== null ? pick(value as Record<string, unknown>) : value
  } catch {
    said = text
  }
  if (typeof said !== 'string' || said.includes('<')) return undefined
  const clean = scrub(said.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, ' '))
  return clean === '' ? undefined : clean
}
