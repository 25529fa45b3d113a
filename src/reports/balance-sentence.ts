// A balance in words, for the console and the command line, and the names of months and days in it.
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import type { BalanceView } from '../ledger/views.ts'

const MONTHS = 'January February March April May June July August September October November December'.split(' ')

/** "October 2026" */
export function monthName(month: string): string {
  return `${MONTHS[Number(month.slice(5)) - 1] ?? ''} ${month.slice(0, 4)}`
}

/** "31 October 2026", in UTC. */
export function dateName(iso: string): string {
  return `${Number(iso.slice(8, 10))} ${monthName(iso.slice(0, 7))}`
}

/** "500 credits, of which 120 end on 1 December 2026", and when more of them end: "…, and 80 later". */
export function balanceSentence(
  { balance, lots }: Pick<BalanceView, 'balance' | 'lots'>,
  show: (amount: string) => string = (amount) => amount,
): string {
  const ending = lots.flatMap(({ endsAt, remaining }) =>
    endsAt === null ? [] : [{ day: endsAt.slice(0, 10), amount: parseCredits(remaining) ?? 0n }],
  )
  const first = ending.map(({ day }) => day).toSorted()[0]
  const whole = `${show(balance)} credits`
  if (first === undefined) return whole
  const sum = (is: (day: string) => boolean) =>
    ending.reduce((total, { day, amount }) => (is(day) ? total + amount : total), 0n)
  const soon = show(formatCredits(sum((day) => day === first)))
  const later = sum((day) => day > first)
  return `${whole}, of which ${soon} end on ${dateName(first)}${later > 0n ? ` and ${show(formatCredits(later))} later` : ''}`
}
