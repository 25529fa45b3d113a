import { assert, test } from '../../test/kit.ts'
import { civilDate, dayNumber, dayOfMs, formatDay, monthStart, monthsAfter, parseDay } from './calendar.ts'

const DAY_MS = 86_400_000

test('every day from the year 1 to 9999 is the day that the proleptic calendar says', () => {
  for (let day = -719_162; day <= 2_932_896; day += 1) {
    const civil = civilDate(day)
    if (dayNumber(civil) !== day) assert.fail(`day ${day} does not come back`)
    if (day % 97 !== 0) continue
    assert.equal(formatDay(day), new Date(day * DAY_MS).toISOString().slice(-24, -14), `day ${day}`)
  }
})

test('days that do not exist are not read', () => {
  for (const text of ['2026-02-29', '2100-02-29', '2026-04-31', '2026-13-01', '2026-00-10', '2026-01-00', '0000-01-01'])
    assert.equal(parseDay(text), undefined, text)
  for (const text of [
    '2026-1-01',
    '26-01-01',
    '2026/01/01',
    '2026-01|01',
    ' 2026-01-01',
    '2026-01-01 ',
    '20260101',
    '',
  ])
    assert.equal(parseDay(text), undefined, text)
  assert.equal(formatDay(parseDay('2024|02|29') ?? 0), '2024-02-29')
  assert.equal(formatDay(parseDay('2000-02-29') ?? 0, '|'), '2000|02|29')
})

test('months are counted across years, and a moment belongs to its UTC day', () => {
  const day = parseDay('2026-01-31') ?? 0
  assert.equal(formatDay(monthStart(day)), '2026-01-01')
  assert.equal(formatDay(monthStart(day, -1)), '2025-12-01')
  assert.equal(formatDay(monthStart(day, -13)), '2024-12-01')
  assert.equal(formatDay(monthStart(day, 12)), '2027-01-01')
  assert.equal(formatDay(dayOfMs(Date.UTC(2026, 11, 31, 23, 59, 59, 999))), '2026-12-31')
  assert.equal(formatDay(dayOfMs(Date.UTC(2027, 0, 1))), '2027-01-01')
})

test('a month has the same day, or the last where there is none', () => {
  const at = (text: string) => new Date(`${text}T10:00:00Z`)
  assert.deepEqual(
    [1, 2, 12].map((months) => monthsAfter(at('2027-01-31'), months).toISOString().slice(0, 10)),
    ['2027-02-28', '2027-03-31', '2028-01-31'],
  )
})
