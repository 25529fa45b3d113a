import assert from 'node:assert/strict'
import { test } from 'node:test'
import { briefCredits, creditsText, formatCredits, inMoney, parseCredits, setWorth, sumCredits } from './credits.ts'

test('an amount of credits is shown exactly as the server counts it', () => {
  for (const [text, shown] of [
    ['0', '0'],
    ['0.000001', '0.000001'],
    ['12345.67', '12,345.67'],
    ['-3.5', '−3.5'],
    ['9999999999999.999999', '9,999,999,999,999.999999'],
  ] as const)
    assert.equal(formatCredits(text), shown)
})

test('sums of credits do not drift as floats would', () => {
  assert.equal(formatCredits(sumCredits(Array.from({ length: 10 }, () => '0.1'))), '1')
})

test('a rounded amount has four decimals at most, and says of less that it is less', () => {
  assert.equal(formatCredits('48177.157215', 2), '48,177.16')
  assert.equal(formatCredits('1000', 2), '1,000.00')
  assert.equal(formatCredits('0.004', 2), '0.004')
  assert.equal(formatCredits('0.004', 4), '0.0040')
  assert.equal(formatCredits('0.000157', 2), '0.0002')
  assert.equal(formatCredits('0.000001', 4), '<0.0001')
  assert.equal(formatCredits('-0.000001', 2), '−<0.0001')
  assert.equal(formatCredits('12.5', 6), '12.500000')
  assert.equal(formatCredits('0', 2), '0')
  assert.equal(briefCredits('35'), '35')
  assert.equal(briefCredits('6.18204'), '6.182')
  assert.equal(briefCredits('1200'), '1,200')
})

test('credits are shown as money at what the operator says that they are worth', () => {
  assert.equal(inMoney('12'), undefined)
  assert.equal(creditsText('0.16425'), '0.1643 credits')
  setWorth({ currency: 'EUR', rate: '0.01' })
  assert.deepEqual(
    ['1234.5', '-1', '0.16425', '0'].map((amount) => inMoney(amount)),
    ['€12.35', '−€0.01', '€0.0016', '€0.00'],
  )
  assert.equal(creditsText('1'), '1 credit (€0.01)')
  assert.equal(inMoney('1234.5', { currency: 'USD', rate: '0.02' }), '$24.69')
  assert.equal(inMoney('1234.5', null), undefined)
  setWorth({ currency: 'JPY', rate: '2' })
  assert.equal(inMoney('9999999999999.999999'), '¥20,000,000,000,000')
  setWorth(null)
  assert.equal(inMoney('12'), undefined)
})

test('what is not an amount is not taken for one', () => {
  for (const text of ['', 'x', '1.1234567', '1e3', '.5', '1,5', '0x10', 'NaN'])
    assert.equal(parseCredits(text), undefined)
})
