// What a run would cost before, and what it did cost after.
import { useEffect, useState } from 'react'
import { ApiError, api } from '../../api.ts'
import { briefCredits, creditWord, formatCredits } from '../../credits.ts'
import { formatMs } from '../../format.ts'
import { useQuery } from '../../query.ts'
import { Link } from '../../router.tsx'
import { Icon } from '../../ui/icon.tsx'
import type { Quote } from '../../wire.ts'
import { describeUnits } from '../usage.tsx'

/** Typing is not asked about letter by letter. */
const QUOTE_AFTER_MS = 500
/** Pictures in a body are not sent a second time for an estimate. */
const QUOTED_BYTES_MAX = 500_000

/** What the gateway says that the call would cost, asked while the form is being filled in. */
export function QuoteHint({
  account,
  body,
  endpoint,
}: {
  account: string
  /** Undefined while something is missing. */
  body: Record<string, unknown> | undefined
  endpoint?: string
}) {
  const text = useSettled(body === undefined ? '' : JSON.stringify(body))
  const asked = text !== '' && text.length < QUOTED_BYTES_MAX
  const quote = useQuery(asked ? `quote/${account}/${endpoint ?? ''}/${text}` : undefined, async (signal) => {
    const query = endpoint === undefined ? {} : { endpoint }
    const response = await api.play(account, 'POST', '/v1/quote', { query, body: JSON.parse(text), signal })
    // The answer of an endpoint of ours, read by the same view.
    return ((await response.json()) as { data: Quote }).data
  })
  return (
    <p className="cost-hint" role="status">
      <Icon name="info" size={14} />{' '}
      {text !== '' && !asked ? 'Too large to ask for the cost beforehand.' : quoteWords(quote)}
    </p>
  )
}

function quoteWords({ data, error }: { data: Quote | undefined; error: Error | undefined }): string {
  // What is wrong with a request is said where it is sent; a half-written one is no fault yet.
  if (!data) return error ? 'The cost is known when the form is complete.' : 'The cost is shown before you send.'
  const [least, most] = [briefCredits(data.costAtLeast), briefCredits(data.costAtMost)]
  const cost =
    data.costAtLeast === data.costAtMost
      ? `Costs ${most} ${creditWord(most)}.`
      : `Costs ${least} to at most ${most} credits.`
  return data.affordable ? cost : `${cost} Only ${briefCredits(data.available)} are available.`
}

/** A text once it has not changed for a while. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), QUOTE_AFTER_MS)
    return () => window.clearTimeout(timer)
  }, [text])
  return text === '' ? '' : settled
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
