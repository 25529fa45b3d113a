// What each resource reads, as JSON Schema: for its description, and for the console, which has a plain form for every
// resource that changes something.
import * as z from 'zod'
import type { JsonSchema } from '../catalog/endpoint.ts'
import { page } from '../kernel/view.ts'
import { type Resource, resource } from './resource.ts'
import { type ActionView, actionView } from './views.ts'

/** What only the command line (command.ts) and the console's forms read of a field. */
const FIELD_META = ['option', 'value', 'none', 'off', 'refersTo', 'read', 'unit', 'usual', 'of', 'after']

/** What a caller may send, or gets: schemas that also transform are shown by what goes into them. */
export function viewSchema(schema: z.ZodType, { withMeta = false } = {}): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ jsonSchema }) {
      // The format says it in one word, and every integer is a safe one.
      if (jsonSchema.format) delete jsonSchema.pattern
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (!withMeta) for (const name of FIELD_META) delete jsonSchema[name]
    },
  })
  return rest
}

/** `resources`: all that are mounted. */
export function formResources(resources: readonly Resource[]): Resource[] {
  let items: ActionView[] | undefined
  return [
    resource('GET /actions', 'self', {
      answer: page(actionView),
      run() {
        items ??= resources.flatMap(actionOf)
        return { items, next: null }
      },
    }),
  ]
}

function actionOf({ method, path, title, access, account, own, query, body }: Resource): ActionView[] {
  if (method === 'GET' || title === undefined) return []
  const formOf = (read: z.ZodType | undefined) => (read ? viewSchema(read, { withMeta: true }) : null)
  const right = access === 'self' || access === 'visitor' ? null : access
  const ofAccount = account !== undefined || own === true
  return [{ method, path, title, right, ofAccount, query: formOf(query), body: formOf(body) }]
}
