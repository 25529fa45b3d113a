import fc from 'fast-check'
import { assert, runs, test } from '../../../test/kit.ts'
import { repairJson } from './json-repair.ts'

const CASES: Array<[text: string, value: unknown]> = [
  ['```json\n{"name": "Bob"}\n```', { name: 'Bob' }],
  ['Here is [what] you asked for:\n{"name": "Charlie", "age": 25}\nAnything else?', { name: 'Charlie', age: 25 }],
  ['{"name": "Alice", "age": 30', { name: 'Alice', age: 30 }],
  ['{"name": "David", "age": 35,}', { name: 'David', age: 35 }],
  ['{name: \'Eve\', "active": True, other: None}', { name: 'Eve', active: true, other: null }],
  ['{"a": [1, 2, 3', { a: [1, 2, 3] }],
  ['{"a": [1, 2}', { a: [1, 2] }],
  ['{"a": "cut of', { a: 'cut of' }],
  ['{"a": 1, "b":', { a: 1, b: null }],
  ['{"a": 1 "b": 2}', { a: 1, b: 2 }],
  ['{"a": "line\nbreak", // why\n "b": /* no */ 2}', { a: 'line\nbreak', b: 2 }],
  ['{"a": "He said "hi" to me", "b": 1}', { a: 'He said "hi" to me', b: 1 }],
  ['{“a”: “b”, "c": "\\u00e4\\n\\x"}', { a: 'b', c: 'ä\nx' }],
  ['{"a": [1, 2, ...], ...}', { a: [1, 2] }],
  ['{"id": 12345678901234567890, "x": -1.5e3,}', JSON.parse('{"id": 12345678901234567890, "x": -1.5e3}')],
]

test('JSON as models write it becomes JSON', () => {
  for (const [text, value] of CASES) assert.deepEqual(JSON.parse(repairJson(text) ?? 'null'), value, text)
  assert.deepEqual(JSON.parse(repairJson('Sure: [1, 2,] and {"no": 1}', '[') ?? 'null'), [1, 2])
  assert.equal(repairJson('{"id": 12345678901234567890,}'), '{"id":12345678901234567890}')
  for (const text of ['', 'No.', '}', '"text"']) assert.equal(repairJson(text), undefined, text)
})

test('JSON that is right stays as it is, and a damaged one gives JSON or nothing', () => {
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 4 }),
      fc.nat(),
      fc.constantFrom('', ',', '"', '{', ']', "'", 'x'),
      (value, at, put) => {
        const text = JSON.stringify({ value })
        assert.deepEqual(JSON.parse(repairJson(text) ?? ''), { value: JSON.parse(JSON.stringify(value)) })
        const place = at % text.length
        const damaged = text.slice(0, place) + put + text.slice(place + (at % 3))
        const repaired = repairJson(damaged)
        if (repaired !== undefined) JSON.parse(repaired)
      },
    ),
    { numRuns: runs(300, 20_000) },
  )
})

test('no text takes more than one pass', () => {
  for (const piece of [
    '{',
    '[',
    '{"a":',
    '"',
    '" ',
    '... ',
    '//\n',
    '/*',
    '\\',
    'x ',
    '{"a" "b',
    '```json ',
    '“',
    ',:',
  ])
    repairJson(`{${piece.repeat(200_000 / piece.length)}`)
})
