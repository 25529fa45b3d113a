// FOCUS files for whoever downloads them, page by page, so that a month of any size needs the memory of one page.
import { Fault } from '../kernel/fault.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import { idAtTime } from '../kernel/world.ts'
import type { Billing } from '../reports/billing.ts'
import { focusHeader, focusLines } from './files.ts'
import { type FocusSources, focusRows, readFocusNames } from './focus.ts'
import { readWithin } from './usage-rows.ts'

const PAGE_ROWS = 5_000
const HOUR_MS = 3_600_000
/** Calls are found by when they began; they count for the day in which they were posted. No call takes longer. */
const CALL_MS_MAX = 40 * 86_400_000

interface FocusDeps extends FocusSources {
  readonly billing: Billing
}

/** The calls that were posted in a range of time. */
export async function* focusCsv(
  sources: FocusDeps,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): AsyncGenerator<string> {
  const { database, billing } = sources
  const { worth } = await billing.get()
  if (!worth) throw new Fault('conflict', { message: 'Set what a credit is worth first: tollgate billing change.' })
  yield focusHeader()
  let last = { id: '', account: '' }
  const range = { from: idAtTime(Math.max(0, fromMs - CALL_MS_MAX)), to: idAtTime(toMs + HOUR_MS) }
  for (;;) {
    const rows = await readWithin(database, { ...range, ...last }, PAGE_ROWS)
    const meant = rows.filter(
      ({ at, account_id: account }) => at.getTime() >= fromMs && at.getTime() < toMs && !isTestAccount(account),
    )
    if (meant.length > 0) yield focusLines(focusRows(meant, worth, await readFocusNames(sources, meant)))
    const end = rows.at(-1)
    if (!end || rows.length < PAGE_ROWS) return
    last = { id: end.id, account: end.account_id }
  }
}
