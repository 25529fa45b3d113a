import assert from 'node:assert/strict'
import { test } from 'node:test'
import { briefCredits, formatCredits, parseCredits, sumCredits } from './credits.ts'

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

test('a rounded amount keeps the digits of what is too small to round', () => {
  assert.equal(formatCredits('48177.157215', 2), '48,177.16')
  assert.equal(formatCredits('1000', 2), '1,000.00')
  assert.equal(formatCredits('0.004', 2), '0.004')
  assert.equal(formatCredits('0', 2), '0')
  assert.equal(briefCredits('35'), '35')
  assert.equal(briefCredits('6.18204'), '6.182')
  assert.equal(briefCredits('1200'), '1,200')
})

test('what is not an amount is not taken for one', () => {
  for (const text of ['', 'x', '1.1234567', '1e3', '.5', '1,5', '0x10', 'NaN'])
    assert.equal(parseCredits(text), undefined)
})
