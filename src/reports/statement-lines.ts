// A monthly statement in words: the lines that its page, its PDF and its CSV file show alike, and what its files are called.
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import type { BalanceView, Movement } from '../ledger/views.ts'
import type { MonthlyStatement, StatementSummary } from './views.ts'

const MONTHS = 'January February March April May June July August September October November December'.split(' ')

/** "October 2026" */
export function monthName(month: string): string {
  return `${MONTHS[Number(month.slice(5)) - 1] ?? ''} ${month.slice(0, 4)}`
}

/** "31 October 2026", in UTC. */
export function dateName(iso: string): string {
  return `${Number(iso.slice(8, 10))} ${monthName(iso.slice(0, 7))}`
}

export const KIND_WORDS: Readonly<Record<Movement, string>> = {
  grant: 'Top-up',
  correction: 'Correction',
  takeback: 'Credits removed',
  payout: 'Paid out',
  writeoff: 'Written off',
  purchase: 'Purchase',
  refund: 'Refund',
  plan: 'Plan',
  code: 'Code',
  expiry: 'Expired',
  settled: 'Usage',
  released: 'Hold released',
  expired: 'Hold expired',
}

/** In the order in which they add up: what each adds to the balance. Expired credits are left out where there are none, and so is the settlement of accounts that were not closed. */
export function summaryLines(of: StatementSummary): ReadonlyArray<readonly [name: string, amount: bigint]> {
  const read = (amount: string) => parseCredits(amount) ?? 0n
  return [
    ['Opening balance', read(of.opening)] as const,
    ['Top-ups', read(of.topUps)] as const,
    ['Usage', -read(of.usage)] as const,
    ['Corrections', read(of.corrections)] as const,
    ...(of.expired === '0' ? [] : [['Expired', read(of.expired)] as const]),
    ...(of.settlement === '0' ? [] : [['Paid out or written off', read(of.settlement)] as const]),
    ['Closing balance', read(of.closing)] as const,
  ]
}

/** Whether anything is to be said: something moved, or there is a balance. */
export function isEmpty(of: StatementSummary): boolean {
  return summaryLines(of).every(([, amount]) => amount === 0n)
}

const keyName = ({ keyId, keyName: name }: MonthlyStatement['products'][number]) =>
  name ?? (keyId === 'console' ? 'Console' : keyId)

/** What calls were charged, in the lines of a statement: by model and key, or by the values of a label. */
export interface UsageLine {
  readonly what: string
  /** Empty where it is not by keys. */
  readonly key: string
  /** Null: not known any more. */
  readonly calls: number | null
  readonly charged: string
}

export function usageLines({ products, unitemized, label }: MonthlyStatement): UsageLine[] {
  const gone = label?.unitemized ?? unitemized
  return [
    ...(label
      ? label.values.map(({ value, calls, charged }) => ({
          ...{ what: labelValueName(label.name, value), key: '', calls, charged },
        }))
      : products.map((one) => ({ what: one.product, key: keyName(one), calls: one.calls, charged: one.charged }))),
    ...(gone === '0' ? [] : [{ what: 'Details no longer stored', key: '', calls: null, charged: gone }]),
  ]
}

const labelValueName = (name: string, value: string | null) =>
  value === null ? 'All other values' : value === '' ? `Without ${name}` : `${name}=${value}`

const NAME_CHARS_MAX = 80

/** "statement-Acme-GmbH-2026-10.pdf": letters and digits of any language, and nothing that a file system minds. */
export function fileName(of: StatementSummary, ending: string): string {
  const customer = of.account.name
    .normalize('NFC')
    .replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, '-')
    .replaceAll(/^-+|-+$/g, '')
  // By code points: half of a surrogate pair cannot be sent in a header.
  const short = [...customer].slice(0, NAME_CHARS_MAX).join('')
  return `statement-${short || of.account.id}-${of.month}.${ending}`
}

// A balance in words, for the console and the command line.

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
