import { assert, test } from '../../test/kit.ts'
import { SlotSet } from './slot-set.ts'

test('members are found until they leave, and places are used again', () => {
  const roster = new SlotSet<string>()
  const a = roster.add('a')
  const b = roster.add('b')
  assert.deepEqual([...roster], ['a', 'b'])
  assert.equal(roster.remove(a, 'a'), true)
  assert.deepEqual([...roster], ['b'])
  assert.equal(roster.add('c'), a)
  assert.equal(roster.remove(a, 'a'), false, 'whoever has left takes nobody along')
  assert.deepEqual([...roster], ['c', 'b'])
  assert.equal(roster.size, 2)
  assert.equal(roster.remove(b, 'b'), true)
  assert.equal(roster.size, 1)
})

test('whoever leaves while all are looked at is passed over', () => {
  const roster = new SlotSet<string>()
  const places = ['a', 'b', 'c'].map((name) => [name, roster.add(name)] as const)
  const seen: string[] = []
  for (const name of roster) {
    seen.push(name)
    for (const [other, place] of places) roster.remove(place, other)
  }
  assert.deepEqual(seen, ['a'])
  assert.deepEqual([...roster], [])
})
