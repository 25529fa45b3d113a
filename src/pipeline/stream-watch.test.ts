import assert from 'node:assert/strict'
import { test } from 'node:test'
import { realWorld, type World } from '../kernel/world.ts'
import { createStreamWatch } from './stream-watch.ts'

test('a caller is cut who did not read for half a minute, but not for what this process did not do while it was stopped', () => {
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
  let cut = 0
  const watch = createStreamWatch(world)
  const quiet = () => assert.fail('it is full, not quiet')
  watch.add({ wroteMs: 1, fullMs: 1, quiet, stuck: () => cut++ })
  pass(2_000)
  pass(60_000)
  assert.equal(cut, 0, 'cut after a stop')
  for (let i = 0; i < 12; i++) pass(2_000)
  assert.equal(cut, 0)
  for (let i = 0; i < 3; i++) pass(2_000)
  assert.ok(cut > 0)
  watch.stop()
})
