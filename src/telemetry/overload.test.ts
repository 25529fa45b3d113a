import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '../kernel/fault.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { createOverload } from './overload.ts'

/** Time that passes only when it is told to, timers in order; `late` makes every timer of the step late. */
function makeTime() {
  let nowMs = 0
  let timers: Array<{ dueMs: number; run: () => void }> = []
  const world: World = {
    ...realWorld,
    elapsedMs: () => nowMs,
    after(delayMs, run) {
      const timer = { dueMs: nowMs + delayMs, run }
      timers.push(timer)
      return () => {
        timers = timers.filter((one) => one !== timer)
      }
    },
  }
  return {
    world,
    timers: () => timers.length,
    async pass(ms: number, lateMs = 0) {
      const endMs = nowMs + ms
      for (;;) {
        const next = timers.filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0]
        if (!next) break
        timers = timers.filter((one) => one !== next)
        nowMs = Math.max(nowMs, next.dueMs + lateMs)
        next.run()
        await new Promise((resolve) => setImmediate(resolve))
      }
      nowMs = Math.max(nowMs, endMs)
    },
  }
}

const isRefusal = (error: unknown) =>
  error instanceof Fault &&
  error.kind === 'unavailable' &&
  error.code === 50001 &&
  error.details.retryAfterSeconds === 1

const calls = (waiting = () => 0, running = () => 0) => ({
  ledger: { pending: 0 },
  database: { waiting },
  monitor: {
    get running() {
      return running()
    },
  },
})

test('with room every call goes in at once', () => {
  const overload = createOverload({ world: makeTime().world, ...calls(() => 256) })
  for (let i = 0; i < 1_000; i++) assert.equal(overload.admit(), undefined)
  assert.equal(overload.shed, 0)
})

test('without room a call waits: the newest goes in first when there is some, and who has waited three seconds is refused', async () => {
  const time = makeTime()
  let waiting = 1_000
  const overload = createOverload({ world: time.world, ...calls(() => waiting), waitingMax: 10 })
  const told: string[] = []
  const call = (name: string) =>
    overload.admit()!.then(
      () => void told.push(`${name} in`),
      (error) => void told.push(`${name} ${isRefusal(error) ? 'refused' : error}`),
    )
  void call('first')
  await time.pass(1_500)
  void call('second')
  void call('third')
  await time.pass(1_400)
  assert.deepEqual(told, [])
  waiting = 9
  await time.pass(5)
  assert.deepEqual(told, ['third in'], 'there was room for one')
  waiting = 1_000
  await time.pass(200)
  assert.deepEqual(told, ['third in', 'first refused'])
  waiting = 0
  await time.pass(10)
  assert.deepEqual(told, ['third in', 'first refused', 'second in'])
  assert.equal(overload.shed, 1)
  assert.equal(overload.admit(), undefined, 'and then it is as before')
})

test('a loop that is late once goes on, late twice is overloaded, and is well again with the next look', async () => {
  const time = makeTime()
  const overload = createOverload({ world: time.world, ...calls(), lagMsMax: 250 })
  assert.equal(overload.admit(), undefined)
  await time.pass(50, 400)
  assert.equal(overload.admit(), undefined)
  await time.pass(60, 400)
  assert.ok(overload.lagMs > 250)
  const line = overload.admit()
  assert.ok(line)
  await time.pass(60)
  await line
})

test('a process that nobody calls is not woken, and one that is called is watched again', async () => {
  const time = makeTime()
  let running = 0
  const overload = createOverload({ world: time.world, ...calls(undefined, () => running) })
  assert.equal(time.timers(), 0)
  assert.equal(overload.admit(), undefined)
  running = 1
  await time.pass(500)
  assert.equal(time.timers(), 1, 'while calls run')
  running = 0
  await time.pass(500)
  assert.equal(time.timers(), 0, 'after the last')
  assert.equal(overload.admit(), undefined)
  assert.equal(time.timers(), 1)
})

test('a line that is too long refuses at once, and a process that stops refuses all who wait', async () => {
  const time = makeTime()
  const overload = createOverload({ world: time.world, ...calls(() => 5_000) })
  const waiting = Array.from({ length: 5_000 }, () => overload.admit()!)
  assert.throws(() => overload.admit(), isRefusal)
  overload.stop()
  for (const result of await Promise.allSettled(waiting)) assert.equal(result.status, 'rejected')
})
