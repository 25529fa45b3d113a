import { dayOfMs } from '../../kernel/calendar.ts'
import { invalid } from '../../kernel/fault.ts'
import type { World } from '../../kernel/world.ts'
import { parseMonth } from '../../ledger/usage-sums.ts'

/** Parses a month, which must have begun. */
export function monthOf({ world }: { readonly world: World }, given: string, name: string): number {
  const month = parseMonth(given)
  if (month === undefined) throw invalid(`${name}: must be a month such as 2026-10.`, name)
  if (month > dayOfMs(world.nowMs())) throw invalid(`${name}: ${given} has not begun.`, name)
  return month
}
