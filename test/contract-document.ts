// The OpenAPI document as something to test with: its operations, requests that it describes, and what it forbids.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { JsonSchema } from '../src/catalog/endpoint.ts'
import { EXTENSIONS } from '../src/compose.ts'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import { openapiDocument } from '../src/extensions/docs/openapi.ts'

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly schema: JsonSchema
  readonly example?: unknown
}

interface Described {
  readonly operationId: string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema } | undefined>> }
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }>
  >
}

/** A request by its values, not yet as text. */
export type Asked = { readonly values: Readonly<Record<string, unknown>>; readonly body?: unknown }

export interface Operation extends Described {
  readonly method: string
  readonly path: string
  /** All examples together. */
  readonly example: Asked
  /** Why the document forbids this request; undefined where it does not. */
  forbids(asked: Asked): string | undefined
  /** Why this answer is not what the document says. */
  misfits(status: number, contentType: string, text: string): string | undefined
}

export const document = openapiDocument({
  version: '0',
  serverUrl: 'http://127.0.0.1',
  endpoints: ALL_ENDPOINTS,
  sockets: EXTENSIONS.flatMap((one) => one.sockets),
}) as JsonSchema & {
  paths: Record<string, Record<string, Described>>
  components: { schemas: Record<string, JsonSchema> }
}

const ajv = new Ajv2020({ strict: false, allErrors: false, validateFormats: true })
// Its types are written for another module system.
;(addFormats as unknown as (instance: Ajv2020) => void)(ajv)
ajv.addSchema({ $id: 'document', components: document.components })

function compile(schema: JsonSchema): ValidateFunction {
  return ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')))
}

function why(check: ValidateFunction, value: unknown, at: string): string | undefined {
  return check(value) ? undefined : `${at}${check.errors?.[0]?.instancePath ?? ''} ${check.errors?.[0]?.message}`
}

/** What a value of a parameter is to whoever reads the address by its schema. */
function readAs(schema: JsonSchema, value: unknown): unknown {
  const text = asText(value)
  if (schema.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (schema.type === 'integer') return /^-?\d+$/.test(text) ? Number(text) : text
  return text.trim()
}

export function asText(value: unknown): string {
  if (Array.isArray(value)) return value.map(asText).join(',')
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)
}

function bodySchema(operation: Described): JsonSchema | undefined {
  const [content] = Object.values(operation.requestBody?.content ?? {})
  const name = content?.schema.$ref
  return typeof name === 'string' ? document.components.schemas[name.split('/').at(-1) ?? ''] : undefined
}

function operationOf(path: string, method: string, described: Described): Operation {
  const parameters = described.parameters.filter((one) => one.in !== 'header')
  const checks = parameters.map((one) => ({ ...one, check: compile(one.schema) }))
  const body = bodySchema(described)
  const checkBody = body && compile(body)
  const answers = new Map(
    Object.entries(described.responses).flatMap(([status, { content }]) => {
      const schema = content['application/json']?.schema
      return schema ? [[Number(status), compile(schema)] as const] : []
    }),
  )
  return {
    ...described,
    path,
    method,
    example: {
      values: Object.fromEntries(parameters.flatMap((one) => ('example' in one ? [[one.name, one.example]] : []))),
      ...(body ? { body: (body.examples as unknown[])[0] } : {}),
    },
    forbids({ values, body: given }) {
      for (const { name, required, schema, check } of checks) {
        const value = values[name]
        const found =
          value === undefined ? (required ? `${name} is missing` : undefined) : why(check, readAs(schema, value), name)
        if (found) return found
      }
      return checkBody && why(checkBody, given, 'the body')
    },
    misfits(status, contentType, text) {
      if (!contentType.startsWith('application/json')) {
        const content = described.responses[status]?.content ?? {}
        return Object.keys(content).some((type) => contentType.startsWith(type.replace('*', '')))
          ? undefined
          : `${status} ${contentType}`
      }
      const check = answers.get(status)
      if (!check) return `${status} is not in the document`
      return why(check, JSON.parse(text), `${status}`)
    },
  }
}

/** Those that take WebSockets have tests of their own. */
export const OPERATIONS: readonly Operation[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).flatMap(([method, described]) =>
    101 in described.responses ? [] : [operationOf(path, method.toUpperCase(), described)],
  ),
)

export function addressOf({ path, parameters }: Operation, values: Asked['values']): string {
  const query = new URLSearchParams()
  let at = path
  for (const { name, in: place } of parameters) {
    const value = values[name]
    if (value === undefined) continue
    if (place === 'path') at = at.replace(`{${name}}`, encodeURIComponent(asText(value)))
    else if (place === 'query') query.append(name, asText(value))
  }
  const search = query.toString()
  return search ? `${at}?${search}` : at
}
