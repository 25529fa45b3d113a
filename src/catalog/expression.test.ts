import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundOf, countOf, readExpression } from './expression.ts'

test('what a caller sends that is no number, or a zero, makes an answer no cheaper than it is', () => {
  const limit = { type: ['integer', 'null'], minimum: 0, maximum: 20 }
  const schema = { properties: { limit, offset: { type: 'integer' } } }
  const rows = { json: { results: Array.from({ length: 12 }, () => 1) } }
  const counted = (text: string, json: object, answer: object = rows) => {
    const read = readExpression(text)
    assert.ok(typeof read !== 'string', String(read))
    return [
      boundOf(read, { request: { schema, json }, answer: {} }),
      countOf(read, { request: { schema, json }, answer }),
    ]
  }
  const text = 'min(size(answer.results), request.limit)'
  assert.deepEqual(counted(text, { limit: 5 }), [5, 5])
  for (const limit of [null, '5', undefined, []]) assert.deepEqual(counted(text, { limit }), [20, 12], String(limit))
  const offset = 'min(50, 50 - request.offset * answer.x)'
  assert.deepEqual(counted(offset, { offset: 0 }, { json: { x: 3 } }), [50, 50])
  assert.deepEqual(counted(offset, { offset: 2 }, { json: { x: 3 } }), [50, 44])
  // Of an answer that lacks what is counted, nothing is known.
  assert.equal(counted(text, { limit: 5 }, { json: { results: null } })[1], undefined)
})

test('the bound of an expression is proved from constants, min, bounded parameters and bounded lists', () => {
  const answer = { properties: { items: { maxItems: 7 }, n: { maximum: 3, minimum: 0 }, free: {} } }
  const request = { properties: { limit: { minimum: 1, maximum: 20 }, w: { maximum: 9 } } }
  const scope = { request: { schema: request }, answer: { schema: answer } }
  const bound = (text: string) => {
    const read = readExpression(text)
    return typeof read === 'string' ? read : boundOf(read, scope)
  }
  for (const [text, most] of [
    ['3 + 4 * 2', 11],
    ['size(answer.items) * 2', 14],
    ['min(answer.free, 9)', 9],
    ['min(size(answer.free), request.limit)', 20],
    ['answer.n > 1 ? 5 : request.limit', 20],
    ['(request.limit - 1) / 2.0', 10],
    ['max(answer.n, 2) + (has(answer.free) ? 1 : 0)', 4],
    ['-answer.n', 0],
  ] as const)
    assert.equal(bound(text), most, text)
  for (const text of [
    'answer.free',
    'size(answer.free)',
    'max(answer.free, 1)',
    '1 / answer.n',
    'answer.free > 1 ? answer.free : 2',
    'answer.n * answer.free',
  ])
    assert.match(String(bound(text)), /has no upper bound/, text)
  // A caller's number without a minimum: -5 of it would make the call free.
  for (const text of [
    'request.w',
    'request.w * 2 + 1',
    'min(request.w, 3)',
    '5 - request.any',
    'answer.n > 1 ? request.w : 2',
  ])
    assert.match(String(bound(text)), /has no lower bound: "request\.(?:w|any)"/, text)
  assert.equal(bound('max(request.w, 1) * 2'), 18)
  // What the vendor says is not below 0, whatever it sends.
  const counts = (text: string, json: object) => {
    const read = readExpression(text)
    return typeof read === 'string' ? read : countOf(read, { request: {}, answer: { json } })
  }
  assert.equal(counts('min(50, 50 - answer.x)', { x: -5 }), 50)
  for (const text of [
    'other.x',
    '[1]',
    '{"a": 1}',
    'answer.items.map(x, 1)',
    'answer[request.limit]',
    'upper("x")',
    '"text"',
    'x'.repeat(501),
    `1${'+1'.repeat(240)}`,
  ])
    assert.equal(typeof bound(text), 'string', text.slice(0, 40))
})
