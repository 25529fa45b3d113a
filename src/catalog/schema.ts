// The words in which bodies and answers are described: JSON Schema, as OpenAPI 3.1 takes it.
import type { JsonSchema } from './endpoint.ts'

export const string = { type: 'string' } as const
export const integer = { type: 'integer' } as const
export const number = { type: 'number' } as const
export const boolean = { type: 'boolean' } as const
/** Said aloud, because generators take an object without a word about its members for an empty one. */
export const free: JsonSchema = { type: 'object', additionalProperties: true }

export const nullable = (schema: { readonly type: string } & JsonSchema): JsonSchema => ({
  ...schema,
  type: [schema.type, 'null'],
})

export const list = (items: JsonSchema): { readonly type: 'array' } & JsonSchema => ({ type: 'array', items })

export const mapOf = (values: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: values })

/** Members beyond those named may come. */
export function object(
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[] = Object.keys(properties),
): { readonly type: 'object' } & JsonSchema {
  return {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: true,
  }
}

/** All of its members may be absent. */
export const loose = (properties: Readonly<Record<string, unknown>>) => object(properties, [])

export const component = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })
