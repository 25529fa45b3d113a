import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ANALYTICS } from './analytics.ts'
import { checkDocument } from './document.ts'
import { isDataEndpoint } from './endpoint.ts'
import { ENDPOINTS } from './index.ts'
import { readValue } from './value.ts'

interface DataPrices {
  endpoints: Record<string, unknown>
  models: Record<string, unknown>
}

const prices = JSON.parse(readFileSync(new URL('default.data.json', import.meta.url), 'utf8')) as DataPrices
const vendors = { 'sandbox-analytics': { baseUrl: 'sandbox' }, 'sandbox-social': { baseUrl: 'sandbox' } }

test('every analytics endpoint has a route and a price, and nothing else does', () => {
  const checked = checkDocument({ vendors, ...prices })
  assert.deepEqual(checked.ok ? [] : checked.problems, [])
  assert.deepEqual(Object.keys(prices.endpoints).toSorted(), ANALYTICS.map(({ id }) => id).toSorted())
  assert.deepEqual(Object.keys(prices.models), ['socialapi'])
})

test('every address is one endpoint', () => {
  const addresses = ENDPOINTS.flatMap(({ method, path, aliases }) => [path, ...aliases].map((at) => `${method} ${at}`))
  assert.equal(new Set(addresses).size, addresses.length)
  assert.equal(new Set(ENDPOINTS.map(({ id }) => id)).size, ENDPOINTS.length)
  assert.equal(ENDPOINTS.filter(isDataEndpoint).length, 30)
})

test('examples and defaults are values that the endpoint takes, and path parameters stand in the path', () => {
  for (const { id, path, params = {} } of ENDPOINTS)
    for (const [name, field] of Object.entries(params)) {
      assert.ok(readValue(name, field, field.example), `${id} ${name}`)
      if (field.default !== undefined)
        assert.equal(readValue(name, field, field.default), field.default, `${id} ${name}`)
      assert.equal(path.includes(`{${name}}`), field.in === 'path', `${id} ${name}`)
      assert.ok(!(field.required && field.default !== undefined), `${id} ${name} is required and has a default`)
    }
})
