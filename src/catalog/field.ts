// One parameter of an endpoint, described once. Validation, defaults, OpenAPI, reference docs, the console's forms and
// the contract tests all read this description.

interface Described {
  readonly description: string
  /** A valid value, for docs and forms. */
  readonly example: string
  readonly required?: true | undefined
  /** Filled in when the caller gives none. */
  readonly default?: string | undefined
  /** Absent: in the query. */
  readonly in?: 'path' | 'header' | undefined
  /** Of a list: the vendor gets the name once for each item. */
  readonly repeat?: true | undefined
}

interface Kinds {
  /** Of 1 to 2048 UTF-8 bytes after trimming. `form` says in words what `pattern` asks for. */
  readonly text: { readonly pattern?: string | undefined; readonly form?: string | undefined }
  /** Exactly one ASCII domain. */
  readonly domain: object
  /** The literals `true` and `false`, or only one of them. */
  readonly boolean: { readonly allowed: readonly string[] }
  /** Without `max`: any size. */
  readonly integer: { readonly min: number; readonly max?: number | undefined }
  readonly choice: { readonly allowed: readonly string[] }
  /** Comma-separated values, each one of those allowed. */
  readonly list: { readonly allowed: readonly string[] }
  /** `YYYY-MM-DD` or `YYYY|MM|DD`, a real day. */
  readonly date: object
  /** `7d` for rolling days, `3m` for complete months before this one. With `daysMax` 0, days are not taken. */
  readonly latest: { readonly daysMax: number; readonly months: readonly number[] }
  /** The text of a JSON array. */
  readonly 'json-array': object
  /** A decimal number, such as 48.2. */
  readonly number: { readonly min?: number | undefined; readonly max?: number | undefined }
  /** Comma-separated values of any kind. */
  readonly values: { readonly itemsMax: number }
}

export type Field = { [Kind in keyof Kinds]: Described & { readonly kind: Kind } & Kinds[Kind] }[keyof Kinds]
export type LatestField = Extract<Field, { readonly kind: 'latest' }>

// A field of each common kind, with what is filled in when the caller gives nothing.

export const text = (description: string, example: string, fallback?: string) =>
  ({ kind: 'text', description, example, default: fallback }) as const
export const choice = (description: string, allowed: readonly [string, ...string[]], fallback?: string) =>
  ({ kind: 'choice', allowed, description, example: fallback ?? allowed[0], default: fallback }) as const
export const integer = (description: string, min: number, max?: number, fallback?: string) =>
  ({ kind: 'integer', min, max, description, example: fallback ?? String(min), default: fallback }) as const

export const TEXT_BYTES_MAX = 2048
/** A longer path segment is answered with 404. */
export const PATH_PART_CHARS_MAX = 300
export const DOMAIN_CHARS_MAX = 253

/** The allowed values of a field, for error messages and docs. */
export function allowedText(field: Field): string {
  switch (field.kind) {
    case 'text':
      return field.form ?? `text of 1 to ${TEXT_BYTES_MAX} UTF-8 bytes`
    case 'domain':
      return `exactly one ASCII domain such as example.com, at most ${DOMAIN_CHARS_MAX} characters, without scheme, path, port or spaces; internationalised names in punycode`
    case 'integer':
      return field.max === undefined
        ? `an integer of ${field.min} or more, in plain digits`
        : `an integer from ${field.min} to ${field.max}, in plain digits`
    case 'boolean':
    case 'choice':
      return field.allowed.length === 1 ? `only ${field.allowed[0]}` : `one of ${field.allowed.join(', ')}`
    case 'list':
      return `a comma-separated list of ${field.allowed.join(', ')}`
    case 'date':
      return 'a real date as YYYY-MM-DD or YYYY|MM|DD'
    case 'latest':
      return latestText(field)
    case 'json-array':
      return 'the text of a JSON array'
    case 'number':
      return numberText(field)
    case 'values':
      return `a comma-separated list of up to ${field.itemsMax} values`
  }
}

function numberText({ min, max }: Kinds['number']): string {
  if (min === undefined) return max === undefined ? 'a number' : `a number up to ${max}`
  return max === undefined ? `a number from ${min}` : `a number from ${min} to ${max}`
}

function latestText({ daysMax, months }: LatestField): string {
  const selectors = months.map((count) => `${count}m`).join(', ')
  const parts = []
  if (daysMax > 0) parts.push(`1d to ${daysMax}d (rolling days)`)
  if (months.length > 0) parts.push(`${selectors} (complete UTC months)`)
  return parts.join(', or ')
}

/** Ids in addresses, ours and vendors': nothing that a proxy or vendor could read as a path. */
const ID = /^[A-Za-z0-9_-]{1,128}$/

export const isId = (text: string): boolean => ID.test(text)

/** An id as a part of an address. */
export const inPath = (description: string, example: string) =>
  ({ kind: 'text', in: 'path', required: true, pattern: ID.source, form: 'an id', description, example }) as const

/**
 * A model's public id may have dots and slashes: it is looked up in the catalog, and no vendor's address is made of it.
 */
export const modelInPath = (example: string) =>
  ({ kind: 'text', in: 'path', required: true, description: 'The public id of a model.', example }) as const
