// One entry per public endpoint. Paths, validation, OpenAPI, reference docs and contract tests derive from it.

import type { DataProtocolName, KindName, TextProtocolName } from '../meter/kind.ts'
import type { Expression } from './expression.ts'
import type { Field } from './field.ts'

/** A JSON Schema (2020-12), as OpenAPI 3.1 takes it. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** Chat and Responses bodies are flat, Messages and Google's format have their own, images are flat without a request id, the rest is native. */
export type Surface = 'native' | 'chat' | 'responses' | 'messages' | 'images' | 'gemini'

/** The groups of the reference, in their order, and what each is for. */
export const TAGS = {
  Text: 'Text models in four wire formats, and embeddings.',
  Audio: 'Speech into text, and text into speech.',
  Images: 'Pictures from a prompt, or from other pictures.',
  'Video and jobs': 'Videos, and the jobs that make them.',
  Batches: 'Many requests in a file, processed in the background.',
  'Social data': 'Profiles and timelines of a social network.',
  'Site analytics': 'Statistics of websites and search keywords.',
  Products: 'Further APIs that this gateway sells, as its catalog has them.',
  'Account and models': 'What a key may use, what it has, and what a call would cost.',
} as const

/** Everything that anyone needs to know of an endpoint. */
export interface EndpointSpec {
  /** `chat`, `images`, `social/users`, `siteanalytics/websites/visits` …: the analytics ones are also products with a price. */
  readonly id: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its parameters in braces: `/v1/jobs/{id}`. */
  readonly path: string
  /** Paths by which SDKs reach the same endpoint. */
  readonly aliases: readonly string[]
  readonly tag: keyof typeof TAGS
  readonly surface: Surface
  /** The kind of product that it sells. Absent: it is free of charge. */
  readonly sells?: KindName
  /** Of a text endpoint: the format that its callers speak. */
  readonly format?: TextProtocolName
  /** Of a free endpoint that is asked about a model: the paid endpoint whose models it takes. A key may use it for the models that it may use there. */
  readonly modelOf?: string
  /** Of a free endpoint whose id does not begin with the name of the one it belongs to: that name. A key that may use the one may use the other. */
  readonly partOf?: string
  /** It may answer with a stream of events. */
  readonly streams?: true
  /** Its body may hold hundreds of megabytes, and is read from the socket piece by piece. */
  readonly largeBody?: true
  /** Its body is a form with a file; quotes of it are JSON like all others. */
  readonly form?: true
  /** The type of an answer that is no JSON. */
  readonly gives?: string
  /** A model that is of another kind, or not for this key, does not exist here. */
  readonly hidesModels?: true
  /** The model that the contract names as the default; filled in only where the operator wants it so. */
  readonly presetModel?: string
  readonly title: string
  readonly description: string
  /** Query and path parameters, by their case-sensitive names; their order is the order of forwarding. */
  readonly params?: Readonly<Record<string, Field>>
  /** The request body of a POST. */
  readonly body?: JsonSchema
  /** What a successful answer holds, in a sentence or two. */
  readonly returns?: string
  /** The schema of a successful answer, where the contract fixes it. */
  readonly answer?: JsonSchema
  /** As a tool of agents: the name, where none follows from the path, and when to choose it rather than a similar one. */
  readonly tool?: { readonly name?: string; readonly advice?: string }
}

/** As it is written down under its id. Most have the native surface, and no other paths. */
export type EndpointEntry = Omit<EndpointSpec, 'id' | 'method' | 'path' | 'aliases' | 'surface'> &
  Partial<Pick<EndpointSpec, 'aliases' | 'surface'>> & { readonly route: `${EndpointSpec['method']} /${string}` }

/** An endpoint that looks up data at a vendor: everything about its query is in this entry. */
export interface DataEndpointSpec extends EndpointSpec {
  readonly sells: 'data'
  readonly params: Readonly<Record<string, Field>>
  /** What the price and the usage row name. */
  readonly product: string
  /** The name by which a key's restrictions allow it. */
  readonly restriction: string
  /** The format that its vendors speak. */
  readonly protocol: DataProtocolName
  /** The path below the vendor's base address. */
  readonly vendorPath: string
  /** The days that are looked at when the caller names none. Absent: the endpoint knows no days, or requires them. */
  readonly window?: Window
  readonly pairs: readonly Pair[]
  readonly modes: readonly Mode[]
  /** The most rows of an answer for which the query names no page size. */
  readonly rowsMax: number
  /** Of a product of the catalog: what only such have. */
  readonly operation?: OperationFacts
}

/** What a product's operation has besides, as the catalog says it. */
export interface OperationFacts {
  /** How often a unit of its price is counted in an answer. */
  readonly counts: Readonly<Partial<Record<CountedUnit, { readonly expression: Expression; readonly least: number }>>>
  /** No answer is larger; where bytes have a price, so many are held for. */
  readonly bytesMax?: number | undefined
  /** Of the first byte and of the whole answer, in place of the vendor's own. */
  readonly timeoutSeconds?: number | undefined
  /** The media types of its answers; `image/*` stands for all that begin so. */
  readonly answers: readonly string[]
  /** What a simulated vendor answers. */
  readonly example?: unknown
  /** How the body reaches the vendor: as it is, as a form, or as the only item of a list. */
  readonly bodyAs: 'json' | 'form' | 'list'
  /** A parameter that goes on where an answer ended: what the vendor gives at `path` is bound to the account that got it. */
  readonly pageToken?: { readonly param: string; readonly path: string } | undefined
}

export type CountedUnit = 'row' | 'metered'

export interface Window {
  readonly unit: 'days' | 'months'
  readonly count: number
  /** Explicit dates must be complete months inside this many months before the present one. */
  readonly monthsBackMax?: number
  /** A month selector may go with `isWindow=true`. */
  readonly monthsMayRoll?: true
}

/** Two parameters of which the first must not lie behind the second. */
export interface Pair {
  readonly from: string
  readonly to: string
  /** Neither may be given alone. */
  readonly together: boolean
}

/** Other defaults while a parameter has a certain value. */
export interface Mode {
  readonly param: string
  readonly value: string
  readonly defaults: Readonly<Record<string, string>>
}

export function isDataEndpoint(spec: EndpointSpec): spec is DataEndpointSpec {
  return spec.sells === 'data' && spec.params !== undefined
}

/** A body that is answered as it stands. */
export function exampleBody({ body }: EndpointSpec): Readonly<Record<string, unknown>> {
  const [example] = (body?.examples ?? []) as Readonly<Record<string, unknown>>[] // Written beside the schema, in the entries.
  return example ?? {}
}

// The words in which bodies and answers are described: JSON Schema, as OpenAPI 3.1 takes it.

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
