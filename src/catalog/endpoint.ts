// One entry per public endpoint. Paths, validation, OpenAPI, reference docs and contract tests derive from it.

import type { ClientFormatName, DataProtocolName, KindName } from '../meter/kind.ts'
import type { Expression } from './expression.ts'
import type { Field } from './field.ts'

/** A JSON Schema (2020-12), as OpenAPI 3.1 takes it. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/**
 * Chat and Responses bodies are flat, Messages and Google's format have their own, images are flat without a request
 * id, the rest is native.
 */
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

/** The complete description of an endpoint. */
export interface EndpointSpec {
  /**
   * `chat`, `images`, `social/users`, `siteanalytics/websites/visits` …: the analytics ones are also products with a
   * price.
   */
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
  /** The client format of a text endpoint. */
  readonly format?: ClientFormatName
  /**
   * For a free endpoint about a model: the paid endpoint with the same models. A key may use it for the models that it
   * may use there.
   */
  readonly modelOf?: string
  /**
   * For a free endpoint: the endpoint to which it belongs, if its id does not begin with that name. A key that may use
   * one may use the other.
   */
  readonly partOf?: string
  /** It may answer with a stream of events. */
  readonly streams?: true
  /** Of a free endpoint: what is asked and answered may be kept, because it holds what a vendor or a caller wrote. */
  readonly recorded?: true
  /** Its body may have hundreds of megabytes, and is read from the socket in pieces. */
  readonly largeBody?: true
  /** A request may be several calls. */
  readonly several?: true
  /** Its body is a form with a file; quotes of it are JSON like all others. */
  readonly form?: true
  /** The type of an answer that is no JSON. */
  readonly gives?: string
  /** A model of another kind, or one that the key may not use, is answered as unknown. */
  readonly hidesModels?: true
  /** The default model of the contract; used only with TOLLGATE_FILL_DEFAULT_MODEL. */
  readonly presetModel?: string
  /** In the reference it stands behind the endpoint with this id. Absent: in the order of the lists. */
  readonly after?: string
  readonly title: string
  readonly description: string
  /** Query and path parameters, by their case-sensitive names; their order is the order of forwarding. */
  readonly params?: Readonly<Record<string, Field>>
  /** The request body of a POST. */
  readonly body?: JsonSchema
  /** Describes a successful answer in a sentence or two. */
  readonly returns?: string
  /** The schema of a successful answer, where the contract fixes it. */
  readonly answer?: JsonSchema
  /**
   * As a tool for agents: the name, if it does not follow from the path, and when to choose it instead of a similar
   * one.
   */
  readonly tool?: { readonly name?: string; readonly advice?: string }
}

/** An entry without its id. Most have the native surface and one path. */
export type EndpointEntry = Omit<EndpointSpec, 'id' | 'method' | 'path' | 'aliases' | 'surface'> &
  Partial<Pick<EndpointSpec, 'aliases' | 'surface'>> & { readonly route: `${EndpointSpec['method']} /${string}` }

/** An endpoint that looks up data at a vendor: everything about its query is in this entry. */
export interface DataEndpointSpec extends EndpointSpec {
  readonly sells: 'data'
  readonly params: Readonly<Record<string, Field>>
  /** The product in prices and usage rows. */
  readonly product: string
  /** The name by which a key's restrictions allow it. */
  readonly restriction: string
  /** The vendors' format. */
  readonly protocol: DataProtocolName
  /** The path below the vendor's base address. */
  readonly vendorPath: string
  /** The default range of days. Absent: the endpoint has no days, or requires them. */
  readonly window?: Window
  readonly pairs: readonly Pair[]
  readonly modes: readonly Mode[]
  /** The maximum of rows if the query has no page size. */
  readonly rowsMax: number
  /** Only for operations of the catalog's products. */
  readonly operation?: OperationFacts
}

/** Additional settings of a product's operation. */
export interface OperationFacts {
  /** How the units of its price are counted in an answer. */
  readonly counts: Readonly<Partial<Record<CountedUnit, { readonly expression: Expression; readonly least: number }>>>
  /** The maximum size of an answer; if bytes have a price, the hold covers it. */
  readonly bytesMax?: number | undefined
  /** Replaces the vendor's timeouts for the first byte and the whole answer. */
  readonly timeoutSeconds?: number | undefined
  /** The media types of its answers; `image/*` matches all images. */
  readonly answers: readonly string[]
  /** What a simulated vendor answers. */
  readonly example?: unknown
  /** It changes nothing at the vendor. */
  readonly readOnly: boolean
  /** How the body reaches the vendor: as it is, as a form, or as the only item of a list. */
  readonly bodyAs: 'json' | 'form' | 'list'
  /**
   * The pagination parameter. Its value comes from `path` in an answer, and only the account that got it may use it.
   */
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

/** Two parameters, of which the first must not be after the second. */
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

/** A tool that an extension sells and reads: an endpoint without a path of its own, whose input is a body alone. */
export interface ToolSpec extends EndpointSpec {
  readonly isTool: true
  readonly method: 'POST'
  readonly sells: 'data'
  readonly product: string
  readonly restriction: string
}

export const isToolSpec = (spec: EndpointSpec): spec is ToolSpec => 'isTool' in spec

/** The name with which a key is restricted to the tools of a server. */
export const isToolServerName = (name: string) => /^mcp\/[a-z][a-z0-9-]{0,29}$/.test(name)

export function isDataEndpoint(spec: EndpointSpec): spec is DataEndpointSpec {
  return spec.sells === 'data' && spec.params !== undefined
}

/** A body that is answered as it stands. */
export function exampleBody({ body }: EndpointSpec): Readonly<Record<string, unknown>> {
  const [example] = (body?.examples ?? []) as Readonly<Record<string, unknown>>[] // Written beside the schema, in the entries.
  return example ?? {}
}

// Functions to describe bodies and answers in JSON Schema for OpenAPI 3.1.

export const string = { type: 'string' } as const
export const integer = { type: 'integer' } as const
export const number = { type: 'number' } as const
export const boolean = { type: 'boolean' } as const
/** Explicit, because generators treat an object without this keyword as empty. */
export const free: JsonSchema = { type: 'object', additionalProperties: true }

export const nullable = (schema: { readonly type: string } & JsonSchema): JsonSchema => ({
  ...schema,
  type: [schema.type, 'null'],
})

export const list = (items: JsonSchema): { readonly type: 'array' } & JsonSchema => ({ type: 'array', items })

export const mapOf = (values: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: values })

/** An object that may have additional members. */
export function object(
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[] = Object.keys(properties),
): { readonly type: 'object' } & JsonSchema {
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}), additionalProperties: true }
}

/** Of its members only those that are named here are always there. */
export const having = (required: string, properties: Readonly<Record<string, unknown>>) =>
  object(properties, required.split(' '))

/** All of its members may be absent. */
export const loose = (properties: Readonly<Record<string, unknown>>) => object(properties, [])

export const component = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

/** Rules between parameters, and defaults. */
export function rulesOf({ window, modes, pairs, params }: DataEndpointSpec): string[] {
  const lines: string[] = []
  if (window)
    lines.push(
      window.unit === 'days'
        ? `Without dates: ${window.count} rolling days that end three UTC days ago.`
        : `Without dates: the previous ${window.count === 1 ? 'complete UTC month' : `${window.count} complete UTC months`}.`,
    )
  for (const { from, to, together } of pairs)
    lines.push(
      `${together ? `\`${from}\` and \`${to}\` go together, and` : ''} \`${from}\` must not be after \`${to}\`.`.trim(),
    )
  if (window && 'latest' in params) lines.push('`latest` does not go with `from` and `to`.')
  if (
    'latest' in params &&
    params.latest?.kind === 'latest' &&
    params.latest.months.length > 0 &&
    !window?.monthsMayRoll
  )
    lines.push('Months in `latest` do not go with `isWindow=true`.')
  if (window?.monthsBackMax !== undefined)
    lines.push(`Explicit dates must be complete months inside the last ${window.monthsBackMax}.`)
  for (const { param, value, defaults } of modes) {
    const others = Object.entries(defaults).map(([name, fallback]) => `${name} is ${fallback}`)
    lines.push(`With \`${param}=${value}\`, ${others.join(' and ')} unless given.`)
  }
  return lines.length === 0 ? [] : [lines.join(' ')]
}
