import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatCredits } from './credits.ts'
import { describeTier, priceOf, priceSummary, tierFor } from './pricing.ts'
import type { Pricing } from './wire.ts'

const text: Pricing = {
  unit: 'credits',
  tokenTierBasis: 'input_tokens',
  tiers: [
    { upTo: 1000, input: '250', output: '1500' },
    { input: '500', output: '2250' },
  ],
}
const image: Pricing = {
  unit: 'credits',
  tiers: [
    { when: { resolution: '4k' }, image: '16.8' },
    { when: { resolution: '2k' }, image: '8.4' },
    { image: '4.2' },
  ],
}

test('the hint takes the tier that the gateway will take', () => {
  assert.equal(tierFor(text, {}, 1000)?.input, '250')
  assert.equal(tierFor(text, {}, 1001)?.input, '500')
  assert.equal(tierFor(image, { resolution: '4k', quality: 'low' }, 0)?.image, '16.8')
  assert.equal(tierFor(image, {}, 0)?.image, '4.2')
})

test('tokens are priced per million and rounded up once, everything else per one', () => {
  const shown = (amount: bigint | undefined) => (amount === undefined ? undefined : formatCredits(amount))
  assert.equal(shown(priceOf(text.tiers[0], { input: 1, output: 1 })), '0.00175')
  assert.equal(shown(priceOf({ input: '0.000001' }, { input: 1 })), '0.000001')
  assert.equal(shown(priceOf(image.tiers[2], { image: 1 })), '4.2')
  assert.equal(priceOf(image.tiers[2], { output: 5 }), undefined)
})

test('a price is summed up by its cheapest tier', () => {
  assert.equal(priceSummary(text), 'from 250 in · 1,500 out per million tokens')
  assert.equal(priceSummary(image), 'from 4.2 per image')
  assert.equal(priceSummary({ unit: 'credits', tiers: [{ call: '1', row: '0.01' }] }), '1 per call, 0.01 per row')
  assert.equal(priceSummary({ unit: 'credits', tiers: [{ input: '2' }] }), '2 per million input tokens')
  assert.equal(priceSummary({ unit: 'credits', tiers: [{ output: '40' }] }), '40 per million output tokens')
  assert.equal(priceSummary(null), 'No price')
  assert.equal(describeTier(text.tiers[0] ?? {}), 'up to 1,000 input tokens')
})

test('a price that the catalogue gives as a number is shown and counted like one in quotes', () => {
  const bare: Pricing = { unit: 'credits', tiers: [{ call: 0.5, row: 2 }] }
  assert.equal(priceSummary(bare), '0.5 per call, 2 per row')
  assert.equal(priceOf(bare.tiers[0], { call: 1, row: 2 }), 4_500_000n)
})
