import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { pluck } from '../../../test/lists.ts'
import { niceTicks, pickLabels } from './scale.ts'

test('an axis ends at or above its highest value, in a few round steps', () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-9, max: 1e15, noNaN: true }), (top) => {
      const ticks = niceTicks(top, 4)
      assert.equal(ticks[0], 0)
      assert.ok((ticks.at(-1) ?? 0) >= top * (1 - 1e-9))
      assert.ok(ticks.length >= 2 && ticks.length <= 6)
    }),
  )
  assert.deepEqual(niceTicks(0.3, 3), [0, 0.1, 0.2, 0.3])
  assert.deepEqual(niceTicks(0, 4), [0, 1])
  assert.deepEqual(niceTicks(Number.NaN, 4), [0, 1])
})

test('no more labels are shown than there is room for', () => {
  const labels = Array.from({ length: 90 }, (_, index) => String(index))
  assert.ok(pickLabels(labels, 6).length <= 6)
  assert.equal(pickLabels(['a', 'b'], 6).length, 2)
})

test('an axis of counts has whole numbers only', () => {
  assert.deepEqual(niceTicks(1, 4, true), [0, 1])
  assert.deepEqual(niceTicks(3, 4, true), [0, 1, 2, 3])
  for (let top = 1; top < 5000; top += 7)
    for (const tick of niceTicks(top, 4, true)) assert.ok(Number.isInteger(tick), `${top}: ${tick}`)
})

test('points without a label take no room from those that have one', () => {
  const days = Array.from({ length: 72 }, (_, hour) => (hour % 24 === 0 ? `day ${hour / 24}` : ''))
  assert.deepEqual(pluck(pickLabels(days, 3), 'index', 'label'), [
    [0, 'day 0'],
    [24, 'day 1'],
    [48, 'day 2'],
  ])
})
