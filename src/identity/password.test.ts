import assert from 'node:assert/strict'
import { test } from 'node:test'
import { realWorld as world } from '../kernel/world.ts'
import { COST, createPasswords } from './password.ts'

const CHEAP = { memoryKiB: 64, passes: 1 }

test('a password is kept as argon2id with its cost, and is told from every other', async () => {
  const passwords = createPasswords({ world })
  const stored = await passwords.hash('seven tired otters juggle')
  assert.match(stored, /^\$argon2id\$v=19\$m=32768,t=3,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  assert.ok(COST.memoryKiB >= 19_456 && COST.passes >= 2)
  assert.equal(await passwords.verify('seven tired otters juggle', stored), 'right')
  assert.equal(await passwords.verify('seven tired otters juggl', stored), 'wrong')
  assert.equal(await passwords.verify('seven tired otters juggle ', stored), 'wrong', 'nothing is cut off')
})

test('the same password typed on another machine is the same, and 128 characters all count', async () => {
  const passwords = createPasswords({ world, cost: CHEAP })
  assert.equal(
    await passwords.verify('cafe\u0301 cafe\u0301 cafe\u0301', await passwords.hash('caf\u00e9 caf\u00e9 caf\u00e9')),
    'right',
  )
  const long = `${'x'.repeat(127)}y`
  assert.equal(await passwords.verify(`${'x'.repeat(127)}z`, await passwords.hash(long)), 'wrong')
})

test('a hash of another cost is right but stale, so that a login renews it', async () => {
  const stored = await createPasswords({ world, cost: CHEAP }).hash('seven tired otters juggle')
  const today = createPasswords({ world, cost: { memoryKiB: 128, passes: 1 } })
  assert.equal(await today.verify('seven tired otters juggle', stored), 'stale')
  assert.equal(await today.verify('another one entirely', stored), 'wrong')
})

test('a crowd is turned away instead of queued without end, and the loop goes on meanwhile', async () => {
  const passwords = createPasswords({ world, cost: { memoryKiB: 2048, passes: 1 } })
  let ticks = 0
  const ticker = setInterval(() => {
    ticks += 1
  }, 1)
  const results = await Promise.allSettled(
    Array.from({ length: 80 }, () => passwords.hash('seven tired otters juggle')),
  )
  clearInterval(ticker)
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 52)
  assert.ok(ticks > 5, `the event loop turned ${ticks} times`)
  assert.equal(await passwords.verify('a', await passwords.hash('a')), 'right', 'and it works afterwards')
})

test('a name that nobody has takes as long as a wrong password', async () => {
  const passwords = createPasswords({ world })
  const stored = await passwords.hash('seven tired otters juggle')
  const known: number[] = []
  const unknown: number[] = []
  for (let i = 0; i < 6; i++) {
    for (const [list, run] of [
      [known, () => passwords.verify('wrong wrong wrong', stored)],
      [unknown, () => passwords.verifyNobody('wrong wrong wrong')],
    ] as const) {
      const startedMs = performance.now()
      await run()
      list.push(performance.now() - startedMs)
    }
  }
  // The best of each: what else runs on the machine only ever adds.
  const ratio = Math.min(...known) / Math.min(...unknown)
  assert.ok(ratio > 0.75 && ratio < 1.33, `known ${Math.min(...known)} ms, unknown ${Math.min(...unknown)} ms`)
})
