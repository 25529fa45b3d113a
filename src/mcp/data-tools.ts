// The data endpoints as tools: one for each entry of the catalog's table, whole from that entry.

import { mayUse } from '../admission/restriction.ts'
import { type DataEndpointSpec, isDataEndpoint } from '../catalog/endpoint.ts'
import type { Field } from '../catalog/field.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import { findDataProduct } from '../catalog/store.ts'
import { invalid } from '../kernel/fault.ts'
import { fieldSchemas } from './field-schema.ts'
import { markdownOf } from './markdown.ts'
import { callEndpoint, type PaidDeps, type Request } from './paid-call.ts'
import { priceText } from './price.ts'
import { type Arguments, objectSchema, type Tool } from './tool.ts'

export function dataTools(deps: PaidDeps): Tool[] {
  return ENDPOINTS.filter(isDataEndpoint).map((spec) => dataTool(spec, deps))
}

function dataTool(spec: DataEndpointSpec, deps: PaidDeps): Tool {
  const name = toolName(spec)
  const required = Object.keys(spec.params).filter((param) => spec.params[param]?.required)
  return {
    name,
    group: spec.restriction === 'socialapi' ? 'social' : 'analytics',
    title: spec.title,
    description: [
      spec.description,
      ...(spec.tool?.advice ? [spec.tool.advice] : []),
      `Returns: ${spec.returns}`,
      `Example: ${exampleOf(spec, required)}.`,
    ].join(' '),
    price: (catalog) => priceText(catalog, spec.product),
    input: objectSchema(fieldSchemas(spec.params), required),
    // What it holds stands in the description; its whole schema would double the listing.
    output: { type: spec.answer?.type === 'array' ? 'array' : 'object' },
    readOnly: true,
    openWorld: true,
    endpoint: spec.id,
    offered: (principal, catalog) =>
      mayUse(principal, spec.restriction) && findDataProduct(catalog, spec.product)?.enabled === true,
    async run(call) {
      const { value, charge } = await callEndpoint({ spec, tool: name }, asRequest(spec, call.args), call, deps)
      return { structured: value, text: markdownOf(value), charge, next: nextPage(spec, call.args, value) }
    },
  }
}

/** `siteanalytics/websites/ranks/global` is `website_ranks_global`. */
function toolName({ id, tool }: DataEndpointSpec): string {
  if (tool?.name !== undefined) return tool.name
  return id
    .replace(/^siteanalytics\//, '')
    .replace(/^(\w+?)s\//, '$1/')
    .replaceAll(/[^a-z0-9]+/gi, '_')
}

function exampleOf({ params }: DataEndpointSpec, required: readonly string[]): string {
  return JSON.stringify(Object.fromEntries(required.map((name) => [name, params[name]?.example])))
}

/** The arguments as the query that a caller of the endpoint would send; the endpoint's own checks do the rest. */
function asRequest({ params, path }: Pick<DataEndpointSpec, 'params' | 'path'>, args: Arguments): Request {
  const inPath: Record<string, string> = {}
  const query = new URLSearchParams()
  for (const [name, given] of Object.entries(args)) {
    if (given === null || given === undefined) continue
    const value = plainValue(name, given, params[name])
    if (path.includes(`{${name}}`)) inPath[name] = value
    else query.append(name, value)
  }
  return { params: inPath, query: query.toString() }
}

/** Models like to send lists as lists. */
function plainValue(name: string, value: unknown, field: Field | undefined): string {
  if (Array.isArray(value) && field?.kind === 'list' && value.every((item) => typeof item === 'string'))
    return value.join(',')
  if (Array.isArray(value) && field?.kind === 'json-array') return JSON.stringify(value)
  if (typeof value === 'object')
    throw invalid(`"${name.slice(0, 64)}" must be a text, a number or true or false.`, name)
  return String(value)
}

const TOTALS = ['TotalCount', 'TotalRecords', 'totalRecords'] as const

/** Which arguments to change for the rows that follow; undefined at the end, or where the answer does not say. */
function nextPage(spec: DataEndpointSpec, args: Arguments, value: unknown): Arguments | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const answer = value as Readonly<Record<string, unknown>> // Parsed JSON, and no array matters here.
  const token = (answer.meta as { readonly next_token?: unknown } | null | undefined)?.next_token
  if ('pagination_token' in spec.params && typeof token === 'string') return { pagination_token: token }
  const page = spec.params.page ? 'page' : spec.params.Page ? 'Page' : undefined
  const total = TOTALS.map((name) => answer[name]).find((count) => typeof count === 'number')
  if (page === undefined || total === undefined) return undefined
  const rows = Object.keys(spec.params).find((name) => /^(rowsPerPage|pageSize)$/i.test(name))
  const given = (name: string | undefined) => Number((name && (args[name] ?? spec.params[name]?.default)) ?? Number.NaN)
  const at = Number.isNaN(given(page)) ? 1 : given(page)
  const size = Number.isNaN(given(rows)) ? spec.rowsMax : given(rows)
  return at * size < total ? { [page]: at + 1 } : undefined
}
