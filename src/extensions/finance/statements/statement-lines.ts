// The lines of a monthly statement, which its page, PDF and CSV file share, and the names of its files.
import { parseCredits } from '../../../kernel/credits.ts'
import type { Movement } from '../../../ledger/views.ts'
import type { MonthlyStatement, StatementSummary } from './views.ts'

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

/**
 * The lines between opening and closing balance, with the change of each. Expired credits and the settlement of a
 * closed account are shown only if there are any.
 */
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

/** Whether nothing moved and there is no balance. */
export function isEmpty(of: StatementSummary): boolean {
  return summaryLines(of).every(([, amount]) => amount === 0n)
}

const keyName = ({ keyId, keyName: name }: MonthlyStatement['products'][number]) =>
  name ?? (keyId === 'console' ? 'Console' : keyId)

/** A line of the usage: by model and key, or by the values of a label. */
interface UsageLine {
  readonly what: string
  /** Empty if the usage is by label. */
  readonly key: string
  /** Null: no longer known. */
  readonly calls: number | null
  readonly charged: string
}

export function usageLines({ products, unitemized, label }: MonthlyStatement): UsageLine[] {
  const gone = label?.unitemized ?? unitemized
  return [
    ...(label
      ? label.values.map(({ value, calls, charged }) => ({
          what: labelValueName(label.name, value),
          key: '',
          calls,
          charged,
        }))
      : products.map((one) => ({ what: one.product, key: keyName(one), calls: one.calls, charged: one.charged }))),
    ...(gone === '0' ? [] : [{ what: 'Details no longer stored', key: '', calls: null, charged: gone }]),
  ]
}

const labelValueName = (name: string, value: string | null) =>
  value === null ? 'All other values' : value === '' ? `Without ${name}` : `${name}=${value}`

const NAME_CHARS_MAX = 80

/**
 * "statement-Acme-GmbH-2026-10.pdf": letters and digits of any language, without characters that file systems reject.
 */
export function fileName(of: StatementSummary, ending: string): string {
  const customer = of.account.name
    .normalize('NFC')
    .replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, '-')
    .replaceAll(/^-+|-+$/g, '')
  // Cut by code points, because a lone surrogate cannot be sent in a header.
  const short = [...customer].slice(0, NAME_CHARS_MAX).join('')
  return `statement-${short || of.account.id}-${of.month}.${ending}`
}
