import fc from 'fast-check'
import { assert, runs, test } from '../../test/kit.ts'
import { Fault } from './fault.ts'
import { memberSpan, readJson, splice } from './json.ts'

const read = (text: string) => readJson(Buffer.from(text))

function refusal(body: string | Buffer): string {
  try {
    readJson(Buffer.from(body))
  } catch (error) {
    assert.ok(error instanceof Fault && error.kind === 'request_invalid')
    return error.message
  }
  return assert.fail('the body was accepted')
}

test('a body is read as an object, with its text and the places of its members', () => {
  const json = read(' { "model" : "x" ,"messages":[1, {"model":"inner"}],"n":1e0 } ')
  assert.deepEqual(json.value, { model: 'x', messages: [1, { model: 'inner' }], n: 1 })
  const at = (name: string) => json.text.slice(...json.member(name)!)
  assert.equal(at('model'), '"x"')
  assert.equal(at('messages'), '[1, {"model":"inner"}]')
  assert.equal(at('n'), '1e0')
  assert.equal(json.member('inner'), undefined)
})

test('a byte order mark is accepted, and characters beyond ASCII are read', () => {
  const json = readJson(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('{"模型":"👋"}')]))
  assert.deepEqual(json.value, { 模型: '👋' })
  assert.equal(json.text, '{"模型":"👋"}')
})

test('what is not a JSON object in UTF-8 is refused, and the message says why', () => {
  const deep = (levels: number) => `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`
  for (const [body, why] of [
    ['', /empty/],
    [' \n', /empty/],
    ['[1]', /must be a JSON object/],
    ['"x"', /must be a JSON object/],
    ['{', /not valid JSON/],
    ['{"a":1}}', /not valid JSON/],
    ['{"a" 1}', /not valid JSON/],
    ['{"a":01}', /not valid JSON/],
    ['{"a":"\n"}', /not valid JSON/],
    ['{"a":NaN}', /not valid JSON/],
    ['{"a":1,}', /not valid JSON/],
    ["{'a':1}", /not valid JSON/],
    ['{"a":"unterminated', /not valid JSON/],
    [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), /not valid UTF-8/],
    [Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), /not valid UTF-8/],
    ['{"a":1,"a":2}', /"a" twice/],
    ['{"a":1,"\\u0061":2}', /"a" twice/],
    ['{"x":[{"b":{"c":1,"c":1}}]}', /"c" twice/],
    ['{"x\\"":1}', /ends with a quote/],
    ['{"a":{"x\\\\":1}}', /ends with a quote or a backslash/],
    ['{"__proto__":{}}', /__proto__/],
    ['{"a":{"\\u005f_proto__":1}}', /__proto__/],
    [deep(64), /64 levels/],
  ] as const)
    assert.match(refusal(body), why, String(body).slice(0, 40))
  assert.ok(read(deep(63)))
})

test('the same key in different objects is no repetition, and odd names are ordinary', () => {
  assert.deepEqual(read('{"a":{"a":1},"b":[{"a":1},{"a":2}]}').value, { a: { a: 1 }, b: [{ a: 1 }, { a: 2 }] })
  const { value } = read('{"constructor":1,"toString":2,"":3,"\\"q":4,"\\n":5}')
  assert.deepEqual(Object.entries(value), [
    ['constructor', 1],
    ['toString', 2],
    ['', 3],
    ['"q', 4],
    ['\n', 5],
  ])
})

test('hostile sizes are answered within 100 ms: depth, members, elements, quotes', () => {
  const bodies = {
    depth: `{"a":${'[{"b":'.repeat(10_000)}`,
    members: `{${Array.from({ length: 1_000_000 }, (_, i) => `"k${i}":0`).join(',')}}`,
    elements: `{"a":[${'{},'.repeat(3_000_000)}{}]}`,
    backslashes: `{"a":"${'\\'.repeat(2_000_001)}"}`,
  }
  for (const [name, text] of Object.entries(bodies)) {
    const bytes = Buffer.from(text)
    // Time on the processor, the best of a few: the first runs are not compiled yet, and others use this machine too.
    let best = Number.POSITIVE_INFINITY
    for (let run = 0; run < 8 && best > 50; run++) {
      const started = process.cpuUsage()
      refusal(bytes)
      best = Math.min(best, process.cpuUsage(started).user / 1000)
    }
    assert.ok(best < 100, `${name}: ${best} ms`)
  }
})

test('edits touch only what they name', () => {
  const json = read('{ "model":"a", "stop" : ["x"] ,\t"n":1.0, "o":{"model":2} }')
  assert.equal(splice(json, {}), json.text)
  assert.equal(
    splice(json, { replace: { model: '"b"', absent: '1' } }),
    '{ "model":"b", "stop" : ["x"] ,\t"n":1.0, "o":{"model":2} }',
  )
  assert.equal(
    splice(json, { add: { z: '{"k":1}' } }),
    '{ "model":"a", "stop" : ["x"] ,\t"n":1.0, "o":{"model":2} ,"z":{"k":1}}',
  )
  assert.deepEqual(JSON.parse(splice(json, { remove: ['stop', 'absent'] })), { model: 'a', n: 1, o: { model: 2 } })
  assert.deepEqual(JSON.parse(splice(json, { remove: ['model', 'stop', 'n', 'o'], add: { q: '1' } })), { q: 1 })
  assert.equal(splice(read('{}'), { add: { a: '1' } }), '{"a":1}')
  assert.equal(splice(read('{"a":1}'), { add: { b: '2' } }), '{"a":1,"b":2}')
})

// A name that ends with a quote or a backslash is refused, anywhere.
const NAMED_BADLY = /["\\]$/
const isRefused = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.entries(value).some(([name, member]) => name === '__proto__' || NAMED_BADLY.test(name) || isRefused(member))
const key = fc.oneof(
  fc.constantFrom('model', 'stream', 'a', 'constructor', '"q', '\n', 'é'),
  fc.string({ unit: 'binary' }),
)
const object = fc
  .dictionary(key, fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' }), { maxKeys: 8 })
  .filter((value) => !isRefused(value))

test('for any object: it is read as JSON.parse reads it, and edits give what the edits say', () => {
  fc.assert(
    fc.property(object, fc.constantFrom('', ' ', '\n  '), fc.array(key), (value, space, remove) => {
      const json = read(JSON.stringify(value, undefined, space))
      assert.deepEqual(json.value, JSON.parse(json.text))
      for (const name of Object.keys(value))
        assert.deepEqual(JSON.parse(json.text.slice(...json.member(name)!)), json.value[name])
      const edited = JSON.parse(
        splice(json, { replace: { model: '"new"' }, remove: remove.filter((name) => name !== 'model') }),
      )
      const expected = { ...json.value }
      if (Object.hasOwn(expected, 'model')) expected.model = 'new'
      for (const name of remove) if (name !== 'model') delete expected[name]
      assert.deepEqual(edited, expected)
    }),
    { numRuns: 1_500 },
  )
})

test('for any text: what JSON.parse refuses is refused, and nothing else goes wrong', () => {
  const fragments = fc.array(
    fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', 'a', '1', 'null', ' ', '\\u0061', 'é'),
    { maxLength: 24 },
  )
  fc.assert(
    fc.property(fragments, (parts) => {
      const text = parts.join('')
      let parsed: unknown
      try {
        parsed = JSON.parse(text)
      } catch {
        parsed = undefined
      }
      if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) {
        try {
          assert.deepEqual(read(text).value, parsed)
        } catch (error) {
          assert.ok(error instanceof Fault && /twice|ends with/.test(error.message))
        }
      } else refusal(text)
    }),
    { numRuns: runs(1_500, 20_000) },
  )
})

test('a member of a vendor’s answer is found at its own level only', () => {
  const text = '{"a":{"model":"no"},"x":["model"],"s":"\\"model\\":\\"no\\"", "model" : "yes" }'
  assert.equal(text.slice(...memberSpan(text, 'model')!), '"yes"')
  assert.equal(memberSpan(text, 'absent'), undefined)
  assert.equal(memberSpan('[1]', 'a'), undefined)
  const numbers =
    '{"a":[1,-2.5e3, 4 ],"b":[[1],[2,[3]],[],{"model":[1]}],"c":[1,"],\\"model\\":[",{"model":1}],"model":[0.5,1] ,"z":[]}'
  assert.equal(numbers.slice(...memberSpan(numbers, 'model')!), '[0.5,1]')
  for (let end = 0; end < numbers.indexOf(' ,"z"'); end++)
    assert.equal(memberSpan(numbers.slice(0, end), 'model'), undefined)
  assert.equal(memberSpan('{"a":"', 'a'), undefined)
})
