// What a run would cost before, and what it did cost after.
import { ApiError, api } from '../../api.ts'
import { briefCredits, creditWord, formatCredits } from '../../credits.ts'
import { formatMs } from '../../format.ts'
import { Link } from '../../router.tsx'
import { Icon } from '../../ui/icon.tsx'
import { describeUnits } from '../usage.tsx'

export function CostHint({ least, most }: { least?: bigint | undefined; most: bigint | undefined }) {
  const top = most === undefined ? '' : briefCredits(most)
  const words =
    most === undefined
      ? 'Costs credits; see the price of the model.'
      : least === undefined || least === most
        ? `Costs ${top} ${creditWord(top)}.`
        : `Costs ${briefCredits(least)} to about ${top} credits.`
  return (
    <p className="cost-hint">
      <Icon name="info" size={14} /> {words}
    </p>
  )
}

export interface Receipt {
  requestId: string
  charged?: string
  units?: Record<string, number | undefined>
  estimated?: boolean
  durationMs?: number | null
}

const TRIES_MS = [0, 300, 900, 2000]

/** The settlement is written before the last byte leaves; after an interruption it may take a moment. */
export async function receiptOf(requestId: string): Promise<Receipt> {
  for (const wait of TRIES_MS) {
    await new Promise((resolve) => window.setTimeout(resolve, wait))
    try {
      const { charged, units, estimated, durationMs } = await api.usageOf(requestId)
      return { requestId, charged, units, estimated, durationMs }
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) break
    }
  }
  return { requestId }
}

function inCredits(amount: string): string {
  const shown = formatCredits(amount)
  return `${shown} ${creditWord(shown)}`
}

export function ReceiptLine({ account, receipt }: { account: string; receipt: Receipt }) {
  const parts = [
    receipt.charged === undefined ? '' : inCredits(receipt.charged),
    receipt.units ? describeUnits(receipt.units) : '',
    receipt.durationMs == null ? '' : formatMs(receipt.durationMs),
    receipt.estimated ? 'estimated' : '',
  ].filter(Boolean)
  return (
    <p className="receipt">
      {parts.length ? <span>{parts.join(' · ')}</span> : null}
      <Link to={`/a/${encodeURIComponent(account)}/usage/${encodeURIComponent(receipt.requestId)}`}>
        {parts.length ? 'Cost breakdown' : receipt.requestId}
      </Link>
    </p>
  )
}
