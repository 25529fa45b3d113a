// Reads a data vendor's error message for a rejected request.
import { isObject, jsonIn } from '../../kernel/json.ts'
import type { VendorError } from '../vendor-words.ts'

/** Undefined if there is no message, or if the body is an HTML page. */
export function dataWords(
  body: Buffer,
  pick: (value: Readonly<Record<string, unknown>>) => unknown,
): VendorError | undefined {
  const text = body.subarray(0, 65_536).toString('utf8')
  const value = jsonIn(text) ?? text
  const said = isObject(value) ? pick(value) : value
  if (typeof said !== 'string' || said.includes('<')) return undefined
  const message = said.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, ' ').trim()
  return message === '' ? undefined : { message, words: [] }
}
