import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { FULL } from '../../test/runs.ts'
import { realWorld as world } from '../kernel/world.ts'
import { COST, createPasswords } from './password.ts'

const CHEAP = { memoryKiB: 64, passes: 1 }

test('a password is kept as argon2id with its cost, and is told from every other', async () => {
  const passwords = createPasswords({ world })
  const stored = await passwords.hash('seven tired otters juggle')
  assert.match(stored, /^\$argon2id\$v=19\$m=32768,t=3,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  assert.notEqual(await passwords.hash('seven tired otters juggle'), stored, 'each has a salt of its own')
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

test('a name that nobody has takes as long as a wrong password: the medians differ by less than 5 %', async (t) => {
  const passwords = createPasswords({ world })
  const stored = await passwords.hash('seven tired otters juggle')
  /** Time on a processor, which is about the same whether the neighbours leave us one or not. */
  async function cost(run: () => Promise<unknown>): Promise<number> {
    const before = process.cpuUsage()
    await run()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
  async function ratioOf(pairs: number): Promise<number> {
    const known: number[] = []
    const unknown: number[] = []
    for (let i = 0; i < pairs; i++) {
      const turns = [
        async () => void known.push(await cost(() => passwords.verify('wrong wrong wrong', stored))),
        async () => void unknown.push(await cost(() => passwords.verifyNobody('wrong wrong wrong'))),
      ]
      // Who begins is drawn: in a fixed order each would always run on the same threads, and those differ.
      for (const turn of randomInt(2) === 0 ? turns : turns.reverse()) await turn()
    }
    t.diagnostic(`${2 * pairs} tries: known ${median(known).toFixed(1)} ms, unknown ${median(unknown).toFixed(1)} ms`)
    return FULL ? median(known) / median(unknown) : median(known.map((ms, i) => ms / unknown[i]!))
  }
  // A difference of the code is there every time; one of the neighbours is not.
  const ratios: number[] = []
  const isSame = (ratio: number) => ratio > 0.95 && ratio < 1.05
  while (ratios.length < (FULL ? 1 : 15) && !ratios.some(isSame)) ratios.push(await ratioOf(FULL ? 500 : 10))
  assert.ok(ratios.some(isSame), `known ÷ unknown: ${ratios}`)
})

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
