import { assert, test } from '../../../test/kit.ts'
import { describeChanges } from '../../catalog/change-sentences.ts'
import shipped from '../../catalog/default.json' with { type: 'json' }
import { checkDocument } from '../../catalog/document.ts'
import { sectionReviews } from '../../catalog/section.ts'
import { formatMoney, parseMoney } from '../billing/money.ts'
import '../../compose.ts'

const SALES = {
  currency: 'EUR',
  pricePerCredit: '0.01',
  minimum: '5.00',
  maximum: '1000.00',
  packs: [{ id: 'starter', name: 'Starter', price: '20.00', credits: '2200', endsAfterDays: 90 }],
  plans: [{ id: 'pro', name: 'Pro', price: '9.00', credits: 1000, limits: { requestsPerMinute: 60 }, trialDays: 14 }],
}

function problemsOf(sales: unknown): string[] {
  const checked = checkDocument({ ...shipped, sales })
  return checked.ok ? [] : checked.problems
}

test('a catalog without sales sells nothing, and one with sales has its money in the smallest unit', () => {
  const none = checkDocument(shipped)
  assert.ok(none.ok && none.document.sales === undefined)
  const checked = checkDocument({ ...shipped, sales: SALES })
  assert.ok(checked.ok)
  const { sales } = checked.document
  assert.deepEqual(sales?.amounts, { pricePerCredit: 10_000n, minimumMinor: 500n, maximumMinor: 100_000n })
  assert.deepEqual(sales?.packs[0], {
    id: 'starter',
    name: 'Starter',
    price: '20.00',
    priceMinor: 2_000n,
    credits: 2_200_000_000n,
    endsAfterDays: 90,
  })
  assert.equal(sales?.plans[0]?.priceMinor, 900n)
})

test('a catalog whose sales are wrong is refused with the field and the reason', () => {
  const pack = SALES.packs[0]
  for (const [sales, problem] of [
    [{ ...SALES, currency: 'eur' }, /sales\.currency: must be a currency/],
    [{ ...SALES, pricePerCredit: '0' }, /sales\.pricePerCredit: must be an amount of money above 0/],
    [{ ...SALES, minimum: undefined }, /sales\.minimum: is missing/],
    [{ ...SALES, maximum: '4.99' }, /sales\.maximum: is less than the minimum/],
    [{ ...SALES, maximum: '999999999999.00' }, /sales\.maximum: buys more credits than/],
    [{ ...SALES, pricePerCredit: undefined }, /sales\.pricePerCredit: is missing/],
    [{ ...SALES, currency: 'JPY' }, /sales\.minimum: must be an amount of JPY with at most 0 decimals/],
    [{ ...SALES, packs: [pack, pack] }, /sales\.packs\.1\.id: names "starter" twice/],
    [{ ...SALES, packs: [{ ...pack, price: '0' }] }, /sales\.packs\.0\.price: must be an amount of EUR/],
    [
      { ...SALES, packs: [{ ...pack, credits: '-1' }] },
      /sales\.packs\.0\.credits: must be an amount of credits above 0/,
    ],
    [{ ...SALES, packs: [{ ...pack, products: ['nothing'] }] }, /packs\.0\.products\.0: there is no product "nothing"/],
    [
      { ...SALES, plans: [{ ...SALES.plans[0], limits: { callsAMonth: 1 } }] },
      /sales\.plans\.0\.limits: .*callsAMonth/,
    ],
  ] as const) {
    const problems = problemsOf(sales)
    assert.ok(
      problems.some((one) => problem.test(one)),
      `${problem}: ${problems.join('; ')}`,
    )
  }
})

test('a change of what is sold is said in words', () => {
  const cheaper = { ...SALES, packs: [{ ...SALES.packs[0], price: '18.00' }], plans: [] }
  assert.deepEqual(describeChanges({ ...shipped, sales: SALES }, { ...shipped, sales: cheaper }, sectionReviews()), [
    'Pack starter: price changes from "20.00" to "18.00".',
    'Plan pro is no longer sold.',
  ])
  const first = describeChanges(shipped, { ...shipped, sales: SALES }, sectionReviews())
  assert.ok(first.includes('Pack starter is sold: 2200 credits for 20.00 EUR.'), first.join(' '))
})

test('amounts of money are read and written with the decimals of their currency', () => {
  for (const [text, currency, minor, written] of [
    ['20', 'EUR', 2_000n, '20.00'],
    ['0.5', 'EUR', 50n, '0.50'],
    ['500', 'JPY', 500n, '500'],
    ['1.25', 'KWD', 1_250n, '1.250'],
  ] as const) {
    assert.equal(parseMoney(text, currency), minor)
    assert.equal(formatMoney(minor, currency), written)
  }
  assert.equal(formatMoney(-5n, 'EUR'), '-0.05')
  for (const [text, currency] of [
    ['5.001', 'EUR'],
    ['5.0', 'JPY'],
    ['-1', 'EUR'],
    ['1e3', 'EUR'],
    ['', 'EUR'],
  ] as const)
    assert.equal(parseMoney(text, currency), undefined)
})
