import assert from 'node:assert/strict'
import { test } from 'node:test'
import { realWorld, type World } from '../kernel/world.ts'
import { createByteBudget } from './budget.ts'

const never = new AbortController().signal

test('what fits is let in at once, the rest waits in order, and a large one is not overtaken', async () => {
  const budget = createByteBudget({ world: realWorld, bytesMax: 100, queueMax: 10 })
  const first = await budget.acquire(60, never)
  const order: string[] = []
  const large = budget.acquire(90, never).then((lease) => {
    order.push('large')
    return lease
  })
  const small = budget.acquire(10, never).then((lease) => {
    order.push('small')
    return lease
  })
  assert.equal(budget.waiting, 2)
  first.release()
  first.release()
  await Promise.all([large, small])
  assert.deepEqual(order, ['large', 'small'])
  assert.equal(budget.bytesInUse, 100)
  ;(await large).release()
  ;(await small).release()
  assert.equal(budget.bytesInUse, 0)
})

test('a line that is too long is refused with 503 and a time to come back', async () => {
  const budget = createByteBudget({ world: realWorld, bytesMax: 100, queueMax: 1 })
  const lease = await budget.acquire(100, never)
  const waiting = budget.acquire(1, never)
  await assert.rejects(budget.acquire(1, never), (error: Error & { status?: number; details?: object }) => {
    assert.equal(error.status, 503)
    assert.deepEqual((error.details as { retryAfterSeconds: number }).retryAfterSeconds, 5)
    return true
  })
  lease.release()
  ;(await waiting).release()
})

test('a line that does not move is refused after a while, and whoever leaves it makes room', async () => {
  const due: Array<() => void> = []
  const world: World = {
    ...realWorld,
    after(_delayMs, run) {
      due.push(run)
      return () => due.splice(due.indexOf(run), 1)
    },
  }
  const budget = createByteBudget({ world, bytesMax: 100, queueMax: 10 })
  const lease = await budget.acquire(60, never)
  const late = assert.rejects(budget.acquire(90, never), { status: 503 })
  const behind = budget.acquire(40, never)
  due[0]?.()
  await late
  ;(await behind).release()
  const controller = new AbortController()
  const left = assert.rejects(budget.acquire(90, controller.signal), (error) => error === 'left')
  controller.abort('left')
  await left
  await assert.rejects(budget.acquire(1, controller.signal), (error) => error === 'left')
  lease.release()
  assert.deepEqual([budget.bytesInUse, budget.waiting, due.length], [0, 0, 0])
})

test('a lease grows and shrinks, and one larger than everything runs alone', async () => {
  const budget = createByteBudget({ world: realWorld, bytesMax: 100, queueMax: 10 })
  const lease = await budget.acquire(50, never)
  await lease.grow(50, never)
  assert.equal(budget.bytesInUse, 100)
  lease.shrinkTo(70)
  lease.shrinkTo(90)
  assert.equal(lease.bytes, 70)
  const huge = budget.acquire(500, never)
  assert.equal(budget.waiting, 1)
  lease.release()
  ;(await huge).release()
})

test('bodies that do not wait are counted until they end, in the same budget; one larger than everything runs alone', async () => {
  const budget = createByteBudget({ world: realWorld, bytesMax: 100, queueMax: 10 })
  const isRefusal = { kind: 'unavailable' }
  const end = budget.carry(60)
  assert.throws(() => budget.carry(50), isRefusal)
  const lease = await budget.acquire(40, never)
  assert.throws(() => budget.carry(1), isRefusal, 'both ways take from one budget')
  end()
  end()
  assert.throws(() => budget.carry(61), isRefusal, 'an end counts once')
  lease.release()
  budget.carry(1_000)
  assert.throws(() => budget.carry(1), isRefusal)
  assert.equal(budget.refused, 4)
})
