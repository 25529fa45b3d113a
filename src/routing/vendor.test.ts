import assert from 'node:assert/strict'
import { test } from 'node:test'
import { realWorld } from '../kernel/world.ts'
import { createVendors } from './vendor.ts'

test('copies get half of a vendor’s places, none of them from calls, and the oldest gives way when calls need all', () => {
  const vendors = createVendors(realWorld)
  const limits = { concurrencyMax: 4, pendingMax: 1 }
  const gone: string[] = []
  const copy = (name: string) => vendors.enterCopy('north', limits, () => gone.push(name))
  const call = () => {
    const leave = vendors.enter('north', limits, new AbortController().signal)
    assert.ok(!(leave instanceof Promise), 'a call does not wait for copies')
    return leave
  }
  assert.ok(copy('first') && copy('second'))
  assert.equal(copy('third'), undefined)
  const calls = [call(), call()]
  assert.deepEqual(gone, [])
  calls.push(call())
  assert.deepEqual(gone, ['first'])
  calls.push(call())
  assert.deepEqual(gone, ['first', 'second'])
  assert.equal(copy('fourth'), undefined)
  for (const leave of calls) leave()
  assert.ok(copy('fifth'))
  for (let turn = 0; turn < 5; turn++) vendors.failed('north', 'acc_1', 'HTTP 500')
  assert.equal(copy('sixth'), undefined, 'none is sent to a vendor whose breaker is open')
})
