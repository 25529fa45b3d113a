import { assert, test } from '../../test/kit.ts'
import { idAtTime, newId, realWorld } from './world.ts'

const AT_MS = Date.UTC(2026, 10, 16)

test('ids have the order in which they were made, also within one millisecond, and are never the same', () => {
  let nowMs = AT_MS
  const world = { ...realWorld, nowMs: () => nowMs }
  const ids: string[] = []
  for (let i = 0; i < 32_768; i++) ids.push(newId(world))
  nowMs += 1
  ids.push(newId(world), newId(world))
  assert.deepEqual([...ids].sort(), ids)
  assert.equal(new Set(ids).size, ids.length)
  assert.ok(ids.every((id) => /^[0-9a-hjkmnp-tv-z]{26}$/.test(id)))
  assert.ok(ids[0]!.startsWith(idAtTime(AT_MS)) && ids.at(-1)!.startsWith(idAtTime(AT_MS + 1)))
})

test('more ids than can be counted within one millisecond are still of that millisecond and never the same', () => {
  const world = { ...realWorld, nowMs: () => AT_MS + 5 }
  const ids = Array.from({ length: 40_000 }, () => newId(world))
  assert.equal(new Set(ids).size, ids.length)
  assert.ok(ids.every((id) => id.startsWith(idAtTime(AT_MS + 5)) && id < idAtTime(AT_MS + 6)))
})

test('worlds with clocks of their own do not count each other’s ids', () => {
  const [a, b] = [
    { ...realWorld, nowMs: () => AT_MS },
    { ...realWorld, nowMs: () => AT_MS },
  ]
  const places = [newId(a), newId(b), newId(a), newId(b)].map((id) => id.slice(10, 13))
  assert.deepEqual(places, ['000', '000', '001', '001'])
})
