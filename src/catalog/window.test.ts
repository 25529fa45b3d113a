import assert from 'node:assert/strict'
import { test } from 'node:test'
import { words } from '../../test/lists.ts'
import { runProgram } from '../../test/sdk/cache.ts'
import { dayOfMs, formatDay } from '../kernel/calendar.ts'
import { ANALYTICS } from './analytics.ts'
import { readQuery } from './query.ts'
import { daysOf, type Selector } from './value.ts'

const DAY_MS = 86_400_000

function span(selector: string, nowMs: number): string {
  const unit: Selector['unit'] = selector.endsWith('d') ? 'days' : 'months'
  const { from, to } = daysOf({ unit, count: Number.parseInt(selector, 10) }, dayOfMs(nowMs))
  return `${formatDay(from)} ${formatDay(to)}`
}

test('windows are exact at the ends of months and years', () => {
  const story = [
    // now                     latest    from          to
    ['2026-11-15T00:00:00.000Z', '28d', '2026-10-16', '2026-11-12'],
    ['2026-11-15T23:59:59.999Z', '28d', '2026-10-16', '2026-11-12'],
    ['2026-11-15T00:00:00.000Z', '366d', '2025-11-12', '2026-11-12'],
    ['2026-11-15T00:00:00.000Z', '3m', '2026-08-01', '2026-10-31'],
    ['2026-12-31T23:59:59.999Z', '28d', '2026-12-01', '2026-12-28'],
    ['2026-12-31T23:59:59.999Z', '1m', '2026-11-01', '2026-11-30'],
    ['2027-01-01T00:00:00.000Z', '28d', '2026-12-02', '2026-12-29'],
    ['2027-01-01T00:00:00.000Z', '1d', '2026-12-29', '2026-12-29'],
    ['2027-01-01T00:00:00.000Z', '1m', '2026-12-01', '2026-12-31'],
    ['2027-01-01T00:00:00.000Z', '6m', '2026-07-01', '2026-12-31'],
    ['2027-01-03T00:00:00.000Z', '1d', '2026-12-31', '2026-12-31'],
    ['2027-03-01T00:00:00.000Z', '1m', '2027-02-01', '2027-02-28'],
    ['2028-03-01T00:00:00.000Z', '1m', '2028-02-01', '2028-02-29'],
    ['2028-03-03T00:00:00.000Z', '1d', '2028-02-29', '2028-02-29'],
    ['2028-03-01T00:00:00.000Z', '28d', '2028-01-31', '2028-02-27'],
    ['2026-03-31T12:00:00.000Z', '1m', '2026-02-01', '2026-02-28'],
    ['2026-05-31T12:00:00.000Z', '3m', '2026-02-01', '2026-04-30'],
  ] as const
  for (const [now, latest, from, to] of story)
    assert.equal(span(latest, Date.parse(now)), `${from} ${to}`, `${latest} at ${now}`)
})

test('every window of every day of six years is what the UTC calendar says', () => {
  const iso = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  for (let ms = Date.UTC(2023, 11, 25, 23, 59, 59, 999); ms < Date.UTC(2030, 0, 5); ms += DAY_MS) {
    const now = new Date(ms)
    for (const days of [1, 28, 366]) {
      const to = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() - 3)
      assert.equal(span(`${days}d`, ms), `${iso(to - (days - 1) * DAY_MS)} ${iso(to)}`)
    }
    for (const months of [1, 2, 3, 4, 5, 6]) {
      const from = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 1)
      const to = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 0)
      assert.equal(span(`${months}m`, ms), `${iso(from)} ${iso(to)}`)
    }
  }
})

/** What each endpoint asks for at moments when the local date of some zone differs from the UTC one. */
function defaultsAtEdges(): string {
  const moments = words(`
    2026-10-31T23:30:00Z 2026-11-01T00:30:00Z 2026-12-31T18:20:00Z 2027-01-01T10:00:00Z 2026-03-29T01:30:00Z
  `)
  return JSON.stringify(
    moments.map((moment) =>
      ANALYTICS.map((spec) => {
        const required = Object.entries(spec.params).filter(([, field]) => field.required)
        const raw = required.map(([name, field]) => `${name}=${encodeURIComponent(field.example)}`).join('&')
        return readQuery(spec, raw, Date.parse(moment))
      }),
    ),
  )
}

const ZONES = ['UTC', 'Asia/Kathmandu', 'America/St_Johns', 'Pacific/Kiritimati', 'Pacific/Pago_Pago', 'Europe/Lisbon']

const PRINT = '--print-defaults'

test('the time zone of the machine changes nothing', async () => {
  if (process.argv.includes(PRINT)) {
    process.stdout.write(`DEFAULTS ${defaultsAtEdges()}\n`)
    return
  }
  const printed = await Promise.all(
    ZONES.map(async (zone) => {
      const { out } = await runProgram(process.execPath, [import.meta.filename, PRINT], { env: { TZ: zone } })
      return /DEFAULTS (.*)$/m.exec(out)?.[1]
    }),
  )
  for (const [index, text] of printed.entries()) assert.equal(text, defaultsAtEdges(), ZONES[index] ?? '')
})
