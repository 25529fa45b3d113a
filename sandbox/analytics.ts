// The website-statistics vendor: its GET paths in their native shapes. It refuses what the real one would refuse of a
// query that the gateway has already made whole.
import { dayOfMs, formatDay, monthStart, parseDay } from '../src/kernel/calendar.ts'
import { derivedReport } from './analytics-derived.ts'
import { FIGURES } from './analytics-figures.ts'
import { answerData, dataTriggers } from './data-faults.ts'
import { Refusal } from './refusal.ts'
import type { Room } from './room.ts'
import { type Device, findSite } from './site.ts'
import type { SiteAsk } from './site-ask.ts'

const PREFIX = '/analytics/'
/** How far back the source goes. */
const MONTHS_BACK_MAX = 37

export const analyticsRoom: Room = {
  name: 'site-analytics',
  match: (method, path) => method === 'GET' && path.startsWith(PREFIX),
  async serve(_req, res, ctx) {
    const { query } = ctx
    const name = query.get('keys') ?? query.get('key') ?? query.get('Key') ?? query.get('keyword') ?? ''
    await answerData(res, ctx, { triggers: dataTriggers(name, ctx), errorBody }, () => {
      const path = ctx.path.slice(PREFIX.length)
      const report = FIGURES[path] ?? derivedReport(path)
      if (!report) return { status: 404, value: errorBody(404, 'There is no such report.') }
      try {
        return { status: 200, value: report(readAsk(name, query, dayOfMs(ctx.world.nowMs()))) }
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        return { status: error.status, value: errorBody(error.status, error.message) }
      }
    })
  },
}

const errorBody = (_status: number, message: string) => ({ Message: message })

const DEVICES: readonly string[] = ['Total', 'Desktop', 'MobileWeb'] satisfies Device[]

function readAsk(name: string, query: URLSearchParams, today: number): SiteAsk {
  if (name === '') throw new Refusal(400, 'The request names no site and no keyword.')
  const device = query.get('webSource') ?? query.get('websource') ?? 'Total'
  if (!DEVICES.includes(device)) throw new Refusal(400, `Unknown web source ${device}.`)
  return {
    name,
    site: findSite(name),
    country: query.get('country') ?? '999',
    device: device as Device,
    ...readDays(query, today),
    text: (param, fallback) => query.get(param) ?? fallback,
    number: (param, fallback) => Number(query.get(param) ?? fallback),
  }
}

/** Dates come as `YYYY|MM|DD`; reports without days get yesterday. */
function readDays(query: URLSearchParams, today: number): { from: number; to: number } {
  const first = query.get('from')
  const last = query.get('to')
  if (first === null && last === null) return { from: today - 1, to: today - 1 }
  const from = first?.includes('|') ? parseDay(first) : undefined
  const to = last?.includes('|') ? parseDay(last) : undefined
  if (from === undefined || to === undefined || from > to) throw new Refusal(400, 'The dates cannot be read.')
  const oldest = monthStart(today, -MONTHS_BACK_MAX)
  if (from < oldest || to >= today) {
    const interval = `${formatDay(oldest)} to ${formatDay(today - 1)}`
    throw new Refusal(400, `The requested dates are outside the allowed interval ${interval}.`)
  }
  return { from, to }
}
