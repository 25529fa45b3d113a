// What a run would cost before, and what it did cost after.
import { ApiError, api } from '../../api.ts'
import { briefCredits, creditsText, parseCredits, sumCredits } from '../../credits.ts'
import { formatMs } from '../../format.ts'
import { useQuery, useSettled } from '../../query.ts'
import { Link } from '../../router.tsx'
import { Icon } from '../../ui/icon.tsx'
import type { Quote } from '../../wire.ts'
import { describeUnits } from '../usage.tsx'

/** Pictures in a body are not sent a second time for an estimate. */
const QUOTED_BYTES_MAX = 500_000

/** Fewer calls say little about the next. */
const USUAL_CALLS_MIN = 3

type Body = Record<string, unknown>

interface Quoted {
  quote?: Quote
  error?: Error
}

async function readQuote(account: string, endpoint: string, body: Body, signal: AbortSignal): Promise<Quoted> {
  const query = endpoint === '' ? {} : { endpoint }
  try {
    const response = await api.play(account, 'POST', '/v1/quote', { query, body, signal })
    // The answer of an endpoint of ours, read by the same view.
    return { quote: ((await response.json()) as { data: Quote }).data }
  } catch (error) {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }
}

/**
 * Of all texts within: files make a body of many megabytes, which is not written out with every letter that is typed.
 */
function charsOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce((sum: number, one) => sum + charsOf(one), 0)
}

/**
 * What the gateway says that calls would cost, asked while the form is being filled in. Undefined: something is
 * missing.
 */
function useQuotes(account: string, bodies: readonly Body[] | undefined, endpoint = '') {
  const isTooLarge = charsOf(bodies) > QUOTED_BYTES_MAX
  const text = useSettled(bodies === undefined || isTooLarge ? '' : JSON.stringify(bodies))
  const asked = text !== ''
  const { data } = useQuery(asked ? `quote/${account}/${endpoint}/${text}` : undefined, (signal) => {
    // The text was made of such bodies above.
    const settled = JSON.parse(text) as Body[]
    return Promise.all(settled.map((body) => readQuote(account, endpoint, body, signal)))
  })
  return { quoted: asked ? data : undefined, isTooLarge }
}

/** What a call of each model costs this account as a rule, from its calls of 30 days. */
function useUsual(account: string): ReadonlyMap<string, bigint> {
  const sums = useQuery(`usual/${account}`, (signal) => api.sums(account, { by: 'product', per: 'day' }, signal))
  return new Map(
    sums.data?.groups.flatMap(({ group, charged, requests }) =>
      requests < USUAL_CALLS_MIN ? [] : [[group, (parseCredits(charged) ?? 0n) / BigInt(requests)]],
    ),
  )
}

export function QuoteHint(props: { account: string; body: Body | undefined; endpoint?: string }) {
  const { account, body, endpoint } = props
  const { quoted, isTooLarge } = useQuotes(account, body && [body], endpoint)
  const usual = useUsual(account).get(String(body?.model))
  return (
    <p className="cost-hint" role="status">
      <Icon name="info" size={14} />{' '}
      {isTooLarge ? 'Too large for a quote before the call.' : quoteWords(quoted?.[0], usual)}
    </p>
  )
}

/** What each of several calls costs, and all of them together. */
export function QuoteList(props: { account: string; names: readonly string[]; bodies: readonly Body[] | undefined }) {
  const { account, names, bodies } = props
  const { quoted, isTooLarge } = useQuotes(account, bodies)
  const quotes = quoted?.flatMap(({ quote }) => quote ?? []) ?? []
  const rows = names.map((name, index) => [name, quoteWords(quoted?.[index])] as const)
  if (isTooLarge) return <p className="cost-hint">Too large for a quote before the call.</p>
  return (
    <dl className="compare-costs" aria-live="polite">
      {rows.map(([name, words]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{words}</dd>
        </div>
      ))}
      {names.length > 1 && quotes.length === names.length ? (
        <div className="compare-sum">
          <dt>All {names.length}</dt>
          <dd>{costWords(quotes)}</dd>
        </div>
      ) : null}
    </dl>
  )
}

/** What many calls cost, judged by the first of them. */
export function BatchCost(props: { account: string; bodies: readonly Body[]; total: number }) {
  const { account, bodies, total } = props
  const { quoted } = useQuotes(account, bodies)
  const usual = useUsual(account)
  const each = bodies.flatMap((body, at) => {
    const most = parseCredits(quoted?.[at]?.quote?.costAtMost ?? '')
    return most === undefined ? [] : [{ most, about: usual.get(String(body.model)) ?? most }]
  })
  if (each.length === 0) return null
  const ofAll = (pick: (one: (typeof each)[number]) => bigint) =>
    (each.reduce((sum, one) => sum + pick(one), 0n) * BigInt(total)) / BigInt(each.length)
  const [about, most] = [ofAll((one) => one.about), ofAll(({ most }) => most)]
  return (
    <p className="cost-hint" role="status">
      <Icon name="info" size={14} /> {about < most ? `Costs about ${briefCredits(about)}, at most ` : 'Costs at most '}
      {creditsText(most)}
      {total > each.length ? `, judged by the first ${each.length} requests` : ''}. Models with a price for batches cost
      less.
    </p>
  )
}

/**
 * The exact price if it is known before the call, otherwise the most: of "auto" quality, for one, the dearest is held.
 */
function costWords(quotes: readonly Quote[], usual?: bigint): string {
  const sum = sumCredits(quotes.map(({ costAtMost }) => costAtMost))
  const most = creditsText(sum)
  const isFixed = quotes.every(({ lines }) => lines.every(({ unit }) => unit === 'call'))
  if (isFixed) return `Costs ${most}.`
  return usual && usual < sum ? `Costs about ${briefCredits(usual)}, at most ${most}.` : `Costs at most ${most}.`
}

function quoteWords({ quote, error }: Quoted = {}, usual?: bigint): string {
  // What is wrong with a request is said where it is sent; a half-written one is no fault yet.
  if (!quote) return error ? 'The cost is known when the form is complete.' : 'The cost is shown before you send.'
  const cost = costWords([quote], usual)
  if (quote.affordable) return cost
  return `${cost} ${briefCredits(quote.holdAtLeast)} must be available, and only ${briefCredits(quote.available)} are.`
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

export function ReceiptLine({ account, receipt }: { account: string; receipt: Receipt }) {
  const parts = [
    receipt.charged === undefined ? '' : creditsText(receipt.charged),
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
