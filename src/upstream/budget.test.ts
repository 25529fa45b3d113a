import { assert, test } from '../../test/kit.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { createByteBudget } from './budget.ts'

const never = new AbortController().signal

test('an account may have as much as it leaves free, and others go past it while it waits', async () => {
  const budget = createByteBudget({ world: realWorld, bytesMax: 100, queueMax: 10 })
  const first = await budget.acquire('a', 30, never)
  const second = await budget.acquire('a', 20, never)
  const third = budget.acquire('a', 10, never)
  assert.equal(budget.waiting, 1, 'it has half of everything')
  const other = await budget.acquire('b', 25, never)
  assert.equal(budget.bytesInUse, 75)
  assert.equal(budget.waiting, 1)
  other.release()
  first.release()
  first.release()
  ;(await third).release()
  second.release()
  assert.deepEqual([budget.bytesInUse, budget.waiting, budget.refused], [0, 0, 0])
})

test('accounts that take all that they can leave room for the next one', async () => {
  const budget = createByteBudget({ world: realWorld, bytesMax: 1_000_000, queueMax: 0 })
  for (let account = 0; account < 4; account += 1)
    for (let full = false; !full; )
      full = await budget.acquire(`greedy ${account}`, 1_000, never).then(
        () => false,
        () => true,
      )
  await budget.acquire('other', 20_000, never)
})

test('a line that is too long is refused with 503 and a time to come back, and one account does not fill it', async () => {
  const budget = createByteBudget({ world: realWorld, bytesMax: 100, queueMax: 4 })
  const leases = [await budget.acquire('b', 50, never), await budget.acquire('a', 50, never)]
  const waiting = [budget.acquire('a', 1, never), budget.acquire('a', 1, never)]
  const isFull = (error: Error & { status?: number; details?: { retryAfterSeconds?: number } }) =>
    error.status === 503 && error.details?.retryAfterSeconds === 5
  await assert.rejects(budget.acquire('a', 1, never), isFull)
  waiting.push(budget.acquire('c', 1, never), budget.acquire('d', 1, never))
  await assert.rejects(budget.acquire('e', 1, never), isFull)
  assert.equal(budget.refused, 2)
  for (const lease of leases) lease.release()
  for (const lease of await Promise.all(waiting)) lease.release()
  assert.equal(budget.bytesInUse, 0)
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
  const lease = await budget.acquire('a', 60, never)
  const late = assert.rejects(budget.acquire('b', 90, never), { status: 503 })
  due[0]?.()
  await late
  const controller = new AbortController()
  const left = assert.rejects(budget.acquire('b', 90, controller.signal), (error) => error === 'left')
  controller.abort('left')
  await left
  await assert.rejects(budget.acquire('b', 1, controller.signal), (error) => error === 'left')
  lease.release()
  assert.deepEqual([budget.bytesInUse, budget.waiting, due.length], [0, 0, 0])
})

test('a lease grows and shrinks, and one larger than everything runs alone', async () => {
  const budget = createByteBudget({ world: realWorld, bytesMax: 100, queueMax: 10 })
  const lease = await budget.acquire('a', 50, never)
  await lease.grow(150, never)
  assert.equal(budget.bytesInUse, 200)
  lease.shrinkTo(70)
  lease.shrinkTo(90)
  assert.equal(lease.bytes, 70)
  const huge = budget.acquire('b', 500, never)
  assert.equal(budget.waiting, 1)
  lease.release()
  ;(await huge).release()
  await lease.grow(10, never)
  assert.equal(budget.bytesInUse, 0, 'what was given back stays so')
})

test('nothing large is taken for an account that may not hold it', async () => {
  const asked: string[] = []
  const mayHold = async (account: string) => {
    asked.push(account)
    if (account === 'poor') throw new Error('no credits')
  }
  const budget = createByteBudget({ world: realWorld, bytesMax: 1_000_000, queueMax: 10, mayHold })
  const small = await budget.acquire('poor', 60_000, never)
  await assert.rejects(small.grow(10_000, never), /no credits/)
  const large = await budget.acquire('rich', 100_000, never)
  await large.grow(100_000, never)
  assert.deepEqual(asked, ['poor', 'rich'])
  assert.equal(budget.bytesInUse, 260_000)
})
