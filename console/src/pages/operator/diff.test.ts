import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { diffLines, hunksOf } from './diff.ts'

const line = fc.constantFrom('a', 'b', 'c', '{', '}')

test('the difference of two documents holds both of them whole', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 40 }), fc.array(line, { maxLength: 40 }), (before, after) => {
      const lines = diffLines(before, after)
      const kept = (kind: 'gone' | 'new') =>
        lines.filter((entry) => entry.kind === 'same' || entry.kind === kind).map((entry) => entry.text)
      assert.deepEqual(kept('gone'), before)
      assert.deepEqual(kept('new'), after)
    }),
  )
})

test('a change of one line in a long document is shown with the lines around it', () => {
  const before = Array.from({ length: 2000 }, (_, index) => `line ${index}`)
  const after = before.with(1200, 'changed')
  const [hunk, ...others] = hunksOf(diffLines(before, after))
  assert.equal(others.length, 0)
  assert.equal(hunk?.line, 1198)
  assert.deepEqual(
    hunk?.lines.filter((entry) => entry.kind !== 'same').map((entry) => entry.text),
    ['line 1200', 'changed'],
  )
})
