// The gateway's own data endpoints, written into one OpenAPI document and sold again as a product beside them: whatever they promise, the copies do.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ANALYTICS } from '../src/catalog/analytics.ts'
import { type DataEndpointSpec, isDataEndpoint } from '../src/catalog/endpoint.ts'
import { importOpenapi } from '../src/catalog/openapi-import.ts'
import { endpointsOf } from '../src/catalog/product.ts'
import { SOCIAL } from '../src/catalog/social.ts'
import { Fault } from '../src/kernel/fault.ts'
import { readDataRequest } from '../src/protocols/data/http-api.ts'
import { readSocialRequest } from '../src/protocols/data/social-v2.ts'
import { casesOf } from './field-cases.ts'
import { testGateway } from './gateway.ts'

const ALL = [...ANALYTICS, ...SOCIAL]

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
          ...{ name, in: field.in ?? 'query', required: field.required ?? false, description: field.description },
          ...{ schema: { type: 'string' }, 'x-tollgate': field },
        })),
        responses: { 200: { description: returns, content: { 'application/json': {} } } },
        'x-tollgate': {
          ...{ protocol, pairs, modes, rowsMax, tool, description, returns },
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

const copied = importOpenapi(documentOf(ALL), { isTrusted: true })
const idOf = (spec: DataEndpointSpec) => copied.operations.find(({ route }) => route === `GET /${spec.id}`)?.id ?? ''

const g = testGateway({
  catalog(document) {
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
  },
})

const copyOf = (spec: DataEndpointSpec) => {
  const found = endpointsOf(g.gateway.catalog.current).find(({ id }) => id === `again/${idOf(spec)}`)
  assert.ok(found && isDataEndpoint(found), spec.id)
  return found
}

/** The refusal of a query, or what is forwarded. */
function readBy(spec: DataEndpointSpec, query: string, path: Record<string, string>): unknown {
  try {
    const read =
      spec.protocol === 'social-v2'
        ? readSocialRequest(spec, path, query, { traits: { names: 'tweet' } })
        : readDataRequest(spec, { query }, { nowMs: Date.UTC(2026, 10, 15, 12) })
    return read.query
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return error.message
  }
}

test('27 and 3 endpoints, rebuilt from one document, take and refuse exactly what ours do', () => {
  assert.equal(copied.operations.filter(({ operation }) => operation).length, 30)
  let cases = 0
  for (const spec of ALL) {
    const copy = copyOf(spec)
    assert.equal(copy.path, `/v1/again/${spec.id}`)
    for (const name of [
      'params',
      'window',
      'pairs',
      'modes',
      'rowsMax',
      'vendorPath',
      'title',
      'description',
      'returns',
      'protocol',
    ] as const)
      assert.deepEqual(
        JSON.parse(JSON.stringify(copy[name] ?? null)),
        JSON.parse(JSON.stringify(spec[name] ?? null)),
        `${spec.id} ${name}`,
      )
    const required = Object.entries(spec.params).filter(([, field]) => field.required)
    for (const [name, field] of Object.entries(spec.params)) {
      const { good, bad } = casesOf(field)
      for (const value of [...good.map(([given]) => given), ...bad]) {
        const given = { ...Object.fromEntries(required.map(([other, one]) => [other, one.example])), [name]: value }
        const inPath = Object.fromEntries(Object.entries(given).filter(([one]) => spec.params[one]?.in === 'path'))
        const query = Object.entries(given)
          .filter(([one]) => spec.params[one]?.in !== 'path')
          .map(([one, text]) => `${one}=${encodeURIComponent(text)}`)
          .join('&')
        assert.deepEqual(readBy(copy, query, inPath), readBy(spec, query, inPath), `${spec.id}?${query}`)
        cases += 1
      }
    }
  }
  assert.ok(cases > 2_000, String(cases))
})

test('each copy answers what ours answers, byte for byte, at the same price', async () => {
  const { key } = await g.account()
  for (const spec of ALL) {
    const required = Object.entries(spec.params).filter(([, field]) => field.required)
    const query = required
      .filter(([, field]) => field.in !== 'path')
      .map(([name, field]) => `${name}=${encodeURIComponent(field.example)}`)
      .join('&')
    const at = (path: string) =>
      required.reduce((text, [name, field]) => text.replace(`{${name}}`, field.example), path)
    const [ours, copy] = await Promise.all(
      [spec.path, copyOf(spec).path].map((path) => g.call(`${at(path)}?${query}`, key)),
    )
    assert.equal(copy?.status, ours?.status, spec.id)
    const [one, other] = [await ours?.text(), await copy?.text()].map((text) =>
      text?.replace(/"requestId":"[^"]*"/, ''),
    )
    assert.equal(other, one, spec.id)
    assert.equal(copy?.headers.get('x-tollgate-charge'), ours?.headers.get('x-tollgate-charge'), spec.id)
  }
})
