import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeTier, priceSummary } from './pricing.ts'
import { type Pricing, UNIT_NAMES, unitRow } from './wire.ts'

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

test('a price is summed up by its cheapest tier', () => {
  assert.equal(priceSummary(text), 'from 250 in · 1,500 out per million tokens')
  assert.equal(priceSummary(image), 'from 4.2 per image')
  assert.equal(priceSummary({ unit: 'credits', tiers: [{ call: '1', row: '0.01' }] }), '1 per call, 0.01 per row')
  assert.equal(priceSummary({ unit: 'credits', tiers: [{ input: '2' }] }), '2 per million input tokens')
  assert.equal(priceSummary({ unit: 'credits', tiers: [{ output: '40' }] }), '40 per million output tokens')
  assert.equal(priceSummary(null), 'No price')
  assert.equal(describeTier(text.tiers[0] ?? {}), 'up to 1,000 input tokens')
})

test('a price that the catalog gives as a number is shown like one in quotes', () => {
  const bare: Pricing = { unit: 'credits', tiers: [{ call: 0.5, row: 2 }] }
  assert.equal(priceSummary(bare), '0.5 per call, 2 per row')
})

test('a price in any unit is shown with its amount and its unit', () => {
  for (const unit of UNIT_NAMES) {
    const { per, one, many } = unitRow(unit)
    const words = per === 1 ? `7 per ${one}` : `7 per million ${many}`
    assert.equal(priceSummary({ unit: 'credits', tiers: [{ [unit]: '7' }] }), words)
  }
  assert.equal(priceSummary({ unit: 'credits', tiers: [{ call: '1', webSearch: '5' }] }), '1 per call')
})
