// The gateway's own data endpoints, written into one OpenAPI document and sold again as a product: the contract tests
// run against both.
import assert from 'node:assert/strict'
import { ANALYTICS } from '../src/catalog/analytics.ts'
import { type CatalogInput, checkDocument } from '../src/catalog/document.ts'
import { type DataEndpointSpec, isDataEndpoint } from '../src/catalog/endpoint.ts'
import { endpointsOf } from '../src/catalog/index.ts'
import { SOCIAL } from '../src/catalog/social.ts'
import { readDefaultCatalog } from '../src/compose.ts'
import { importOpenapi } from '../src/extensions/products/openapi-import.ts'

export const ALL: readonly DataEndpointSpec[] = [...ANALYTICS, ...SOCIAL]

/** All of them in one document. What OpenAPI has no word for stands under `x-tollgate`. */
function documentOf(specs: readonly DataEndpointSpec[]): string {
  const paths: Record<string, unknown> = {}
  for (const {
    id,
    title,
    description,
    returns,
    params,
    answer,
    window,
    pairs,
    modes,
    rowsMax,
    protocol,
    tool,
  } of specs)
    paths[`/${id}`] = {
      get: {
        summary: title,
        description,
        parameters: Object.entries(params).map(([name, field]) => ({
          name,
          in: field.in ?? 'query',
          required: field.required ?? false,
          description: field.description,
          schema: { type: 'string' },
          'x-tollgate': field,
        })),
        responses: { 200: { description: returns, content: { 'application/json': {} } } },
        'x-tollgate': {
          protocol,
          pairs,
          modes,
          rowsMax,
          tool,
          description,
          returns,
          ...(answer && !JSON.stringify(answer).includes('#/components') ? { answer } : {}),
          ...(window ? { window } : {}),
        },
      },
    }
  return JSON.stringify({
    openapi: '3.1.0',
    info: { title: 'Ours again', version: '1' },
    servers: [{ url: 'https://data.example.com' }],
    paths,
  })
}

export const copied = importOpenapi(documentOf(ALL), { isTrusted: true })
const idOf = (spec: DataEndpointSpec) => copied.operations.find(({ route }) => route === `GET /${spec.id}`)?.id ?? ''

/** The catalog with the product beside what is there. */
export function addCopies(document: any): void {
  document.vendors.again = { baseUrl: 'sandbox/analytics' }
  document.vendors.people = { baseUrl: 'sandbox/social' }
  document.products = {
    again: {
      title: copied.title,
      operations: Object.fromEntries(
        copied.operations.map(({ id, operation, route }) => [
          id,
          // Where a call goes is not for the document's own rules to say.
          { ...operation, vendorPath: ALL.find((spec) => route === `GET /${spec.id}`)?.vendorPath },
        ]),
      ),
    },
  }
  for (const spec of ALL) {
    const { pricing } = document.endpoints[spec.product] ?? document.models[spec.product]
    const vendor = spec.protocol === 'social-v2' ? 'people' : 'again'
    document.endpoints[`again/${idOf(spec)}`] = { pricing, routes: [{ vendor, protocol: spec.protocol }] }
  }
}

const whole = (await readDefaultCatalog()) as CatalogInput // The shipped one is a document.
addCopies(whole)
const checked = checkDocument(whole)
assert.ok(checked.ok, checked.ok ? '' : checked.problems.join())
const all = endpointsOf(checked)

/** As the catalog makes it of the document. */
export function copyOf(spec: DataEndpointSpec): DataEndpointSpec {
  const found = all.find(({ id }) => id === `again/${idOf(spec)}`)
  assert.ok(found && isDataEndpoint(found), spec.id)
  return found
}

/** Ours, and the product of a document: the same promises, below another prefix. */
export const EDITIONS = [
  { edition: 'ours', prefix: '/v1', analytics: ANALYTICS, social: SOCIAL },
  { edition: 'as a product', prefix: '/v1/again', analytics: ANALYTICS.map(copyOf), social: SOCIAL.map(copyOf) },
] as const
