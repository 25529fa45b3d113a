import { assert, test } from '../../test/kit.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { createStreamWatch } from './monitor.ts'

/** A clock that goes when it is told to. */
function handClock() {
  let nowMs = 0
  let due: Array<() => void> = []
  const after = (_delayMs: number, run: () => void) => {
    due.push(run)
    return () => undefined
  }
  const world: World = { ...realWorld, elapsedMs: () => nowMs, after }
  const pass = (ms: number) => {
    nowMs += ms
    const now = due
    due = []
    for (const run of now) run()
  }
  return { world, pass }
}

test('a stream that is quiet for ten seconds is told so, and again after each ten more; one that writes is not', () => {
  const { world, pass } = handClock()
  const watch = createStreamWatch(world)
  let told = 0
  const stream = { quietLooks: 0, fullMs: 0, quiet: () => told++, stuck: () => assert.fail('it reads') }
  watch.add(stream)
  for (let i = 0; i < 20; i++) {
    pass(2_000)
    stream.quietLooks = 0
  }
  assert.equal(told, 0)
  // The first look may come right after something was written.
  for (let i = 0; i < 5; i++) pass(2_000)
  assert.equal(told, 0)
  pass(2_000)
  assert.equal(told, 1)
  for (let i = 0; i < 5; i++) pass(2_000)
  assert.equal(told, 2)
  watch.stop()
})

test('a caller is cut who did not read for half a minute, but not for what this process did not do while it was stopped', () => {
  const { world, pass } = handClock()
  let cut = 0
  const watch = createStreamWatch(world)
  const quiet = () => assert.fail('it is full, not quiet')
  watch.add({ quietLooks: 0, fullMs: 1, quiet, stuck: () => cut++ })
  pass(2_000)
  pass(60_000)
  assert.equal(cut, 0, 'cut after a stop')
  for (let i = 0; i < 12; i++) pass(2_000)
  assert.equal(cut, 0)
  for (let i = 0; i < 3; i++) pass(2_000)
  assert.ok(cut > 0)
  watch.stop()
})
