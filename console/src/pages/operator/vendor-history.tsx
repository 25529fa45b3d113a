// A vendor over time: calls and failures by the hour, and how long answers took.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatCompact, formatMs, formatPercent, formatWhole, plural } from '../../format.ts'
import { useQuery } from '../../query.ts'
import { Chart } from '../../ui/chart.tsx'
import { Segments } from '../../ui/field.tsx'
import { Card, useNow } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { timeAxis } from '../../ui/time-axis.ts'
import type { VendorHistory } from '../../wire.ts'

const HOUR_MS = 3_600_000
const MODELS_SHOWN = 5
const SPANS = [
  { value: '24', label: '24 hours' },
  { value: '168', label: '7 days' },
] as const

export function VendorHealth({ vendor }: { vendor: string }) {
  const [span, setSpan] = useState<(typeof SPANS)[number]['value']>('24')
  const hours = Number(span)
  const history = useQuery(`vendor-history/${hours}`, (signal) => api.vendorHistory(hours, signal), { everyMs: 10_000 })
  return (
    <Card title="Health over time" actions={<Segments label="Period" value={span} options={SPANS} onPick={setSpan} />}>
      <Loaded query={history}>
        {({ items }) => {
          const own = items.find((one) => one.vendor === vendor)
          return own ? <Hours history={own} hours={hours} /> : <p className="muted">No calls in this time.</p>
        }}
      </Loaded>
    </Card>
  )
}

function Hours({ history, hours }: { history: VendorHistory; hours: number }) {
  const last = Math.floor(useNow() / HOUR_MS)
  const byHour = new Map(history.hours.map((one) => [one.at, one]))
  // Hours in which nothing was asked have no row.
  const points = Array.from({ length: hours }, (_, place) => {
    const at = new Date((last - hours + 1 + place) * HOUR_MS).toISOString()
    return { at, ...(byHour.get(at) ?? { requests: 0, errors: 0, latencyMsP50: null }) }
  })
  const time = timeAxis(
    points.map(({ at }) => at),
    'hour',
  )
  const labels = points.map(({ requests, errors }, index) =>
    requests ? `${time.labels[index]}, ${formatPercent(errors / requests)} failed` : (time.labels[index] ?? ''),
  )
  return (
    <>
      <div className="grid-2">
        <Chart
          title="Calls"
          kind="bars"
          height={150}
          format={formatCompact}
          labels={labels}
          axis={time.axis}
          series={[
            { name: 'Answered', values: points.map(({ requests, errors }) => requests - errors) },
            { name: 'Failed', values: points.map(({ errors }) => errors) },
          ]}
        />
        <Chart
          title="Latency, p50"
          kind="bars"
          height={150}
          format={formatMs}
          {...time}
          series={[{ name: 'p50', values: points.map(({ latencyMsP50 }) => latencyMsP50 ?? 0) }]}
        />
      </div>
      <FailingModels history={history} />
    </>
  )
}

function FailingModels({ history }: { history: VendorHistory }) {
  const failing = history.models.filter(({ errors }) => errors > 0)
  if (failing.length === 0) return null
  return (
    <ul className="small" aria-label="Errors by model">
      {failing.slice(0, MODELS_SHOWN).map(({ product, errors, requests }) => (
        <li key={product}>
          <b>{product || 'no model'}</b>: {formatWhole(errors)} of {plural(requests, 'call')} failed (
          {formatPercent(errors / requests)})
        </li>
      ))}
      {failing.length > MODELS_SHOWN ? <li>and {failing.length - MODELS_SHOWN} more models</li> : null}
    </ul>
  )
}
