import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluck } from '../../../../test/lists.ts'
import { vendorState, worstFirst } from './vendor-state.ts'

const well = {
  name: 'well',
  breaker: 'closed',
  credential: { name: 'KEY', present: true, source: 'env' },
  simulated: false,
  requests: 100,
  recent: { minutes: 10, requests: 40, errors: 1 },
  lastAt: '2026-11-15T10:00:00.000Z',
  lastTest: null,
  probe: null,
} as const
const tested = (at: string, ok = false) => ({ lastTest: { ok, at, message: '' } })
const probed = (state: 'answering' | 'failing' | 'rejected') => ({
  probe: { state, message: '', failures: 0, everySeconds: 60, latencyMs: null, since: null, at: null },
})
const none = { minutes: 0, requests: 0, errors: 0 }
const others = [
  { ...well, name: 'open', breaker: 'open' },
  { ...well, name: 'bare', credential: { name: 'KEY', present: false, source: 'none' } },
  { ...well, name: 'ill', recent: { minutes: 10, requests: 40, errors: 12 } },
  { ...well, name: 'new', requests: 0, recent: none },
] as const

test('a vendor is called what it is, and the worst comes first', () => {
  assert.deepEqual(pluck(worstFirst([well, ...others]), 'name'), ['open', 'bare', 'ill', 'new', 'well'])
  const label = (vendor: Parameters<typeof vendorState>[0]) => vendorState(vendor).label
  assert.equal(label(well), 'Healthy')
  assert.deepEqual(others.map(label), [
    'Circuit open, 2.5 % failed in 10 min',
    'No credential',
    'Degraded: 30 % failed in 10 min',
    'Never called',
  ])
  assert.equal(label({ ...well, recent: none }), 'No recent calls')
  assert.equal(vendorState(well, { ok: false }).label, 'Last test failed')
  assert.equal(label({ ...well, ...tested('2026-11-15T11:00:00.000Z') }), 'Last test failed')
  assert.equal(label({ ...well, ...tested('2026-11-15T09:00:00.000Z') }), 'Healthy', 'it has answered since')
  assert.equal(label({ ...well, recent: none, ...tested('2026-11-15T09:00:00.000Z') }), 'Last test failed')
  assert.equal(
    label({ ...well, requests: 0, recent: none, lastAt: null, ...tested('2026-11-15T09:00:00.000Z', true) }),
    'Tested, never called',
  )
  assert.equal(label({ ...well, requests: 0, recent: none, ...probed('answering') }), 'Healthy')
  assert.equal(label({ ...well, ...probed('failing') }), 'Probes begin to fail')
  assert.equal(label({ ...well, breaker: 'open', ...probed('failing') }), 'Probes fail')
  assert.equal(label({ ...well, ...probed('rejected') }), 'Credential rejected')
  assert.equal(
    label({ ...well, simulated: true, credential: { name: 'KEY', present: false, source: 'none' } }),
    'Healthy',
  )
})
