// The arithmetic of a charge: by the first tier that fits, times all multipliers, never rounded in the caller's favour.
import { assert, test } from '../../test/kit.ts'
import { chargeOf } from './charge.ts'
import { type Pricing, pricing } from './price.ts'

const PRICING: Pricing = {
  unit: 'credits',
  tiers: [
    { upTo: 100, input: 10n, output: 3n },
    { input: 20n, output: 6n },
  ],
  multipliers: { speed: { fast: 1_500_000n } },
}

test('a rate and a charge are rounded up, each once', () => {
  const amount = (input: number, output: number, speed?: string) =>
    chargeOf(PRICING, { input, output }, speed ? { speed } : {}).amount
  assert.equal(amount(1, 0), 1n, 'a part of a micro-credit is one')
  assert.deepEqual(chargeOf(PRICING, { output: 1 }, { speed: 'fast' }).lines, [['output', 1, '5']])
  assert.equal(amount(0, 1_000_000 / 100, 'fast'), 1n)
  assert.equal(chargeOf(PRICING, {}, {}).amount, 0n)
})

test('the size of the prompt decides on the tier, up to and with its limit', () => {
  const rates = (input: number) => chargeOf(PRICING, { input, output: 1 }).lines.map(([, , rate]) => rate)
  assert.deepEqual(
    [rates(100), rates(101)],
    [
      ['10', '3'],
      ['20', '6'],
    ],
  )
})

test('a price names nothing that is not in the table of units: a misspelt rate would be none', () => {
  const isRead = (tier: object) => pricing.safeParse({ unit: 'credits', tiers: [tier] }).success
  assert.deepEqual([{ input: '1' }, { imput: '1' }, { upto: 5, input: '1' }].map(isRead), [true, false, false])
})
