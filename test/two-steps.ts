// What an attacker sends: for each route every body that its schema takes and that might gain something, made from
// hostile values by the name of the field.
import * as z from 'zod'
import type { Resource } from '../src/operator/resource.ts'

/** By the name of a field or path parameter: values that somebody would try there. */
export type Hostile = Readonly<Record<string, readonly unknown[]>>

const BODIES_MAX = 24
/** Tried where no value is known for a field. */
const ANYTHING = ['x', '1', 1, true, [], ['x'], {}, null]

/** The object schema below transformations. */
function shapeOf(schema: z.ZodType): Record<string, z.ZodType> {
  if (schema instanceof z.ZodPipe) return shapeOf(schema.in as z.ZodType)
  return schema instanceof z.ZodObject ? (schema.shape as Record<string, z.ZodType>) : {}
}

/** The values that the field takes, the hostile ones first; undefined if it may be left out. */
function valuesOf(name: string, schema: z.ZodType, hostile: Hostile): unknown[] {
  const takes = (value: unknown) => schema.safeParse(value).success
  const known = (hostile[name] ?? []).filter(takes)
  if (known.length > 0) return known
  const listed = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as { enum?: unknown[] }
  if (takes(undefined)) return [undefined]
  return [...(listed.enum ?? []), ...ANYTHING].filter(takes).slice(0, listed.enum?.length ?? 1)
}

/**
 * One body with the required fields only, one for each further value of a field, and last, because it stays, one with
 * the first value of each.
 */
export function bodiesOf({ body }: Pick<Resource, 'body'>, hostile: Hostile): unknown[] {
  if (!body) return [undefined]
  const fields = Object.entries(shapeOf(body)).map(
    ([name, schema]) => [name, schema, valuesOf(name, schema, hostile)] as const,
  )
  const first = Object.fromEntries(fields.map(([name, , values]) => [name, values[0]]))
  const least = Object.fromEntries(
    fields.flatMap(([name, schema, values]) => (schema.safeParse(undefined).success ? [] : [[name, values[0]]])),
  )
  const others = fields.flatMap(([name, , values]) => values.slice(1).map((value) => ({ ...first, [name]: value })))
  return [least, ...others.slice(0, BODIES_MAX), first]
}

/** Each address of the route with the known values of its parameters. */
export function pathsOf(path: string, hostile: Hostile): string[] {
  const found = /^(.*?)\{(\w+)\}(.*)$/.exec(path)
  if (!found) return [path]
  const [, before = '', name = '', after = ''] = found
  // `/keys/{id}` is looked up by `keys.id`.
  const at = `${before.split('/').at(-2)}.${name}`
  const values = hostile[at] ?? hostile[name] ?? ['none']
  return values.flatMap((value) => pathsOf(`${before}${encodeURIComponent(String(value))}${after}`, hostile))
}

/** Every string in an answer, with the name of its field. */
export function* stringsIn(value: unknown, name = ''): Generator<readonly [name: string, value: string]> {
  if (typeof value === 'string') yield [name, value]
  else if (Array.isArray(value)) for (const one of value) yield* stringsIn(one, name)
  else if (typeof value === 'object' && value !== null)
    for (const [field, one] of Object.entries(value)) yield* stringsIn(one, field)
}
