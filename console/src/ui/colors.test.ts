import assert from 'node:assert/strict'
import { test } from 'node:test'
import { colorsOf } from './colors.ts'

const NAMES = Array.from({ length: 8 }, (_, at) => `model-${at}`)

test('a name has one colour, whichever others are shown beside it and in which order', () => {
  const known = new Map<string, number>()
  const first = colorsOf(NAMES, known)
  assert.equal(new Set(first).size, NAMES.length)
  assert.deepEqual(colorsOf(NAMES.toReversed(), known), first.toReversed())
  for (const [at, name] of NAMES.entries()) assert.deepEqual(colorsOf([name], known), [first[at]])
})

test('names that were never met get the same colours in every browser', () => {
  assert.deepEqual(colorsOf(NAMES, new Map()), colorsOf(NAMES, new Map()))
})

test('more names than colours never make two lines of one chart alike while there are colours left', () => {
  const known = new Map<string, number>()
  for (let at = 0; at < 100; at++) colorsOf([`key ${at}`], known)
  for (let at = 0; at < 50; at++) {
    const shown = Array.from({ length: 12 }, (_, step) => `key ${(at * 7 + step * 13) % 100}`)
    assert.equal(new Set(colorsOf(shown, known)).size, new Set(shown).size)
  }
})

test('failed and rejected calls have the colours that say so', () => {
  assert.deepEqual(colorsOf(['Succeeded', 'Failed', 'Rejected'], new Map()), ['good', 'bad', 'warn'])
})
