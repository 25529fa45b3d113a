// Types as people read them: "whole number, 1 or more" and not "integer from 1 to 9007199254740991".
import type { JsonSchema } from '../catalog/endpoint.ts'
import { schemaIn } from './operation.ts'

/** Bounds that stand for "as large as a number can be". */
const UNBOUNDED = 999_999_999_999_999

const WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  object: 'object',
  array: 'list',
  null: 'null',
}
const PLURALS: Readonly<Record<string, string>> = {
  string: 'texts',
  integer: 'whole numbers',
  number: 'numbers',
  object: 'objects',
}

const code = (value: unknown) => `\`${String(value)}\``

/** In Markdown. That something may be null is left out: null counts as absent everywhere. */
export function typeWords(schema: JsonSchema): string {
  if (schema.const !== undefined) return `only ${code(schema.const)}`
  if (Array.isArray(schema.enum)) {
    const words = schema.enum.filter((value) => value !== null).map(code)
    return words.length === 1 ? `only ${words[0]}` : words.join(', ')
  }
  const choices = [schema.oneOf ?? schema.anyOf ?? []].flat().map((one) => typeWords(schemaIn(one)))
  if (choices.length > 0) return [...new Set(choices)].filter((one) => one !== 'null').join(' or ')
  const types = [schema.type ?? []].flat().map(String)
  const named = types.filter((type) => type !== 'null').map((type) => typeWord(type, schema))
  return [named.length > 0 ? named.join(' or ') : 'anything', boundsOf(schema, types)].filter(Boolean).join(', ')
}

function typeWord(type: string, { items, format, contentMediaType }: JsonSchema): string {
  if (type === 'string' && format === 'date-time') return 'time'
  if (type === 'string' && format === 'binary') return 'file'
  if (type === 'string' && contentMediaType === 'application/json') return 'JSON as text'
  if (type !== 'array' || !items) return WORDS[type] ?? type
  const inner = [schemaIn(items).type ?? []].flat().map(String)
  const [only] = inner.filter((one) => one !== 'null')
  return inner.length > 0 && only !== undefined ? `list of ${PLURALS[only] ?? 'values'}` : 'list'
}

function boundsOf(schema: JsonSchema, types: readonly string[]): string {
  const bound = (value: unknown) => (typeof value === 'number' && Math.abs(value) < UNBOUNDED ? value : undefined)
  const grouped = (value: number) => value.toLocaleString('en')
  const range = (least: number | undefined, most: number | undefined, unit = '') => {
    if (least !== undefined && most !== undefined)
      return least === most ? `exactly ${grouped(least)}${unit}` : `${grouped(least)} to ${grouped(most)}${unit}`
    if (least !== undefined) return `${grouped(least)} or more${unit}`
    return most === undefined ? '' : `at most ${grouped(most)}${unit}`
  }
  const parts = [
    types.some((type) => type === 'integer' || type === 'number')
      ? range(bound(schema.minimum), bound(schema.maximum))
      : '',
    types.includes('array')
      ? range(bound(schema.minItems), bound(schema.maxItems), ' items').replace(/^1 or more items$/, 'at least one')
      : '',
    // That a text is not empty goes without saying.
    types.includes('string') && bound(schema.maxLength) !== undefined
      ? range(undefined, bound(schema.maxLength), ' characters')
      : '',
    schema.default === undefined ? '' : `${code(schema.default)} by default`,
  ]
  return parts.filter(Boolean).join(', ')
}
