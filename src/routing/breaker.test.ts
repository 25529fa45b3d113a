// The breaker's rules about probes, on a clock that the test holds.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Breaker } from './breaker.ts'

const probed = (failures: number) => ({ failures, message: 'It is away.', sinceMs: 0, untilMs: 10_000 })

/** Seen with that many failed probes. */
function after(failures: number, breaker = new Breaker()): Breaker {
  breaker.probed(probed(failures))
  if (failures > 0) breaker.probeFailed()
  return breaker
}

/** Opened by the calls of one account. */
function opened(): Breaker {
  const breaker = new Breaker()
  for (let i = 0; i < 5; i++) breaker.failed('a', 100)
  assert.equal(breaker.state(100).phase, 'open')
  return breaker
}

test('calls give way after three failed probes, or after one where their own have opened the breaker', () => {
  for (const [failures, gives] of [
    [1, false],
    [2, false],
    [3, true],
    [9, true],
  ] as const) {
    assert.equal(after(failures).givesWay('a', 0) !== undefined, gives, `${failures} failed probes`)
    assert.equal(after(failures).state(0).phase, gives ? 'open' : 'closed')
  }
  const breaker = after(1, opened())
  // Half-open by then: no caller's call is spent on a trial.
  assert.ok(breaker.givesWay('a', 9_000))
  assert.equal(breaker.givesWay('b', 9_000), undefined)
  assert.equal(breaker.admits('b', 9_000), true)
})

test('a call that succeeds disproves the failed probes before it, but not those after it', () => {
  const breaker = after(3)
  breaker.succeeded('a')
  assert.equal(breaker.givesWay('a', 0), undefined)
  assert.equal(after(5, breaker).givesWay('a', 0), undefined)
  assert.ok(after(6, breaker).givesWay('a', 0))
  // A new row of failures begins at one.
  assert.ok(after(3, after(0, breaker)).givesWay('a', 0))
})

test('a probe that succeeds after the last failed call closes the breaker, once until a call succeeds or a probe fails', () => {
  const breaker = opened()
  breaker.probeSucceeded(50)
  assert.equal(breaker.state(200).phase, 'open', 'it began before the calls failed')
  breaker.probeSucceeded(200)
  assert.equal(breaker.state(200).phase, 'closed')
  for (let i = 0; i < 5; i++) breaker.failed('a', 300)
  breaker.probeSucceeded(400)
  assert.equal(breaker.state(400).phase, 'open', 'its kind of request works while calls do not')
  after(1, breaker)
  after(0, breaker).probeSucceeded(500)
  assert.equal(breaker.state(500).phase, 'closed', 'a probe that saw the fault sees its end')
})

test('calls that go on failing after a probe has answered ask for no more probes, until one of either says otherwise', () => {
  const breaker = opened()
  assert.equal(breaker.awaitsProbe(100), true)
  breaker.probeSucceeded(200)
  for (let i = 0; i < 5; i++) breaker.failed('a', 300)
  assert.deepEqual([breaker.state(300).phase, breaker.awaitsProbe(300)], ['open', false])
  assert.equal(after(1, breaker).awaitsProbe(300), true, 'probes see it too')
  breaker.succeeded('b')
  assert.equal(breaker.awaitsProbe(300), false, 'it works')
  for (let i = 0; i < 5; i++) breaker.failed('a', 400)
  assert.equal(breaker.awaitsProbe(400), true)
})

test('what probes found does not count for ever when nobody probes any more, nor when probes are switched off', () => {
  assert.equal(after(3).givesWay('a', 10_001), undefined)
  const breaker = after(3)
  breaker.probed(undefined)
  assert.equal(breaker.givesWay('a', 0), undefined)
  assert.deepEqual(breaker.state(0), { phase: 'closed', sinceMs: undefined, probed: undefined })
})
