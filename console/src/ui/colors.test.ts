import assert from 'node:assert/strict'
import { test } from 'node:test'
import { colorsOf } from './colors.ts'

const NAMES = Array.from({ length: 8 }, (_, at) => `model-${at}`)

test('the names of a chart have colours of their own, the same in whichever order they come', () => {
  const first = colorsOf(NAMES)
  assert.equal(new Set(first).size, NAMES.length)
  assert.deepEqual(colorsOf(NAMES.toReversed()), first.toReversed())
})

test('a name has the same colour in every browser, whatever was looked at before', () => {
  const [alone] = colorsOf(['beta-opus-5'])
  for (let at = 0; at < 100; at++) colorsOf([`key ${at}`, `model ${at * 7}`])
  assert.deepEqual(colorsOf(['beta-opus-5']), [alone])
})

test('more names than colours never make two lines of one chart alike while there are colours left', () => {
  for (let at = 0; at < 50; at++) {
    const shown = Array.from({ length: 12 }, (_, step) => `key ${(at * 7 + step * 13) % 100}`)
    assert.equal(new Set(colorsOf(shown)).size, new Set(shown).size)
  }
})

test('failed and rejected calls, input and output have the colours that say so', () => {
  assert.deepEqual(colorsOf(['Succeeded', 'Failed', 'Rejected', 'Input', 'Output']), ['good', 'bad', 'warn', 1, 3])
})
