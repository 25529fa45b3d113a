import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldsOf, inputOf, type Schema } from './schema-fields.ts'

const SCHEMA: Schema = {
  type: 'object',
  required: ['name', 'limits'],
  properties: {
    name: { type: 'string', description: 'Where it is used' },
    models: { type: 'array', items: { type: 'string' } },
    secret: { type: 'string', read: 'secret' },
    isTest: { type: 'boolean', default: false },
    level: { enum: ['low', 'high'] },
    endsAt: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    limits: { type: 'object', required: [], properties: { spendPerDay: { type: 'number' } } },
    rules: { type: 'array', items: { type: 'object' } },
  },
}

test('a schema becomes fields, those of its parts too, each with what it is called and whether it is needed', () => {
  const said = fieldsOf(SCHEMA).map(({ name, label, kind, required }) => `${name} ${label} ${kind} ${required}`)
  assert.deepEqual(said, [
    'name Name text true',
    'models Models lines false',
    'secret Secret secret false',
    'isTest Is test yes-no false',
    'level Level choice false',
    'endsAt Ends at text false',
    'limits.spendPerDay Limits: Spend per day number false',
    'rules Rules json false',
  ])
})

test('what is typed is sent in its place; what is empty is not sent, and “none” is null', () => {
  const fields = fieldsOf(SCHEMA)
  assert.deepEqual(inputOf(fields, { name: 'none', models: 'a\n b \n', isTest: 'false', endsAt: 'none' }), {
    name: 'none',
    models: ['a', 'b'],
    isTest: false,
    endsAt: null,
  })
  assert.deepEqual(inputOf(fields, { level: 'high', 'limits.spendPerDay': '2.5', rules: '[{"a": 1}]' }), {
    level: 'high',
    limits: { spendPerDay: 2.5 },
    rules: [{ a: 1 }],
  })
  assert.throws(() => inputOf(fields, { rules: '[{' }), /^Error: rules: must be JSON/)
})

test('a body that is no object has one field, and names of members never reach what they must not', () => {
  const [body, ...none] = fieldsOf({ type: 'object', additionalProperties: { type: 'string' } })
  assert.deepEqual([body?.kind, none.length], ['json', 0])
  assert.deepEqual(inputOf([body!], { body: '{"a": "b"}' }), { a: 'b' })
  assert.throws(() => inputOf([body!], { body: '{' }), /^Error: body: must be JSON/)
  assert.deepEqual(inputOf(fieldsOf({ type: 'object', properties: { body: { type: 'string' } } }), { body: 'a' }), {
    body: 'a',
  })
})

test('a choice of nothing is offered once, also where a word of the choice is “none”', () => {
  for (const [words, none] of [
    [['low', 'high'], null],
    [['none', 'low'], 'none'],
    [['true', 'false'], null],
  ] as const) {
    const given = words[0] === 'true' ? { type: 'boolean' } : { enum: words }
    const fields = fieldsOf({ type: 'object', properties: { level: { anyOf: [given, { type: 'null' }] } } })
    assert.deepEqual(new Set(fields[0]?.options), new Set(['none', ...words]))
    assert.equal(fields[0]?.options.filter((word) => word === 'none').length, 1)
    assert.deepEqual(inputOf(fields, { level: 'none' }), { level: none })
  }
})
