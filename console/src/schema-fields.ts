// The fields of a plain form, from the JSON Schema of what an action reads.

export type Schema = Readonly<Record<string, unknown>>

/** `lines`: a list of words, one in a line; `json`: what has no simpler form. */
type Kind = 'text' | 'secret' | 'number' | 'choice' | 'yes-no' | 'lines' | 'json'

export interface SchemaField {
  /** Of its control: `limits.requestsPerMinute`; of a body that is no object, as the server calls it. */
  readonly name: string
  /** Where it stands in what is sent; none: it is all that is sent. */
  readonly steps: readonly string[]
  readonly label: string
  readonly hint: string | undefined
  readonly kind: Kind
  readonly required: boolean
  /** "none" stands for null. */
  readonly nullable: boolean
  readonly options: readonly string[]
  readonly schema: Schema
}

/** What is nested deeper is JSON. */
const DEPTH_MAX = 3
const NONE = 'none'

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const schemaIn = (value: unknown): Schema => (Object(value) === value ? (value as Schema) : {}) // Of any object, members can be read.

/** "requestsPerMinute" is "Requests per minute". */
export function labelOf(name: string): string {
  const words = name.replaceAll(
    /([a-z0-9])([A-Z])/g,
    (_, end: string, start: string) => `${end} ${start.toLowerCase()}`,
  )
  return words.charAt(0).toUpperCase() + words.slice(1).replaceAll(/[_-]/g, ' ')
}

/** Without null, which a field says in another way. */
function plain(schema: Schema): { schema: Schema; nullable: boolean } {
  const [other, ...more] = listOf(schema.anyOf).map(schemaIn)
  const nullable = more.some(({ type }) => type === 'null')
  return nullable && more.length === 1 && other
    ? { schema: { ...schema, anyOf: undefined, ...other }, nullable }
    : { schema, nullable }
}

function kindOf(schema: Schema): Kind {
  if (schema.enum !== undefined) return 'choice'
  if (schema.anyOf !== undefined || schema.oneOf !== undefined) return 'json'
  if (schema.type === 'boolean') return 'yes-no'
  if (schema.type === 'number' || schema.type === 'integer') return 'number'
  if (schema.type === 'array') return kindOf(schemaIn(schema.items)) === 'text' ? 'lines' : 'json'
  if (schema.type === 'string') return schema.read === undefined ? 'text' : 'secret'
  return 'json'
}

export function fieldsOf(given: Schema, path: readonly string[] = [], isNeeded = true): SchemaField[] {
  const { schema, nullable } = plain(given)
  const members = Object.entries(schemaIn(schema.properties))
  if (members.length > 0 && path.length < DEPTH_MAX && !nullable) {
    const required = listOf(schema.required)
    return members.flatMap(([name, member]) =>
      fieldsOf(schemaIn(member), [...path, name], isNeeded && required.includes(name)),
    )
  }
  const isDefault = given.default !== undefined
  const kind = kindOf(schema)
  const choices = kind === 'yes-no' ? ['true', 'false'] : listOf(schema.enum).map(String)
  return [
    {
      name: path.join('.') || 'body',
      steps: path,
      label: path.length === 0 ? 'What is sent' : path.map(labelOf).join(': '),
      hint: typeof given.description === 'string' ? given.description : undefined,
      kind,
      required: isNeeded && !isDefault && !nullable,
      nullable,
      options: nullable && choices.length > 0 && !choices.includes(NONE) ? [...choices, NONE] : choices,
      schema,
    },
  ]
}

/** Undefined: it was left empty. Throws where it cannot be read, with the field in front, as the server does. */
function readField({ name, kind, nullable, schema }: SchemaField, text: string): unknown {
  if (text.trim() === '') return undefined
  if (nullable && text === NONE && !listOf(schema.enum).includes(NONE)) return null
  if (kind === 'number') return Number(text)
  if (kind === 'yes-no') return text === 'true'
  if (kind === 'choice') return listOf(schema.enum).find((option) => String(option) === text)
  if (kind === 'lines')
    return text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
  if (kind !== 'json') return text
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${name}: must be JSON, such as {"name": "value"} or ["a", "b"].`)
  }
}

/** What is sent; undefined: nothing. */
export function inputOf(fields: readonly SchemaField[], texts: Readonly<Record<string, string>>): unknown {
  const input: Record<string, unknown> = {}
  for (const field of fields) {
    const value = readField(field, texts[field.name] ?? '')
    const last = field.steps.at(-1)
    if (last === undefined) return value
    if (value === undefined) continue
    let at = input
    for (const step of field.steps.slice(0, -1)) {
      at[step] ??= {}
      at = at[step] as Record<string, unknown> // As it was made here.
    }
    at[last] = value
  }
  return input
}
