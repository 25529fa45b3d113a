// Margins, and what no customer pays.
import * as z from 'zod'
import type { CoreParts } from '../../../extension.ts'
import { dayOfMs, formatDay, monthStart, parseDay } from '../../../kernel/calendar.ts'
import { invalid } from '../../../kernel/fault.ts'
import { page } from '../../../kernel/view.ts'
import { id, paging, type Resource, resource, text } from '../../../operator/resource.ts'
import { pagesCsv, rowsCsv } from '../../../reports/csv.ts'
import { monthOf } from '../month.ts'
import { labelOf, marginTotals, readMargins } from './margins.ts'
import { readUnbilled } from './unbilled.ts'
import { marginGrouping, marginPage, marginRow, unbilledRow } from './views.ts'

export type MarginDeps = Pick<CoreParts, 'database' | 'world'>

const MONTHS_MAX = 36
/** For reports that read single calls. */
const LABEL_MONTHS_MAX = 3
const cursor = z
  .string()
  .regex(/^\d{1,9}$/, 'is not a cursor that a page gave as next')
  .optional()
const ofAccount = id.optional().meta({ description: 'Of one account', value: 'account', refersTo: 'account' })
const served = {
  product: text(100).optional().meta({ description: 'Only this model, by its name in the catalog', option: 'model' }),
  vendor: text(100).optional().describe('Only this vendor'),
}
const marginQuery = z.strictObject({
  by: marginGrouping.default('product').describe('product (default), account, vendor, month or label:<name>'),
  from: text(7)
    .optional()
    .meta({ description: 'The first month, such as 2026-10; last month by default', value: 'month' }),
  to: text(7).optional().meta({ description: 'The last month; the same by default', value: 'month' }),
  account: ofAccount,
  ...served,
  limit: paging.limit,
  cursor,
})
const unbilledQuery = z.strictObject({
  from: text(10).optional().meta({ description: 'The first day; the first of this month by default', value: 'day' }),
  to: text(10).optional().meta({ description: 'The last day; today by default', value: 'day' }),
  ...served,
  limit: paging.limit,
  cursor,
})

export function marginResources(deps: MarginDeps): Resource[] {
  const { database, world } = deps

  function marginsOf({ from, to, by, account, product, vendor }: z.output<typeof marginQuery>) {
    const last = to === undefined ? undefined : monthOf(deps, to, 'to')
    const before = monthStart(dayOfMs(world.nowMs()), -1)
    const first = from === undefined ? (last ?? before) : monthOf(deps, from, 'from')
    const until = last ?? first
    if (until < first) throw invalid('to: must not lie before from.', 'to')
    const most = labelOf(by) === undefined ? MONTHS_MAX : LABEL_MONTHS_MAX
    if (monthStart(first, most) <= until) throw invalid(`from: at most ${most} months are summed up.`, 'from')
    return readMargins(database, { by, from: first, to: until, account, product, vendor })
  }

  function dayOf(given: string, name: string): string {
    if (parseDay(given) === undefined) throw invalid(`${name}: must be a day such as 2026-11-15.`, name)
    return given
  }

  async function unbilled({ vendor, product, limit, ...query }: z.output<typeof unbilledQuery>) {
    const today = dayOfMs(world.nowMs())
    const from = query.from === undefined ? formatDay(monthStart(today)) : dayOf(query.from, 'from')
    const to = query.to === undefined ? formatDay(today) : dayOf(query.to, 'to')
    const offset = Number(query.cursor ?? 0)
    const items = await readUnbilled(database, { from, to, vendor, product }, { offset, limit: limit + 1 })
    return { items: items.slice(0, limit), next: items.length > limit ? String(offset + limit) : null }
  }

  return [
    resource('GET /margins', 'margins:read', {
      title: 'Show margins',
      query: marginQuery,
      answer: marginPage,
      async run({ query }) {
        const rows = await marginsOf(query)
        const start = Number(query.cursor ?? 0)
        const end = start + query.limit
        return {
          items: rows.slice(start, end),
          next: rows.length > end ? String(end) : null,
          totals: marginTotals(rows),
        }
      },
      csv: ({ query }) => rowsCsv(marginRow.keyof().options, () => marginsOf(query)),
    }),
    resource('GET /margins/unbilled', 'margins:read', {
      title: 'Show costs not billed to customers',
      query: unbilledQuery,
      answer: page(unbilledRow),
      run: ({ query }) => unbilled(query),
      csv: ({ query }) => pagesCsv(unbilledRow.keyof().options, (paging) => unbilled({ ...query, ...paging })),
    }),
  ]
}
