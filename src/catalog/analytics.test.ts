import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ANALYTICS } from './analytics.ts'
import { checkDocument } from './document.ts'
import { isDataEndpoint } from './endpoint.ts'
import { ENDPOINTS } from './index.ts'
import { SOCIAL } from './social.ts'
import { readValue } from './value.ts'

const shipped: unknown = JSON.parse(readFileSync(new URL('default.json', import.meta.url), 'utf8'))

test('every analytics endpoint and social data have a route and a price in the shipped catalog', () => {
  const checked = checkDocument(shipped)
  assert.ok(checked.ok, checked.ok ? '' : checked.problems.join('\n'))
  const { endpoints, models } = checked.document
  assert.deepEqual(Object.keys(endpoints).toSorted(), ANALYTICS.map(({ id }) => id).toSorted())
  for (const { id } of ANALYTICS) assert.equal(endpoints[id]?.routes[0]?.protocol, 'site-analytics', id)
  for (const { product } of SOCIAL) assert.equal(models[product]?.type, 'data')
  assert.equal(models.socialapi?.routes[0]?.protocol, 'social-v2')
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
