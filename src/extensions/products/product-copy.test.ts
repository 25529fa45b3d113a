// What the product of one document has in common with the endpoints that it was made of, beside what the contract tests
// try on both.

import { casesOf } from '../../../test/field-cases.ts'
import { assert, test, testGateway } from '../../../test/gateway.ts'
import { ALL, addCopies, copied, copyOf } from '../../../test/product-copy.ts'
import type { DataEndpointSpec } from '../../catalog/endpoint.ts'
import { Fault } from '../../kernel/fault.ts'
import { readDataRequest } from '../../protocols/data/http-api.ts'
import { readSocialRequest } from '../../protocols/data/social-v2.ts'

const g = testGateway({ catalog: addCopies })

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
