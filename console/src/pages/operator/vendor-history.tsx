// The last day of a vendor: requests and failures by the hour, how long answers took, and which models fail.
import { formatCompact, formatHour, formatMs, formatPercent, formatTime, formatWhole, plural } from '../../format.ts'
import { Chart } from '../../ui/chart.tsx'
import { useNow } from '../../ui/page.tsx'
import type { VendorHistory } from '../../wire.ts'

const HOURS = 24
const HOUR_MS = 3_600_000
const MODELS_SHOWN = 5

export function LastDay({ history }: { history: VendorHistory }) {
  const now = useNow()
  const last = Math.floor(now / HOUR_MS)
  const byHour = new Map(history.hours.map((one) => [one.at, one]))
  // Hours in which nothing was asked have no row.
  const points = Array.from({ length: HOURS }, (_, place) => {
    const at = new Date((last - HOURS + 1 + place) * HOUR_MS).toISOString()
    return { at, ...(byHour.get(at) ?? { requests: 0, errors: 0, latencyMsP50: null }) }
  })
  const labels = points.map(({ at, latencyMsP50 }) =>
    latencyMsP50 === null ? formatTime(at) : `${formatTime(at)}, p50 ${formatMs(latencyMsP50)}`,
  )
  const failing = history.models.filter(({ errors }) => errors > 0)
  return (
    <>
      <Chart
        title="Last 24 h"
        kind="bars"
        height={130}
        format={formatCompact}
        labels={labels}
        axis={points.map(({ at }) => formatHour(at))}
        series={[
          { name: 'Answered', values: points.map(({ requests, errors }) => requests - errors) },
          { name: 'Failed', values: points.map(({ errors }) => errors) },
        ]}
      />
      {failing.length ? (
        <ul className="small" aria-label="Errors by model, last 24 h">
          {failing.slice(0, MODELS_SHOWN).map(({ product, errors, requests }) => (
            <li key={product}>
              <b>{product || 'no model'}</b>: {formatWhole(errors)} of {plural(requests, 'request')} failed (
              {formatPercent(errors / requests)})
            </li>
          ))}
          {failing.length > MODELS_SHOWN ? <li>and {failing.length - MODELS_SHOWN} more models</li> : null}
        </ul>
      ) : null}
    </>
  )
}
