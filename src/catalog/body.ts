// Rules of request bodies, as a schema in the entry of the endpoint: what is rejected with which message, what the
// reader gets, and what OpenAPI has. A message says what the value must be ("a string"), or, if it begins with a verb,
// is the whole text after the field's name.
import * as z from 'zod'
import type { JsonSchema } from './endpoint.ts'

/** null counts as absent, as the formats define it. */
export const wholeNumber = (min: number) =>
  z.int({ error: ({ input }) => (typeof input === 'number' ? atLeast(min) : 'a whole number') }).min(min, atLeast(min))

const atLeast = (min: number) => `a whole number of at least ${min}`

/** An array with one message for both bounds. */
export const listOf = <T extends z.ZodType>(item: T, { most, of }: { most: number; of: string }) => {
  const error = ({ input }: { input?: unknown }) => `must hold 1 to ${most} ${of}, not ${(input as unknown[]).length}.` // Only its size is wrong.
  return z.array(item).min(1, { error }).max(most, { error })
}

/** The schema for OpenAPI, without keywords that say nothing. */
export function schemaOf(rules: z.ZodObject): JsonSchema {
  const { $schema: _, ...schema } = z.toJSONSchema(rules, {
    io: 'input',
    unrepresentable: 'any',
    override({ jsonSchema }) {
      const [only, none, ...more] = jsonSchema.anyOf ?? []
      if (only?.type && none?.type === 'null' && more.length === 0) {
        delete jsonSchema.anyOf
        // JSON Schema takes a list of types, which this declaration leaves out.
        const type = [only.type, 'null'] as unknown as 'null'
        Object.assign(jsonSchema, only, { type }, only.enum ? { enum: [...only.enum, null] } : {})
      }
      if (
        typeof jsonSchema.additionalProperties === 'object' &&
        Object.keys(jsonSchema.additionalProperties).length === 0
      )
        jsonSchema.additionalProperties = true
    },
  })
  return schema
}
